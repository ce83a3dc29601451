//! Which scoreboard each instruction of variable latency signals.
//!
//! One walk over the code in its final order with an estimate of the time. A result takes a scoreboard on which nothing is on its way; if there
//! is none, that whose last result arrives nearest in time, so that who waits for one waits little for the other. Any choice is correct.

use super::access::{Accesses, Resource};
use super::state::{Boards, State};
use crate::emit::linear::Linear;
use crate::isa::control::SCOREBOARDS;
use smallvec::SmallVec;

/// Instructions that are looked at to find out what an instruction must signal (*assumed*).
const LOOK_AHEAD: usize = 400;

/// The scoreboards of all instructions, by block.
pub fn assign(code: &Linear, accesses: &[Vec<Accesses>]) -> Vec<Vec<Boards>> {
    let mut clock = Clock::default();
    let mut state = State::default();
    let mut found = Vec::with_capacity(code.blocks.len());
    let mut next = Next::new();
    for (block, list) in accesses.iter().enumerate() {
        let needed = needed_boards(code, accesses, block, &mut next);
        let mut boards = Vec::with_capacity(list.len());
        for (index, access) in list.iter().enumerate() {
            let needs = state.needs(access);
            clock.pass(needs.cycles, needs.wait);
            state.waited(needs.wait);
            state.advance(needs.cycles);
            let mut mine = Boards::default();
            if needed[index].results {
                let latency = access.writes.iter().map(|w| w.latency).max().unwrap_or(0);
                mine.write = clock.take(latency, 0);
            }
            if needed[index].sources {
                mine.read = clock.take(access.sources, mine.write);
            }
            state.issue(access, mine);
            boards.push(mine);
        }
        found.push(boards);
    }
    found
}

/// Estimated times.
#[derive(Default)]
struct Clock {
    now: u64,
    /// When each scoreboard is zero again.
    zero: [u64; SCOREBOARDS as usize],
}

impl Clock {
    fn pass(&mut self, cycles: u16, wait: u8) {
        self.now += u64::from(cycles);
        let waits = (0..SCOREBOARDS)
            .filter(|b| wait >> b & 1 != 0)
            .map(|b| self.zero[usize::from(b)]);
        self.now = waits.fold(self.now, u64::max);
    }

