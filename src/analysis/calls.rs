//! What a call does to the lanes that make it, as far as convergence is concerned.
//!
//! [`Summary`] says of a function, with all that it calls, what its callers must know to decide where lanes meet
//! ([`super::meeting`]). [`Callees`] holds the summaries of everything that one function refers to; rows of the
//! intrinsics' table are summarised here, other functions by whoever knows the module.

use super::endings::traps;
use crate::constants::integer;
use crate::intrinsics::resolve::Intrinsics;
use crate::intrinsics::{self, Effect, Intrinsic, Lowering};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{self, FuncRef, Inst, InstructionData, Opcode};

/// What a function does to the lanes that call it. All of it holds of what it calls, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// It may wait, in a loop, for what other threads write: its lanes may come back one after the other, each only
    /// when another one has gone on.
    pub polls: bool,
    /// It may write memory that other threads wait for.
    pub releases: bool,
    /// Its result may depend on what an atomic operation read.
    pub observes: bool,
    /// It may act on the set of active lanes.
    pub convergent: bool,
    /// It may wait for lanes of the warp that are elsewhere until they have ended: it may have a barrier of the block.
    pub counts_all: bool,
    /// The first thing it does beside computing is an operation for which the whole warp has to be there.
    pub gathers: bool,
    /// It may have operations in whose order its caller's accesses take part: it reads what others release, or waits
    /// for them to meet it.
    pub acquires: bool,
}

impl Summary {
    /// Of a function of which nothing is known.
    pub const UNKNOWN: Summary = Summary {
        polls: true,
        releases: true,
        observes: true,
        convergent: true,
        counts_all: true,
        gathers: false,
        acquires: true,
    };

    /// Of a function that computes and nothing else.
    pub const NONE: Summary = Summary {
        polls: false,
        releases: false,
        observes: false,
        convergent: false,
        counts_all: false,
        gathers: false,
        acquires: false,
    };

    /// Of a function that may write memory, and has no atomics and no waiting.
    pub const WRITES: Summary = Summary {
        releases: true,
        ..Summary::NONE
    };

    /// What one of the two may do.
    #[must_use]
    pub fn or(self, other: Summary) -> Summary {
        Summary {
            polls: self.polls | other.polls,
            releases: self.releases | other.releases,
            observes: self.observes | other.observes,
            convergent: self.convergent | other.convergent,
            counts_all: self.counts_all | other.counts_all,
            gathers: self.gathers | other.gathers,
            acquires: self.acquires | other.acquires,
        }
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it may do.
    pub summary: Summary,
    /// It lets no lane go on before all of the warp are there: a barrier of the block, a shuffle, a synchronisation of
    /// the warp.
    pub gathers: bool,
    /// It waits for some lanes of the warp, and those wait for it: both a wait and a release.
    pub pairs: bool,
    /// It is an intrinsic: it neither reads nor writes memory, but for atomic additions, which do where their first
    /// operand points to.
    pub intrinsic: bool,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'a> {
    /// A function by its symbol, without the `%`.
    Named(&'a str),
    /// Any function whose address is taken.
    Indirect,
}

/// Tells of the functions outside of the one that is looked at.
pub type Summarize<'a> = dyn Fn(Callee<'_>) -> Summary + 'a;

/// The operations that call.
pub const OPCODES: [Opcode; 6] = [
    Opcode::Call,
    Opcode::CallIndirect,
    Opcode::ReturnCall,
    Opcode::ReturnCallIndirect,
    Opcode::TryCall,
    Opcode::TryCallIndirect,
];

/// The calls of one function.
#[derive(Clone, Debug)]
pub struct Callees {
    functions: SecondaryMap<FuncRef, Option<Function>>,
    indirect: Summary,
}

/// A function that is called.
#[derive(Clone, Copy, Debug)]
enum Function {
    Intrinsic(&'static Intrinsic),
    Other(Summary),
}

impl Default for Callees {
    /// Nothing known of any function.
    fn default() -> Self {
        Callees {
            functions: SecondaryMap::new(),
            indirect: Summary::UNKNOWN,
        }
    }
}

impl Callees {
    /// The calls of `func`; `resolved` says which of them are known to be intrinsics, `name` gives the symbol of
    /// another external function, `summarize` tells of those that are no intrinsics.
    pub fn of(
        func: &ir::Function,
        resolved: &Intrinsics,
        name: &dyn Fn(FuncRef) -> Option<String>,
        summarize: &Summarize<'_>,
    ) -> Self {
        let mut found = Callees {
            functions: SecondaryMap::new(),
            indirect: Summary::NONE,
        };
        for reference in func.dfg.ext_funcs.keys() {
            if let Some(row) = resolved.function(reference) {
                found.functions[reference] = Some(Function::Intrinsic(row));
                continue;
            }
            found.functions[reference] = name(reference).map(|name| {
                let intrinsic = name
                    .strip_prefix(intrinsics::PREFIX)
                    .and_then(intrinsics::lookup);
                match intrinsic {
                    Some(row) => Function::Intrinsic(row),
                    None => Function::Other(summarize(Callee::Named(&name))),
                }
            });
        }
        let indirect = |inst: Inst| {
            matches!(
                func.dfg.insts[inst],
                InstructionData::CallIndirect { .. } | InstructionData::TryCallIndirect { .. }
            )
        };
        let mut insts = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block));
        // Nothing is called without a signature.
        if !func.dfg.signatures.is_empty() && insts.any(indirect) {
            found.indirect = summarize(Callee::Indirect);
        }
        found
    }

