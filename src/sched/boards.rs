//! Which scoreboard each instruction of variable latency signals.
//!
//! One walk over the code in its final order with an estimate of the time. A result takes a scoreboard that nobody has
//! to wait for any more; if there is none, that whose last result arrives nearest in time, so that who waits for one
//! waits little for the other. A scoreboard whose results have arrived, but which has not been waited for, is no
//! better: who waits for it would wait for the new result. Any choice is correct.

use super::access::{AccessLists, Accesses, Resource};
use super::state::InFlight;
use super::synchronization::{Boards, Synchronization};
use crate::isa::control::SCOREBOARDS;
use crate::linear::Linear;
use smallvec::SmallVec;

/// Instructions that are looked at to find out what an instruction must signal (*assumed*).
const LOOK_AHEAD: usize = 400;

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub struct BoardBuffers {
    next: Next,
    /// By instruction of a block.
    needed: Vec<Needed>,
}

/// Finds the scoreboards of all instructions. `synchronizations` gets them, by position, with the stalls and wait
/// masks of code that runs from its first instruction to its last and leaves the function only there. `state` is empty
/// before.
pub fn assign(
    code: &Linear,
    accesses: &AccessLists,
    state: &mut InFlight,
    synchronizations: &mut Vec<Synchronization>,
    scratch: &mut BoardBuffers,
) {
    let mut clock = Clock::default();
    for block in 0..code.block_count() {
        scratch.find_needed(code, accesses, block);
        for (position, needed) in code.positions(block).zip(&scratch.needed) {
            let access = accesses.get(position);
            let needs = state.needs(&access);
            clock.pass(needs.cycles, needs.wait);
            let mut synchronization = Synchronization {
                stall: 1,
                wait: needs.wait,
                boards: Boards::default(),
            };
            if access.leaves {
                synchronization.wait |= state.pending(synchronization.wait);
            }
            state.waited(needs.wait);
            state.advance(needs.cycles);
            if needed.results {
                let latency = access.writes.iter().map(|w| w.latency).max().unwrap_or(0);
                synchronization.boards.write = clock.take(latency, 0);
            }
            if needed.sources {
                synchronization.boards.read =
                    clock.take(access.sources, synchronization.boards.write);
            }
            state.issue(&access, synchronization.boards);
            if access.leaves {
                synchronization.stall = state.longest().max(1);
            }
            if let Some(previous) = synchronizations.last_mut() {
                previous.stall = previous.stall.max(needs.cycles);
            }
            synchronizations.push(synchronization);
        }
    }
}

/// Estimated times.
#[derive(Default)]
struct Clock {
    now: u64,
    /// When each scoreboard is zero again.
    zero: [u64; SCOREBOARDS as usize],
    /// Scoreboards that somebody may still wait for: who does waits for what they are given in the meantime, too.
    open: u8,
}

impl Clock {
    fn pass(&mut self, cycles: u16, mut wait: u8) {
        self.now += u64::from(cycles);
        self.open &= !wait;
        while wait != 0 {
            self.now = self.now.max(self.zero[wait.trailing_zeros() as usize]);
            wait &= wait - 1;
        }
    }

    /// A scoreboard for something that is complete in `cycles`, but not one of `taken`.
    fn take(&mut self, cycles: u16, taken: u8) -> u8 {
        let end = self.now + u64::from(cycles);
        let candidates = (0..SCOREBOARDS).filter(|b| taken >> b & 1 == 0);
        let best = candidates.min_by_key(|&b| {
            let zero = self.zero[usize::from(b)];
            if zero <= self.now && self.open >> b & 1 == 0 {
                (0, 0)
            } else {
                // If its results have arrived, who waits for it would wait from now on.
                (1, zero.max(self.now).abs_diff(end))
            }
        });
        let best = best.expect("more than one scoreboard");
        let zero = &mut self.zero[usize::from(best)];
        *zero = (*zero).max(end);
        self.open |= 1 << best;
        1 << best
    }
}

/// What of an instruction must be signalled.
#[derive(Clone, Copy, Debug, Default)]
struct Needed {
    /// That the results have arrived: something touches them, or the function is left.
    results: bool,
    /// That the sources have been read: they may be overwritten before something else makes sure of it.
    sources: bool,
}

/// No such place.
const NEVER: u32 = u32::MAX;

