//! Whether a generic address of shared memory is in its window, or where a low word alone would not hide that it is
//! not.
//!
//! Takes an address that is made of the symbol's own by sums, differences and products; gives bounds of what was added.
//! The window begins at a multiple of 2^32 and has room for less than 2^18 bytes, so the low word of the address is the
//! offset in shared memory if the offset is one, and no offset of it otherwise, as long as what was added is neither
//! 2^32 or more nor so far below zero ([`Extent::stays_inside`]). Beyond that, an address that faults would come round
//! into the window.
//!
//! Bounds come from masks, shifts, thread and launch values ([`greatest`]), and from comparisons with constants that
//! lead to the block of the access. A word of which nothing is known may be [capped](Extent::caps): in an element's
//! offset, a greatest value in its place faults like all above it.

use super::bounds::greatest;
use super::control_flow::ControlFlow;
use crate::abi::{MAX_SHARED, OFFSETS};
use crate::constants::{definition, integer};
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics, symbol_offset};
use cranelift_codegen::ir::condcodes::{CondCode as _, IntCC};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// How deep an address is looked into (*assumed*: more than the trees of real addresses).
const DEPTH: u32 = 8;
/// Blocks above the access whose conditions are looked at (*assumed*: bounds are checked near the access).
const CONDITIONS: usize = 16;
/// What is added in a capped place is at most this.
const CAPPED: i64 = 1 << 30;
/// Most that stands beside a capped place, in both directions: with it, a cap faults as what it stands for does.
const BESIDE: i64 = 1 << 29;
/// Largest size of an element whose index is capped: what is added is then no address of another window either.
const MOST_FACTOR: i64 = 1 << 20;
/// Numbers of which more need not be known; products of two of them do not wrap.
const LARGE: i64 = 1 << 40;

/// What surrounds an address.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The function.
    pub func: &'a Function,
    /// Which of its calls and symbols are intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Its control flow, and the block of the access, for conditions that lead there.
    pub at: Option<(&'a ControlFlow, Block)>,
    /// Conditions that have trapped on the way.
    pub passed: &'a Passed,
}

/// Comparisons with constants that threads have passed, since they would have trapped: by value, the block and the
/// greatest that is left. The blocks are those that were looked at so far, dominators first.
#[derive(Default)]
pub struct Passed(HashMap<Value, SmallVec<[(Block, u64); 1]>>);

impl Passed {
    /// Takes note of an instruction of a block.
    pub fn note(&mut self, func: &Function, block: Block, inst: Inst) {
        let InstructionData::CondTrap { opcode, arg, .. } = func.dfg.insts[inst] else {
            return;
        };
        let Some(InstructionData::IntCompare { args, .. }) = definition(func, arg) else {
            return;
        };
        for value in args.map(|arg| func.dfg.resolve_aliases(arg)) {
            if let Some(most) = limit(func, arg, value, opcode == Opcode::Trapz) {
                self.0.entry(value).or_default().push((block, most));
            }
        }
    }
}

/// A word without bounds in an address, and the greatest that it may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// The product, shift or extension that adds it to the address.
    pub place: Value,
    /// The word.
    pub word: Value,
    /// What it is capped at.
    pub most: u32,
}

/// What is added to the start of the window, without capped places.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    least: i64,
    most: i64,
    /// How often the start of the window is in it.
    starts: i64,
    /// Places that are no more than [`CAPPED`] if their words are capped.
    caps: SmallVec<[Cap; 2]>,
}

impl Extent {
    fn new(least: i64, most: i64) -> Option<Extent> {
        let known = least >= -LARGE && most <= LARGE;
        known.then(|| Extent {
            least,
            most,
            ..Extent::default()
        })
    }

    /// The places whose words have to be capped before the low word tells where the address is.
    pub fn caps(&self) -> &[Cap] {
        &self.caps
    }

