//! Blocks from which lanes only come to their end.
//!
//! Lanes that end leave every convergence barrier. So where some lanes of a kernel return early, the others need not go
//! their way with them to meet again: paths to such an exit do not count. Which exits are such:
//!
//! - a trap, and in a kernel a return, if its *tail*, the blocks that lead nowhere else, holds no convergent operation;
//!   a call of a function that may have one does not count in front of a trap: it says what is wrong;
//! - but not all: if no exit is left, the one with the most instructions in its tail is the main one, returns before
//!   traps. The same holds for what can be reached from a convergent operation: lanes that come to a barrier of the
//!   block have not left, however many exits are behind it. Where one leads to another, the exit of the last is enough;
//! - never the return, or the jump to another function, of a device function: its lanes live on in the caller.
//!
//! A block that is nothing but a trap or a return of a kernel is the end for who branches there, whoever else returns
//! there too: the branch is as good as the guard `@P EXIT`.

use super::calls::Callees;
use super::control_flow::ControlFlow;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Opcode};
use std::cmp::Reverse;

/// Which exits can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ahead {
    #[default]
    None,
    One(Block),
    Several,
}

impl Ahead {
    fn or(self, other: Ahead) -> Ahead {
        match (self, other) {
            (Ahead::None, x) | (x, Ahead::None) => x,
            (a, b) if a == b => a,
            _ => Ahead::Several,
        }
    }
}

/// How lanes that come to a block end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ending {
    /// They may go on with the others.
    #[default]
    Not,
    /// There and then: the block is a lone trap or, in a kernel, a lone return.
    Here,
    /// Sooner or later, and do not meet the others any more.
    Apart,
}

/// Finds the ending of each of the reachable blocks `rpo`; all `ends` are [`Ending::Not`] before.
pub(super) fn find(
    func: &Function,
    (cfg, rpo): (&ControlFlowGraph, &[Block]),
    kernel: bool,
    callees: &Callees,
    ends: &mut SecondaryMap<Block, Ending>,
) {
    for &block in rpo {
        let first = func.layout.first_inst(block);
        let alone = first.filter(|inst| func.layout.last_inst(block) == Some(*inst));
        if alone.is_some_and(|inst| match func.dfg.insts[inst].opcode() {
            Opcode::Trap => true,
            Opcode::Return => kernel,
            _ => false,
        }) {
            ends[block] = Ending::Here;
        }
    }
    let exits = || (rpo.iter().copied()).filter(|&block| cfg.succ_iter(block).next().is_none());
    if exits().nth(1).is_none() {
        return;
    }
    let exits: Vec<Block> = exits().collect();
    let finder = Finder {
        func,
        cfg,
        kernel,
        callees,
    };
    let main = finder.main_exits(rpo, &exits);
    let to_main = finder.reaching(&main);
    let to_exit = finder.reaching(&exits);
    for &block in rpo {
        if to_exit[block] && !to_main[block] && ends[block] == Ending::Not {
            ends[block] = Ending::Apart;
        }
    }
}

struct Finder<'a> {
    func: &'a Function,
    cfg: &'a ControlFlowGraph,
    kernel: bool,
    callees: &'a Callees,
}

