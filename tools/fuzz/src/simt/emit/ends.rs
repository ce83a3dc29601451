//! Calls, and how blocks end.

use super::{Emitter, aligned, name, signature, word};
use crate::simt::kernel::{End, Kernel, Label, OWN, Operand, VALUES, VARS};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    BlockArg, BlockCall, FuncRef, InstBuilder, JumpTableData, Value, types,
};

impl Emitter<'_, '_> {
    pub(super) fn callee(&mut self, callee: usize) -> FuncRef {
        self.import(
            &name(callee),
            signature(callee, self.kernel.functions[callee].tail),
        )
    }

    /// `record`, `data`, fuel and two arguments.
    pub(super) fn arguments(&mut self, arguments: &[Operand; 2]) -> Vec<Value> {
        let (record, data) = (self.record(), self.data());
        let fuel = self.builder.use_var(self.fuel);
        let [a, b] = arguments.map(|argument| self.operand(argument));
        vec![record, data, fuel, a, b]
    }

    /// The address of one of some functions.
    pub(super) fn address(&mut self, callees: &[usize], which: Operand) -> Value {
        let which = self.operand(which);
        let count = self.constant(callees.len() as u32);
        let index = self.builder.ins().urem(which, count);
        let mut addresses = Vec::new();
        for &callee in callees {
            let callee = self.callee(callee);
            addresses.push(self.builder.ins().func_addr(types::I64, callee));
        }
        let mut chosen = addresses[0];
        for (number, &address) in addresses.iter().enumerate().skip(1) {
            let number = self.constant(number as u32);
            let is_it = self.builder.ins().icmp(IntCC::Equal, index, number);
            chosen = self.builder.ins().select(is_it, address, chosen);
        }
        chosen
    }

    /// A block in which the kernel only returns: its results are stored by those who may go there. At most one, since
    /// each would have results of its own; in every second kernel that could have it.
    pub(super) fn bare(kernel: &Kernel) -> Option<(Label, Operand)> {
        let blocks = kernel.functions[0].blocks.iter().enumerate();
        let mut returns = blocks.filter_map(|(label, block)| match block.end {
            End::Return(value) if block.stmts.is_empty() && label != 0 => Some((label, value)),
            _ => None,
        });
        returns.next().filter(|(label, _)| label % 2 == 1)
    }

    /// Stores what a thread has in the end.
    fn leave_results(&mut self, value: Operand) {
        let value = self.operand(value);
        let record = self.record();
        let thread = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
        let mut left: Vec<Value> = (0..VARS).map(|var| self.var(var)).collect();
        left.push(value);
        for (index, value) in left.into_iter().enumerate() {
            // What is the same in all threads need not be in a general register because it is stored.
            let sum = self.builder.ins().iadd(value, thread);
            let place = word(VALUES + OWN + index);
            self.builder.ins().store(aligned(), sum, record, place);
        }
    }

    pub(super) fn end(&mut self, label: Label, end: &End, is_kernel: bool) {
        let bare = self.bare.filter(|_| is_kernel);
        if let Some((_, value)) = bare.filter(|(bare, _)| end.targets().contains(bare)) {
            self.leave_results(value);
        }
        match end {
            End::Jump(target) => {
                let target = self.labels[*target];
                self.builder.ins().jump(target, &[]);
            }
            End::Branch {
                condition,
                fuel,
                then,
                other,
            } => {
                let mut holds = self.condition(condition);
                if *fuel {
                    let left = self.builder.use_var(self.fuel);
                    let zero = self.constant(0);
                    let can = self.builder.ins().icmp(IntCC::NotEqual, left, zero);
                    let used = self.builder.ins().uextend(types::I32, can);
                    let left = self.builder.ins().isub(left, used);
                    self.builder.def_var(self.fuel, left);
                    holds = self.builder.ins().band(can, holds);
                }
                let (then, other) = (self.labels[*then], self.labels[*other]);
                self.builder.ins().brif(holds, then, &[], other, &[]);
            }
            End::Table {
                value,
                mask,
                targets,
            } => {
                let value = self.operand(*value);
                let value = self.salted(value);
                let mask = self.constant(*mask);
                let index = self.builder.ins().band(value, mask);
                let pool = &mut self.builder.func.dfg.value_lists;
                let none: [BlockArg; 0] = [];
                let mut calls: Vec<BlockCall> = targets
                    .iter()
                    .map(|&t| BlockCall::new(self.labels[t], none, pool))
                    .collect();
                if let Some(default) = calls.pop() {
                    let table = self
                        .builder
                        .create_jump_table(JumpTableData::new(default, &calls));
                    self.builder.ins().br_table(index, table);
                }
            }
            End::Return(value) if is_kernel => {
                if bare.is_none_or(|(bare, _)| bare != label) {
                    self.leave_results(*value);
                }
                self.builder.ins().return_(&[]);
            }
            End::Return(value) => {
                let value = self.operand(*value);
                let fuel = self.builder.use_var(self.fuel);
                self.builder.ins().return_(&[value, fuel]);
            }
            End::TailCall {
                callees,
                which,
                arguments,
            } => {
                let arguments = self.arguments(arguments);
                if let [callee] = callees[..] {
                    let callee = self.callee(callee);
                    self.builder.ins().return_call(callee, &arguments);
                } else {
                    let address = self.address(callees, *which);
                    let signature = self.builder.import_signature(signature(callees[0], true));
                    self.builder
                        .ins()
                        .return_call_indirect(signature, address, &arguments);
                }
            }
        }
    }
}
