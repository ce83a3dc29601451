//! Operands, conversions and calls of intrinsics.

use super::Emitter;
use crate::simt::kernel::Operand;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, InstBuilder, Signature, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;

impl Emitter<'_, '_> {
    pub(in crate::simt::events) fn constant(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(value))
    }

    /// A constant of any type.
    pub(in crate::simt::events) fn number(&mut self, ty: Type, value: u64) -> Value {
        let shift = 64 - ty.bits();
        let value = ((value << shift) as i64) >> shift;
        let value = if ty == types::I64 {
            value
        } else {
            value & (u64::MAX >> shift) as i64
        };
        self.builder.ins().iconst(ty, value)
    }

    pub(in crate::simt::events) fn var(&mut self, var: usize) -> Value {
        self.builder.use_var(self.vars[var])
    }

    pub(in crate::simt::events) fn set(&mut self, var: usize, value: Value) {
        self.builder.def_var(self.vars[var], value);
    }

    pub(in crate::simt::events) fn operand(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Var(var) => self.var(var),
            Operand::Const(value) => self.constant(value),
        }
    }

    /// A value as one of another integer type, extended by zeros.
    pub(in crate::simt::events) fn converted(&mut self, value: Value, ty: Type) -> Value {
        self.extended(value, ty, false)
    }

    pub(in crate::simt::events) fn extended(
        &mut self,
        value: Value,
        ty: Type,
        signed: bool,
    ) -> Value {
        let from = self.builder.func.dfg.value_type(value).bits();
        match from.cmp(&ty.bits()) {
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.builder.ins().ireduce(ty, value),
            std::cmp::Ordering::Less if signed => self.builder.ins().sextend(ty, value),
            std::cmp::Ordering::Less => self.builder.ins().uextend(ty, value),
        }
    }

    /// A value of any type as a variable's.
    pub(in crate::simt::events) fn folded(&mut self, value: Value) -> Value {
        if self.builder.func.dfg.value_type(value) != types::I64 {
            return self.converted(value, types::I32);
        }
        let half = self.constant(32);
        let high = self.builder.ins().ushr(value, half);
        let both = self.builder.ins().bxor(value, high);
        self.builder.ins().ireduce(types::I32, both)
    }

    pub(in crate::simt::events) fn import(&mut self, name: &str, signature: Signature) -> FuncRef {
        if let Some(known) = self.functions.get(name) {
            return *known;
        }
        let signature = self.builder.import_signature(signature);
        let imported = self.builder.import_function(ExtFuncData {
            name: ExternalName::testcase(name),
            signature,
            colocated: false,
            patchable: false,
        });
        self.functions.insert(name.to_owned(), imported);
        imported
    }

    pub(in crate::simt::events) fn intrinsic(
        &mut self,
        name: &str,
        arguments: &[Value],
        returns: &[Type],
    ) -> Vec<Value> {
        let mut signature = Signature::new(CallConv::Fast);
        let types = arguments
            .iter()
            .map(|a| self.builder.func.dfg.value_type(*a));
        signature.params = types.map(AbiParam::new).collect();
        signature.returns = returns.iter().copied().map(AbiParam::new).collect();
        let function = self.import(name, signature);
        let call = self.builder.ins().call(function, arguments);
        self.builder.inst_results(call).to_vec()
    }
}
