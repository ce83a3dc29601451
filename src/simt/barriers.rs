//! Which convergence barrier each region uses.

use super::block_set::BlockSet;
use thiserror::Error;

/// Convergence barriers of a warp (design of the machine, *assigned*).
pub const BARRIERS: u8 = 16;

/// Regions overlap in a way that the barriers of the machine cannot express.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unsupported: more than {BARRIERS} divergent regions overlap without being nested in each other"
)]
pub struct TooManyBarriers;

/// Where a barrier is in use.
#[derive(Clone, Debug)]
pub struct LiveRange {
    /// It is set at the end of these blocks.
    pub starts: Vec<usize>,
    /// It is waited for at the start of this one.
    pub meeting: usize,
    /// The blocks between, the starting blocks with them.
    pub extent: Extent,
}

/// Which blocks a barrier is in use in: known in the same way for all barriers of a function.
#[derive(Clone, Debug)]
pub enum Extent {
    /// Any two are apart, or one lies in the other.
    Nested {
        /// How many this one lies in.
        around: u32,
        /// Number of its blocks, about: more than of any that lies in it.
        blocks: usize,
    },
    /// They may overlap in any way.
    Set(BlockSet),
}

impl Extent {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        match self {
            Extent::Nested { blocks, .. } => *blocks,
            Extent::Set(blocks) => blocks.len(),
        }
    }
}

/// The barrier of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its number.
    pub number: u8,
    /// A region around this one uses it too: its mask is put aside meanwhile.
    pub saves_outer: bool,
}

/// Gives every region of a function with `blocks` blocks a barrier, outer regions (which come first) the lower numbers. Regions that overlap
/// have different barriers as long as there are enough; after that a region takes the barrier of regions that it lies in entirely.
///
/// # Errors
/// See [`TooManyBarriers`].
pub fn assign(regions: &[LiveRange], blocks: usize) -> Result<Vec<Assignment>, TooManyBarriers> {
    let mut around = Vec::new();
    let mut sets = Vec::new();
    for region in regions {
        match &region.extent {
            Extent::Nested { around: count, .. } => around.push((*count, region.starts.len())),
            Extent::Set(inside) => sets.push(Placed {
                starts: &region.starts,
                meeting: region.meeting,
                inside,
            }),
        }
    }
    match sets.is_empty() {
        true => around.into_iter().map(assign_nested).collect(),
        false => assign_sets(&sets, blocks),
    }
}

/// The barrier of a region that lies in `around` others, which alone it overlaps with: what [`assign_sets`] gives it.
fn assign_nested((around, starts): (u32, usize)) -> Result<Assignment, TooManyBarriers> {
    let last = u32::from(BARRIERS) - 1;
    // The mask that is put aside has one definition.
    if around > last && starts > 1 {
        return Err(TooManyBarriers);
    }
    Ok(Assignment {
        number: around.min(last) as u8,
        saves_outer: around > last,
    })
}

/// A [`LiveRange`] whose blocks are known.
struct Placed<'a> {
    starts: &'a [usize],
    meeting: usize,
    inside: &'a BlockSet,
}

fn assign_sets(regions: &[Placed], blocks: usize) -> Result<Vec<Assignment>, TooManyBarriers> {
    let mut users = Users {
        inside: vec![0; blocks],
        starting: vec![0; blocks],
        regions: Default::default(),
    };
    let mut found: Vec<Assignment> = Vec::with_capacity(regions.len());
    for region in regions {
        let taken = users.taken(region);
        let free = (0..BARRIERS)
            .find(|n| taken >> n & 1 == 0)
            .map(|number| Assignment {
                number,
                saves_outer: false,
            });
        // The mask that is put aside has one definition.
        let nested = || {
            if region.starts.len() > 1 {
                return None;
            }
            let number = (0..BARRIERS).rev().find(|&n| {
                users.regions[usize::from(n)]
                    .iter()
                    .all(|other| !overlap(other, region) || holds(other, region))
            })?;
            Some(Assignment {
                number,
                saves_outer: true,
            })
        };
        let assignment = free.or_else(nested).ok_or(TooManyBarriers)?;
        users.add(region, assignment.number);
        found.push(assignment);
    }
    Ok(found)
}

/// The barriers in use, as sets of bits by block.
struct Users<'r, 'a> {
    /// By regions that hold the block.
    inside: Vec<u16>,
    /// By regions that start at the end of the block.
    starting: Vec<u16>,
    /// Who uses each barrier.
    regions: [Vec<&'r Placed<'a>>; BARRIERS as usize],
}

impl<'r, 'a> Users<'r, 'a> {
    /// The barriers of the regions that [`overlap`] with `region`.
    fn taken(&self, region: &Placed) -> u16 {
        let around = region.starts.iter().map(|&start| self.inside[start]);
        let within = region.inside.iter().map(|block| self.starting[block]);
        around.chain(within).fold(0, |taken, more| taken | more)
    }

    fn add(&mut self, region: &'r Placed<'a>, number: u8) {
        for block in region.inside.iter() {
            self.inside[block] |= 1 << number;
        }
        for &start in region.starts {
            self.starting[start] |= 1 << number;
        }
        self.regions[usize::from(number)].push(region);
    }
}

/// Whether both barriers are in use at some place.
fn overlap(a: &Placed, b: &Placed) -> bool {
    b.starts.iter().any(|&s| a.inside.contains(s)) || a.starts.iter().any(|&s| b.inside.contains(s))
}

/// Whether `outer` is in use wherever `inner` is, and beyond.
fn holds(outer: &Placed, inner: &Placed) -> bool {
    outer.inside.contains(inner.meeting) && outer.inside.is_superset(inner.inside)
}