impl Finder<'_> {
    fn main_exits(&self, rpo: &[Block], exits: &[Block]) -> Vec<Block> {
        let ahead = self.ahead(exits);
        let mut main: Vec<Block> = exits
            .iter()
            .copied()
            .filter(|&exit| !self.kernel && !traps(self.func, exit))
            .collect();
        let convergent: Vec<Block> = rpo
            .iter()
            .copied()
            .filter(|&block| {
                let before_trap =
                    matches!(ahead[block], Ahead::One(exit) if traps(self.func, exit));
                let calls = self.func.layout.block_insts(block);
                let mut calls = calls.filter_map(|inst| self.callees.call(self.func, inst));
                calls.any(|call| call.summary.convergent && (call.intrinsic || !before_trap))
            })
            .collect();
        let mut is_main: SecondaryMap<Block, bool> = SecondaryMap::new();
        main.iter().for_each(|&exit| is_main[exit] = true);
        for &block in &convergent {
            if let Ahead::One(exit) = ahead[block]
                && !std::mem::replace(&mut is_main[exit], true)
            {
                main.push(exit);
            }
        }
        let mut led_on: SecondaryMap<Block, bool> = SecondaryMap::new();
        extend_reaching(self.cfg, &main, &mut led_on);
        let largest = self.largest(rpo, exits, &ahead);
        // The last one first: what it leads to is ahead of those before it as well.
        for &block in convergent.iter().rev() {
            if let Some(exit) = largest[block].filter(|_| !led_on[block]) {
                main.push(exit);
                extend_reaching(self.cfg, &[exit], &mut led_on);
            }
        }
        if main.is_empty() {
            main.extend(rpo.first().and_then(|&entry| largest[entry]));
        }
        main
    }

    /// The exits that each block leads to. A block changes at most twice.
    fn ahead(&self, exits: &[Block]) -> SecondaryMap<Block, Ahead> {
        let mut ahead: SecondaryMap<Block, Ahead> = SecondaryMap::new();
        let mut work = Vec::new();
        for &exit in exits {
            ahead[exit] = Ahead::One(exit);
            work.push(exit);
        }
        while let Some(block) = work.pop() {
            for pred in self.cfg.pred_iter(block) {
                let joined = ahead[pred.block].or(ahead[block]);
                if std::mem::replace(&mut ahead[pred.block], joined) != joined {
                    work.push(pred.block);
                }
            }
        }
        ahead
    }

    /// The exit with the most instructions in its tail that can be reached from each block, returns before traps, of
    /// equals the last in the order of the blocks.
    fn largest(
        &self,
        rpo: &[Block],
        exits: &[Block],
        ahead: &SecondaryMap<Block, Ahead>,
    ) -> SecondaryMap<Block, Option<Block>> {
        let mut size: SecondaryMap<Block, usize> = SecondaryMap::new();
        for &block in rpo {
            if let Ahead::One(exit) = ahead[block] {
                size[exit] += self.func.layout.block_insts(block).count();
            }
        }
        let mut order: Vec<usize> = (0..exits.len()).collect();
        order.sort_by_key(|&at| Reverse((!traps(self.func, exits[at]), size[exits[at]], at)));
        let mut largest: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
        for exit in order.into_iter().map(|at| exits[at]) {
            let mut work = vec![exit];
            while let Some(block) = work.pop() {
                if largest[block].is_none() {
                    largest[block] = Some(exit);
                    work.extend(self.cfg.pred_iter(block).map(|pred| pred.block));
                }
            }
        }
        largest
    }

    /// The blocks from which one of `targets` can be reached, those among them.
    fn reaching(&self, targets: &[Block]) -> SecondaryMap<Block, bool> {
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        extend_reaching(self.cfg, targets, &mut seen);
        seen
    }
}

/// Whether the block ends in a trap: a call in it says what is wrong, and does not come back.
pub(super) fn traps(func: &Function, block: Block) -> bool {
    let last = func.layout.last_inst(block);
    last.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Trap)
}

/// Adds the blocks from which one of `targets` can be reached to those `seen`.
pub(super) fn extend_reaching(
    cfg: &ControlFlowGraph,
    targets: &[Block],
    seen: &mut SecondaryMap<Block, bool>,
) {
    let mut work = targets.to_vec();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut seen[block], true) {
            work.extend(cfg.pred_iter(block).map(|pred| pred.block));
        }
    }
}

/// Blocks from which lanes only come to a trap, while others may go on elsewhere. Nobody waits for those lanes, and
/// nobody learns what they read.
pub(super) struct Trapping<'a> {
    flow: &'a ControlFlow,
    before_returns: SecondaryMap<Block, bool>,
}

impl<'a> Trapping<'a> {
    /// Looks at `func`, whose control flow is `flow`.
    pub(super) fn find(func: &Function, flow: &'a ControlFlow) -> Self {
        let is_return =
            |block: &Block| flow.successors(*block).next().is_none() && !traps(func, *block);
        let returns: Vec<Block> = (flow.reverse_postorder().iter().copied())
            .filter(is_return)
            .collect();
        let mut before_returns = SecondaryMap::new();
        extend_reaching(flow.cfg(), &returns, &mut before_returns);
        Trapping {
            flow,
            before_returns,
        }
    }

