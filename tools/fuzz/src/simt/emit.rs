//! A kernel as CLIF text.
//!
//! Variables become SSA values by Cranelift's `FunctionBuilder`. Statements in which lanes wait become loops (`waiting`), and steps that a block takes together get
//! their barriers (`phases`).

use super::kernel::{
    Block, COUNTED, Cell, Compare, Condition, Counting, End, Function, Kernel, LockKind, MASKS,
    OWN, Op, Operand, RECORD, Space, Stmt, Update, VALUES, VARS,
};
use super::waiting;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, AtomicRmwOp, BlockArg, BlockCall, ExtFuncData, ExternalName, FuncRef,
    GlobalValue, GlobalValueData, InstBuilder, JumpTableData, MemFlagsData, Signature, StackSlot,
    StackSlotData, StackSlotKind, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::collections::BTreeMap;
use std::fmt::Write;
use target_lexicon::PointerWidth;

/// Name of the kernel in the text.
pub const NAME: &str = "k";

/// The text: device functions, those of locks, then the kernel.
pub fn text(kernel: &Kernel) -> String {
    let mut text = format!(
        "; Seed {} of the generator of SIMT kernels: {} blocks of {} threads.\n",
        kernel.seed, kernel.grid, kernel.threads
    );
    text.push_str(&waiting::functions(kernel));
    let called = kernel.called();
    let functions = kernel.functions.iter().enumerate().rev();
    for (index, function) in functions.filter(|(index, _)| called[*index]) {
        text.push('\n');
        if index == 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "; kernel shared={}", kernel.shared_bytes());
        }
        let _ = write!(text, "{}", Emitter::function(kernel, index, function));
    }
    text
}

/// The name of a function.
fn name(function: usize) -> String {
    match function {
        0 => NAME.to_owned(),
        _ => format!("f{function}"),
    }
}

/// The signature of a function: `record`, `data`, fuel and two arguments give a result and the fuel that is left. A kernel gets all records, `data`, the
/// inputs and a number.
fn signature(function: usize, tail: bool) -> Signature {
    let mut signature = Signature::new(if tail { CallConv::Tail } else { CallConv::Fast });
    let (params, returns): (&[Type], &[Type]) = match function {
        0 => (&[types::I64, types::I64, types::I64, types::I32], &[]),
        _ => (
            &[types::I64, types::I64, types::I32, types::I32, types::I32],
            &[types::I32, types::I32],
        ),
    };
    signature.params = params.iter().copied().map(AbiParam::new).collect();
    signature.returns = returns.iter().copied().map(AbiParam::new).collect();
    signature
}

/// A function that is being written.
pub struct Emitter<'a, 'b> {
    pub(super) kernel: &'a Kernel,
    pub(super) builder: FunctionBuilder<'b>,
    labels: Vec<ir::Block>,
    vars: Vec<Variable>,
    fuel: Variable,
    /// See [`super::kernel::salt`].
    salt: Variable,
    /// The thread's record.
    record: Variable,
    /// What threads share.
    data: Variable,
    /// All records, in the kernel.
    pub(super) records: Option<Value>,
    functions: BTreeMap<String, FuncRef>,
    shared: Option<GlobalValue>,
    slot: Option<StackSlot>,
}

