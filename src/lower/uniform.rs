//! Which values of a kernel live in uniform registers: decided before lowering, for the function as a whole.
//!
//! A value may live there if it is the same for all lanes wherever it is used and is computed wholly on the uniform datapath: from other
//! such values, immediates, constant memory and special registers of the block. It is worth it under this cost model:
//!
//! - every user can read a uniform register where it stands: on the uniform datapath, or as the one special operand that a vector instruction has.
//!   What a rule would fuse into its user (a product into IMAD, a shift into LEA) costs nothing there, so it stays there;
//! - a group of values that are computed from each other takes no more instructions than in general registers. 64-bit sums, shifts and
//!   selections are one instruction instead of two, and a copy for all lanes costs no general register;
//! - a result arrives after 6 cycles instead of 4 (latency.isa, *assumed*), so a chain of several that a loop carries from round to round must
//!   be hidden by the loop's other instructions. UISETP in turn gives its predicate after 6 cycles, ISETP after 13.
//!
//! Parameters and immediates are better read from the bank and the instruction; they are loaded into uniform registers only for what has no
//! other operand kind. A value of a block that runs with part of the warp is computed in the block above that does not ([`Plan::moved`]):
//! its operands are there, and it cannot trap. Where the registers run out, allocation turns users to their siblings that read general
//! registers.
//!
//! Only kernels without calls have such values: across a call they would have to be made again, and in a device function nothing says which
//! lanes are together.

use super::Input;
use crate::analysis::uses::Users;
use crate::clif::intrinsics::Lowering;
use crate::clif::resolve::GpuSymbol;
use crate::isa::generated::SReg;
use crate::vcode::FunctionKind;
use cranelift_codegen::ir::{
    Block, BlockArg, Endianness, Inst, InstructionData, Opcode, Type, Value, ValueDef, types,
};
use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

/// Cycles until a result of the uniform datapath can be used (latency.isa, *assumed*).
const LATENCY: usize = 6;
/// Cycles of the shortest loop: a counter, its comparison and the branch (*assumed*).
const SHORTEST_LOOP: usize = 2 * LATENCY;

/// The decision.
#[derive(Default)]
pub(super) struct Plan {
    chosen: EntitySet<Value>,
    moved: SecondaryMap<Block, SmallVec<[Inst; 2]>>,
    elsewhere: EntitySet<Inst>,
}

impl Plan {
    /// Whether the value lives in uniform registers.
    pub fn is_uniform(&self, value: Value) -> bool {
        self.chosen.contains(value)
    }

    /// Instructions of other blocks that are computed at the end of this one, in order.
    pub fn moved(&self, block: Block) -> &[Inst] {
        &self.moved[block]
    }

    /// Whether the instruction is computed in another block than its own.
    pub fn is_elsewhere(&self, inst: Inst) -> bool {
        self.elsewhere.contains(inst)
    }

    /// Decides for a function.
    pub fn new(input: &Input<'_>, has_calls: bool) -> Plan {
        if has_calls || !matches!(input.kind, FunctionKind::Kernel(_)) {
            return Plan::default();
        }
        let mut search = Search::new(input);
        search.collect();
        if search.order.is_empty() {
            return Plan::default();
        }
        search.users = Some(Users::compute(input.func));
        // First what cannot be computed there at all, so that it takes no slot from an operand beside it.
        search.shrink(Search::is_computed);
        search.shrink(Search::holds);
        search.drop_losing_groups();
        search.finish()
    }
}

/// Whether a special register is the thread block's, the same for all lanes of a warp.
pub(super) fn is_of_block(register: SReg) -> bool {
    matches!(register, SReg::SrCtaidX | SReg::SrCtaidY | SReg::SrCtaidZ)
}

/// How a value would be computed on the uniform datapath.
struct Operation {
    /// What it reads that must live there or be an immediate or constant memory.
    operands: SmallVec<[Value; 3]>,
    /// Instructions there.
    uniform: i32,
    /// Instructions in general registers.
    general: i32,
}

