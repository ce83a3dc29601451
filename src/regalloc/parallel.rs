//! Parallel copies: all sources are read before any target is written.

use super::registers::RegisterSet;
use crate::isa::{PReg, Register};
use smallvec::SmallVec;

/// A copy that happens at the same time as its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    /// Read.
    pub from: PReg,
    /// Written.
    pub to: PReg,
}

/// A step of the sequence that does what a parallel copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyStep {
    /// `to` = `from`.
    Move(Copy),
    /// Two registers exchange their values without a third.
    Swap(PReg, PReg),
}

/// Orders `copies`, whose targets differ. `busy` holds the registers that must keep their values; a free one below
/// `available` breaks cycles, without one the values are exchanged in place.
///
/// Every copy and every register is looked at a constant number of times.
pub(super) fn sequence(
    copies: &[Copy],
    busy: &RegisterSet,
    available: &RegisterSet,
    out: &mut Vec<CopyStep>,
) {
    let mut pending: SmallVec<[Copy; 8]> =
        copies.iter().copied().filter(|c| c.from != c.to).collect();
    pending.sort_by_key(|c| c.to);
    debug_assert!(
        pending.windows(2).all(|w| w[0].to != w[1].to),
        "two copies to one register: {copies:?}"
    );
    let writer = |pending: &[Copy], r: PReg| pending.binary_search_by_key(&r, |c| c.to).ok();
    let mut readers: SmallVec<[u32; 8]> = SmallVec::from_elem(0, pending.len());
    for c in &pending {
        if let Some(i) = writer(&pending, c.from) {
            readers[i] += 1;
        }
    }
    let mut done: SmallVec<[bool; 8]> = SmallVec::from_elem(false, pending.len());
    // Chains: a target that nobody reads any more can be written; that may free its source.
    for start in 0..pending.len() {
        let mut next = Some(start);
        while let Some(i) = next.take() {
            if done[i] || readers[i] != 0 {
                break;
            }
            done[i] = true;
            out.push(CopyStep::Move(pending[i]));
            if let Some(source) = writer(&pending, pending[i].from) {
                readers[source] -= 1;
                next = Some(source);
            }
        }
    }
    // What remains are cycles: each target is read by exactly one copy.
    for start in 0..pending.len() {
        if done[start] {
            continue;
        }
        let mut taken = *busy;
        for c in copies {
            taken.insert(c.from);
            taken.insert(c.to);
        }
        let class = pending[start].to.class();
        let temporary = available
            .of(class)
            .minus(*taken.of(class))
            .iter()
            .next()
            .map(|n| PReg::new(class, n));
        let first = pending[start];
        let mut cycle = SmallVec::<[Copy; 8]>::new();
        let mut i = start;
        while !done[i] {
            done[i] = true;
            cycle.push(pending[i]);
            i = writer(&pending, pending[i].from).expect("a cycle");
        }
        match temporary {
            Some(temporary) => {
                out.push(CopyStep::Move(Copy {
                    from: first.to,
                    to: temporary,
                }));
                for c in &cycle {
                    let from = if c.from == first.to {
                        temporary
                    } else {
                        c.from
                    };
                    out.push(CopyStep::Move(Copy { from, to: c.to }));
                }
            }
            None => {
                // The cycle runs to ← from; exchanging along it leaves every value at its target.
                for c in &cycle[..cycle.len() - 1] {
                    out.push(CopyStep::Swap(c.to, c.from));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::RegisterClass;
    use crate::regalloc::registers::Numbers;

    fn gpr(from: u8, to: u8) -> Copy {
        Copy {
            from: PReg::gpr(from),
            to: PReg::gpr(to),
        }
    }

    fn run(copies: &[Copy], busy: &RegisterSet, available: &RegisterSet) {
        let mut steps = Vec::new();
        sequence(copies, busy, available, &mut steps);
        let mut state: Vec<u8> = (0..255).collect();
        for step in &steps {
            match *step {
                CopyStep::Move(c) => {
                    state[usize::from(c.to.number())] = state[usize::from(c.from.number())]
                }
                CopyStep::Swap(a, b) => {
                    state.swap(usize::from(a.number()), usize::from(b.number()))
                }
            }
        }
        for c in copies {
            assert_eq!(
                state[usize::from(c.to.number())],
                c.from.number(),
                "{copies:?}: {steps:?}"
            );
        }
        for r in busy
            .of(RegisterClass::Gpr)
            .iter()
            .filter(|r| !copies.iter().any(|c| c.to.number() == *r))
        {
            assert_eq!(state[usize::from(r)], r, "{copies:?}: {steps:?}");
        }
    }

    /// All functions from five targets to seven sources, with and without a free register.
    #[test]
    fn every_small_copy() {
        for number in 0..7u32.pow(5) {
            let copies: Vec<Copy> = (0..5u8)
                .map(|to| gpr((number / 7u32.pow(u32::from(to)) % 7) as u8, to))
                .collect();
            let mut busy = RegisterSet::default();
            *busy.of_mut(RegisterClass::Gpr) = Numbers::below(7);
            let mut available = RegisterSet::default();
            run(&copies, &busy, &available);
            *available.of_mut(RegisterClass::Gpr) = Numbers::below(8);
            run(&copies, &busy, &available);
        }
    }
}
