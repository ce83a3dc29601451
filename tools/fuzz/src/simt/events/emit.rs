//! A kernel of events as CLIF text.

mod arrays;
mod loops;
mod statements;
mod values;

use super::plan::{FACTORS, KEPT, Order, Owner, Place, Plan, Role};
use crate::simt::emit::{NAME, aligned};
use crate::simt::kernel::{Space, VARS};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, FuncRef, GlobalValue, InstBuilder, Signature, StackSlot, Type, UserFuncName,
    Value, types,
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

/// Which thread runs.
#[derive(Clone, Copy)]
struct Here {
    /// The block's number.
    block: Value,
    /// The thread's number in the block.
    index: Value,
    /// The number of the block's first thread in the grid.
    start: Value,
    /// The thread's number in the grid.
    thread: Value,
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
        let here = self.here();
        self.first_values(here.thread);
        let kept = self.pressure(here.thread);
        let (layout, flags_offset, end) = plan.shared_layout();
        if end != 0 {
            self.clear(here.index, end, flags_offset);
        }
        self.begin_arrays(&pointers, &layout);
        let who = match plan.is_grid_wide() {
            true => here.thread,
            false => here.index,
        };
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
        self.own_copies(here, previous);
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
        let place = self.element_at(results, here.thread, 4 * VARS as u32);
        for var in 0..VARS {
            let value = self.var(var);
            self.builder
                .ins()
                .store(aligned(), value, place, 4 * var as i32);
        }
        if end != 0 {
            self.collect(here.index, here.block, collected, end);
        }
        self.builder.ins().return_(&[]);
    }

    /// Which thread it is.
    fn here(&mut self) -> Here {
        let block = self.intrinsic("gpu_ctaid_x", &[], &[types::I32])[0];
        let count = self.intrinsic("gpu_ntid_x", &[], &[types::I32])[0];
        let index = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
        let start = self.builder.ins().imul(block, count);
        let thread = self.builder.ins().iadd(start, index);
        Here {
            block,
            index,
            start,
            thread,
        }
    }

    /// What the variables are at the start: others in each thread.
    fn first_values(&mut self, thread: Value) {
        for (var, factor) in FACTORS.into_iter().enumerate() {
            let (factor, plus) = (self.constant(factor), self.constant(factor >> 5));
            let product = self.builder.ins().imul(thread, factor);
            let value = self.builder.ins().iadd(product, plus);
            self.set(var, value);
        }
    }

    /// Values that take registers up to the end.
    fn pressure(&mut self, thread: Value) -> Vec<Value> {
        let mut kept = Vec::new();
        let mut last = thread;
        for _ in 0..self.plan.pressure {
            kept.push(last);
            let (square, plus) = (self.builder.ins().imul(last, last), self.constant(KEPT));
            last = self.builder.ins().iadd(square, plus);
        }
        kept
    }

    /// Where arrays begin: those of global memory are passed, those of shared memory are at offsets.
    fn begin_arrays(&mut self, pointers: &[Option<Value>], layout: &[u32]) {
        let plan = self.plan;
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
    }

    /// Where the thread's copies of arrays begin, and those of the thread before it.
    fn own_copies(&mut self, here: Here, previous: Value) {
        let plan = self.plan;
        for (number, array) in plan.arrays.iter().enumerate() {
            let Some(base) = self.bases[number] else {
                continue;
            };
            let owner = |of_thread: Value| match (array.place, array.owner) {
                (Place::Stack, _) | (_, Owner::All) => None,
                (Place::Global, Owner::Block) => Some(here.block),
                (_, Owner::Block) => None,
                (_, Owner::Thread) => Some(of_thread),
            };
            let own = if array.place.is_shared() {
                here.index
            } else {
                here.thread
            };
            let (own, there) = (owner(own), owner(previous));
            self.bases[number] = Some(self.copy(base, own, array));
            if array.role == Role::Message {
                // In global memory threads have numbers of the grid.
                let of_grid = array.place == Place::Global && !plan.is_grid_wide();
                let there = there.map(|there| match of_grid {
                    true => self.builder.ins().iadd(here.start, there),
                    false => there,
                });
                self.previous[number] = Some(self.copy(base, there, array));
            }
        }
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
}

/// The type of a flag.
pub(super) fn flag_type(plan: &Plan) -> Type {
    integer(8 * plan.flag_bytes)
}

/// An integer of so many bits.
pub(super) fn integer(bits: u32) -> Type {
    Type::int(bits as u16).unwrap_or(types::I32)
}