struct Search<'a> {
    input: &'a Input<'a>,
    /// Values that may still live in uniform registers.
    candidates: EntitySet<Value>,
    /// All that ever were, in an order in which operands stand before users but for loops.
    order: Vec<Value>,
    users: Option<Users>,
}

impl<'a> Search<'a> {
    fn new(input: &'a Input<'a>) -> Self {
        Search {
            input,
            candidates: EntitySet::new(),
            order: Vec::new(),
            users: None,
        }
    }

    /// Everything whose operation exists and that is uniform, operands not asked yet.
    fn collect(&mut self) {
        let func = self.input.func;
        let flow = self.input.facts.flow;
        for &block in flow.reverse_postorder() {
            let parameters = Some(block) != func.layout.entry_block()
                && !self.input.facts.uniformity.divergent_block(block)
                && flow
                    .predecessors(block)
                    .all(|p| !self.input.facts.uniformity.divergent_block(p));
            if parameters {
                for &value in func.dfg.block_params(block) {
                    self.consider(value);
                }
            }
            for inst in func.layout.block_insts(block) {
                if let [value] = *func.dfg.inst_results(inst)
                    && self.operation(value).is_some()
                {
                    self.consider(value);
                }
            }
        }
    }

    fn consider(&mut self, value: Value) {
        let fits = matches!(
            self.ty(value),
            types::I32 | types::I64 | types::F32 | types::F16X2
        );
        if fits && self.input.facts.uniformity.uniform(value) && self.place(value).is_some() {
            self.candidates.insert(value);
            self.order.push(value);
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.input.func.dfg.value_type(value)
    }

    fn data(&self, value: Value) -> Option<InstructionData> {
        let inst = self.input.func.dfg.value_def(value).inst()?;
        Some(self.input.func.dfg.insts[inst])
    }

    /// The block of a value's definition.
    fn block(&self, value: Value) -> Option<Block> {
        match self.input.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.input.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Union(..) => None,
        }
    }

    /// Where a value would be computed: its block, or the nearest above that runs with the whole warp.
    fn place(&self, value: Value) -> Option<Block> {
        let mut block = self.block(value)?;
        while self.input.facts.uniformity.divergent_block(block) {
            block = self.input.facts.flow.domtree().idom(block)?;
        }
        Some(block)
    }

    /// An immediate, or what stands in constant memory.
    fn is_leaf(&self, value: Value) -> bool {
        match self.input.func.dfg.value_def(value) {
            ValueDef::Param(block, index) => {
                let FunctionKind::Kernel(kernel) = &self.input.kind else {
                    return false;
                };
                Some(block) == self.input.func.layout.entry_block()
                    && kernel
                        .parameters
                        .get(index)
                        .is_some_and(|p| p.offset.is_multiple_of(4))
            }
            ValueDef::Result(inst, _) => {
                self.input.func.dfg.insts[inst].opcode() == Opcode::Iconst
                    || self
                        .special(inst)
                        .is_some_and(|register| super::intrinsic::launch_size(register).is_some())
            }
            ValueDef::Union(..) => false,
        }
    }

    fn special(&self, inst: Inst) -> Option<SReg> {
        let func = self.input.func;
        match self.input.facts.intrinsics.of_symbol_value(func, inst)? {
            GpuSymbol::Special(intrinsic) => match intrinsic.lowering {
                Lowering::Special(special) => Some(special),
                _ => None,
            },
            GpuSymbol::Shared => None,
        }
    }

