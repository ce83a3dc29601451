//! Bitwise operations.

use super::{Result, Translator};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// The `bitwise` dialect.
    pub(super) fn bits(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "and" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().band(a, b))),
            "or" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().bor(a, b))),
            "xor" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().bxor(a, b))),
            "not" => self.map(op, |t, [a], _| Ok(t.builder.ins().bnot(a))),
            "shl" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().ishl(a, b))),
            "shr" => self.map(op, |t, [a, b], lane| {
                Ok(if lane.is_signed() {
                    t.builder.ins().sshr(a, b)
                } else {
                    t.builder.ins().ushr(a, b)
                })
            }),
            "reverse_bits" => self.map(op, |t, [a], _| Ok(t.builder.ins().bitrev(a))),
            "count_ones" => self.count(op, |t, a| t.builder.ins().popcnt(a)),
            "leading_zeros" => self.count(op, |t, a| t.builder.ins().clz(a)),
            "trailing_zeros" => self.count(op, |t, a| t.builder.ins().ctz(a)),
            "find_first_set" => self.count(op, |t, a| {
                let ty = t.builder.func.dfg.value_type(a);
                let zero = t.integer(ty, 0);
                let none = t.builder.ins().icmp(IntCC::Equal, a, zero);
                let first = t.builder.ins().ctz(a);
                let first = t.builder.ins().iadd_imm_u(first, 1);
                t.builder.ins().select(none, zero, first)
            }),
            _ => Ok(false),
        }
    }

    /// A number of bits, which is an u32 whatever the operand is.
    fn count(
        &mut self,
        op: Ptr<Operation>,
        count: impl Fn(&mut Self, Value) -> Value,
    ) -> Result<bool> {
        self.map(op, |t, [a], _| {
            let count = count(t, a);
            Ok(t.resize(count, I32))
        })
    }
}
