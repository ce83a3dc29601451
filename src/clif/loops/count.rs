//! How often a loop turns: counters, and the tests that they decide.
//!
//! Takes a loop that is left in one place only, where it also comes back to its header. A counter is a parameter of the
//! header to which each turn adds the same constant, and which, or whose next value, is compared with something that
//! does not change. All of this is arithmetic modulo the width of the counter, and nothing is assumed about wrapping:
//! what [`Counter::limit`] says holds for all values.

use super::LoopContext;
use super::shape::{Body, Edge};
use super::uniform::is_uniform;
use crate::constants::{integer, signed, unsigned};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, Value};
use hashbrown::HashMap;

/// Most turns that are followed to see how many there are (*assumed*).
pub(super) const FOLLOWED: u32 = 4096;

/// A value that is known, or an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Value(Value),
    Constant(i64),
}

/// A counter that decides whether there is another turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    /// The parameter of the header.
    pub(super) param: Value,
    pub(super) ty: Type,
    /// What is compared: the parameter or its next value.
    pub(super) tested: Value,
    /// There is another turn while `tested` compares so with the bound.
    pub(super) condition: IntCC,
    pub(super) bound: Bound,
    /// What each turn adds; not 0.
    pub(super) step: i64,
}

/// How a counter is found to have a number of turns left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// It compares as ever with the bound minus `less`, which must not wrap.
    Moved { less: i64, signed: bool },
    /// The bound minus it, or it minus the bound, is above the number, unsigned.
    Distance { above: i64, rising: bool },
}

/// The one edge by which `body` is left, and the one by which it comes back, if they belong to the same branch.
pub(super) fn bottom(body: &Body) -> Option<(Edge, Edge)> {
    match (&body.latches[..], &body.exits[..]) {
        ([latch], [exit]) if latch.branch == exit.branch => Some((*latch, *exit)),
        _ => None,
    }
}

/// What each turn adds to `param`, if it is always the same constant.
pub(super) fn step(func: &Function, body: &Body, param: Value, next: Value) -> Option<i64> {
    let update = func.dfg.value_def(next).inst()?;
    if !func
        .layout
        .inst_block(update)
        .is_some_and(|block| body.holds(block))
    {
        return None;
    }
    match func.dfg.insts[update] {
        InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [a, b],
        } if a == param => integer(func, b),
        InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [a, b],
        } if b == param => integer(func, a),
        InstructionData::Binary {
            opcode: Opcode::Isub,
            args: [a, b],
        } if a == param => integer(func, b).map(i64::wrapping_neg),
        _ => None,
    }
}

/// Whether `value` is the same in every turn.
pub(super) fn is_invariant(func: &Function, body: &Body, value: Value) -> bool {
    let def = func.dfg.value_def(value);
    let block = match def.inst() {
        Some(inst) => func.layout.inst_block(inst),
        None => Some(def.unwrap_block()),
    };
    integer(func, value).is_some() || block.is_some_and(|block| !body.holds(block))
}

impl Counter {
    /// The counter that decides about `latch`.
    pub(super) fn of(func: &Function, body: &Body, latch: Edge) -> Option<Self> {
        let InstructionData::Brif { arg, .. } = func.dfg.insts[latch.branch] else {
            return None;
        };
        let comparison = match func
            .dfg
            .value_def(arg)
            .inst()
            .map(|inst| func.dfg.insts[inst])
        {
            Some(InstructionData::IntCompare { cond, args, .. }) => (cond, args[0], Some(args[1])),
            _ => (IntCC::NotEqual, arg, None),
        };
        let (mut condition, mut tested, mut other) = comparison;
        if latch.index == 1 {
            condition = condition.complement();
        }
        if let Some(value) = other
            && is_invariant(func, body, tested)
        {
            (tested, other) = (value, Some(tested));
            condition = condition.swap_args();
        }
        let bound = match other {
            None => Bound::Constant(0),
            Some(value) => match integer(func, value) {
                Some(constant) => Bound::Constant(constant),
                None if is_invariant(func, body, value) => Bound::Value(value),
                None => return None,
            },
        };
        let params = func.dfg.block_params(body.header).iter().copied();
        let (param, next) =
            (params.zip(latch.args(func))).find(|pair| pair.0 == tested || pair.1 == tested)?;
        let step = step(func, body, param, next).filter(|step| *step != 0)?;
        let ty = func.dfg.value_type(param);
        (ty.is_int() && ty.bits() <= 64).then_some(Counter {
            param,
            ty,
            tested,
            condition,
            bound,
            step,
        })
    }

    /// What has to hold of the counter for the test to succeed for it and for the `more` values behind it. None if that
    /// cannot be said.
    pub(super) fn limit(&self, more: u32) -> Option<Limit> {
        use IntCC::*;
        let way = self.step.checked_mul(i64::from(more))?;
        // So that the way is less than half of all values.
        let largest = i64::MAX >> (64 - self.ty.bits());
        if way.checked_abs()? > largest {
            return None;
        }
        let rising = self.step > 0;
        match self.condition {
            NotEqual => Some(Limit::Distance {
                above: way.abs(),
                rising,
            }),
            SignedLessThan | SignedLessThanOrEqual if rising => Some(Limit::Moved {
                less: way,
                signed: true,
            }),
            SignedGreaterThan | SignedGreaterThanOrEqual if !rising => Some(Limit::Moved {
                less: way,
                signed: true,
            }),
            UnsignedLessThan | UnsignedLessThanOrEqual if rising => Some(Limit::Moved {
                less: way,
                signed: false,
            }),
            UnsignedGreaterThan | UnsignedGreaterThanOrEqual if !rising => Some(Limit::Moved {
                less: way,
                signed: false,
            }),
            _ => None,
        }
    }
}

