//! Operations, their operands, constants, and closing open NaNs.

use super::Writer;
use crate::nan::{self, Use};
use crate::operation::{Operand, Operation};
use crate::swarm::Form;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{
    ConstantData, Endianness, InstBuilder, MemFlagsData, Opcode, Type, Value, types,
};

/// Flags of a cast: which lane comes first.
fn cast_flags() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl Writer<'_> {
    /// Makes a value known to what follows.
    pub(super) fn define(&mut self, value: Value) {
        let ty = self.value_type(value);
        self.scope.add(value, ty);
    }

    /// A random operation.
    pub(super) fn operation(&mut self) {
        if !self.variables.is_empty() && self.random.once_in(6) {
            return self.variable();
        }
        let picked = self
            .catalogue
            .pick(&mut self.random, self.types, self.oracle, &self.swarm);
        if let Some(operation) = picked {
            self.write(operation);
        }
    }

    /// Writes an operation on random operands.
    pub(super) fn write(&mut self, operation: Operation) {
        let how = Use::of(operation.opcode);
        let mut args = Vec::new();
        let mut aligned = false;
        for operand in operation.operands() {
            args.push(match operand {
                Operand::Address => {
                    let address = self.address(operation.is_atomic());
                    aligned = address.aligned;
                    address.value
                }
                Operand::Value(ty) if how == Use::Bits => self.closed_operand(ty),
                Operand::Value(ty) => self.operand(ty),
            });
        }
        self.limit(operation, &mut args);
        self.guard(operation, &mut args);
        self.insert(operation, &args, aligned);
    }

    /// Writes an operation on operands that are given and have no open NaNs; its first result.
    pub(super) fn apply(&mut self, operation: Operation, mut args: Vec<Value>) -> Option<Value> {
        self.guard(operation, &mut args);
        self.insert(operation, &args, false)
    }

    /// Often a conversion to an integer gets a float beside a limit of its type.
    fn limit(&mut self, operation: Operation, args: &mut [Value]) {
        let converts = matches!(
            operation.opcode,
            Opcode::FcvtToUint | Opcode::FcvtToSint | Opcode::FcvtToUintSat | Opcode::FcvtToSintSat
        );
        if converts && self.swarm.has_form(Form::Limits) && self.random.once_in(3) {
            let ty = self.value_type(args[0]);
            if let Some(value) = self.float_at_limit(ty, operation.control.lane_bits()) {
                args[0] = value;
            }
        }
    }

    fn insert(&mut self, operation: Operation, args: &[Value], aligned: bool) -> Option<Value> {
        let how = Use::of(operation.opcode);
        let open = how == Use::Computes
            || how == Use::Moves && args.iter().any(|value| self.open.contains(value));
        let mut random = self.random.clone();
        let inst = operation.insert(&mut self.pos(), args, aligned, &mut random);
        self.random = random;
        let results = self.func.dfg.inst_results(inst).to_vec();
        for &value in &results {
            if open && self.value_type(value).lane_type().is_float() {
                self.open.insert(value);
            }
            self.define(value);
        }
        self.cost += self.turns;
        results.first().copied()
    }

    /// A value of a type: a late one, any one, or a new one.
    pub(super) fn operand(&mut self, ty: Type) -> Value {
        let known = self.scope.of(ty);
        let count = known.len();
        let value = match self.random.below(8) {
            _ if count == 0 => self.new_value(ty),
            0 => self.new_value(ty),
            1..=4 => known[count - 1 - self.random.below(count.min(4))],
            _ => known[self.random.below(count)],
        };
        self.read.insert(value);
        value
    }

    /// A value without an open NaN.
    pub(super) fn closed_operand(&mut self, ty: Type) -> Value {
        let value = self.operand(ty);
        self.closed(value)
    }

    /// A constant, or something made from values of another type.
    fn new_value(&mut self, ty: Type) -> Value {
        if self.random.once_in(2)
            && let Some(value) = self.converted(ty)
        {
            return value;
        }
        self.constant(ty)
    }

    /// An integer cut or extended from another one.
    fn converted(&mut self, ty: Type) -> Option<Value> {
        if !ty.is_int() {
            return None;
        }
        let from = self.random.pick(&[types::I8, types::I32, types::I64]);
        let x = self.scope.of(from).last().copied()?;
        self.read.insert(x);
        if from == types::I64 && ty == types::I32 && self.random.once_in(2) {
            // Its upper word.
            let half = self.number(types::I8, 32);
            let mut pos = self.pos();
            let upper = pos.ins().ushr(x, half);
            return Some(pos.ins().ireduce(ty, upper));
        }
        let signed = self.random.once_in(2);
        let ins = self.pos();
        Some(resized(ins, x, from, ty, signed))
    }

    /// A constant.
    pub(super) fn constant(&mut self, ty: Type) -> Value {
        let bytes = self.random.bytes(ty);
        self.constant_of(ty, bytes)
    }

    /// The constant with these bytes.
    pub(super) fn constant_of(&mut self, ty: Type, bytes: [u8; 16]) -> Value {
        let bits = u128::from_le_bytes(bytes);
        let mut pos = self.pos();
        match ty {
            types::F16 => pos.ins().f16const(Ieee16::with_bits(bits as u16)),
            types::F32 => pos.ins().f32const(Ieee32::with_bits(bits as u32)),
            types::F64 => pos.ins().f64const(Ieee64::with_bits(bits as u64)),
            types::I128 => {
                let low = pos.ins().iconst(types::I64, bits as u64 as i64);
                let high = pos.ins().iconst(types::I64, (bits >> 64) as u64 as i64);
                pos.ins().iconcat(low, high)
            }
            _ if ty.is_vector() => {
                let data = ConstantData::from(&bytes[..ty.bytes() as usize]);
                let handle = pos.func.dfg.constants.insert(data);
                pos.ins().vconst(ty, handle)
            }
            _ => {
                let unused = 64 - ty.bits();
                pos.ins()
                    .iconst(ty, ((bits as u64) << unused) as i64 >> unused)
            }
        }
    }

    /// The value, or the NaN that stands for all if it is an open one.
    pub(super) fn closed(&mut self, value: Value) -> Value {
        if !self.open.contains(&value) {
            return value;
        }
        let ty = self.value_type(value);
        let lane = ty.lane_type();
        let known = self.constant_of(ty, nan::in_every_lane(ty, nan::canonical(lane)));
        let mut pos = self.pos();
        let is_nan = pos.ins().fcmp(FloatCC::Unordered, value, value);
        let closed = if ty.is_vector() {
            let mask = pos.ins().bitcast(ty, cast_flags(), is_nan);
            pos.ins().bitselect(mask, known, value)
        } else {
            pos.ins().select(is_nan, known, value)
        };
        self.cost += self.turns;
        closed
    }

    /// An i64 that depends on every bit of the value.
    pub(super) fn bits_of(&mut self, value: Value) -> Value {
        let value = self.closed(value);
        let ty = self.value_type(value);
        let mut pos = self.pos();
        let integer = match ty.bits() {
            128 if ty.is_vector() => types::I64X2,
            bits => Type::int(bits as u16).unwrap_or(types::I64),
        };
        let value = if integer == ty {
            value
        } else {
            pos.ins().bitcast(integer, cast_flags(), value)
        };
        let halves = match integer {
            types::I64X2 => {
                let low = pos.ins().extractlane(value, 0);
                (low, pos.ins().extractlane(value, 1))
            }
            types::I128 => pos.ins().isplit(value),
            types::I64 => return value,
            _ => return pos.ins().uextend(types::I64, value),
        };
        let by = pos.ins().iconst(types::I8, 23);
        let high = pos.ins().rotl(halves.1, by);
        pos.ins().iadd(halves.0, high)
    }
}

/// The integer `x` in another width.
pub(super) fn resized(
    mut pos: cranelift_codegen::cursor::FuncCursor<'_>,
    x: Value,
    from: Type,
    to: Type,
    signed: bool,
) -> Value {
    match from.bits().cmp(&to.bits()) {
        std::cmp::Ordering::Greater => pos.ins().ireduce(to, x),
        std::cmp::Ordering::Less if signed => pos.ins().sextend(to, x),
        std::cmp::Ordering::Less => pos.ins().uextend(to, x),
        std::cmp::Ordering::Equal => x,
    }
}
