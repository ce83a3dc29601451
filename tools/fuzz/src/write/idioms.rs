//! Several operations that belong together: what a compiler looks for, and chance alone seldom writes.

use super::Writer;
use crate::nan::in_every_lane;
use crate::random::float_limit;
use crate::swarm::Form;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Opcode, Type, Value, types};

/// Bitwise operations of two values and of three.
const LOGIC: [Opcode; 5] = [
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Bnot,
    Opcode::Bitselect,
];

impl Writer<'_> {
    /// One of them.
    pub(super) fn idiom(&mut self) {
        let swarm = self.swarm;
        let vectors = self.palette.iter().copied();
        let vectors = vectors.filter(|ty| ty.is_vector() && ty.lane_type().is_int());
        let vectors: Vec<Type> = vectors.collect();
        match self.random.below(4) {
            0 | 1 if swarm.has_form(Form::Limited) && !vectors.is_empty() => self.packed(&vectors),
            0 | 1 if swarm.has_form(Form::Logic) => self.logic(),
            2 if swarm.has_form(Form::Limited) => self.narrowed(),
            _ => self.operation(),
        }
    }

    /// Bitwise operations on each other and a few values; sometimes only whether the result is zero.
    fn logic(&mut self) {
        let ty = self.some_integer();
        let mut values: Vec<Value> = (0..self.random.between(2, 4))
            .map(|_| self.operand(ty))
            .collect();
        for _ in 0..self.random.between(2, 6) {
            let opcode = self.random.pick(&LOGIC);
            let (oracle, swarm) = (self.oracle, self.swarm);
            let Some(operation) = self.catalogue.find(opcode, ty, oracle, &swarm) else {
                continue;
            };
            let mut args = Vec::new();
            for _ in operation.operands() {
                let value = self.random.pick(&values);
                args.push(match self.random.once_in(3) {
                    true => self.pos().ins().bnot(value),
                    false => value,
                });
            }
            values.extend(self.apply(operation, args));
        }
        if self.random.once_in(4) {
            let zero = self.number(ty, 0);
            let code = self.random.pick(&[IntCC::Equal, IntCC::NotEqual]);
            let last = values[values.len() - 1];
            let truth = self.pos().ins().icmp(code, last, zero);
            self.define(truth);
        }
    }

    /// An integer limited to the range of a narrower type, in that type.
    fn narrowed(&mut self) {
        let to = self.random.pick(&[types::I8, types::I16]);
        let signed = self.random.once_in(2);
        let from = self.wider();
        let given = self.operand(from);
        if let Some(value) = self.limited(given, to, signed) {
            self.define(value);
        }
    }

    /// A type of which the lanes of a vector may be narrow forms.
    fn wider(&mut self) -> Type {
        let wider = [types::I32, types::I32, types::I32, types::I64, types::I16];
        self.random.pick(&wider)
    }

    fn limited(&mut self, given: Value, to: Type, signed: bool) -> Option<Value> {
        let from = self.value_type(given);
        if from.bits() <= to.bits() {
            return None;
        }
        let half = 1i64 << (to.bits() - 1);
        let (mut least, mut most) = match signed {
            true => (-half, half - 1),
            false => (0, 2 * half - 1),
        };
        match self.random.below(24) {
            0 => least += 1,
            1 => most += 1,
            _ => {}
        }
        let (mut low, mut high) = ((Opcode::Smax, least), (Opcode::Smin, most));
        if !signed && self.random.once_in(4) {
            // A number without sign has an upper limit only.
            high.0 = Opcode::Umin;
        }
        if self.random.once_in(2) {
            (low, high) = (high, low);
        }
        let mut value = given;
        for (opcode, limit) in [low, high] {
            let (oracle, swarm) = (self.oracle, self.swarm);
            let operation = self.catalogue.find(opcode, from, oracle, &swarm)?;
            let limit = self.number(from, limit);
            value = self.apply(operation, vec![value, limit])?;
        }
        Some(self.pos().ins().ireduce(to, value))
    }

    /// A vector of integers, lane by lane.
    fn packed(&mut self, vectors: &[Type]) {
        let ty = self.random.pick(vectors);
        let (oracle, swarm) = (self.oracle, self.swarm);
        let insert = self.catalogue.find(Opcode::Insertlane, ty, oracle, &swarm);
        if insert.is_none() {
            return self.operation();
        }
        let (lane, signed) = (ty.lane_type(), self.random.once_in(2));
        let narrow = lane.bits() < 32;
        let limits = narrow && self.random.once_in(2);
        let from = self.wider();
        // Not those that are limited here.
        let given: Vec<Value> = (0..ty.lane_count()).map(|_| self.operand(from)).collect();
        let mut vector = self.operand(ty);
        for index in 0..ty.lane_count() {
            let signed = signed ^ self.random.once_in(8);
            let limited = limits.then(|| self.limited(given[index as usize], lane, signed));
            let value = match limited.flatten() {
                Some(value) => value,
                None => self.operand(lane),
            };
            vector = self.pos().ins().insertlane(vector, value, index as u8);
        }
        self.cost += self.turns * u64::from(ty.lane_count());
        self.define(vector);
    }

    /// A float at a limit of integers of so many bits or a few steps below, which is not known.
    pub(super) fn float_at_limit(&mut self, ty: Type, bits: u32) -> Option<Value> {
        let (fraction, bias) = match ty {
            types::F16 => (10, 15),
            types::F32 => (23, 127),
            types::F64 => (52, 1023),
            _ => return None,
        };
        let integer = ty.as_int();
        let power = bits - self.random.below(2) as u32;
        let limit = float_limit(power, fraction, bias);
        let above = limit + u64::from(limit < (2 * bias + 1) << fraction);
        let sign = u64::from(self.random.once_in(2)) << (ty.bits() - 1);
        let above = self.constant_of(integer, in_every_lane(integer, above | sign));
        let most = self.number(integer, 3);
        let steps = self.operand(integer);
        let mut pos = self.pos();
        let steps = pos.ins().band(steps, most);
        let value = pos.ins().isub(above, steps);
        Some(pos.ins().bitcast(ty, MemFlagsData::new(), value))
    }
}
