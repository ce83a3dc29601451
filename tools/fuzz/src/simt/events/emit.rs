//! A kernel of events as CLIF text.

use super::plan::{
    Array, Bound, Element, FACTORS, Form, KEPT, Loop, Order, Owner, Place, Plan, Role, Stmt, Sync,
    Test,
};
use crate::simt::emit::{NAME, aligned};
use crate::simt::kernel::{Compare, Condition, Op, Operand, SALT, Space, Update, VARS};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, AtomicRmwOp, ExtFuncData, ExternalName, FuncRef, GlobalValue, GlobalValueData,
    InstBuilder, MemFlagsData, Signature, StackSlot, StackSlotData, StackSlotKind, Type,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::collections::BTreeMap;
use target_lexicon::PointerWidth;

/// The text: device functions that wait, then the kernel.
pub fn text(plan: &Plan) -> String {
    let mut helpers = Vec::new();
    let kernel = function(
        plan,
        NAME,
        &signature(plan),
        &mut helpers,
        |emitter, params| emitter.kernel(params),
    );
    let mut text = format!(
        "; Seed {} of the generator of kernels of events, {}: {} blocks of {} threads.\n; {}\n",
        plan.seed,
        plan.family.name(),
        plan.grid,
        plan.threads,
        parameters(plan)
    );
    for helper in &helpers {
        text.push_str(&format!("\n{helper}"));
    }
    text.push_str(&format!(
        "\n; kernel shared={}\n{kernel}",
        plan.shared_layout().2
    ));
    text
}

/// What the launch passes.
fn parameters(plan: &Plan) -> String {
    let mut all: Vec<String> = Vec::new();
    for array in plan
        .arrays
        .iter()
        .filter(|array| array.place == Place::Global)
    {
        let bytes = plan.copies(array) * array.size();
        all.push(format!("{bytes} bytes ({:?})", array.role));
    }
    let flags = plan.flags() * plan.flag_bytes;
    if plan.space == Space::Global && flags != 0 {
        all.push(format!(
            "{flags} bytes of flags, each {:#x} at first",
            plan.start
        ));
    }
    all.push(format!(
        "{} bytes of shared memory at the end",
        plan.shared_layout().2 * plan.grid
    ));
    all.push(format!(
        "{} bytes of results",
        plan.all_threads() * 4 * VARS as u32
    ));
    all.extend(plan.passed().iter().map(|n| format!("{n}")));
    all.push(format!("{}", plan.seed as u32));
    format!("Arguments: {}.", all.join(", "))
}

fn signature(plan: &Plan) -> Signature {
    let mut signature = Signature::new(CallConv::Fast);
    let global = plan
        .arrays
        .iter()
        .filter(|array| array.place == Place::Global);
    let flags = usize::from(plan.space == Space::Global && plan.flags() != 0);
    let pointers = global.count() + flags + 2;
    signature.params = vec![AbiParam::new(types::I64); pointers];
    let numbers = plan.passed().len() + 1;
    signature
        .params
        .extend(vec![AbiParam::new(types::I32); numbers]);
    signature
}

/// Builds a function; device functions that it needs go to `helpers`.
pub(super) fn function(
    plan: &Plan,
    name: &str,
    signature: &Signature,
    helpers: &mut Vec<ir::Function>,
    body: impl FnOnce(&mut Emitter<'_, '_>, &[Value]),
) -> ir::Function {
    let mut func =
        ir::Function::with_name_signature(UserFuncName::testcase(name), signature.clone());
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut func, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let params = builder.block_params(entry).to_vec();
    let vars = (0..VARS).map(|_| builder.declare_var(types::I32)).collect();
    let mut emitter = Emitter {
        plan,
        builder,
        helpers,
        vars,
        levels: Vec::new(),
        bases: vec![None; plan.arrays.len()],
        previous: vec![None; plan.arrays.len()],
        numbers: Vec::new(),
        salt: None,
        rank: None,
        functions: BTreeMap::new(),
        shared: None,
        slot: None,
    };
    body(&mut emitter, &params);
    emitter.builder.seal_all_blocks();
    emitter.builder.finalize(TargetFrontendConfig {
        default_call_conv: CallConv::Fast,
        pointer_width: PointerWidth::U64,
        page_size_align_log2: 12,
    });
    func.dfg.resolve_all_aliases();
    func
}

