//! Which convergence barrier each region uses.

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
    pub inside: Vec<bool>,
}

/// The barrier of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its number.
    pub number: u8,
    /// A region around this one uses it too: its mask is put aside meanwhile.
    pub saves_outer: bool,
}

/// Gives every region a barrier, outer regions (which come first) the lower numbers. Regions that overlap have different barriers as long as
/// there are enough; after that a region takes the barrier of regions that it lies in entirely.
///
/// # Errors
/// See [`TooManyBarriers`].
pub fn assign(regions: &[LiveRange]) -> Result<Vec<Assignment>, TooManyBarriers> {
    let mut found: Vec<Assignment> = Vec::with_capacity(regions.len());
    for region in regions {
        let rivals: Vec<(&LiveRange, u8)> = regions
            .iter()
            .zip(&found)
            .filter(|(other, _)| overlap(other, region))
            .map(|(other, a)| (other, a.number))
            .collect();
        let taken = rivals
            .iter()
            .fold(0u32, |mask, (_, number)| mask | 1 << number);
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
                rivals
                    .iter()
                    .all(|(outer, number)| *number != n || holds(outer, region))
            })?;
            Some(Assignment {
                number,
                saves_outer: true,
            })
        };
        found.push(free.or_else(nested).ok_or(TooManyBarriers)?);
    }
    Ok(found)
}

/// Whether both barriers are in use at some place.
fn overlap(a: &LiveRange, b: &LiveRange) -> bool {
    b.starts.iter().any(|&s| a.inside[s]) || a.starts.iter().any(|&s| b.inside[s])
}

/// Whether `outer` is in use wherever `inner` is, and beyond.
fn holds(outer: &LiveRange, inner: &LiveRange) -> bool {
    outer.inside[inner.meeting]
        && inner
            .inside
            .iter()
            .zip(&outer.inside)
            .all(|(i, o)| !i || *o)
}
