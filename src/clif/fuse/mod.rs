//! Trees of operations that the machine has one instruction for, as calls of the intrinsics that are that instruction.
//!
//! Takes an optimised function without aliases and its control flow; gives the same with bytes that are only moved put
//! together by `%gpu_prmt`, limited words that are packed by `%gpu_i2ip_*`, dot products by `%gpu_dp4a_*` and
//! `%gpu_dp2a_*`, and two or more bitwise operations that are a function of three values by `%gpu_lop3`. Blocks,
//! effects and types stay as they are: wider and narrower values are put together from words. What selection folds into
//! an operand (constants, complements, parts of words) it still finds there.
//!
//! There are two rounds, since logic reads the bytes that the first one puts together. Each has these steps:
//!
//! 1. Whether there is anything to fuse: most functions have nothing, and end here.
//! 2. Users before definitions, as selection will go, every value that somebody reads is looked at as the root of a
//!    tree ([`bytes`], [`dot`], [`limits`]; [`logic`]); what is fused away, nobody reads. Nothing changes yet, so that
//!    all trees are those of the function as it came.
//! 3. The roots are replaced ([`emit`]), and what is unused then goes.

mod bytes;
mod cuts;
mod dot;
mod emit;
mod limits;
mod logic;
mod operations;
mod word;
mod zeros;

use super::contents::Contents;
use super::merge;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::definitions::Definitions;
use crate::analysis::truths::Truths;
use crate::analysis::uses::{Users, for_each_operand, has_effect};
use crate::constants;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics};
use crate::values::tracking::Tracking;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstructionData, Opcode, Value, ValueDef, types,
};
use cuts::Cuts;
use dot::Dot;
use hashbrown::HashMap;
use limits::Limits;
use logic::Logic;
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::ops::Deref;
use word::Byte;
use zeros::Zeros;

/// Operations one of which is in every tree of the first round.
const INNER: [Opcode; 14] = [
    Opcode::Ishl,
    Opcode::Ushr,
    Opcode::Sshr,
    Opcode::Rotl,
    Opcode::Rotr,
    Opcode::Bswap,
    Opcode::Band,
    Opcode::Bitselect,
    Opcode::Imul,
    Opcode::Iconcat,
    Opcode::Splat,
    Opcode::Extractlane,
    Opcode::Insertlane,
    Opcode::Bitcast,
];

/// Operations that trees of logic are made of.
const BITWISE: [Opcode; 5] = [
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Bnot,
    Opcode::Bitselect,
];

/// What a tree becomes.
enum Fusion {
    /// The words of a value.
    Words(SmallVec<[Word; 2]>),
    Dot(Dot),
    Logic(Logic),
}

/// A word of a value.
enum Word {
    Moved([Byte; 4]),
    Packed(Limits),
}

/// What is looked for at once.
struct Round {
    /// Whether an instruction may be part of a tree.
    begins: fn(&Function, Inst) -> bool,
    /// What the tree with this root becomes, if it is one.
    find: fn(&mut Fuser, Inst) -> Option<Fusion>,
}

/// The rounds: first what moves bytes and multiplies, then logic.
const ROUNDS: [Round; 2] = [
    Round {
        begins: is_candidate,
        find: |fuser, root| fuser.fusion(root),
    },
    Round {
        begins: is_bitwise_of_bitwise,
        find: |fuser, root| fuser.logic(root).map(Fusion::Logic),
    },
];

/// Fuses what can be. True if anything has changed.
pub fn fuse(
    func: &mut Function,
    flow: &ControlFlow,
    contents: &Contents,
    intrinsics: &mut Intrinsics,
    kernel: bool,
    tracking: &Tracking,
) -> bool {
    // Operations on lanes and wide integers have been put in others since.
    let may_move = contents.has(&INNER) || contents.has_vectors() || contents.has_wide_integers();
    let mut changed = false;
    for Round { begins, find } in if may_move { &ROUNDS[..] } else { &ROUNDS[1..] } {
        if !has(func, begins) {
            continue;
        }
        let fusions = plan(func, flow, intrinsics, kernel, *find);
        if fusions.is_empty() {
            continue;
        }
        for (inst, fusion) in &fusions {
            emit::replace(func, intrinsics, *inst, fusion);
        }
        tracking.resolve(func);
        merge::drop_unused(func, intrinsics, flow.postorder());
        changed = true;
    }
    changed
}

