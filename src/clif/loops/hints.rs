//! What calls of `%gpu_unroll` ask for.

use crate::constants::integer;
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::intrinsics::Lowering;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Inst};
use hashbrown::HashMap;

/// How often each loop is to be unrolled, by its header.
#[derive(Debug, Default)]
pub(in crate::clif) struct Hints(HashMap<Block, u8>);

impl Hints {
    /// Takes the calls out of the function in `context`, whose graph and dominator tree are up to date.
    ///
    /// # Errors
    /// All calls that are not in a loop's header, or not alone there.
    pub(in crate::clif) fn take(
        context: &mut Context,
        intrinsics: &Intrinsics,
    ) -> Result<Self, Errors> {
        let mut hints = Hints::default();
        let is_hint = |lowering: Lowering| lowering == Lowering::Unroll;
        let mut declared = context.func.dfg.ext_funcs.keys();
        if !declared.any(|callee| {
            intrinsics
                .function(callee)
                .is_some_and(|row| is_hint(row.lowering))
        }) {
            return Ok(hints);
        }
        context.compute_loop_analysis();
        let func = &mut context.func;
        let mut errors = ErrorList::new();
        let calls: Vec<(Block, Inst)> = (func.layout.blocks())
            .flat_map(|block| {
                func.layout
                    .block_insts(block)
                    .map(move |inst| (block, inst))
            })
            .filter(|(_, inst)| {
                intrinsics
                    .of_call(func, *inst)
                    .is_some_and(|row| is_hint(row.lowering))
            })
            .collect();
        for (block, inst) in calls {
            let mut wrong = |message: String| {
                let name = "unroll".to_owned();
                let problem = Problem::Intrinsic { name, message };
                errors.push(Error::new(problem, Place::of_inst(func, inst)));
            };
            if context.loop_analysis.is_loop_header(block).is_none() {
                wrong(format!(
                    "{block} is not where a loop begins; call it in the block that the loop comes back to"
                ));
                continue;
            }
            // Its range was checked with all uses of intrinsics.
            let times = integer(func, func.dfg.inst_args(inst)[0]);
            let times = times
                .and_then(|times| u8::try_from(times).ok())
                .unwrap_or(0);
            if hints.0.insert(block, times).is_some() {
                wrong(format!("{block} has a second call; a loop has one"));
            }
            func.layout.remove_inst(inst);
        }
        errors.finish(hints)
    }

    /// What is asked for the loop with this header.
    pub(super) fn of(&self, header: Block) -> Option<u8> {
        self.0.get(&header).copied()
    }

    /// Lets the loop of `old` have another header.
    pub(super) fn moves(&mut self, old: Block, new: Block) {
        if let Some(times) = self.0.remove(&old) {
            self.0.insert(new, times);
        }
    }
}