    /// Whether the low word of the address and `offset` is an offset in shared memory only if the address is in the
    /// window.
    pub fn stays_inside(&self, offset: i64) -> bool {
        // An access has 16 bytes at most, and its instruction adds an offset to the low word.
        const MARGIN: i64 = MAX_SHARED as i64 + OFFSETS.end + 16;
        let (least, most) = (self.least + offset, self.most + offset);
        let beside = -BESIDE..=BESIDE;
        let capped = self.caps.len() as i64 * CAPPED;
        self.starts == 1
            && least > MARGIN - (1 << 32)
            && most + capped < (1 << 32) - MARGIN
            && (capped == 0 || beside.contains(&least) && beside.contains(&most))
    }

    fn plus(mut self, other: Extent) -> Option<Extent> {
        self.caps.extend(other.caps);
        Some(Extent {
            starts: self.starts + other.starts,
            caps: self.caps,
            ..Extent::new(self.least + other.least, self.most + other.most)?
        })
    }

    fn times(self, factor: i64) -> Option<Extent> {
        // Caps hold for what is added once.
        if self.starts != 0 || !self.caps.is_empty() || !(-LARGE..=LARGE).contains(&factor) {
            return None;
        }
        let ends = [self.least, self.most].map(|end| end.checked_mul(factor));
        let (a, b) = (ends[0]?, ends[1]?);
        Extent::new(a.min(b), a.max(b))
    }

    /// One or the other, without caps.
    fn or(self, other: Extent) -> Option<Extent> {
        (self.starts == other.starts).then(|| Extent {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            ..self
        })
    }
}

/// What `address` adds to the start of the window; none if that is not known. With `caps`, words of which nothing is
/// known may be capped.
pub fn extent(around: &Surroundings<'_>, address: Value, caps: bool) -> Option<Extent> {
    of(around, address, caps, DEPTH)
}

fn of(around: &Surroundings<'_>, value: Value, caps: bool, depth: u32) -> Option<Extent> {
    let func = around.func;
    if func.dfg.value_type(value) != I64 || depth == 0 {
        return None;
    }
    let inner = |value| of(around, value, caps, depth - 1);
    let exact = |value| of(around, value, false, depth - 1);
    let found = match definition(func, value) {
        Some(InstructionData::UnaryImm { imm, .. }) => Extent::new(imm.bits(), imm.bits()),
        Some(InstructionData::UnaryGlobalValue { global_value, .. }) => {
            match around.intrinsics.symbol(global_value) {
                Some(GpuSymbol::Shared) => {
                    let offset = symbol_offset(func, global_value);
                    let of_start = |extent| Extent {
                        starts: 1,
                        ..extent
                    };
                    Extent::new(offset, offset).map(of_start)
                }
                _ => None,
            }
        }
        Some(InstructionData::Unary {
            opcode: opcode @ (Opcode::Uextend | Opcode::Sextend),
            arg,
        }) => extension(around, opcode, arg),
        Some(InstructionData::Binary {
            opcode,
            args: [a, b],
        }) => match (opcode, integer(func, b)) {
            (Opcode::Iadd, _) => inner(a).and_then(|a| a.plus(inner(b)?)),
            (Opcode::Isub, _) => exact(b)
                .and_then(|b| b.times(-1))
                .and_then(|b| inner(a)?.plus(b)),
            (Opcode::Imul, Some(factor)) => exact(a).and_then(|a| a.times(factor)),
            (Opcode::Ishl, Some(amount @ 0..32)) => exact(a).and_then(|a| a.times(1 << amount)),
            (Opcode::Band, Some(mask @ 0..)) => Extent::new(0, mask),
            // The multiple of a power of two at or below.
            (Opcode::Band, Some(mask)) if mask.wrapping_neg().count_ones() == 1 => {
                exact(a).and_then(|a| a.plus(Extent::new(mask + 1, 0)?))
            }
            (Opcode::Umin, Some(most @ 0..)) => Extent::new(0, most),
            (Opcode::Urem, Some(divisor @ 1..)) => Extent::new(0, divisor - 1),
            (Opcode::Ushr, Some(amount @ 24..64)) => Extent::new(0, (u64::MAX >> amount) as i64),
            (Opcode::Ushr, Some(amount @ 0..24)) => exact(a)
                .filter(|a| a.starts == 0 && a.least >= 0 && a.caps.is_empty())
                .and_then(|a| Extent::new(a.least >> amount, a.most >> amount)),
            _ => None,
        },
        Some(InstructionData::Ternary {
            opcode: Opcode::Select,
            args: [_, a, b],
        }) => exact(a).and_then(|a| a.or(exact(b)?)),
        _ => None,
    };
    let found = found.or_else(|| Extent::new(0, i64::try_from(compared(around, value)?).ok()?));
    match found {
        Some(found) if !(caps && found.starts == 0 && found.most > CAPPED) => Some(found),
        found if caps => capped(around, value).or(found),
        found => found,
    }
}

