//! Branches, loops, returns, barriers.
//!
//! CubeCL's control flow is structured: an operation owns regions of one block each, which end with a yield, the
//! condition of a loop, or a return of the whole kernel.

use super::metadata::required;
use super::{Result, Translator, invalid, scalar_of};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, TrapCode};
use cranelift_thisgpu::build::GpuBuilder;
use cubecl_core::ir::dialect::{
    OperationPtrExt,
    branch::{IfOp, RangeLoopOp, SwitchOp, WhileOp},
    synchronization::{SyncOp, SyncScope},
};
use pliron::basic_block::BasicBlock;
use pliron::context::Ptr;
use pliron::linked_list::ContainsLinkedList;
use pliron::operation::Operation;

/// The trap of code that CubeCL says is never reached.
const UNREACHABLE: TrapCode = TrapCode::unwrap_user(1);

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With nothing: what is behind it goes on.
    Falls,
    /// With the condition of a loop.
    Condition(ir::Value),
    /// The kernel has ended.
    Returns,
}

impl Translator<'_, '_, '_> {
    /// All operations of a block, where the builder is.
    pub(super) fn block(&mut self, block: Ptr<BasicBlock>) -> Result<End> {
        let context = self.context;
        let operations: Vec<_> = block.deref(context).iter(context).collect();
        for op in operations {
            self.list(op);
            let id = Operation::get_opid(op, context).to_string();
            match id.as_str() {
                "branch.yield" => return Ok(End::Falls),
                "branch.condition" => return Ok(End::Condition(self.single(op, 0)?)),
                "branch.return" => {
                    self.builder.ins().return_(&[]);
                    return Ok(End::Returns);
                }
                "branch.unreachable" => {
                    self.builder.ins().trap(UNREACHABLE);
                    return Ok(End::Returns);
                }
                _ => self.operation(op)?,
            }
        }
        Ok(End::Falls)
    }

    /// The `branch` dialect but for the ends of blocks.
    pub(super) fn branch(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "if" => self.branch_if(op)?,
            "switch" => self.switch(op)?,
            "range_loop" => self.range_loop(op)?,
            "while" => self.while_loop(op)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A block of a branch in a block of its own, which goes on at `behind`.
    fn arm(&mut self, start: ir::Block, block: Ptr<BasicBlock>, behind: ir::Block) -> Result<()> {
        self.builder.switch_to_block(start);
        match self.block(block)? {
            End::Falls => {
                self.builder.ins().jump(behind, &[]);
            }
            End::Returns => {}
            End::Condition(_) => return Err(invalid("the condition of no loop")),
        }
        Ok(())
    }

    fn branch_if(&mut self, op: Ptr<Operation>) -> Result<()> {
        let branch = required(op.as_op::<IfOp>(self.context))?;
        let condition = self.single(op, 0)?;
        let [then, otherwise, behind] = [(); 3].map(|()| self.builder.create_block());
        self.builder
            .ins()
            .brif(condition, then, &[], otherwise, &[]);
        self.arm(then, branch.then_block(self.context), behind)?;
        self.arm(otherwise, branch.else_block(self.context), behind)?;
        self.builder.switch_to_block(behind);
        Ok(())
    }

    fn switch(&mut self, op: Ptr<Operation>) -> Result<()> {
        let switch = required(op.as_op::<SwitchOp>(self.context))?;
        let value = self.single(op, 0)?;
        let ty = self.builder.func.dfg.value_type(value);
        let behind = self.builder.create_block();
        for (case, block) in switch.cases(self.context) {
            let case = self.integer(ty, case.value().to_i128() as i64);
            let equal = self.builder.ins().icmp(IntCC::Equal, value, case);
            let [then, next] = [(); 2].map(|()| self.builder.create_block());
            self.builder.ins().brif(equal, then, &[], next, &[]);
            self.arm(then, block, behind)?;
            self.builder.switch_to_block(next);
        }
        let default = self.builder.create_block();
        self.builder.ins().jump(default, &[]);
        self.arm(default, switch.default_block(self.context), behind)?;
        self.builder.switch_to_block(behind);
        Ok(())
    }

    fn range_loop(&mut self, op: Ptr<Operation>) -> Result<()> {
        let range = required(op.as_op::<RangeLoopOp>(self.context))?;
        let (start, end, step) = (
            self.single(op, 0)?,
            self.single(op, 1)?,
            self.single(op, 2)?,
        );
        let scalar = scalar_of(self.context, range.start(self.context))?;
        let less = if scalar.is_signed() {
            IntCC::SignedLessThan
        } else {
            IntCC::UnsignedLessThan
        };
        let [header, body, behind] = [(); 3].map(|()| self.builder.create_block());
        let counter = self.builder.append_block_param(header, scalar.clif());
        self.builder.ins().jump(header, &[start.into()]);
        self.builder.switch_to_block(header);
        let goes_on = self.builder.ins().icmp(less, counter, end);
        self.builder.ins().brif(goes_on, body, &[], behind, &[]);
        self.builder.switch_to_block(body);
        self.values
            .insert(range.iter_var(self.context), vec![counter]);
        match self.block(range.loop_body(self.context))? {
            End::Falls => {
                let next = self.builder.ins().iadd(counter, step);
                self.builder.ins().jump(header, &[next.into()]);
            }
            End::Returns => {}
            End::Condition(_) => return Err(invalid("a condition in a counted loop")),
        }
        self.builder.switch_to_block(behind);
        Ok(())
    }

    fn while_loop(&mut self, op: Ptr<Operation>) -> Result<()> {
        let while_op = required(op.as_op::<WhileOp>(self.context))?;
        let [before, after, behind] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().jump(before, &[]);
        self.builder.switch_to_block(before);
        match self.block(while_op.before_block(self.context))? {
            End::Condition(condition) => {
                self.builder.ins().brif(condition, after, &[], behind, &[]);
            }
            // The loop is left in its first turn.
            End::Returns => {}
            End::Falls => return Err(invalid("a loop without a condition")),
        }
        self.arm(after, while_op.after_block(self.context), before)?;
        self.builder.switch_to_block(behind);
        Ok(())
    }

    /// `sync.sync` of every scope.
    pub(super) fn synchronise(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        if name != "sync" {
            return Ok(false);
        }
        let sync = required(op.as_op::<SyncOp>(self.context))?;
        let scope = sync.scope(self.context).0;
        match scope {
            SyncScope::Unit => {}
            SyncScope::Plane => {
                let active = self.builder.intrinsic("gpu_activemask", &[]);
                self.builder.call_intrinsic("gpu_warp_sync", &[active]);
            }
            SyncScope::Cube => {
                self.builder.call_intrinsic("gpu_bar_sync", &[]);
            }
            SyncScope::Device => {
                self.builder.call_intrinsic("gpu_membar_gl", &[]);
                self.builder.call_intrinsic("gpu_bar_sync", &[]);
                self.builder.call_intrinsic("gpu_membar_gl", &[]);
            }
        }
        Ok(true)
    }
}
