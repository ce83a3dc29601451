//! Atomics: CLIF's where it has them, a loop around a compare-and-swap of the pattern for floats.

use super::types::{Scalar, Space};
use super::{Result, Translator, invalid};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Value};
use cranelift_thisgpu::build::GpuBuilder;
use cubecl_core::ir::dialect::OperationPtrExt;
use pliron::context::Ptr;
use pliron::operation::Operation;

/// What an atomic does with the value in memory and its operand.
#[derive(Clone, Copy)]
enum Update {
    Add,
    Sub,
    Min,
    Max,
}

impl Translator<'_, '_, '_> {
    /// The `atomic` dialect.
    pub(super) fn atomic(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        let rmw = match name {
            "load" => {
                self.atomic_load(op)?;
                return Ok(true);
            }
            "store" => {
                let (address, pattern, _) = self.place_and_pattern(op)?;
                self.builder.ins().atomic_store(flags(), pattern, address);
                return Ok(true);
            }
            "compare_exchange_weak" => {
                self.compare_exchange(op)?;
                return Ok(true);
            }
            "exchange" => AtomicRmwOp::Xchg,
            "i_add" => AtomicRmwOp::Add,
            "i_sub" => AtomicRmwOp::Sub,
            "s_min" => AtomicRmwOp::Smin,
            "u_min" => AtomicRmwOp::Umin,
            "s_max" => AtomicRmwOp::Smax,
            "u_max" => AtomicRmwOp::Umax,
            "and" => AtomicRmwOp::And,
            "or" => AtomicRmwOp::Or,
            "xor" => AtomicRmwOp::Xor,
            "f_add" => return self.update(op, Update::Add),
            "f_sub" => return self.update(op, Update::Sub),
            "f_min" => return self.update(op, Update::Min),
            "f_max" => return self.update(op, Update::Max),
            _ => return Ok(false),
        };
        let (address, pattern, scalar) = self.place_and_pattern(op)?;
        let old = self
            .builder
            .ins()
            .atomic_rmw(scalar.pattern(), flags(), rmw, address, pattern);
        let old = self.bitcast(old, scalar.clif());
        self.define(op, vec![old]);
        Ok(true)
    }

    /// The address of an atomic, its operand's pattern, and what the operand is.
    fn place_and_pattern(&mut self, op: Ptr<Operation>) -> Result<(Value, Value, Scalar)> {
        let address = self.address(op.operand(self.context, 0))?;
        let scalar = self.operand_scalar(op, 1)?;
        let value = self.single(op, 1)?;
        let pattern = self.pattern(value, scalar);
        Ok((address, pattern, scalar))
    }

    fn atomic_load(&mut self, op: Ptr<Operation>) -> Result<()> {
        let address = self.address(op.operand(self.context, 0))?;
        let scalar = self.result_scalar(op)?;
        let value = self
            .builder
            .ins()
            .atomic_load(scalar.pattern(), flags(), address);
        let value = self.bitcast(value, scalar.clif());
        self.define(op, vec![value]);
        Ok(())
    }

    fn compare_exchange(&mut self, op: Ptr<Operation>) -> Result<()> {
        let (address, expected, scalar) = self.place_and_pattern(op)?;
        let value = self.single(op, 2)?;
        let value = self.pattern(value, scalar);
        let old = self
            .builder
            .ins()
            .atomic_cas(flags(), address, expected, value);
        let old = self.bitcast(old, scalar.clif());
        self.define(op, vec![old]);
        Ok(())
    }

    /// An update of floats, lane by lane.
    fn update(&mut self, op: Ptr<Operation>, update: Update) -> Result<bool> {
        let pointer = op.operand(self.context, 0);
        let address = self.address(pointer)?;
        let is_global = self.builder.func.dfg.value_type(address) == I64
            && super::scalar_of(self.context, pointer)? == Scalar::Pointer(Space::Global);
        let scalar = self.operand_scalar(op, 1)?;
        let mut old = Vec::new();
        for (index, lane) in self.operand(op, 1)?.into_iter().enumerate() {
            let offset = index as i64 * i64::from(scalar.bytes());
            let place = self.builder.ins().iadd_imm_u(address, offset);
            let has_instruction = is_global && scalar == Scalar::F32;
            old.push(match update {
                Update::Add if has_instruction => {
                    self.builder.intrinsic("gpu_atomic_add_f32", &[place, lane])
                }
                Update::Sub if has_instruction => {
                    let negative = self.builder.ins().fneg(lane);
                    self.builder
                        .intrinsic("gpu_atomic_add_f32", &[place, negative])
                }
                _ => self.exchange_loop(place, lane, scalar, update)?,
            });
        }
        self.define(op, old);
        Ok(true)
    }

    fn exchange_loop(
        &mut self,
        address: Value,
        operand: Value,
        scalar: Scalar,
        update: Update,
    ) -> Result<Value> {
        if !scalar.is_float() {
            return Err(invalid("an atomic of floats on integers"));
        }
        let pattern = scalar.pattern();
        let first = self.builder.ins().atomic_load(pattern, flags(), address);
        let [again, behind] = [(); 2].map(|()| self.builder.create_block());
        let seen = self.builder.append_block_param(again, pattern);
        self.builder.ins().jump(again, &[first.into()]);
        self.builder.switch_to_block(again);
        let value = self.bitcast(seen, scalar.clif());
        let next = match update {
            Update::Add => self.float_add(value, operand, scalar),
            Update::Sub => self.float_sub(value, operand, scalar),
            Update::Min => self.smaller(value, operand, scalar),
            Update::Max => self.larger(value, operand, scalar),
        };
        let next = self.pattern(next, scalar);
        let found = self.builder.ins().atomic_cas(flags(), address, seen, next);
        let done = self.builder.ins().icmp(IntCC::Equal, found, seen);
        self.builder
            .ins()
            .brif(done, behind, &[], again, &[found.into()]);
        self.builder.switch_to_block(behind);
        Ok(self.bitcast(seen, scalar.clif()))
    }
}

/// An atomic is aligned, or faults. It has no order with other addresses, as CUDA's and WGSL's have none.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_aligned().with_can_move()
}