/// An extended word.
fn extension(around: &Surroundings<'_>, opcode: Opcode, word: Value) -> Option<Extent> {
    let ty = around.func.dfg.value_type(word);
    if !ty.is_int() || ty.bits() > 32 {
        return None;
    }
    let most = greatest(around.func, around.intrinsics, word);
    let most = compared(around, word).map_or(most, |compared| most.min(compared)) as i64;
    let half = 1 << (ty.bits() - 1);
    match opcode {
        Opcode::Sextend if most >= half => Extent::new(-half, half - 1),
        _ => Extent::new(0, most),
    }
}

/// A product of an extended word and a constant, if it is one: capped.
fn capped(around: &Surroundings<'_>, place: Value) -> Option<Extent> {
    let func = around.func;
    let (extended, factor) = match definition(func, place)? {
        InstructionData::Binary {
            opcode: Opcode::Imul,
            args: [a, b],
        } => (a, integer(func, b)?),
        InstructionData::Binary {
            opcode: Opcode::Ishl,
            args: [a, b],
        } => (
            a,
            1 << integer(func, b).filter(|amount| (0..32).contains(amount))?,
        ),
        _ => (place, 1),
    };
    let InstructionData::Unary {
        opcode: Opcode::Uextend,
        arg: word,
    } = definition(func, extended)?
    else {
        return None;
    };
    if func.dfg.value_type(word) != I32 || !(1..=MOST_FACTOR).contains(&factor) {
        return None;
    }
    let most = (CAPPED / factor) as u32;
    Some(Extent {
        caps: SmallVec::from_slice(&[Cap { place, word, most }]),
        ..Extent::default()
    })
}

/// No value of `value`, read without sign, is greater in the block of the access: a condition on the only way there
/// says so.
fn compared(around: &Surroundings<'_>, value: Value) -> Option<u64> {
    let (flow, mut block) = around.at?;
    let func = around.func;
    let value = func.dfg.resolve_aliases(value);
    let passed = around.passed.0.get(&value).into_iter().flatten();
    let passed = passed.filter(|(from, _)| flow.dominates(*from, block));
    if let Some(most) = passed.map(|(_, most)| *most).min() {
        return Some(most);
    }
    for _ in 0..CONDITIONS {
        let above = flow.domtree().idom(block)?;
        let mut predecessors = flow.predecessors(block);
        if let (Some(from), None) = (predecessors.next(), predecessors.next())
            && let Some(InstructionData::Brif { arg, blocks, .. }) =
                func.layout.last_inst(from).map(|inst| func.dfg.insts[inst])
        {
            let [then, other] = blocks.map(|call| call.block(&func.dfg.value_lists));
            let limit = limit(func, arg, value, then == block).filter(|_| then != other);
            if limit.is_some() {
                return limit;
            }
        }
        block = above;
    }
    None
}

/// The greatest that `value` is where `condition` is as `holds` says.
fn limit(func: &Function, condition: Value, value: Value, holds: bool) -> Option<u64> {
    let InstructionData::IntCompare { cond, args, .. } = definition(func, condition)? else {
        return None;
    };
    let args = args.map(|arg| func.dfg.resolve_aliases(arg));
    let bits = func.dfg.value_type(value).bits();
    let (cond, constant) = match args {
        [a, b] if a == value => (cond, integer(func, b)?),
        [a, b] if b == value => (cond.swap_args(), integer(func, a)?),
        _ => return None,
    };
    let constant = constant as u64 & (u64::MAX >> (64 - bits));
    match if holds { cond } else { cond.complement() } {
        IntCC::UnsignedLessThan => constant.checked_sub(1),
        IntCC::UnsignedLessThanOrEqual | IntCC::Equal => Some(constant),
        _ => None,
    }
}
