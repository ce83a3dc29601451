//! Calls of functions written before, direct and through an address, tail calls, and recursion that ends.

use super::{Callee, MAX_COST, Writer};
use crate::swarm::Form;
use cranelift_codegen::ir::{
    Block, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder, SigRef, Signature, Type,
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
        self.arguments_from(signature, &[])
    }

    /// Arguments of which some are given, each in its own place if it has the type.
    fn arguments_from(&mut self, signature: &Signature, given: &[Value]) -> Vec<Value> {
        let types: Vec<Type> = signature
            .params
            .iter()
            .map(|param| param.value_type)
            .collect();
        let mut arguments = Vec::new();
        for (place, ty) in types.into_iter().enumerate() {
            let given = given.get(place).copied();
            let given = given.filter(|value| self.value_type(*value) == ty);
            arguments.push(match given {
                Some(value) => value,
                None if self.swarm.has_form(Form::Chains) && self.random.once_in(6) => {
                    self.constant_of(ty, [0; 16])
                }
                None => self.closed_operand(ty),
            });
        }
        arguments
    }

    /// The functions that are cheap enough here.
    fn affordable(&self) -> Vec<Callee> {
        self.callees
            .iter()
            .filter(|callee| self.cost + self.turns * callee.cost <= MAX_COST)
            .cloned()
            .collect()
    }

    /// A call, if some function is cheap enough; often others that get what it returns.
    pub(super) fn call(&mut self) {
        let mut given = Vec::new();
        loop {
            let affordable = self.affordable();
            if affordable.is_empty() {
                return self.operations(4);
            }
            let callee = &affordable[self.random.below(affordable.len())];
            given = self.call_of(callee, &given);
            if !self.swarm.has_form(Form::Chains) || self.random.once_in(2) {
                return;
            }
        }
    }

    fn call_of(&mut self, callee: &Callee, given: &[Value]) -> Vec<Value> {
        let (target, signature) = self.import(&callee.name, &callee.signature);
        let indirect = self.random.once_in(4) && self.swarm.has_form(Form::Addresses);
        let address = indirect.then(|| match self.swarm.has_form(Form::Choices) {
            true => self.choice(callee, target),
            false => self.pos().ins().func_addr(types::I64, target),
        });
        let arguments = self.arguments_from(&callee.signature, given);
        let mut pos = self.pos();
        let call = match address {
            Some(address) => pos.ins().call_indirect(signature, address, &arguments),
            None => pos.ins().call(target, &arguments),
        };
        let results = self.func.dfg.inst_results(call).to_vec();
        for &value in &results {
            self.define(value);
        }
        self.cost += self.turns * callee.cost;
        results
    }

    /// The address of a function or of another one with its signature, chosen by control or by a `select`.
    fn choice(&mut self, callee: &Callee, target: FuncRef) -> Value {
        let mut alike = self.affordable();
        alike.retain(|other| other.signature == callee.signature && other.cost <= callee.cost);
        let mut targets = vec![target];
        for other in &alike {
            targets.push(self.import(&other.name, &other.signature).0);
        }
        let targets: Vec<FuncRef> = (0..self.random.between(1, 4))
            .map(|_| self.random.pick(&targets))
            .collect();
        if self.random.once_in(4) {
            let condition = self.decision();
            let last = targets[targets.len() - 1];
            let mut pos = self.pos();
            let a = pos.ins().func_addr(types::I64, targets[0]);
            let b = pos.ins().func_addr(types::I64, last);
            return pos.ins().select(condition, a, b);
        }
        let arms: Vec<Block> = targets.iter().map(|_| self.new_block()).collect();
        let join = self.new_block();
        let address = self.func.dfg.append_block_param(join, types::I64);
        self.branch_to_some(&arms);
        for (arm, target) in arms.into_iter().zip(targets) {
            self.block = arm;
            let mut pos = self.pos();
            let own = pos.ins().func_addr(types::I64, target);
            pos.ins().jump(join, &[own.into()]);
        }
        self.block = join;
        address
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
