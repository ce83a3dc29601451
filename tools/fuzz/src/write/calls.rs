//! Calls of functions written before, direct and through an address, tail calls, and recursion that ends.

use super::{Callee, MAX_COST, Writer};
use crate::swarm::Form;
use cranelift_codegen::ir::{
    BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder, SigRef, Signature, Type,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// Calls of itself in a call of a function, at most: a power of two.
const MAX_RECURSION: u64 = 4;

impl Writer<'_> {
    fn import(&mut self, name: &UserFuncName, signature: &Signature) -> (FuncRef, SigRef) {
        let signature = self.func.import_signature(signature.clone());
        let name = match name {
            UserFuncName::Testcase(name) => ExternalName::TestCase(name.clone()),
            UserFuncName::User(name) => {
                ExternalName::User(self.func.declare_imported_user_function(name.clone()))
            }
        };
        let data = ExtFuncData {
            name,
            signature,
            colocated: self.random.once_in(2),
            patchable: false,
        };
        (self.func.import_function(data), signature)
    }

    fn arguments(&mut self, signature: &Signature) -> Vec<Value> {
        let types: Vec<Type> = signature
            .params
            .iter()
            .map(|param| param.value_type)
            .collect();
        types
            .into_iter()
            .map(|ty| self.closed_operand(ty))
            .collect()
    }

    /// A call, if some function is cheap enough.
    pub(super) fn call(&mut self) {
        let affordable: Vec<Callee> = self
            .callees
            .iter()
            .filter(|callee| self.cost + self.turns * callee.cost <= MAX_COST)
            .cloned()
            .collect();
        if affordable.is_empty() {
            return self.operations(4);
        }
        let callee = &affordable[self.random.below(affordable.len())];
        let (target, signature) = self.import(&callee.name, &callee.signature);
        let arguments = self.arguments(&callee.signature);
        let indirect = self.random.once_in(4) && self.swarm.has_form(Form::Addresses);
        let mut pos = self.pos();
        let call = if indirect {
            let address = pos.ins().func_addr(types::I64, target);
            pos.ins().call_indirect(signature, address, &arguments)
        } else {
            pos.ins().call(target, &arguments)
        };
        for value in self.func.dfg.inst_results(call).to_vec() {
            self.define(value);
        }
        self.cost += self.turns * callee.cost;
    }

    /// Ends the function with a tail call, if some function fits.
    pub(super) fn tail_call(&mut self) -> bool {
        let own = &self.func.signature;
        if own.call_conv != CallConv::Tail {
            return false;
        }
        let fitting = self.callees.iter().rev().find(|callee| {
            callee.signature.call_conv == CallConv::Tail
                && callee.signature.returns == own.returns
                && self.cost + self.turns * callee.cost <= MAX_COST
        });
        let Some(callee) = fitting.cloned() else {
            return false;
        };
        let (target, _) = self.import(&callee.name, &callee.signature);
        let arguments = self.arguments(&callee.signature);
        self.pos().ins().return_call(target, &arguments);
        self.cost += self.turns * callee.cost;
        true
    }

    /// A call of the function itself with one parameter counting down, at its entry. Functions without a suitable
    /// parameter have none.
    pub(super) fn recursion(&mut self) {
        let signature = self.func.signature.clone();
        let counter = signature
            .params
            .iter()
            .position(|param| param.value_type == types::I32);
        let Some(counter) = counter else { return };
        let entry = self.func.layout.entry_block().unwrap_or(self.block);
        let given = self.func.dfg.block_params(entry)[counter];
        let (again, after) = (self.new_block(), self.new_block());
        let mut results = Vec::new();
        let mut defaults = Vec::new();
        for param in &signature.returns {
            results.push(self.func.dfg.append_block_param(after, param.value_type));
            defaults.push(BlockArg::Value(self.closed_operand(param.value_type)));
        }
        let mask = self.constant_of(types::I32, u128::from(MAX_RECURSION - 1).to_le_bytes());
        let mut pos = self.pos();
        let left = pos.ins().band(given, mask);
        pos.ins().brif(left, again, &[], after, &defaults);
        let mark = self.scope.mark();
        self.block = again;
        let name = self.func.name.clone();
        let (target, _) = self.import(&name, &signature);
        let mut arguments = self.arguments(&signature);
        let mut pos = self.pos();
        let minus_one = pos.ins().iconst(types::I32, -1);
        arguments[counter] = pos.ins().iadd(left, minus_one);
        let call = pos.ins().call(target, &arguments);
        let returned: Vec<BlockArg> = pos
            .func
            .dfg
            .inst_results(call)
            .iter()
            .copied()
            .map(BlockArg::Value)
            .collect();
        pos.ins().jump(after, &returned);
        self.scope.return_to(mark);
        self.block = after;
        for value in results {
            self.define(value);
        }
        // What follows, calls among it, runs once for each level.
        self.turns *= MAX_RECURSION;
        self.cost *= MAX_RECURSION;
    }
}
