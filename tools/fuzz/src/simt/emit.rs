//! A kernel as CLIF text.
//!
//! Variables become SSA values by Cranelift's `FunctionBuilder`. Statements in which lanes wait become loops
//! (`waiting`), and steps that a block takes together get their barriers (`phases`).

mod ends;
mod operations;

use super::kernel::{
    Block, Compare, Condition, Function, Kernel, Label, LockKind, MASKS, OWN, Operand, RECORD,
    Space, Stmt, VALUES, VARS,
};
use super::locks;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, FuncRef, GlobalValue, GlobalValueData, InstBuilder,
    MemFlagsData, Signature, StackSlot, StackSlotData, StackSlotKind, Type, UserFuncName, Value,
    types,
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
    text.push_str(&locks::functions(kernel));
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

/// The signature of a function: `record`, `data`, fuel and two arguments give a result and the fuel that is left. A
/// kernel gets all records, `data`, the inputs and a number.
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
    /// Where the kernel only returns, and what it would store.
    bare: Option<(Label, Operand)>,
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
            bare: Self::bare(kernel),
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
        self.end(label, &block.end, is_kernel);
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
            Stmt::Exchange { list, times } => match times {
                Some(times) => self.rotate_often(list, *times),
                None => self.rotate(list),
            },
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