/// The number of turns if it is known, up to `most`: the loop is gone through with all that is computed from constants.
pub(super) fn turns(
    func: &Function,
    body: &Body,
    latch: Edge,
    start: &[Option<i64>],
    most: u32,
) -> Option<u32> {
    let InstructionData::Brif { arg, .. } = func.dfg.insts[latch.branch] else {
        return None;
    };
    let params = func.dfg.block_params(body.header);
    let args = latch.args(func);
    let mut state: Vec<Option<i64>> = start.to_vec();
    for turn in 1..=most {
        let mut known: HashMap<Value, Option<i64>> =
            params.iter().copied().zip(state.iter().copied()).collect();
        let truth = evaluate(func, body, arg, &mut known, DEPTH)? != 0;
        if truth != (latch.index == 0) {
            return Some(turn);
        }
        state = args
            .iter()
            .map(|&value| evaluate(func, body, value, &mut known, DEPTH))
            .collect();
    }
    None
}

/// Longest chain of operations that is followed (*assumed*).
const DEPTH: u32 = 8;

/// What `value` is, sign-extended, given what is `known` of this turn.
fn evaluate(
    func: &Function,
    body: &Body,
    value: Value,
    known: &mut HashMap<Value, Option<i64>>,
    depth: u32,
) -> Option<i64> {
    if let Some(found) = known.get(&value) {
        return *found;
    }
    if let Some(constant) = integer(func, value) {
        return Some(constant);
    }
    if depth == 0 || is_invariant(func, body, value) {
        return None;
    }
    let inst = func.dfg.value_def(value).inst()?;
    let mut operand = |value| evaluate(func, body, value, known, depth - 1);
    let found = match func.dfg.insts[inst] {
        InstructionData::Binary { opcode, args } => {
            let (a, b) = (operand(args[0])?, operand(args[1])?);
            let ty = func.dfg.value_type(value);
            if !ty.is_int() || ty.bits() > 64 {
                return None;
            }
            let shift = (b & i64::from(ty.bits() - 1)) as u32;
            let result = match opcode {
                Opcode::Iadd => a.wrapping_add(b),
                Opcode::Isub => a.wrapping_sub(b),
                Opcode::Imul => a.wrapping_mul(b),
                Opcode::Band => a & b,
                Opcode::Bor => a | b,
                Opcode::Bxor => a ^ b,
                Opcode::Ishl => a.wrapping_shl(shift),
                Opcode::Ushr => (unsigned(ty, a) >> shift) as i64,
                Opcode::Sshr => a >> shift,
                _ => return None,
            };
            Some(signed(ty, result))
        }
        InstructionData::IntCompare { cond, args, .. } => {
            let (a, b) = (operand(args[0])?, operand(args[1])?);
            Some(i64::from(compares(
                cond,
                func.dfg.value_type(args[0]),
                a,
                b,
            )))
        }
        _ => None,
    };
    known.insert(value, found);
    found
}

/// Whether two sign-extended integers of the type compare so.
pub(super) fn compares(condition: IntCC, ty: Type, a: i64, b: i64) -> bool {
    let (ua, ub) = (unsigned(ty, a), unsigned(ty, b));
    match condition {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::SignedLessThan => a < b,
        IntCC::SignedGreaterThanOrEqual => a >= b,
        IntCC::SignedGreaterThan => a > b,
        IntCC::SignedLessThanOrEqual => a <= b,
        IntCC::UnsignedLessThan => ua < ub,
        IntCC::UnsignedGreaterThanOrEqual => ua >= ub,
        IntCC::UnsignedGreaterThan => ua > ub,
        IntCC::UnsignedLessThanOrEqual => ua <= ub,
    }
}

/// What is known of the parameters of the header in the first turn.
pub(super) fn starts(context: &Context, body: &Body) -> Vec<Option<i64>> {
    let func = &context.func;
    let mut found: Option<Vec<Option<i64>>> = None;
    for entry in body.entries(context) {
        let args = entry
            .args(func)
            .into_iter()
            .map(|value| integer(func, value));
        found = Some(match found {
            None => args.collect(),
            Some(others) => others
                .into_iter()
                .zip(args)
                .map(|(a, b)| a.filter(|_| a == b))
                .collect(),
        });
    }
    found.unwrap_or_default()
}

/// Whether all lanes that enter the loop together leave it together.
pub(super) fn is_uniform_count(
    context: &Context,
    given: &LoopContext<'_>,
    body: &Body,
    counter: &Counter,
) -> bool {
    let func = &context.func;
    let uniform = |value| is_uniform(func, given, value);
    let bound = match counter.bound {
        Bound::Constant(_) => true,
        Bound::Value(value) => uniform(value),
    };
    let params = func.dfg.block_params(body.header);
    let Some(index) = params.iter().position(|param| *param == counter.param) else {
        return false;
    };
    let entries = body.entries(context);
    bound && entries.len() == 1 && uniform(entries[0].args(func)[index])
}