/// The position in a loop.
#[derive(Clone, Copy)]
enum Level {
    /// A variable.
    Counter(Variable, Type),
    /// A variable and a number.
    Sum(Variable, Value),
    /// A pointer into an array.
    Pointer(Variable, usize),
}

/// A function that is being written.
pub(super) struct Emitter<'a, 'b> {
    pub(super) plan: &'a Plan,
    pub(super) builder: FunctionBuilder<'b>,
    pub(super) helpers: &'a mut Vec<ir::Function>,
    vars: Vec<Variable>,
    levels: Vec<Level>,
    /// Where the thread's copy of each array begins, and that of the thread before it.
    pub(super) bases: Vec<Option<Value>>,
    previous: Vec<Option<Value>>,
    /// The numbers that the launch passes.
    numbers: Vec<(u32, Value)>,
    salt: Option<Value>,
    rank: Option<Value>,
    functions: BTreeMap<String, FuncRef>,
    shared: Option<GlobalValue>,
    /// For what goes through the stack.
    pub(super) slot: Option<StackSlot>,
}

impl Emitter<'_, '_> {
    fn kernel(&mut self, params: &[Value]) {
        let plan = self.plan;
        let mut params = params.iter().copied();
        let mut next = || params.next().expect("as many as the signature has");
        let pointers: Vec<Option<Value>> = (plan.arrays.iter())
            .map(|array| (array.place == Place::Global).then(&mut next))
            .collect();
        let global_flags = plan.space == Space::Global && plan.flags() != 0;
        let flags = global_flags.then(&mut next);
        let (collected, results) = (next(), next());
        self.numbers = plan.passed().into_iter().map(|n| (n, next())).collect();
        self.salt = Some(next());
        let block = self.intrinsic("gpu_ctaid_x", &[], &[types::I32])[0];
        let count = self.intrinsic("gpu_ntid_x", &[], &[types::I32])[0];
        let index = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
        let start = self.builder.ins().imul(block, count);
        let thread = self.builder.ins().iadd(start, index);
        for (var, factor) in FACTORS.into_iter().enumerate() {
            let (factor, plus) = (self.constant(factor), self.constant(factor >> 5));
            let product = self.builder.ins().imul(thread, factor);
            let value = self.builder.ins().iadd(product, plus);
            self.set(var, value);
        }
        let mut kept = Vec::new();
        let mut last = thread;
        for _ in 0..plan.pressure {
            kept.push(last);
            let (square, plus) = (self.builder.ins().imul(last, last), self.constant(KEPT));
            last = self.builder.ins().iadd(square, plus);
        }
        let (layout, flags_offset, end) = plan.shared_layout();
        if end != 0 {
            self.clear(index, end, flags_offset);
        }
        for (number, array) in plan.arrays.iter().enumerate() {
            let base = match array.place {
                Place::Global => pointers[number],
                Place::Stack => Some(self.slot_array(array)),
                place => {
                    let ty = if place == Place::Shared {
                        types::I32
                    } else {
                        types::I64
                    };
                    let base = self.shared_address(ty, layout[number]);
                    Some(base)
                }
            };
            self.bases[number] = base;
        }
        let who = if plan.is_grid_wide() { thread } else { index };
        let behind = self.builder.create_block();
        let stride = self.constant(plan.stride);
        if plan.stride != 1 {
            let inside = self.builder.create_block();
            let rest = self.builder.ins().urem(who, stride);
            self.builder.ins().brif(rest, behind, &[], inside, &[]);
            self.builder.switch_to_block(inside);
        }
        let participant = self.builder.ins().udiv(who, stride);
        let rank = self.ranked(participant);
        self.rank = Some(rank);
        let previous = self.previous_thread(who, rank);
        for (number, array) in plan.arrays.iter().enumerate() {
            let Some(base) = self.bases[number] else {
                continue;
            };
            let owner = |of_thread: Value| match (array.place, array.owner) {
                (Place::Stack, _) | (_, Owner::All) => None,
                (Place::Global, Owner::Block) => Some(block),
                (_, Owner::Block) => None,
                (_, Owner::Thread) => Some(of_thread),
            };
            let own = if array.place.is_shared() {
                index
            } else {
                thread
            };
            let (here, there) = (owner(own), owner(previous));
            self.bases[number] = Some(self.copy(base, here, array));
            if array.role == Role::Message {
                // In global memory threads have numbers of the grid.
                let there =
                    there.map(
                        |there| match array.place == Place::Global && !plan.is_grid_wide() {
                            true => self.builder.ins().iadd(start, there),
                            false => there,
                        },
                    );
                self.previous[number] = Some(self.copy(base, there, array));
            }
        }
        let flags = match flags {
            Some(flags) => Some(flags),
            None if plan.flags() != 0 => {
                let ty = if plan.generic { types::I64 } else { types::I32 };
                Some(self.shared_address(ty, flags_offset))
            }
            None => None,
        };
        self.rounds(flags, rank);
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
        for kept in kept {
            let var = self.var(0);
            let both = self.builder.ins().bxor(var, kept);
            self.set(0, both);
        }
        let place = self.element_at(results, thread, 4 * VARS as u32);
        for var in 0..VARS {
            let value = self.var(var);
            self.builder
                .ins()
                .store(aligned(), value, place, 4 * var as i32);
        }
        if end != 0 {
            self.collect(index, block, collected, end);
        }
        self.builder.ins().return_(&[]);
    }