    /// The operation of a value on the uniform datapath: what `lower_uniform` has rules for.
    fn operation(&self, value: Value) -> Option<Operation> {
        let inst = self.input.func.dfg.value_def(value).inst()?;
        let ty = self.ty(value);
        let wide = match ty {
            types::I32 => false,
            types::I64 => true,
            types::F32 | types::F16X2 => return self.reinterpretation(inst),
            _ => return None,
        };
        let both = |one: (i32, i32), two: (i32, i32)| Some(if wide { two } else { one });
        let (cost, operands): (Option<(i32, i32)>, SmallVec<[Value; 3]>) = match self
            .input
            .func
            .dfg
            .insts[inst]
        {
            InstructionData::Binary { opcode, args } => {
                let cost = match opcode {
                    Opcode::Iadd | Opcode::Isub => both((1, 1), (1, 2)),
                    Opcode::Ishl | Opcode::Ushr | Opcode::Sshr => both((1, 1), (1, 2)),
                    Opcode::Imul if !wide => Some((1, 1)),
                    Opcode::Band | Opcode::Bor | Opcode::Bxor => both((1, 1), (2, 2)),
                    Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => {
                        both((1, 1), (1, 4))
                    }
                    _ => None,
                };
                (cost, SmallVec::from_slice(&args))
            }
            InstructionData::Unary { opcode, arg } => {
                let from = self.ty(arg);
                let cost = match opcode {
                    Opcode::Ineg => both((1, 1), (1, 2)),
                    Opcode::Bnot => both((1, 1), (2, 2)),
                    Opcode::Uextend | Opcode::Sextend if wide && from == types::I32 => Some((1, 1)),
                    Opcode::Ireduce if !wide && from == types::I64 => Some((0, 0)),
                    _ => None,
                };
                (cost, SmallVec::from_slice(&[arg]))
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [condition, x, y],
            } => {
                let uniform = self.input.facts.uniformity.uniform(condition);
                // Its condition is a predicate in the block where it stands.
                let here = self.place(value) == self.block(value);
                let compared = matches!(
                    self.data(condition),
                    Some(InstructionData::IntCompare { .. })
                );
                let cost = both((1, 1), (1, 2)).filter(|_| uniform && here && compared);
                (cost, SmallVec::from_slice(&[x, y]))
            }
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } if self.ty(arg).bits() == 32 && !wide => (Some((0, 0)), SmallVec::from_slice(&[arg])),
            InstructionData::UnaryGlobalValue { .. } => {
                let block = self.special(inst).is_some_and(is_of_block);
                (block.then_some((1, 1)), SmallVec::new())
            }
            _ => return None,
        };
        let (uniform, general) = cost?;
        Some(Operation {
            operands,
            uniform,
            general,
        })
    }

    /// A word read as another type, which is the same register.
    fn reinterpretation(&self, inst: Inst) -> Option<Operation> {
        let InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            arg,
            flags,
        } = self.input.func.dfg.insts[inst]
        else {
            return None;
        };
        let from = self.ty(arg);
        let flags = self.input.func.dfg.mem_flags[flags];
        let little = flags.endianness(Endianness::Little) == Endianness::Little;
        let known = matches!(from, types::I32 | types::F32 | types::F16X2);
        (known && little).then(|| Operation {
            operands: SmallVec::from_slice(&[arg]),
            uniform: 0,
            general: 0,
        })
    }

    fn is_candidate(&self, value: Value) -> bool {
        self.candidates.contains(value)
    }

    /// Removes values until the condition holds for all that remain.
    fn shrink(&mut self, holds: fn(&Self, Value) -> bool) {
        /// How often a value is looked at before it is given up (assumed: generous).
        const CHECKS: u8 = 16;
        let mut checks: SecondaryMap<Value, u8> = SecondaryMap::new();
        let mut work = self.order.clone();
        while let Some(value) = work.pop() {
            checks[value] = checks[value].saturating_add(1);
            if !self.is_candidate(value) || checks[value] <= CHECKS && holds(self, value) {
                continue;
            }
            self.candidates.remove(value);
            work.extend(
                self.neighbours(value)
                    .into_iter()
                    .filter(|&v| self.is_candidate(v)),
            );
        }
    }

    /// Values that one is computed from, computed into, passed to, or read together with.
    fn neighbours(&self, value: Value) -> SmallVec<[Value; 8]> {
        let func = self.input.func;
        let mut list: SmallVec<[Value; 8]> = SmallVec::new();
        match self.operation(value) {
            Some(operation) => list.extend(operation.operands),
            None => list.extend(self.arguments(value)),
        }
        let users = self.users.as_ref().expect("computed before");
        for &user in users.of(value) {
            list.extend_from_slice(func.dfg.inst_results(user));
            list.extend_from_slice(func.dfg.inst_args(user));
            list.extend(self.passed(user, value));
        }
        list
    }

    /// Whether all that a value is computed from is there.
    fn is_computed(&self, value: Value) -> bool {
        match self.operation(value) {
            Some(operation) => {
                // Nothing is gained by computing constants.
                operation
                    .operands
                    .iter()
                    .all(|&v| self.is_leaf(v) || self.is_candidate(v))
            }
            None => {
                let arguments = self.arguments(value);
                !arguments.is_empty()
                    && arguments
                        .iter()
                        .all(|&v| self.is_candidate(v) || self.is_loadable(v))
                    && self.is_hidden(value, &arguments)
            }
        }
    }

    fn holds(&self, value: Value) -> bool {
        let users = self.users.as_ref().expect("computed before");
        self.is_computed(value) && users.of(value).iter().all(|&user| self.takes(user, value))
    }

    /// An immediate or parameter that can be loaded into a uniform register where it is defined.
    fn is_loadable(&self, value: Value) -> bool {
        self.is_leaf(value) && self.block(value).is_some() && self.place(value) == self.block(value)
    }

    /// What jumps pass for a block parameter, or nothing when something else than a value is passed.
    fn arguments(&self, value: Value) -> SmallVec<[Value; 4]> {
        let func = self.input.func;
        let mut list = SmallVec::new();
        let ValueDef::Param(block, index) = func.dfg.value_def(value) else {
            return list;
        };
        for predecessor in self.input.facts.flow.predecessors(block) {
            let Some(last) = func.layout.last_inst(predecessor) else {
                continue;
            };
            let calls = func.dfg.insts[last]
                .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
            for call in calls {
                if call.block(&func.dfg.value_lists) != block {
                    continue;
                }
                match call.args(&func.dfg.value_lists).nth(index) {
                    Some(BlockArg::Value(argument)) => list.push(argument),
                    _ => return SmallVec::new(),
                }
            }
        }
        list
    }

    /// Whether the chain that computes a loop's next value of a parameter is hidden by the loop's instructions.
    fn is_hidden(&self, value: Value, arguments: &[Value]) -> bool {
        let flow = self.input.facts.flow;
        let Some(lp) = self.block(value).and_then(|b| flow.innermost_loop(b)) else {
            return true;
        };
        let chain = arguments
            .iter()
            .map(|&argument| self.chain(argument, value, 0))
            .max()
            .unwrap_or(0);
        if chain * LATENCY <= SHORTEST_LOOP {
            return true;
        }
        let func = self.input.func;
        let blocks = flow
            .reverse_postorder()
            .iter()
            .filter(|&&b| flow.is_in_loop(b, lp));
        let length: usize = blocks.map(|&b| func.layout.block_insts(b).count()).sum();
        chain * LATENCY <= length
    }

    /// The longest chain of operations from `to` to `from`; bounded, because longer ones are not hidden anyway.
    fn chain(&self, from: Value, to: Value, depth: usize) -> usize {
        const DEEPEST: usize = 6;
        if from == to || depth == DEEPEST {
            return 0;
        }
        let Some(operation) = self.operation(from) else {
            return 0;
        };
        let below = operation
            .operands
            .iter()
            .filter(|&&v| self.is_candidate(v))
            .map(|&v| self.chain(v, to, depth + 1))
            .max();
        below.map_or(0, |n| n + 1)
    }

    /// Whether `user` reads `value` from a uniform register without a copy.
    fn takes(&self, user: Inst, value: Value) -> bool {
        let func = self.input.func;
        let facts = &self.input.facts;
        if let [result] = *func.dfg.inst_results(user)
            && self.is_candidate(result)
        {
            return true;
        }
        let Some(block) = func.layout.inst_block(user) else {
            return false;
        };
        let data = func.dfg.insts[user];
        let only = |others: &[Value]| others.iter().all(|&v| self.leaves_slot(v, value));
        match data {
            InstructionData::Binary {
                opcode,
                args: [x, y],
            } => {
                let other = if x == value { y } else { x };
                match opcode {
                    Opcode::Smin | Opcode::Smax if self.is_limited(user) => true,
                    Opcode::Ishl => y == value && only(&[x]),
                    Opcode::Ushr | Opcode::Sshr => (x == value) != (y == value) && only(&[other]),
                    _ => only(&[other]) && self.takes_beside(user, opcode, value, other),
                }
            }
            InstructionData::IntCompare { args: [x, y], .. } => {
                let other = if x == value { y } else { x };
                let on_datapath = (self.is_candidate(other) || self.is_leaf(other))
                    && !facts.uniformity.divergent_block(block);
                on_datapath || only(&[other])
            }
            InstructionData::FloatCompare { args: [x, y], .. } => {
                only(&[if x == value { y } else { x }])
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [_, x, y],
            } => only(&[if x == value { y } else { x }]),
            InstructionData::Ternary {
                opcode: Opcode::Fma,
                args,
            } => self.takes_one_of(&args, value),
            InstructionData::Unary { opcode, .. } => match opcode {
                Opcode::Iabs | Opcode::Popcnt | Opcode::Clz => self.ty(value) == types::I32,
                Opcode::FcvtFromSint | Opcode::FcvtFromUint => self.ty(value) == types::I32,
                Opcode::Uextend | Opcode::Sextend => self.is_factor(user),
                _ => false,
            },
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                ..
            } => self.is_peeled_lane(user),
            InstructionData::Load { arg, .. } => arg == value,
            InstructionData::Store {
                args: [data, address],
                ..
            } => address == value && data != value,
            InstructionData::Call { .. } => self.intrinsic_takes(user, value),
            InstructionData::Jump { .. }
            | InstructionData::Brif { .. }
            | InstructionData::BranchTable { .. } => self.passes_to_candidates(user, value),
            _ => false,
        }
    }

    /// Whether the operand `other` leaves the special slot of its instruction to `value`.
    fn leaves_slot(&self, other: Value, value: Value) -> bool {
        other != value
            && !self.is_leaf(other)
            && !self.is_candidate(other)
            && !self.is_literal(other)
    }

    /// A floating-point immediate.
    fn is_literal(&self, value: Value) -> bool {
        matches!(
            self.data(value),
            Some(
                InstructionData::UnaryIeee16 { .. }
                    | InstructionData::UnaryIeee32 { .. }
                    | InstructionData::UnaryConst { .. }
            )
        )
    }

    /// Whether an operation of two operands reads `value` beside `other`, which leaves it the special slot.
    fn takes_beside(&self, user: Inst, opcode: Opcode, value: Value, other: Value) -> bool {
        let word = self.ty(value).bits() == 32;
        match opcode {
            Opcode::Iadd | Opcode::Isub => {
                !self.has_special_factor(other) && (opcode == Opcode::Isub || !self.fuses(value))
            }
            Opcode::Band | Opcode::Bor | Opcode::Bxor => !self.is_logic(other),
            Opcode::Imul => word && !self.is_fused_product(user),
            Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => word,
            Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fmin | Opcode::Fmax => true,
            _ => false,
        }
    }

    /// Whether `value` is one operand of several and the others leave it the special slot.
    fn takes_one_of(&self, operands: &[Value], value: Value) -> bool {
        let mut times = 0;
        for &operand in operands {
            times += usize::from(operand == value);
            if operand != value && !self.leaves_slot(operand, value) {
                return false;
            }
        }
        times == 1
    }

    /// One of two limits that together are an I2I.
    fn is_limited(&self, user: Inst) -> bool {
        let opcode = |inst: Inst| self.input.func.dfg.insts[inst].opcode();
        let users = self.users.as_ref().expect("computed before");
        let [result] = *self.input.func.dfg.inst_results(user) else {
            return false;
        };
        match *users.of(result) {
            [next] => matches!(
                (opcode(user), opcode(next)),
                (Opcode::Smin, Opcode::Smax) | (Opcode::Smax, Opcode::Smin)
            ),
            _ => false,
        }
    }

    /// A half that only packed operations read, where the lane is a modifier, beside operands in registers.
    fn is_peeled_lane(&self, extraction: Inst) -> bool {
        let func = self.input.func;
        let [lane] = *func.dfg.inst_results(extraction) else {
            return false;
        };
        let users = self.users.as_ref().expect("computed before").of(lane);
        !users.is_empty()
            && self.ty(lane) == types::F16
            && users.iter().all(|&user| match func.dfg.insts[user] {
                InstructionData::FloatCompare { args, .. }
                | InstructionData::Binary {
                    opcode:
                        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fmin | Opcode::Fmax,
                    args,
                } => self.takes_one_of(&args, lane),
                _ => false,
            })
    }

    /// An extended word that is only the factor of 64-bit products with an extended word in a register.
    fn is_factor(&self, extension: Inst) -> bool {
        let [extended] = *self.input.func.dfg.inst_results(extension) else {
            return false;
        };
        let opcode = self.input.func.dfg.insts[extension].opcode();
        let users = self.users.as_ref().expect("computed before").of(extended);
        !users.is_empty()
            && users
                .iter()
                .all(|&user| match self.input.func.dfg.insts[user] {
                    InstructionData::Binary {
                        opcode: Opcode::Imul,
                        args: [x, y],
                    } if x != y => {
                        let other = if x == extended { y } else { x };
                        matches!(self.data(other), Some(InstructionData::Unary { opcode: o, arg })
                        if o == opcode && self.leaves_slot(arg, extended))
                    }
                    _ => false,
                })
    }

    /// Whether the instruction of an intrinsic reads `value` in its special slot.
    fn intrinsic_takes(&self, call: Inst, value: Value) -> bool {
        let func = self.input.func;
        let Some(intrinsic) = self.input.facts.intrinsics.of_call(func, call) else {
            return false;
        };
        let args = func.dfg.inst_args(call);
        match intrinsic.lowering {
            Lowering::Mufu(..) => true,
            Lowering::Hadd2(..)
            | Lowering::Hmul2(..)
            | Lowering::Hfma2(..)
            | Lowering::Hmin2(_)
            | Lowering::Hmax2(_) => self.takes_one_of(args, value),
            // The first operand is a general register.
            Lowering::Dp4a(..)
            | Lowering::Dp2a(..)
            | Lowering::Permute(_)
            | Lowering::Bmsk(_)
            | Lowering::Sgxt(..) => args[0] != value && self.takes_one_of(args, value),
            Lowering::Pack(_) => args[1] == value && self.takes_one_of(args, value),
            _ => false,
        }
    }

    /// Whether a branch passes `value` only to parameters that live in uniform registers, and does not read it itself.
    fn passes_to_candidates(&self, branch: Inst, value: Value) -> bool {
        let func = self.input.func;
        let data = &func.dfg.insts[branch];
        if let InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } = data
            && *arg == value
        {
            return false;
        }
        let calls = data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        calls.iter().all(|call| {
            let parameters = func.dfg.block_params(call.block(&func.dfg.value_lists));
            let arguments = call.args(&func.dfg.value_lists);
            arguments.zip(parameters).all(|(argument, &parameter)| {
                argument != BlockArg::Value(value) || self.is_candidate(parameter)
            })
        })
    }

    /// A product or shift with an immediate or constant operand, which an addition would fuse.
    fn has_special_factor(&self, value: Value) -> bool {
        let special = |v: &Value| self.is_leaf(*v) || self.is_candidate(*v);
        match self.data(value) {
            Some(InstructionData::Binary {
                opcode: Opcode::Imul,
                args,
            }) => args.iter().any(special),
            Some(InstructionData::Binary {
                opcode: Opcode::Ishl,
                args,
            }) => self.ty(value) == types::I64 && args.iter().any(special),
            Some(InstructionData::Unary {
                opcode: Opcode::Uextend | Opcode::Sextend,
                ..
            }) => true,
            _ => false,
        }
    }

    /// A product or shift that its only user, an addition in general registers, would fuse.
    fn fuses(&self, value: Value) -> bool {
        let once = self.users.as_ref().is_some_and(|u| u.of(value).len() == 1);
        let fusable = match self.data(value) {
            Some(InstructionData::Binary { opcode, .. }) => {
                matches!(opcode, Opcode::Imul | Opcode::Ishl)
            }
            Some(InstructionData::Unary { opcode, .. }) => {
                matches!(opcode, Opcode::Uextend | Opcode::Sextend | Opcode::Ineg)
            }
            _ => false,
        };
        once && fusable
    }

    /// Whether a multiplication is part of an IMAD whose addend takes the special operand.
    fn is_fused_product(&self, inst: Inst) -> bool {
        let func = self.input.func;
        let [product] = *func.dfg.inst_results(inst) else {
            return false;
        };
        let users = self.users.as_ref().expect("computed before");
        let [user] = *users.of(product) else {
            return false;
        };
        match func.dfg.insts[user] {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args,
            } => args.iter().any(|&v| self.is_leaf(v)),
            _ => false,
        }
    }

    /// A bitwise operation, whose tree takes up the operands of this one.
    fn is_logic(&self, value: Value) -> bool {
        matches!(
            self.data(value),
            Some(InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                ..
            })
        )
    }

    /// Removes groups of values, computed from each other, that take more instructions than in general registers.
    fn drop_losing_groups(&mut self) {
        let mut group: SecondaryMap<Value, Option<usize>> = SecondaryMap::new();
        let mut losses: Vec<i32> = Vec::new();
        for &start in &self.order {
            if !self.is_candidate(start) || group[start].is_some() {
                continue;
            }
            let number = losses.len();
            let (mut loss, mut work) = (0, vec![start]);
            group[start] = Some(number);
            while let Some(value) = work.pop() {
                if let Some(operation) = self.operation(value) {
                    loss += operation.uniform - operation.general;
                }
                for next in self.neighbours(value) {
                    if self.is_candidate(next) && group[next].is_none() {
                        group[next] = Some(number);
                        work.push(next);
                    }
                }
            }
            losses.push(loss);
        }
        for &value in &self.order {
            if let Some(number) = group[value]
                && losses[number] > 0
            {
                self.candidates.remove(value);
            }
        }
    }

    /// The parameters that a branch passes `value` to.
    fn passed(&self, branch: Inst, value: Value) -> SmallVec<[Value; 4]> {
        let func = self.input.func;
        let calls = func.dfg.insts[branch]
            .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        let mut list = SmallVec::new();
        for call in calls {
            let parameters = func.dfg.block_params(call.block(&func.dfg.value_lists));
            let arguments = call.args(&func.dfg.value_lists);
            list.extend(
                arguments
                    .zip(parameters)
                    .filter(|(argument, _)| *argument == BlockArg::Value(value))
                    .map(|(_, &parameter)| parameter),
            );
        }
        list
    }

    fn finish(self) -> Plan {
        let mut plan = Plan::default();
        for &value in &self.order {
            if !self.is_candidate(value) {
                continue;
            }
            if let Some(inst) = self.input.func.dfg.value_def(value).inst()
                && let Some(place) = self.place(value)
                && Some(place) != self.block(value)
            {
                plan.moved[place].push(inst);
                plan.elsewhere.insert(inst);
            }
        }
        plan.chosen = self.candidates;
        plan
    }
}