/// Whether there is such an instruction.
fn has(func: &Function, is_such: impl Fn(&Function, Inst) -> bool) -> bool {
    let mut blocks = func.layout.blocks();
    blocks.any(|block| {
        let mut insts = func.layout.block_insts(block);
        insts.any(|inst| is_such(func, inst))
    })
}

/// Whether a bitwise operation reads another.
fn is_bitwise_of_bitwise(func: &Function, inst: Inst) -> bool {
    let is_bitwise = |inst: Inst| BITWISE.contains(&func.dfg.insts[inst].opcode());
    let mut operands = func.dfg.inst_args(inst).iter();
    let operand_is = |&value: &Value| func.dfg.value_def(value).inst().is_some_and(is_bitwise);
    is_bitwise(inst) && operands.any(operand_is)
}

/// Whether an operation moves whole bytes, or multiplies what may be bytes.
fn is_candidate(func: &Function, inst: Inst) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Unary { opcode, .. } => matches!(opcode, Opcode::Bswap | Opcode::Splat),
        InstructionData::BinaryImm8 { opcode, .. } => opcode == Opcode::Extractlane,
        InstructionData::TernaryImm8 { .. } => true,
        InstructionData::Ternary {
            opcode: Opcode::Bitselect,
            args,
        } => constants::bits(func, args[0]).is_some(),
        InstructionData::Binary { opcode, args } => {
            let number = constants::integer(func, args[1]);
            let whole = |mask: i64| mask.to_le_bytes().iter().all(|b| matches!(b, 0 | 0xff));
            match (opcode, number) {
                (Opcode::Iconcat, _) => func.dfg.value_type(args[0]).bits() < 32,
                (
                    Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr,
                    Some(n),
                ) => n % 8 == 0,
                (Opcode::Band, Some(mask)) => whole(mask),
                (Opcode::Imul, Some(factor)) => whole(factor.wrapping_mul(0xff)),
                (Opcode::Imul, None) => args.iter().all(|&factor| {
                    constants::definition(func, factor)
                        .is_some_and(|data| dot::may_be_factor(data.opcode()))
                }),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The roots of the trees of a function, with what they become.
fn plan(
    func: &Function,
    flow: &ControlFlow,
    intrinsics: &Intrinsics,
    kernel: bool,
    find: fn(&mut Fuser, Inst) -> Option<Fusion>,
) -> Vec<(Inst, Fusion)> {
    let users = Users::compute(func);
    let truths = Truths::compute(func, &users, intrinsics, flow);
    let definitions = Definitions {
        func,
        users: &users,
        intrinsics,
        flow,
        truths: &truths,
    };
    let mut fuser = Fuser {
        definitions,
        zeros: OnceCell::new(),
        kernel,
        current: None,
        asked: EntitySet::with_capacity(func.dfg.num_values()),
        cuts: HashMap::new(),
    };
    let mut fusions = Vec::new();
    for block in flow.postorder() {
        fuser.current = Some(block);
        for inst in func.layout.block_insts(block).rev() {
            let mut results = func.dfg.inst_results(inst).iter();
            if !results.any(|&v| fuser.asked.contains(v)) && !has_effect(func, inst, intrinsics) {
                continue;
            }
            match find(&mut fuser, inst) {
                Some(fusion) => {
                    fusion.for_each_operand(|value| _ = fuser.asked.insert(value));
                    fusions.push((inst, fusion));
                }
                None => fuser.ask_operands(inst),
            }
        }
    }
    fusions
}

impl Fusion {
    /// The values that it reads.
    fn for_each_operand(&self, mut visit: impl FnMut(Value)) {
        match self {
            Fusion::Dot(dot) => {
                dot.factors.iter().for_each(|factor| visit(factor.value));
                dot.rest.iter().copied().for_each(visit);
            }
            Fusion::Logic(logic) => logic.inputs.iter().copied().for_each(visit),
            Fusion::Words(words) => words.iter().for_each(|word| match word {
                Word::Packed(limits) => limits.parts.iter().copied().for_each(&mut visit),
                Word::Moved(bytes) => bytes.iter().for_each(|byte| {
                    if let Byte::Of { value, .. } = *byte {
                        visit(value);
                    }
                }),
            }),
        }
    }
}

/// A function, and where in it trees are looked for.
struct Fuser<'a> {
    definitions: Definitions<'a>,
    /// Found when a sum is met: most trees of logic have none.
    zeros: OnceCell<Zeros>,
    kernel: bool,
    /// The block of the root.
    current: Option<Block>,
    /// The values that somebody reads who has been looked at.
    asked: EntitySet<Value>,
    /// The cuts of bitwise operations in trees that are more than one LOP3.
    cuts: HashMap<Value, Cuts>,
}

impl<'a> Deref for Fuser<'a> {
    type Target = Definitions<'a>;

    fn deref(&self) -> &Self::Target {
        &self.definitions
    }
}

impl Fuser<'_> {
    fn zeros(&self) -> &Zeros {
        (self.zeros).get_or_init(|| Zeros::of(&self.definitions, self.definitions.flow))
    }

    fn is_used_once(&self, value: Value) -> bool {
        self.is_used_once_in(value, self.current)
    }

    /// Whether a value is an immediate or in constant memory.
    fn is_in_no_register(&self, value: Value) -> bool {
        let value = self.without_promises(value);
        match self.func.dfg.value_def(value) {
            ValueDef::Param(block, _) => {
                self.kernel && self.func.layout.entry_block() == Some(block)
            }
            ValueDef::Result(inst, _) => {
                let symbol = self.intrinsics.of_symbol_value(self.func, inst);
                let constant = self.constant_of(value);
                constant.is_some_and(|bits| bits != 0)
                    || matches!(symbol, Some(GpuSymbol::Special(row)) if row.launch_offset().is_some())
            }
            ValueDef::Union(..) => false,
        }
    }

    /// What the tree with this root becomes, if it is one.
    fn fusion(&self, inst: Inst) -> Option<Fusion> {
        let &[result] = self.func.dfg.inst_results(inst) else {
            return None;
        };
        let opcode = self.func.dfg.insts[inst].opcode();
        if !is_root(opcode) || self.is_truth(result) {
            return None;
        }
        if opcode == Opcode::Iadd
            && let Some(dot) = self.dot_product(result)
        {
            return Some(Fusion::Dot(dot));
        }
        let bytes = self.moved_bytes(result)?;
        let words = (0..self.words_of(result)).map(|i| {
            let bytes = word::word(&bytes, i);
            self.limits(bytes).map_or(Word::Moved(bytes), Word::Packed)
        });
        Some(Fusion::Words(words.collect()))
    }

    /// Asks for what selection reads where an instruction stays: its operands, but of a field that it only tests for
    /// any bit (`(x >> n) & m`) the whole word.
    fn ask_operands(&mut self, inst: Inst) {
        let field = self.tested_field(inst);
        for_each_operand(self.definitions.func, inst, |value| match field {
            Some((tested, word)) if tested == value => _ = self.asked.insert(word),
            _ => _ = self.asked.insert(value),
        });
    }

    /// The field that an instruction tests for any bit, and the word that it is in.
    fn tested_field(&self, inst: Inst) -> Option<(Value, Value)> {
        let tested = match self.func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } | InstructionData::CondTrap { arg, .. } => arg,
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [condition, ..],
            } => condition,
            InstructionData::IntCompare {
                cond: IntCC::Equal | IntCC::NotEqual,
                args: [tested, zero],
                ..
            } if self.constant_of(zero) == Some(0) => tested,
            _ => return None,
        };
        let inner = |value: Value, opcode: Opcode| match self.def_data(value)? {
            InstructionData::Binary {
                opcode: found,
                args: [inner, number],
            } if found == opcode && self.is_used_once(value) => {
                self.constant_of(number).map(|_| inner)
            }
            _ => None,
        };
        let is_word = self.type_of(tested) == types::I32;
        let field = is_word.then(|| inner(tested, Opcode::Band))??;
        Some((tested, inner(field, Opcode::Ushr)?))
    }
}

/// The operations that trees end in.
fn is_root(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Bor
            | Opcode::Bxor
            | Opcode::Bitselect
            | Opcode::Band
            | Opcode::Iadd
            | Opcode::Imul
            | Opcode::Ishl
            | Opcode::Ushr
            | Opcode::Sshr
            | Opcode::Rotl
            | Opcode::Rotr
            | Opcode::Bswap
            | Opcode::Uextend
            | Opcode::Sextend
            | Opcode::Insertlane
    )
}