    /// Learns of intrinsics that have been declared since.
    pub fn add_intrinsics(&mut self, func: &ir::Function, resolved: &Intrinsics) {
        for reference in func.dfg.ext_funcs.keys() {
            if let Some(row) = resolved.function(reference) {
                self.functions[reference] = Some(Function::Intrinsic(row));
            }
        }
    }

    /// What `inst` does, when it is a call of any kind.
    pub fn call(&self, func: &ir::Function, inst: Inst) -> Option<Call> {
        match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } | InstructionData::TryCall { func_ref, .. } => {
                Some(match self.functions[func_ref] {
                    Some(Function::Intrinsic(row)) => {
                        of_intrinsic(row, |index| constant(func, inst, index))
                    }
                    Some(Function::Other(summary)) => Call::plain(summary),
                    None => Call::plain(Summary::UNKNOWN),
                })
            }
            InstructionData::CallIndirect { .. } | InstructionData::TryCallIndirect { .. } => {
                Some(Call::plain(self.indirect))
            }
            _ => None,
        }
    }

    /// Whether a function that is called, and is no intrinsic, may acquire. Calls in front of a trap do not count:
    /// nothing comes behind them, and what was before is ordered where they release.
    pub fn any_acquires(&self, func: &ir::Function) -> bool {
        let acquires =
            |callee: &Option<Function>| matches!(callee, Some(Function::Other(s)) if s.acquires);
        if !self.indirect.acquires && !self.functions.values().any(acquires) {
            return false;
        }
        let mut going_on = func.layout.blocks().filter(|&block| !traps(func, block));
        going_on.any(|block| {
            let mut insts = func.layout.block_insts(block);
            insts.any(|inst| {
                let call = self.call(func, inst);
                call.is_some_and(|call| !call.intrinsic && call.summary.acquires)
            })
        })
    }

    /// Whether there may be a call that waits for lanes until they have ended.
    pub fn any_counts_all(&self, func: &ir::Function) -> bool {
        let counts_all = |reference: FuncRef| match self.functions[reference] {
            Some(Function::Intrinsic(row)) => of_intrinsic(row, |_| None).summary.counts_all,
            Some(Function::Other(summary)) => summary.counts_all,
            None => true,
        };
        // Nothing is called without a signature.
        !func.dfg.signatures.is_empty()
            && (self.indirect.counts_all || func.dfg.ext_funcs.keys().any(counts_all))
    }

    /// Whether `inst` may act on the set of active lanes.
    pub fn is_convergent(&self, func: &ir::Function, inst: Inst) -> bool {
        self.call(func, inst)
            .is_some_and(|call| call.summary.convergent)
    }
}

impl Call {
    fn plain(summary: Summary) -> Self {
        Call {
            summary,
            gathers: summary.gathers,
            pairs: false,
            intrinsic: false,
        }
    }
}

/// The operand of a call, if it is a constant.
fn constant(func: &ir::Function, inst: Inst, index: usize) -> Option<i64> {
    let value = *func.dfg.inst_args(inst).get(index)?;
    integer(func, value)
}

fn of_intrinsic(row: &Intrinsic, constant: impl Fn(usize) -> Option<i64>) -> Call {
    let atomic = matches!(row.lowering, Lowering::AtomicAdd(_));
    let whole = constant(0).is_some_and(|mask| mask as u32 == u32::MAX);
    let pairs = row.lowering == Lowering::WarpSync && !whole;
    let gathers = match row.lowering {
        Lowering::BarSync | Lowering::Shuffle(_) => true,
        Lowering::WarpSync => whole,
        _ => false,
    };
    Call {
        summary: Summary {
            polls: pairs,
            releases: atomic | pairs,
            observes: atomic,
            convergent: row.effect == Effect::Convergent,
            counts_all: row.lowering == Lowering::BarSync,
            gathers,
            acquires: matches!(
                row.lowering,
                Lowering::AtomicAdd(_)
                    | Lowering::MemoryBarrier(_)
                    | Lowering::BarSync
                    | Lowering::WarpSync
            ),
        },
        gathers,
        pairs,
        intrinsic: true,
    }
}