    /// A scoreboard for something that is complete in `cycles`, but not one of `taken`.
    fn take(&mut self, cycles: u16, taken: u8) -> u8 {
        let end = self.now + u64::from(cycles);
        let candidates = (0..SCOREBOARDS).filter(|b| taken >> b & 1 == 0);
        let best = candidates.min_by_key(|&b| {
            let zero = self.zero[usize::from(b)];
            if zero <= self.now {
                (0, 0)
            } else {
                (1, zero.abs_diff(end))
            }
        });
        let best = best.expect("more than one scoreboard");
        let zero = &mut self.zero[usize::from(best)];
        *zero = (*zero).max(end);
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

/// What the instructions of a block must signal.
///
/// One walk backwards knows for each resource the next write and the next access in the block, which decides most cases; only where nothing
/// happens until the end of the block are the paths behind it looked at.
fn needed_boards(
    code: &Linear,
    accesses: &[Vec<Accesses>],
    block: usize,
    next: &mut Next,
) -> Vec<Needed> {
    let list = &accesses[block];
    let mut needed = vec![Needed::default(); list.len()];
    if !list.iter().any(|access| access.variable) {
        return needed;
    }
    next.forget();
    let mut leaves = NEVER;
    for (index, access) in list.iter().enumerate().rev() {
        if access.variable {
            let end = (block, list.len());
            let touched = access.writes.iter();
            let touched = touched.map(|w| next.access[w.resource.index()]).min();
            let touched = touched.unwrap_or(NEVER);
            let touches = |b: usize, i: usize| accesses[b][i].touches_results_of(access);
            let has_results = !access.writes.is_empty();
            needed[index].results = has_results
                && (touched.min(leaves) != NEVER
                    || reaches(
                        code,
                        end,
                        |_, _| false,
                        |b, i| touches(b, i) || code.blocks[b].insts[i].leaves_function(),
                    ));
            let overwritten = access.slow_reads.iter();
            let overwritten = overwritten.map(|r| next.write[r.index()]).min();
            let overwritten = overwritten.unwrap_or(NEVER);
            let first = overwritten.min(touched).min(leaves);
            needed[index].sources = if access.slow_reads.is_empty() {
                false
            } else if first == NEVER {
                // Where the function is left everything is waited for.
                let complete = |b: usize, i: usize| {
                    touches(b, i) || has_results && code.blocks[b].insts[i].leaves_function()
                };
                reaches(code, end, complete, |b, i| {
                    accesses[b][i].overwrites_sources_of(access)
                        || code.blocks[b].insts[i].leaves_function()
                })
            } else {
                first != touched && !(first == leaves && has_results)
            };
        }
        next.note(access, index as u32);
        if code.blocks[block].insts[index].leaves_function() {
            leaves = index as u32;
        }
    }
    needed
}

/// No such place.
const NEVER: u32 = u32::MAX;

/// For each resource the next place in the block where something happens to it.
struct Next {
    write: [u32; Resource::COUNT],
    access: [u32; Resource::COUNT],
}

impl Next {
    fn new() -> Next {
        Next {
            write: [NEVER; Resource::COUNT],
            access: [NEVER; Resource::COUNT],
        }
    }

    fn forget(&mut self) {
        self.write.fill(NEVER);
        self.access.fill(NEVER);
    }

    fn note(&mut self, access: &Accesses, index: u32) {
        for resource in &access.reads {
            self.access[resource.index()] = index;
        }
        for write in &access.writes {
            self.access[write.resource.index()] = index;
            self.write[write.resource.index()] = index;
        }
    }
}

/// Whether an instruction needs no read scoreboard beside its write scoreboard, `results`: on all paths who overwrites a source comes behind a
/// wait for the results. `waits` are the wait masks as they have become; more instructions wait for a scoreboard than those that
/// use the results, since scoreboards are shared.
pub fn needs_no_read_board(
    code: &Linear,
    accesses: &[Vec<Accesses>],
    (block, index): (usize, usize),
    results: u8,
    waits: impl Fn(usize, usize) -> u8,
) -> bool {
    let complete = |b, i| waits(b, i) & results != 0;
    !reaches(code, (block, index + 1), complete, |b, i| {
        accesses[b][i].overwrites_sources_of(&accesses[block][index])
            || code.blocks[b].insts[i].leaves_function()
    })
}

/// Whether a path from instruction `from` of a block on comes to a `hit` before it comes to a `stop`; at one instruction the stop counts first.
/// Says so too where that is not found out within [`LOOK_AHEAD`] instructions.
fn reaches(
    code: &Linear,
    start: (usize, usize),
    stop: impl Fn(usize, usize) -> bool,
    hit: impl Fn(usize, usize) -> bool,
) -> bool {
    let mut seen: SmallVec<[usize; 16]> = SmallVec::new();
    let mut stack = SmallVec::<[(usize, usize); 16]>::from_slice(&[start]);
    let mut budget = LOOK_AHEAD;
    'paths: while let Some((block, from)) = stack.pop() {
        let insts = &code.blocks[block].insts;
        for index in from..insts.len() {
            if stop(block, index) {
                continue 'paths;
            }
            if budget == 0 || hit(block, index) {
                return true;
            }
            budget -= 1;
            if insts[index].ends_path() && index + 1 < insts.len() {
                continue 'paths;
            }
        }
        for next in code.successors(block) {
            if !seen.contains(&next) {
                seen.push(next);
                stack.push((next, 0));
            }
        }
    }
    false
}