impl BoardBuffers {
    /// Finds what the instructions of a block must signal.
    ///
    /// One walk backwards knows for each resource the next write and the next access in the block, which decides most
    /// cases; only where nothing happens until the end of the block are the paths behind it looked at.
    fn find_needed(&mut self, code: &Linear, accesses: &AccessLists, block: usize) {
        let BoardBuffers { next, needed } = self;
        let range = code.positions(block);
        needed.clear();
        needed.resize(range.len(), Needed::default());
        if !accesses.any_is_variable(range.clone()) {
            return;
        }
        next.begin(range.len() as u32);
        let end = (block, range.end);
        let (mut leaves, mut fence) = (NEVER, NEVER);
        for (index, position) in range.enumerate().rev() {
            let access = accesses.get(position);
            if access.variable {
                let touched = access.registers().map(|w| next.access(w.resource)).min();
                // Behind a fence nobody waits for what is performed before it.
                let behind = (access.writes.iter())
                    .filter(|w| w.resource.is_memory())
                    .map(|w| next.access(w.resource));
                let behind = behind.filter(|&at| at <= fence).min().unwrap_or(NEVER);
                let touched = touched.unwrap_or(NEVER).min(behind);
                let touches = |later: &Accesses<'_>| later.touches_results_of(&access);
                let is_performed_later = || {
                    access.is_performed()
                        && fence == NEVER
                        && reaches(
                            code,
                            accesses,
                            end,
                            |_, later| later.fences,
                            |later| later.is_ordered_behind(&access),
                        )
                };
                let has_results = !access.writes.is_empty();
                needed[index].results = has_results
                    && (touched.min(leaves) != NEVER
                        || reaches(
                            code,
                            accesses,
                            end,
                            |_, _| false,
                            |later| touches(later) || later.leaves,
                        )
                        || is_performed_later());
                let overwritten = access.slow_reads.iter().map(|&r| next.write(r)).min();
                let overwritten = overwritten.unwrap_or(NEVER);
                let first = overwritten.min(touched).min(leaves);
                needed[index].sources = if access.slow_reads.is_empty() {
                    false
                } else if first == NEVER {
                    // Where the function is left everything is waited for.
                    let complete =
                        |_, later: &Accesses<'_>| touches(later) || has_results && later.leaves;
                    reaches(code, accesses, end, complete, |later| {
                        later.overwrites_sources_of(&access) || later.leaves
                    })
                } else {
                    first != touched && !(first == leaves && has_results)
                };
            }
            next.note(&access, index as u32);
            if access.fences {
                fence = index as u32;
            }
            if access.leaves {
                leaves = index as u32;
            }
        }
    }
}

/// For each resource the next place in a block where something happens to it.
///
/// Places of different blocks are told apart by a number that is added to them, so the tables are never emptied.
#[derive(Debug)]
struct Next {
    write: [u32; Resource::COUNT],
    access: [u32; Resource::COUNT],
    /// Added to the places of this block; what is below is of another.
    base: u32,
    /// Added to those of the next block.
    end: u32,
}

impl Default for Next {
    fn default() -> Self {
        Next {
            write: [0; Resource::COUNT],
            access: [0; Resource::COUNT],
            base: 1,
            end: 1,
        }
    }
}

impl Next {
    /// Forgets everything, for a block of `len` instructions.
    fn begin(&mut self, len: u32) {
        if self.end > NEVER - len {
            *self = Next::default();
        }
        self.base = self.end;
        self.end = self.base + len;
    }

    fn place(&self, noted: u32) -> u32 {
        noted.checked_sub(self.base).unwrap_or(NEVER)
    }

    /// The next access to a resource.
    fn access(&self, resource: Resource) -> u32 {
        self.place(self.access[resource.index()])
    }

    /// The next write to a resource.
    fn write(&self, resource: Resource) -> u32 {
        self.place(self.write[resource.index()])
    }

    fn note(&mut self, access: &Accesses<'_>, index: u32) {
        for resource in access.reads {
            self.access[resource.index()] = self.base + index;
        }
        for write in access.registers() {
            self.access[write.resource.index()] = self.base + index;
            self.write[write.resource.index()] = self.base + index;
        }
    }
}

/// Whether the instruction at a position of a block needs no read scoreboard beside its write scoreboard, `results`: on
/// all paths who overwrites a source comes behind a wait for the results. `synchronizations` have the wait masks as
/// they have become; more instructions wait for a scoreboard than those that use the results, since scoreboards are
/// shared.
pub fn needs_no_read_board(
    code: &Linear,
    accesses: &AccessLists,
    (block, position): (usize, usize),
    results: u8,
    synchronizations: &[Synchronization],
) -> bool {
    let access = accesses.get(position);
    let complete = |at: usize, _: &Accesses<'_>| synchronizations[at].wait & results != 0;
    let start = (block, position + 1);
    !reaches(code, accesses, start, complete, |later| {
        later.overwrites_sources_of(&access) || later.leaves
    })
}

/// Whether a path from a position in a block on comes to a `hit` before it comes to a `stop`; at one instruction the
/// stop counts first. Says so too where that is not found out within [`LOOK_AHEAD`] instructions.
fn reaches(
    code: &Linear,
    accesses: &AccessLists,
    start: (usize, usize),
    stop: impl Fn(usize, &Accesses<'_>) -> bool,
    hit: impl Fn(&Accesses<'_>) -> bool,
) -> bool {
    let mut seen: SmallVec<[usize; 16]> = SmallVec::new();
    let mut stack = SmallVec::<[(usize, usize); 16]>::from_slice(&[start]);
    let mut budget = LOOK_AHEAD;
    'paths: while let Some((block, from)) = stack.pop() {
        let end = code.positions(block).end;
        for position in from..end {
            let access = accesses.get(position);
            if stop(position, &access) {
                continue 'paths;
            }
            if budget == 0 || hit(&access) {
                return true;
            }
            budget -= 1;
            if access.ends_path && position + 1 < end {
                continue 'paths;
            }
        }
        for next in code.successors(block) {
            if !seen.contains(&next) {
                seen.push(next);
                stack.push((next, code.positions(next).start));
            }
        }
    }
    false
}