impl Emitter<'_, '_> {
    fn function(kernel: &Kernel, index: usize, function: &Function) -> ir::Function {
        let signature = signature(index, function.tail);
        let mut func =
            ir::Function::with_name_signature(UserFuncName::testcase(name(index)), signature);
        let mut context = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut func, &mut context);
        let entry = builder.create_block();
        let labels = function
            .blocks
            .iter()
            .map(|_| builder.create_block())
            .collect();
        let vars = (0..VARS).map(|_| builder.declare_var(types::I32)).collect();
        let (fuel, record) = (
            builder.declare_var(types::I32),
            builder.declare_var(types::I64),
        );
        let data = builder.declare_var(types::I64);
        let salt = builder.declare_var(types::I32);
        let mut emitter = Emitter {
            kernel,
            builder,
            labels,
            vars,
            fuel,
            salt,
            record,
            data,
            records: None,
            functions: BTreeMap::new(),
            shared: None,
            slot: None,
        };
        emitter.entry(entry, index == 0, function);
        for (label, block) in function.blocks.iter().enumerate() {
            emitter.block(label, block, index == 0);
        }
        emitter.builder.seal_all_blocks();
        emitter.builder.finalize(TargetFrontendConfig {
            default_call_conv: CallConv::Fast,
            pointer_width: PointerWidth::U64,
            page_size_align_log2: 12,
        });
        func.dfg.resolve_all_aliases();
        func
    }

    fn entry(&mut self, entry: ir::Block, is_kernel: bool, function: &Function) {
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        let params = self.builder.block_params(entry).to_vec();
        let mut first = Vec::new();
        let fuel = if is_kernel {
            let block = self.intrinsic("gpu_ctaid_x", &[], &[types::I32])[0];
            let threads = self.intrinsic("gpu_ntid_x", &[], &[types::I32])[0];
            let index = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
            let lane = self.intrinsic("gpu_laneid", &[], &[types::I32])[0];
            let start = self.builder.ins().imul(block, threads);
            let thread = self.builder.ins().iadd(start, index);
            let record = self.element(params[0], thread, 4 * RECORD as u32);
            let place = self.element(params[2], thread, 4);
            let input = self.builder.ins().load(types::I32, aligned(), place, 0);
            self.records = Some(params[0]);
            self.builder.def_var(self.record, record);
            first.extend([thread, index, block, params[3], input, lane]);
            self.constant(super::kernel::FUEL)
        } else {
            self.builder.def_var(self.record, params[0]);
            let (a, b) = (params[3], params[4]);
            let (different, sum) = (self.builder.ins().bxor(a, b), self.builder.ins().iadd(a, b));
            first.extend([a, b, different, sum, self.constant(1), self.constant(2)]);
            params[2]
        };
        let factor = self.constant(super::kernel::SALT);
        let salt = self.builder.ins().imul(params[3], factor);
        self.builder.def_var(self.salt, salt);
        self.builder.def_var(self.data, params[1]);
        self.builder.def_var(self.fuel, fuel);
        for (var, value) in self.vars.clone().into_iter().zip(first) {
            self.builder.def_var(var, value);
        }
        let uses_slot = |stmt: &Stmt| {
            matches!(
                stmt,
                Stmt::StoreOwn { slot: true, .. } | Stmt::LoadOwn { slot: true, .. }
            )
        };
        if function.blocks.iter().flat_map(|b| &b.stmts).any(uses_slot) {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 4 * OWN as u32, 2);
            let slot = self.builder.create_sized_stack_slot(data);
            let zero = self.constant(0);
            for index in 0..OWN {
                self.builder
                    .ins()
                    .stack_store(types::I64, zero, slot, 4 * index as i32);
            }
            self.slot = Some(slot);
        }
        let first = self.labels[0];
        self.builder.ins().jump(first, &[]);
    }

    fn block(&mut self, label: usize, block: &Block, is_kernel: bool) {
        let start = self.labels[label];
        self.builder.switch_to_block(start);
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
        self.end(&block.end, is_kernel);
    }

    pub(super) fn constant(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(value))
    }

    pub(super) fn data(&mut self) -> Value {
        self.builder.use_var(self.data)
    }

    pub(super) fn var(&mut self, var: usize) -> Value {
        self.builder.use_var(self.vars[var])
    }

    pub(super) fn set(&mut self, var: usize, value: Value) {
        self.builder.def_var(self.vars[var], value);
    }

    pub(super) fn record(&mut self) -> Value {
        self.builder.use_var(self.record)
    }

    pub(super) fn operand(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Var(var) => self.var(var),
            Operand::Const(value) => self.constant(value),
        }
    }

    /// The address of an element of so many bytes.
    pub(super) fn element(&mut self, base: Value, index: Value, bytes: u32) -> Value {
        let wide = self.builder.ins().uextend(types::I64, index);
        let size = self.builder.ins().iconst(types::I64, i64::from(bytes));
        let offset = self.builder.ins().imul(wide, size);
        self.builder.ins().iadd(base, offset)
    }

    /// A function by its name.
    pub(super) fn import(&mut self, name: &str, signature: Signature) -> FuncRef {
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

    /// Calls an intrinsic.
    pub(super) fn intrinsic(
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

    pub(super) fn barrier(&mut self) {
        self.intrinsic("gpu_bar_sync", &[], &[]);
    }

    /// Where shared memory begins, as an address of this type.
    pub(super) fn shared(&mut self, ty: Type) -> Value {
        let builder = &mut self.builder;
        let symbol = *self.shared.get_or_insert_with(|| {
            builder.create_global_value(GlobalValueData::Symbol {
                name: ExternalName::testcase("gpu_shared"),
                offset: 0.into(),
                colocated: false,
                tls: false,
            })
        });
        self.builder.ins().symbol_value(ty, symbol)
    }

    /// The address of a place in a space: in shared memory as an offset or, every second place, as a generic address.
    pub(super) fn place(&mut self, space: Space, offset: u32) -> Value {
        let base = match space {
            Space::Global => self.data(),
            Space::Shared if (offset / 32).is_multiple_of(2) => self.shared(types::I32),
            Space::Shared => self.shared(types::I64),
        };
        let ty = self.builder.func.dfg.value_type(base);
        let offset = self.builder.ins().iconst(ty, i64::from(offset));
        self.builder.ins().iadd(base, offset)
    }

    fn salted(&mut self, value: Value) -> Value {
        let salt = self.builder.use_var(self.salt);
        self.builder.ins().bxor(value, salt)
    }

    fn condition(&mut self, condition: &Condition) -> Value {
        let mut value = self.operand(condition.value);
        if condition.salted {
            value = self.salted(value);
        }
        let mask = self.constant(condition.mask);
        let masked = self.builder.ins().band(value, mask);
        let with = self.constant(condition.with);
        let code = match condition.compare {
            Compare::Equal => IntCC::Equal,
            Compare::NotEqual => IntCC::NotEqual,
            Compare::Less => IntCC::UnsignedLessThan,
            Compare::Greater => IntCC::SignedGreaterThan,
        };
        self.builder.ins().icmp(code, masked, with)
    }

    /// Ends the block in which something happens only if a condition holds; returns where to go on.
    pub(super) fn only_if(&mut self, condition: &Condition) -> ir::Block {
        let (inside, behind) = (self.builder.create_block(), self.builder.create_block());
        let holds = self.condition(condition);
        self.builder.ins().brif(holds, inside, &[], behind, &[]);
        self.builder.switch_to_block(inside);
        behind
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { to, op, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                let value = self.operation(*op, a, b);
                self.set(*to, value);
            }
            Stmt::Count {
                to,
                number,
                counting,
                wide,
            } => self.count(*to, *number, *counting, *wide),
            Stmt::Probe => self.probe(),
            Stmt::StoreOwn { index, value, slot } => {
                let value = self.operand(*value);
                match self.slot.filter(|_| *slot) {
                    Some(slot) => {
                        self.builder
                            .ins()
                            .stack_store(types::I64, value, slot, 4 * *index as i32);
                    }
                    None => {
                        let record = self.record();
                        self.builder
                            .ins()
                            .store(aligned(), value, record, word(VALUES + index));
                    }
                }
            }
            Stmt::LoadOwn { to, index, slot } => {
                let value = match self.slot.filter(|_| *slot) {
                    Some(slot) => self.builder.ins().stack_load(
                        types::I64,
                        types::I32,
                        slot,
                        4 * *index as i32,
                    ),
                    None => {
                        let record = self.record();
                        self.builder
                            .ins()
                            .load(types::I32, aligned(), record, word(VALUES + index))
                    }
                };
                self.set(*to, value);
            }
            Stmt::Update { cell, which, value } => self.update(*cell, *which, *value),
            Stmt::Lock { lock, when } => {
                let behind = when.as_ref().map(|when| self.only_if(when));
                self.lock(*lock);
                self.go_on(behind);
            }
            Stmt::Unlock { lock, when } => {
                let behind = when.as_ref().map(|when| self.only_if(when));
                self.unlock(*lock);
                self.go_on(behind);
            }
            Stmt::TryLock { lock, cell, value } => self.try_lock(*lock, *cell, *value),
            Stmt::Call {
                callees,
                which,
                indirect,
                to,
                arguments,
            } => {
                let arguments = self.arguments(arguments);
                let call = if callees.len() == 1 && !indirect {
                    let callee = self.callee(callees[0]);
                    self.builder.ins().call(callee, &arguments)
                } else {
                    let address = self.address(callees, *which);
                    let tail = self.kernel.functions[callees[0]].tail;
                    let signature = self.builder.import_signature(signature(callees[0], tail));
                    self.builder
                        .ins()
                        .call_indirect(signature, address, &arguments)
                };
                let results = self.builder.inst_results(call).to_vec();
                self.set(*to, results[0]);
                self.builder.def_var(self.fuel, results[1]);
            }
            Stmt::Phase(phase) => self.phase(*phase),
        }
    }

    fn operation(&mut self, op: Op, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match op {
            Op::Add => ins.iadd(a, b),
            Op::Sub => ins.isub(a, b),
            Op::Mul => ins.imul(a, b),
            Op::And => ins.band(a, b),
            Op::Or => ins.bor(a, b),
            Op::Xor => ins.bxor(a, b),
            Op::Shl => ins.ishl(a, b),
            Op::Shr => ins.ushr(a, b),
            Op::Sar => ins.sshr(a, b),
            Op::Max => ins.umax(a, b),
            Op::Min => ins.smin(a, b),
            Op::Smax => ins.smax(a, b),
            Op::Umin => ins.umin(a, b),
            Op::Pick => {
                let bit = self.constant(4);
                let masked = self.builder.ins().band(a, bit);
                let set = self.builder.ins().icmp(IntCC::Equal, masked, bit);
                self.builder.ins().select(set, a, b)
            }
            Op::Wide => {
                let [most, seven, half] = [29, 7, 32].map(|n| self.constant(n));
                let a = self.builder.ins().sextend(types::I64, a);
                let b = self.builder.ins().uextend(types::I64, b);
                let high = self.builder.ins().ishl(a, most);
                let sum = self.builder.ins().iadd(high, b);
                let less = self.builder.ins().ishl(b, seven);
                let difference = self.builder.ins().isub(sum, less);
                let upper = self.builder.ins().sshr(difference, half);
                self.builder.ins().ireduce(types::I32, upper)
            }
            Op::WidePick => {
                let half = self.constant(32);
                let [a, b] = [a, b].map(|v| self.builder.ins().sextend(types::I64, v));
                let sum = self.builder.ins().iadd(a, b);
                let difference = self.builder.ins().isub(a, b);
                let less = (self.builder.ins()).icmp(IntCC::SignedLessThan, difference, sum);
                let chosen = self.builder.ins().select(less, difference, sum);
                let upper = self.builder.ins().ushr(chosen, half);
                let both = self.builder.ins().bxor(chosen, upper);
                self.builder.ins().ireduce(types::I32, both)
            }
        }
    }

    /// A loop with a counter of its own, as [`Stmt::Count`] says.
    fn count(&mut self, to: usize, number: Operand, counting: Counting, wide: bool) {
        let ty = if wide { types::I64 } else { types::I32 };
        let number = self.operand(number);
        let mask = self.constant(COUNTED);
        let mut number = self.builder.ins().band(number, mask);
        if wide {
            number = self.builder.ins().uextend(ty, number);
        }
        let [zero, one, two] = [0, 1, 2].map(|n| self.builder.ins().iconst(ty, n));
        let [header, body, exit] = [(); 3].map(|()| self.builder.create_block());
        let counter = self.builder.append_block_param(header, ty);
        let (from, code, end) = match counting {
            Counting::Up => (zero, IntCC::UnsignedLessThan, number),
            Counting::Down => (number, IntCC::SignedGreaterThan, zero),
            Counting::Shift => (number, IntCC::NotEqual, zero),
        };
        self.builder.ins().jump(header, &[from.into()]);
        self.builder.switch_to_block(header);
        let goes_on = self.builder.ins().icmp(code, counter, end);
        self.builder.ins().brif(goes_on, body, &[], exit, &[]);
        self.builder.switch_to_block(body);
        let mut offset = self.builder.ins().ishl(counter, two);
        if !wide {
            offset = self.builder.ins().uextend(types::I64, offset);
        }
        let record = self.record();
        let place = self.builder.ins().iadd(record, offset);
        let own = (self.builder.ins()).load(types::I32, aligned(), place, word(VALUES));
        let (var, three) = (self.var(to), self.constant(3));
        let product = self.builder.ins().imul(var, three);
        let term = match wide {
            true => self.builder.ins().ireduce(types::I32, counter),
            false => counter,
        };
        let sum = self.builder.ins().iadd(product, term);
        let sum = self.builder.ins().iadd(sum, own);
        self.set(to, sum);
        let next = match counting {
            Counting::Up => self.builder.ins().iadd(counter, one),
            Counting::Down => self.builder.ins().isub(counter, one),
            Counting::Shift => self.builder.ins().ushr(counter, one),
        };
        self.builder.ins().jump(header, &[next.into()]);
        self.builder.switch_to_block(exit);
    }

    /// Goes on in a block, if there is one.
    pub(super) fn go_on(&mut self, behind: Option<ir::Block>) {
        if let Some(behind) = behind {
            self.builder.ins().jump(behind, &[]);
            self.builder.switch_to_block(behind);
        }
    }

    fn probe(&mut self) {
        let mask = self.intrinsic("gpu_activemask", &[], &[types::I32])[0];
        let record = self.record();
        let count = self.builder.ins().load(types::I32, aligned(), record, 0);
        let last = self.constant((VALUES - MASKS - 1) as u32);
        let index = self.builder.ins().umin(count, last);
        let place = self.element(record, index, 4);
        self.builder
            .ins()
            .store(aligned(), mask, place, word(MASKS));
        let one = self.constant(1);
        let next = self.builder.ins().iadd(count, one);
        self.builder.ins().store(aligned(), next, record, 0);
    }

    pub(super) fn update(&mut self, cell: usize, which: Operand, value: Operand) {
        let Cell {
            space,
            update,
            bytes,
            lock,
        } = self.kernel.cells[cell];
        let base = self.place(space, self.kernel.cell_offset(cell));
        let (which, value) = (self.operand(which), self.operand(value));
        let mask = self.constant(super::kernel::GROUP - 1);
        let index = self.builder.ins().band(which, mask);
        let size = self.constant(bytes);
        let offset = self.builder.ins().imul(index, size);
        let offset = match self.builder.func.dfg.value_type(base) {
            types::I64 => self.builder.ins().uextend(types::I64, offset),
            _ => offset,
        };
        let place = self.builder.ins().iadd(base, offset);
        let ty = Type::int(8 * bytes as u16).unwrap_or(types::I32);
        let value = match bytes {
            8 => self.builder.ins().uextend(ty, value),
            4 => value,
            _ => self.builder.ins().ireduce(ty, value),
        };
        if lock.is_none() {
            let op = match update {
                Update::Add => AtomicRmwOp::Add,
                Update::And => AtomicRmwOp::And,
                Update::Or => AtomicRmwOp::Or,
                Update::Xor => AtomicRmwOp::Xor,
                Update::Umax => AtomicRmwOp::Umax,
                Update::Umin => AtomicRmwOp::Umin,
                Update::Smax => AtomicRmwOp::Smax,
                Update::Smin => AtomicRmwOp::Smin,
            };
            self.builder
                .ins()
                .atomic_rmw(ty, aligned(), op, place, value);
            return;
        }
        let old = self.builder.ins().load(ty, aligned(), place, 0);
        let ins = self.builder.ins();
        let new = match update {
            Update::Add => ins.iadd(old, value),
            Update::And => ins.band(old, value),
            Update::Or => ins.bor(old, value),
            Update::Xor => ins.bxor(old, value),
            Update::Umax => ins.umax(old, value),
            Update::Umin => ins.umin(old, value),
            Update::Smax => ins.smax(old, value),
            Update::Smin => ins.smin(old, value),
        };
        self.builder.ins().store(aligned(), new, place, 0);
    }

    fn callee(&mut self, callee: usize) -> FuncRef {
        self.import(
            &name(callee),
            signature(callee, self.kernel.functions[callee].tail),
        )
    }

    /// `record`, `data`, fuel and two arguments.
    fn arguments(&mut self, arguments: &[Operand; 2]) -> Vec<Value> {
        let (record, data) = (self.record(), self.data());
        let fuel = self.builder.use_var(self.fuel);
        let [a, b] = arguments.map(|argument| self.operand(argument));
        vec![record, data, fuel, a, b]
    }

    /// The address of one of some functions.
    fn address(&mut self, callees: &[usize], which: Operand) -> Value {
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

    fn end(&mut self, end: &End, is_kernel: bool) {
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
            End::Return(value) => {
                let value = self.operand(*value);
                if is_kernel {
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
                    self.builder.ins().return_(&[]);
                } else {
                    let fuel = self.builder.use_var(self.fuel);
                    self.builder.ins().return_(&[value, fuel]);
                }
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

/// Flags of accesses: all are aligned.
pub(super) fn aligned() -> MemFlagsData {
    MemFlagsData::new().with_aligned()
}

/// The offset of a word.
fn word(index: usize) -> i32 {
    4 * index as i32
}

/// Whether a kind of lock can be tried once.
pub fn can_try(kind: LockKind) -> bool {
    kind != LockKind::Ticket
}
