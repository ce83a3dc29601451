//! Which scoreboard each instruction of variable latency signals.
//!
//! One walk over the code in its final order with an estimate of the time. A result takes a scoreboard on which nothing is on its way; if there
//! is none, that whose last result arrives nearest in time, so that who waits for one waits little for the other. Any choice is correct.

use super::access::{Accesses, Resource};
use super::state::{Boards, State};
use crate::emit::linear::Linear;
use crate::isa::control::SCOREBOARDS;
use smallvec::SmallVec;

/// Instructions that are looked at to find out whether a source is overwritten before it has surely been read (*assumed*).
const LOOK_AHEAD: usize = 400;

/// The scoreboards of all instructions, by block.
pub fn assign(code: &Linear, accesses: &[Vec<Accesses>]) -> Vec<Vec<Boards>> {
    let mut clock = Clock::default();
    let mut state = State::default();
    let mut found = Vec::with_capacity(code.blocks.len());
    let mut next = Next::new();
    for (block, list) in accesses.iter().enumerate() {
        let need = need_read_boards(code, accesses, block, &mut next);
        let mut boards = Vec::with_capacity(list.len());
        for (index, access) in list.iter().enumerate() {
            let needs = state.needs(access);
            clock.pass(needs.cycles, needs.wait);
            state.waited(needs.wait);
            state.advance(needs.cycles);
            let mut mine = Boards::default();
            if access.variable && !access.writes.is_empty() {
                let latency = access.writes.iter().map(|w| w.latency).max().unwrap_or(0);
                mine.write = clock.take(latency, 0);
            }
            if need[index] {
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

/// Which instructions of a block have sources that may be overwritten before something else makes sure that they were read.
///
/// One walk backwards knows for each resource the next write and the next access in the block, which decides most cases; only where nothing
/// happens until the end of the block are the paths behind it looked at.
fn need_read_boards(
    code: &Linear,
    accesses: &[Vec<Accesses>],
    block: usize,
    next: &mut Next,
) -> Vec<bool> {
    let list = &accesses[block];
    let mut need = vec![false; list.len()];
    if list.iter().all(|access| access.slow_reads.is_empty()) {
        return need;
    }
    next.forget();
    let mut leaves = NEVER;
    for (index, access) in list.iter().enumerate().rev() {
        if !access.slow_reads.is_empty() {
            let overwritten = access.slow_reads.iter().map(|r| next.write[r.index()]);
            let overwritten = overwritten.min().unwrap_or(NEVER);
            let waited = access
                .writes
                .iter()
                .map(|w| next.access[w.resource.index()]);
            let waited = waited.min().unwrap_or(NEVER);
            let first = overwritten.min(waited).min(leaves);
            need[index] = if first == NEVER {
                may_be_overwritten_behind(code, accesses, block, index)
            } else if first == overwritten {
                true
            } else {
                // Where the function is left everything is waited for: the result, if there is one, is enough.
                first != waited && access.writes.is_empty()
            };
        }
        next.note(access, index as u32);
        if code.blocks[block].insts[index].leaves_function() {
            leaves = index as u32;
        }
    }
    need
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

/// Whether a source of a slow reader may be overwritten on a path behind its block before something else makes sure that it was read: a wait
/// for the result.
fn may_be_overwritten_behind(
    code: &Linear,
    accesses: &[Vec<Accesses>],
    block: usize,
    index: usize,
) -> bool {
    let reader = &accesses[block][index];
    let mut seen: SmallVec<[usize; 16]> = SmallVec::new();
    let mut stack = SmallVec::<[usize; 16]>::new();
    let mut enter = |stack: &mut SmallVec<[usize; 16]>, block: usize| {
        for next in code.successors(block) {
            if !seen.contains(&next) {
                seen.push(next);
                stack.push(next);
            }
        }
    };
    enter(&mut stack, block);
    let mut budget = LOOK_AHEAD;
    'paths: while let Some(block) = stack.pop() {
        for (inst, access) in code.blocks[block].insts.iter().zip(&accesses[block]) {
            if budget == 0
                || access
                    .writes
                    .iter()
                    .any(|w| reader.slow_reads.contains(&w.resource))
            {
                return true;
            }
            budget -= 1;
            let waits = |r| reader.writes.iter().any(|w| w.resource == r);
            if access.reads.iter().any(|&r| waits(r))
                || access.writes.iter().any(|w| waits(w.resource))
            {
                continue 'paths;
            }
            if inst.leaves_function() {
                if reader.writes.is_empty() {
                    return true;
                }
                continue 'paths;
            }
            if inst.ends_path() {
                break;
            }
        }
        enter(&mut stack, block);
    }
    false
}