    /// Whether `block` is one.
    pub(super) fn contain(&self, block: Block) -> bool {
        self.flow.ends_lanes(block) && !self.before_returns[block]
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::calls::{Callees, Summary};
    use crate::analysis::control_flow::ControlFlow;
    use crate::intrinsics::resolve::Intrinsics;
    use cranelift_codegen::ir::{Block, ExternalName};

    /// The numbers of the blocks in which lanes only end.
    fn ends(text: &str, kernel: bool) -> Vec<u32> {
        let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let name = |reference| match &func.dfg.ext_funcs[reference].name {
            ExternalName::TestCase(name) => Some(String::from_utf8_lossy(name.raw()).into_owned()),
            _ => None,
        };
        let callees = Callees::of(&func, &Intrinsics::default(), &name, &|_| Summary::UNKNOWN);
        let flow = ControlFlow::compute(&func, kernel, &callees);
        let blocks = flow.reverse_postorder().iter().copied();
        let mut found: Vec<u32> = blocks
            .filter(|&block: &Block| flow.ends_lanes(block))
            .map(|block| block.as_u32())
            .collect();
        found.sort_unstable();
        found
    }

    /// A loop with a side exit that stores, and `behind` after the loop.
    fn side_exit(behind: &str) -> String {
        format!(
            "function %f(i32, i64) {{
                fn0 = %gpu_bar_sync()
            block0(v0: i32, v1: i64):
                jump block1(v0)
            block1(v2: i32):
                brif v2, block2, block4
            block2:
                v3 = iadd v2, v0
                brif v3, block1(v3), block3
            block3:
                v4 = iadd v0, v0
                v5 = imul v4, v4
                v6 = imul v5, v4
                store v6, v1
                return
            block4:
                {behind}
                return
            }}"
        )
    }

    #[test]
    fn an_early_return_is_the_end_of_its_lanes() {
        assert_eq!(ends(&side_exit("call fn0()"), true), [3]);
        assert_eq!(ends(&side_exit("call fn0()"), false), [0u32; 0]);
    }

    #[test]
    fn of_equal_exits_the_largest_is_the_main_one() {
        assert_eq!(ends(&side_exit("store v0, v1"), true), [4]);
        assert_eq!(ends(&side_exit("nop"), true), [4]);
    }

    #[test]
    fn what_is_said_before_a_trap_keeps_nobody() {
        let text = |last: &str| {
            format!(
                "function %f(i32, i64) {{
                    fn0 = %gpu_bar_sync()
                    fn1 = %says(i32)
                    sig9 = (i32)
                block0(v0: i32, v1: i64):
                    call fn0()
                    brif v0, block1, block3
                block1:
                    brif v0, block3, block2
                block2:
                    {last}
                    trap user1
                block3:
                    call fn0()
                    store v0, v1
                    return
                }}"
            )
        };
        for last in ["call fn1(v0)", "call_indirect sig9, v1(v0)"] {
            assert_eq!(ends(&text(last), true), [2], "{last}");
        }
        // A barrier of its own does.
        assert_eq!(ends(&text("call fn0()"), true), [0u32; 0]);
    }

    #[test]
    fn a_lone_return_ends_who_comes_there() {
        let text = "function %f(i32, i64) {
                fn0 = %gpu_bar_sync()
            block0(v0: i32, v1: i64):
                brif v0, block1, block4
            block1:
                call fn0()
                brif v0, block2, block3
            block2:
                store v0, v1
                return
            block3:
                return
            block4:
                return
            }";
        // The lone returns end who comes there, whether others may meet there or not.
        assert_eq!(ends(text, true), [3, 4]);
    }

    /// `before`, then an exit with many instructions, or a barrier with two exits behind it.
    fn two_exits_behind_a_barrier(before: &str) -> String {
        format!(
            "function %f(i32, i64) {{
                fn0 = %gpu_bar_sync()
            block0(v0: i32, v1: i64):
                {before}
                brif v0, block1, block2
            block1:
                v2 = iadd v0, v0
                v3 = imul v2, v2
                v4 = imul v3, v2
                store v4, v1
                return
            block2:
                call fn0()
                brif v0, block3, block4
            block3:
                v5 = iadd v0, v0
                store v5, v1
                return
            block4:
                store v0, v1
                return
            }}"
        )
    }

    #[test]
    fn a_barrier_is_no_early_exit_whatever_is_behind_it() {
        assert_eq!(ends(&two_exits_behind_a_barrier("nop"), true), [1, 4]);
    }

    /// The exit between two barriers is the largest of those that the first leads to, but not the second.
    #[test]
    fn who_leaves_between_two_barriers_has_ended() {
        assert_eq!(
            ends(&two_exits_behind_a_barrier("call fn0()"), true),
            [1, 4]
        );
    }
}
