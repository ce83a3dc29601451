//! Statements: blocks, branches, loops, barriers.

use super::function::Continue;
use super::values::Value;
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::Switch;
use cranelift_thisgpu::build::GpuBuilder;
use naga::{Barrier, Block, Expression, Handle, Statement, SwitchCase, SwitchValue};

impl Translator<'_, '_, '_> {
    /// The statements of a block. Whether its end is reached; where it is not, the builder's block is ended.
    pub(super) fn block(&mut self, block: &Block) -> Result<bool> {
        self.deeper(|this| {
            for (statement, &span) in block.span_iter() {
                this.at(span);
                if !this.statement(statement)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// A statement; whether what is behind it is reached.
    fn statement(&mut self, statement: &Statement) -> Result<bool> {
        match *statement {
            Statement::Emit(ref range) => {
                for expression in range.clone() {
                    self.emit(expression)?;
                }
            }
            Statement::Block(ref block) => return self.block(block),
            Statement::If {
                condition,
                ref accept,
                ref reject,
            } => self.branch(condition, accept, reject)?,
            Statement::Switch {
                selector,
                ref cases,
            } => self.switch(selector, cases)?,
            Statement::Loop {
                ref body,
                ref continuing,
                break_if,
            } => self.turns(body, continuing, break_if)?,
            Statement::Break => return self.jump(self.frame.breaks.last().copied()),
            Statement::Continue => return self.next_turn(),
            Statement::Return { value } => {
                self.leave(value)?;
                return Ok(false);
            }
            Statement::Kill => return Err(invalid("a discard in a compute shader")),
            Statement::ControlBarrier(barrier) => self.barrier(barrier),
            Statement::MemoryBarrier(barrier) => {
                let fence = match barrier.contains(Barrier::STORAGE) {
                    true => "gpu_membar_gl",
                    false => "gpu_membar_cta",
                };
                self.builder.call_intrinsic(fence, &[]);
            }
            Statement::Store { pointer, value } => self.store_statement(pointer, value)?,
            Statement::Atomic {
                pointer,
                fun,
                value,
                result,
            } => self.atomic(pointer, fun, value, result)?,
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.uniform_load(pointer, result)?;
            }
            Statement::Call {
                function,
                ref arguments,
                result,
            } => self.call(function, arguments, result)?,
            Statement::SubgroupBallot { result, predicate } => self.ballot(result, predicate)?,
            Statement::SubgroupGather {
                mode,
                argument,
                result,
            } => self.gather(mode, argument, result)?,
            Statement::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } => self.collective(op, collective_op, argument, result)?,
            Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => {
                return Err(unsupported("textures"));
            }
            Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => {
                return Err(unsupported("ray queries"));
            }
            Statement::CooperativeStore { .. } => return Err(unsupported("cooperative matrices")),
        }
        Ok(true)
    }

    fn jump(&mut self, target: Option<ir::Block>) -> Result<bool> {
        let target = target.ok_or_else(|| invalid("break or continue outside of a loop"))?;
        self.builder.ins().jump(target, &[]);
        Ok(false)
    }

    /// `continue`.
    fn next_turn(&mut self) -> Result<bool> {
        let values = self.frame.values.iter();
        let target = self.frame.continues.last_mut().map(|target| {
            let before = &mut target.before;
            before.get_or_insert_with(|| values.map(Option::is_some).collect());
            target.block
        });
        self.jump(target)
    }

    /// A block of its own that goes on at `behind`.
    fn arm(&mut self, start: ir::Block, block: &Block, behind: ir::Block) -> Result<()> {
        self.builder.switch_to_block(start);
        if self.block(block)? {
            self.builder.ins().jump(behind, &[]);
        }
        Ok(())
    }

    fn branch(
        &mut self,
        condition: Handle<Expression>,
        accept: &Block,
        reject: &Block,
    ) -> Result<()> {
        let condition = self.single(condition)?;
        let [then, otherwise, behind] = [(); 3].map(|()| self.builder.create_block());
        (self.builder.ins()).brif(condition, then, &[], otherwise, &[]);
        self.arm(then, accept, behind)?;
        self.arm(otherwise, reject, behind)?;
        self.builder.switch_to_block(behind);
        Ok(())
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &[SwitchCase]) -> Result<()> {
        let selector = self.single(selector)?;
        let behind = self.builder.create_block();
        let starts: Vec<_> = cases.iter().map(|_| self.builder.create_block()).collect();
        let (mut switch, mut default) = (Switch::new(), behind);
        for (case, &start) in cases.iter().zip(&starts) {
            match case.value {
                SwitchValue::I32(value) => switch.set_entry(u128::from(value as u32), start),
                SwitchValue::U32(value) => switch.set_entry(u128::from(value), start),
                SwitchValue::Default => default = start,
            }
        }
        switch.emit(self.builder, selector, default);
        self.frame.breaks.push(match self.frame.breaks.last() {
            Some(&around) if planted(Mistake::SwitchBreak) => around,
            _ => behind,
        });
        for (number, case) in cases.iter().enumerate() {
            let next = starts
                .get(number + 1)
                .copied()
                .filter(|_| case.fall_through);
            self.arm(starts[number], &case.body, next.unwrap_or(behind))?;
        }
        self.frame.breaks.pop();
        self.builder.switch_to_block(behind);
        Ok(())
    }

    fn turns(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<()> {
        let [turn, next, behind] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().jump(turn, &[]);
        self.frame.breaks.push(behind);
        let block = match planted(Mistake::SkippedContinuing) {
            true => turn,
            false => next,
        };
        let before = None;
        self.frame.continues.push(Continue { block, before });
        self.arm(turn, body, next)?;
        if let Some(before) = self.frame.continues.pop().and_then(|target| target.before) {
            for (handle, _) in self.frame.function.expressions.iter() {
                let index = handle.index();
                if self.frame.values[index].is_some() && !before[index] {
                    self.frame.bypassed.insert(handle);
                }
            }
        }
        self.builder.switch_to_block(next);
        if self.block(continuing)? {
            match break_if {
                Some(condition) => {
                    let ends = self.single(condition)?;
                    self.builder.ins().brif(ends, behind, &[], turn, &[]);
                }
                None => {
                    self.builder.ins().jump(turn, &[]);
                }
            }
        }
        self.frame.breaks.pop();
        self.builder.switch_to_block(behind);
        Ok(())
    }

    /// A barrier of the workgroup orders its own memory and buffers alike.
    fn barrier(&mut self, barrier: Barrier) {
        if planted(Mistake::Barrier) {
            return;
        }
        if barrier == Barrier::SUB_GROUP {
            let lanes = self.builder.intrinsic("gpu_activemask", &[]);
            self.builder.call_intrinsic("gpu_warp_sync", &[lanes]);
        } else {
            self.builder.call_intrinsic("gpu_bar_sync", &[]);
        }
    }

    fn store_statement(
        &mut self,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Result<()> {
        let place = self.place(pointer)?;
        if let naga::TypeInner::Atomic(scalar) = *self.inner(&place.ty) {
            return self.atomic_store(&place, scalar, value);
        }
        // Zeros need not be made in memory first.
        if let Expression::ZeroValue(_) = self.frame.function.expressions[value] {
            return self.clear(&place);
        }
        let value = self.value(value)?;
        self.store(&place, &value)
    }

    /// All threads read the same: nobody writes before the last has read.
    fn uniform_load(
        &mut self,
        pointer: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let place = self.place(pointer)?;
        self.builder.call_intrinsic("gpu_bar_sync", &[]);
        let value: Value = match *self.inner(&place.ty) {
            naga::TypeInner::Atomic(scalar) => self.atomic_load(&place, scalar)?,
            _ => self.load(&place)?,
        };
        self.builder.call_intrinsic("gpu_bar_sync", &[]);
        self.frame.values[result.index()] = Some(value);
        Ok(())
    }
}