    fn rounds(&mut self, flags: Option<Value>, rank: Value) {
        let plan = self.plan;
        let round = self.builder.declare_var(types::I32);
        let zero = self.constant(0);
        self.builder.def_var(round, zero);
        self.levels.push(Level::Counter(round, types::I32));
        let again = self.builder.create_block();
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        self.stmts(&plan.before);
        match flags {
            Some(flags) => self.synchronised(flags, rank, round),
            None => self.stmts(&plan.body),
        }
        self.stmts(&plan.after);
        if plan.rounds != 1 {
            let (now, one, all) = (
                self.builder.use_var(round),
                self.constant(1),
                self.constant(plan.rounds),
            );
            let next = self.builder.ins().iadd(now, one);
            self.builder.def_var(round, next);
            let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, all);
            let out = self.builder.create_block();
            self.builder.ins().brif(more, again, &[], out, &[]);
            self.builder.switch_to_block(out);
        }
        self.levels.pop();
    }

    /// The rank of a participant.
    fn ranked(&mut self, participant: Value) -> Value {
        let count = self.plan.participants();
        match self.plan.order {
            Order::Up => participant,
            Order::Down => {
                let last = self.constant(count - 1);
                self.builder.ins().isub(last, participant)
            }
            Order::Mixed(factor, plus) => {
                let [factor, plus, mask] = [factor, plus, count - 1].map(|n| self.constant(n));
                let product = self.builder.ins().imul(participant, factor);
                let sum = self.builder.ins().iadd(product, plus);
                self.builder.ins().band(sum, mask)
            }
        }
    }

    /// The number in its scope of the thread before this one.
    fn previous_thread(&mut self, who: Value, rank: Value) -> Value {
        let stride = self.constant(self.plan.stride);
        match self.plan.order {
            Order::Up => self.builder.ins().isub(who, stride),
            Order::Down => self.builder.ins().iadd(who, stride),
            Order::Mixed(factor, plus) => {
                let numbers = [
                    super::plan::inverse(factor),
                    plus + 1,
                    self.plan.participants() - 1,
                ];
                let [inverse, plus, mask] = numbers.map(|n| self.constant(n));
                let difference = self.builder.ins().isub(rank, plus);
                let product = self.builder.ins().imul(difference, inverse);
                let participant = self.builder.ins().band(product, mask);
                self.builder.ins().imul(participant, stride)
            }
        }
    }

    /// Where a copy of an array begins.
    fn copy(&mut self, base: Value, number: Option<Value>, array: &Array) -> Value {
        match number {
            None => base,
            Some(number) => self.element_at(base, number, array.size()),
        }
    }

    /// The first thread of the block clears shared memory, and sets the flags.
    fn clear(&mut self, index: Value, end: u32, flags: u32) {
        let behind = self.first_thread(index);
        self.bytes(end, |emitter, offset| {
            let base = emitter.shared_address(types::I32, 0);
            let place = emitter.builder.ins().iadd(base, offset);
            let zero = emitter.builder.ins().iconst(types::I8, 0);
            emitter.builder.ins().store(aligned(), zero, place, 0);
        });
        let plan = self.plan;
        if plan.space == Space::Shared && plan.start != 0 && plan.sync == Sync::Turns {
            let place = self.shared_address(types::I32, flags + plan.skipped * plan.flag_bytes);
            let start = self.number(flag_type(plan), plan.start);
            self.builder.ins().store(aligned(), start, place, 0);
        }
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
        self.intrinsic("gpu_bar_sync", &[], &[]);
    }

    fn collect(&mut self, index: Value, block: Value, collected: Value, end: u32) {
        self.intrinsic("gpu_bar_sync", &[], &[]);
        let behind = self.first_thread(index);
        let to = self.element_at(collected, block, end);
        self.bytes(end, |emitter, offset| {
            let base = emitter.shared_address(types::I32, 0);
            let place = emitter.builder.ins().iadd(base, offset);
            let value = emitter.builder.ins().load(types::I8, aligned(), place, 0);
            let place = emitter.element_at(to, offset, 1);
            emitter.builder.ins().store(aligned(), value, place, 0);
        });
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
    }

    fn first_thread(&mut self, index: Value) -> ir::Block {
        let (inside, behind) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(index, behind, &[], inside, &[]);
        self.builder.switch_to_block(inside);
        behind
    }

    /// A loop over offsets.
    fn bytes(&mut self, end: u32, each: impl FnOnce(&mut Self, Value)) {
        let offset = self.builder.declare_var(types::I32);
        let zero = self.constant(0);
        self.builder.def_var(offset, zero);
        let (again, out) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let now = self.builder.use_var(offset);
        each(self, now);
        let (one, end) = (self.constant(1), self.constant(end));
        let next = self.builder.ins().iadd(now, one);
        self.builder.def_var(offset, next);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.builder.ins().brif(more, again, &[], out, &[]);
        self.builder.switch_to_block(out);
    }

    /// A slot for an array, cleared.
    fn slot_array(&mut self, array: &Array) -> Value {
        let shift = array.bytes.trailing_zeros() as u8;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, array.size(), shift);
        let slot = self.builder.create_sized_stack_slot(data);
        let zero = self.builder.ins().iconst(integer(8 * array.bytes), 0);
        for index in 0..array.count {
            let offset = (array.bytes * index) as i32;
            self.builder
                .ins()
                .stack_store(types::I64, zero, slot, offset);
        }
        self.builder.ins().stack_addr(types::I64, slot, 0)
    }

    pub(super) fn constant(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(value))
    }

    /// A constant of any type.
    pub(super) fn number(&mut self, ty: Type, value: u64) -> Value {
        let shift = 64 - ty.bits();
        let value = ((value << shift) as i64) >> shift;
        let value = if ty == types::I64 {
            value
        } else {
            value & (u64::MAX >> shift) as i64
        };
        self.builder.ins().iconst(ty, value)
    }

    pub(super) fn var(&mut self, var: usize) -> Value {
        self.builder.use_var(self.vars[var])
    }

    pub(super) fn set(&mut self, var: usize, value: Value) {
        self.builder.def_var(self.vars[var], value);
    }

    fn operand(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Var(var) => self.var(var),
            Operand::Const(value) => self.constant(value),
        }
    }

    /// A value as one of another integer type, extended by zeros.
    pub(super) fn converted(&mut self, value: Value, ty: Type) -> Value {
        self.extended(value, ty, false)
    }

    fn extended(&mut self, value: Value, ty: Type, signed: bool) -> Value {
        let from = self.builder.func.dfg.value_type(value).bits();
        match from.cmp(&ty.bits()) {
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.builder.ins().ireduce(ty, value),
            std::cmp::Ordering::Less if signed => self.builder.ins().sextend(ty, value),
            std::cmp::Ordering::Less => self.builder.ins().uextend(ty, value),
        }
    }

    /// A value of any type as a variable's.
    pub(super) fn folded(&mut self, value: Value) -> Value {
        if self.builder.func.dfg.value_type(value) != types::I64 {
            return self.converted(value, types::I32);
        }
        let half = self.constant(32);
        let high = self.builder.ins().ushr(value, half);
        let both = self.builder.ins().bxor(value, high);
        self.builder.ins().ireduce(types::I32, both)
    }

    /// The address of an element of so many bytes.
    pub(super) fn element_at(&mut self, base: Value, index: Value, bytes: u32) -> Value {
        let ty = self.builder.func.dfg.value_type(base);
        let wide = self.converted(index, ty);
        let size = self.number(ty, u64::from(bytes));
        let offset = self.builder.ins().imul(wide, size);
        self.builder.ins().iadd(base, offset)
    }

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

    fn intrinsic(&mut self, name: &str, arguments: &[Value], returns: &[Type]) -> Vec<Value> {
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

    /// An address in shared memory.
    fn shared_address(&mut self, ty: Type, offset: u32) -> Value {
        let builder = &mut self.builder;
        let symbol = *self.shared.get_or_insert_with(|| {
            builder.create_global_value(GlobalValueData::Symbol {
                name: ExternalName::testcase("gpu_shared"),
                offset: 0.into(),
                colocated: false,
                tls: false,
            })
        });
        let base = self.builder.ins().symbol_value(ty, symbol);
        let offset = self.number(ty, u64::from(offset));
        self.builder.ins().iadd(base, offset)
    }

    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { to, op, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                let value = self.operation(*op, a, b);
                self.set(*to, value);
            }
            Stmt::Load { to, from } => {
                let (ty, place, offset) = self.address(from);
                let flags = self.flags(from);
                let value = self.builder.ins().load(ty, flags, place, offset);
                let value = self.folded(value);
                let (var, three) = (self.var(*to), self.constant(3));
                let product = self.builder.ins().imul(var, three);
                let sum = self.builder.ins().iadd(product, value);
                self.set(*to, sum);
            }
            Stmt::Store { to, value } => {
                let (ty, place, offset) = self.address(to);
                let value = self.operand(*value);
                let value = self.converted(value, ty);
                let flags = self.flags(to);
                self.builder.ins().store(flags, value, place, offset);
            }
            Stmt::Update { to, value } => self.update(to, *value),
            Stmt::If { when, then } => {
                let (inside, behind) = (self.builder.create_block(), self.builder.create_block());
                self.branch(when, inside, behind);
                self.builder.switch_to_block(inside);
                self.stmts(then);
                self.builder.ins().jump(behind, &[]);
                self.builder.switch_to_block(behind);
            }
            Stmt::Loop(inner) => self.repeat(inner),
        }
    }

    fn operation(&mut self, op: Op, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match op {
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
            // The generator takes simple ones only.
            Op::Add | Op::Pick | Op::Wide | Op::WidePick => ins.iadd(a, b),
        }
    }

    fn update(&mut self, to: &Element, value: Operand) {
        let role = self.plan.arrays[to.array].role;
        let (ty, place, offset) = self.address(to);
        let value = self.operand(value);
        let value = self.converted(value, ty);
        let (update, atomic) = match role {
            Role::Atomic(update) => (update, true),
            Role::Locked(update) => (update, false),
            _ => (Update::Add, false),
        };
        if atomic {
            let address = self.builder.func.dfg.value_type(place);
            let offset = self.number(address, offset as u64);
            let place = self.builder.ins().iadd(place, offset);
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
        let old = self.builder.ins().load(ty, aligned(), place, offset);
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
        self.builder.ins().store(aligned(), new, place, offset);
    }

    fn flags(&self, element: &Element) -> MemFlagsData {
        let flags = aligned();
        match (element.flags, self.plan.arrays[element.array].role) {
            (false, _) => flags,
            (true, Role::Input) => flags.with_notrap().with_readonly(),
            (true, _) => flags.with_notrap(),
        }
    }

    /// Type, address and offset of an element.
    fn address(&mut self, element: &Element) -> (Type, Value, i32) {
        let array = self.plan.arrays[element.array];
        let (ty, index) = (integer(8 * array.bytes), &element.index);
        let bytes = array.bytes as i32;
        let bases = if element.previous {
            &self.previous
        } else {
            &self.bases
        };
        let mut base = bases[element.array].expect("arrays have addresses");
        let wide = self.builder.func.dfg.value_type(base);
        if let Some(var) = index.var {
            let (var, count) = (self.var(var), self.constant(array.count));
            let index = self.builder.ins().urem(var, count);
            return (ty, self.element_at(base, index, array.bytes), 0);
        }
        if index.pointer
            && let [(level, 1)] = index.terms[..]
            && let Some(&Level::Pointer(var, of)) = self.levels.get(level)
            && of == element.array
        {
            return (ty, self.builder.use_var(var), index.plus * bytes);
        }
        if index.terms.is_empty() {
            return (ty, base, index.plus * bytes);
        }
        if index.split {
            let plus = self.number(wide, i64::from(index.plus * bytes) as u64);
            base = self.builder.ins().iadd(base, plus);
        }
        let bits = integer(index.bits);
        let mut sum = None;
        for (level, factor) in &index.terms {
            let position = self.position(*level, bits);
            let term = match factor {
                1 => position,
                _ => {
                    let factor = self.number(bits, u64::from(*factor));
                    self.builder.ins().imul(position, factor)
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.builder.ins().iadd(sum, term),
            });
        }
        let mut sum = sum.expect("there is a term");
        if !index.split && !index.offset && index.plus != 0 {
            let plus = self.number(bits, i64::from(index.plus) as u64);
            sum = self.builder.ins().iadd(sum, plus);
        }
        let sum = self.extended(sum, wide, index.signed);
        let size = self.number(wide, u64::from(array.bytes));
        let offset = self.builder.ins().imul(sum, size);
        let place = self.builder.ins().iadd(base, offset);
        let offset = if index.offset && !index.split {
            index.plus * bytes
        } else {
            0
        };
        (ty, place, offset)
    }

    /// The position in a loop, in so many bits.
    fn position(&mut self, level: usize, ty: Type) -> Value {
        let value = match self.levels[level] {
            Level::Counter(var, _) => self.builder.use_var(var),
            Level::Sum(var, number) => {
                let now = self.builder.use_var(var);
                self.builder.ins().iadd(now, number)
            }
            Level::Pointer(var, array) => {
                let (now, base) = (self.builder.use_var(var), self.bases[array]);
                let base = base.expect("arrays have addresses");
                let distance = self.builder.ins().isub(now, base);
                let shift = self.constant(self.plan.arrays[array].bytes.trailing_zeros());
                self.builder.ins().ushr(distance, shift)
            }
        };
        self.converted(value, ty)
    }

    /// The type in which the position of a level is computed.
    fn position_type(&self, level: usize) -> Type {
        match self.levels[level] {
            Level::Counter(_, ty) => ty,
            Level::Sum(_, number) => self.builder.func.dfg.value_type(number),
            Level::Pointer(..) => types::I32,
        }
    }

    fn bound(&mut self, bound: Bound, ty: Type) -> Value {
        let passed = self
            .numbers
            .iter()
            .find(|(number, _)| *number == bound.number);
        match passed.filter(|_| bound.passed) {
            Some((_, value)) => {
                let value = *value;
                self.converted(value, ty)
            }
            None => self.number(ty, u64::from(bound.number)),
        }
    }

    fn branch(&mut self, test: &Test, inside: ir::Block, behind: ir::Block) {
        let holds = match test {
            Test::Value(condition) => self.condition(condition),
            Test::HasPrevious => self.rank.expect("the kernel has ranks"),
            Test::Fits { constant, below } => {
                let (constant, below) = (self.constant(*constant), self.bound(*below, types::I32));
                self.builder
                    .ins()
                    .icmp(IntCC::UnsignedLessThan, constant, below)
            }
            Test::Inside {
                level,
                plus,
                below,
                form,
            } => {
                let ty = self.position_type(*level);
                let position = self.position(*level, ty);
                let below = self.bound(*below, ty);
                let plus_value = self.number(ty, i64::from(*plus) as u64);
                let sum = self.builder.ins().iadd(position, plus_value);
                if *plus < 0 && *form == 1 {
                    // The sum is not negative, and then it is below, or not.
                    let least = self.number(ty, u64::from(plus.unsigned_abs()));
                    let next = self.builder.create_block();
                    let code = IntCC::UnsignedGreaterThanOrEqual;
                    let enough = self.builder.ins().icmp(code, position, least);
                    self.builder.ins().brif(enough, next, &[], behind, &[]);
                    self.builder.switch_to_block(next);
                }
                self.builder.ins().icmp(IntCC::UnsignedLessThan, sum, below)
            }
        };
        self.builder.ins().brif(holds, inside, &[], behind, &[]);
    }

    fn condition(&mut self, condition: &Condition) -> Value {
        let mut value = self.operand(condition.value);
        if condition.salted {
            let (salt, factor) = (
                self.salt.expect("the kernel has a salt"),
                self.constant(SALT),
            );
            let salt = self.builder.ins().imul(salt, factor);
            value = self.builder.ins().bxor(value, salt);
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

    fn repeat(&mut self, inner: &Loop) {
        let pointer = match inner.form {
            Form::PointerUp(array) | Form::PointerDown(array) => {
                let base = self.bases[array].expect("arrays have addresses");
                Some((array, base, self.plan.arrays[array].bytes))
            }
            _ => None,
        };
        let ty = match pointer {
            Some((_, base, _)) => self.builder.func.dfg.value_type(base),
            None => integer(inner.bits),
        };
        let number = self.bound(inner.bound, ty);
        let bytes = pointer.map_or(1, |pointer| pointer.2);
        let step = self.number(ty, u64::from(inner.step * bytes));
        let (base, end) = match pointer {
            Some((_, base, bytes)) => (base, self.element_at(base, number, bytes)),
            None => (self.number(ty, 0), number),
        };
        let downwards = matches!(inner.form, Form::Down | Form::PointerDown(_));
        let first = match inner.form {
            Form::Up | Form::UpTo | Form::PointerUp(_) => base,
            Form::Down | Form::PointerDown(_) => end,
            Form::Negative => self.builder.ins().ineg(number),
        };
        let counter = self.builder.declare_var(ty);
        self.builder.def_var(counter, first);
        let level = match (pointer, inner.form) {
            (Some((array, ..)), _) => Level::Pointer(counter, array),
            (None, Form::Negative) => Level::Sum(counter, number),
            (None, _) => Level::Counter(counter, ty),
        };
        let [test, body, out] = [(); 3].map(|()| self.builder.create_block());
        let start = if inner.rotated { body } else { test };
        self.builder.ins().jump(start, &[]);
        self.builder.switch_to_block(body);
        self.levels.push(level);
        let now = self.builder.use_var(counter);
        if downwards {
            let next = self.builder.ins().isub(now, step);
            self.builder.def_var(counter, next);
        }
        self.stmts(&inner.body);
        self.levels.pop();
        if let Some(leave) = &inner.leave {
            let on = self.builder.create_block();
            let left = self.condition(leave);
            self.builder.ins().brif(left, out, &[], on, &[]);
            self.builder.switch_to_block(on);
        }
        if !downwards {
            let now = self.builder.use_var(counter);
            let next = self.builder.ins().iadd(now, step);
            self.builder.def_var(counter, next);
        }
        self.builder.ins().jump(test, &[]);
        self.builder.switch_to_block(test);
        let now = self.builder.use_var(counter);
        let (code, with) = match inner.form {
            Form::Up if inner.bits >= 32 && inner.bound.number.is_multiple_of(3) => {
                (IntCC::SignedLessThan, number)
            }
            Form::Up => (IntCC::UnsignedLessThan, number),
            Form::UpTo | Form::PointerUp(_) => (IntCC::NotEqual, end),
            Form::Down if inner.step != 1 => (IntCC::UnsignedGreaterThanOrEqual, step),
            Form::Down | Form::PointerDown(_) => (IntCC::NotEqual, base),
            Form::Negative => (IntCC::NotEqual, base),
        };
        let more = self.builder.ins().icmp(code, now, with);
        self.builder.ins().brif(more, body, &[], out, &[]);
        self.builder.switch_to_block(out);
    }
}

/// The type of a flag.
pub(super) fn flag_type(plan: &Plan) -> Type {
    integer(8 * plan.flag_bytes)
}

/// An integer of so many bits.
pub(super) fn integer(bits: u32) -> Type {
    Type::int(bits as u16).unwrap_or(types::I32)
}
