//! Operations that round floats: unknown functions of what they read.
//!
//! A function is named by the mnemonic and the values of the fields that say what the operation does. Which half of an
//! operand is read, its sign and its absolute value are no part of the name: they are operations on bits, done before.
//! An operation on two lanes is one function, of each lane. Where the machine lets two operands change places the function
//! does too.

use super::lane::Lane;
use super::{Machine, State};
use crate::outcome::Open;
use crate::smt::definitions_first;
use crate::term::{Operation, Sort, Term, Unknown, substituted};
use crate::words::Vector;
use cranelift_thisgpu::unstable::isa::encode::value_text;
use cranelift_thisgpu::unstable::isa::generated::{HSel2, Optype};
use cranelift_thisgpu::unstable::isa::table::{
    Direction, FieldType, FieldValue, OperandInfo, Swap,
};
use cranelift_thisgpu::unstable::isa::{Inst, PReg, RegisterClass, Role};
use cranelift_thisgpu::unstable::sim::decode::{Action, Op};
use cranelift_thisgpu::unstable::sim::semantics::compare::halves;
use hashbrown::HashMap;

/// What an operation reads.
struct Sources {
    values: Vec<Term>,
    /// Whether they are two numbers each, and the result is too.
    has_lanes: bool,
}

impl Machine<'_> {
    /// Writes what an operation on floats gives where its guard holds.
    pub(super) fn unknown(
        &self,
        state: &mut State,
        op: &Op,
        inst: &Inst<PReg>,
        guard: Term,
    ) -> Result<(), Open> {
        let mut sources = self.sources(state, op, inst)?;
        if let Action::Shuffle(_) | Action::Vote(_) | Action::Match = op.action {
            sources.values.push(state.condition);
        }
        let integer = sources
            .values
            .first()
            .filter(|_| inst.optype() == Optype::I2F);
        if let Some(float) = integer.and_then(|&integer| exact_float(inst, integer)) {
            Lane::new(self, state, op, guard).write(Role::D, float);
            return Ok(());
        }
        let is_unsigned = integer.is_some_and(|n| n.part(63, 1).as_number() != Some(0));
        let name = name(inst, is_unsigned);
        let is_symmetric = matches!(inst.optype().info().swap, Swap::Free);
        let results = inst.info().operands.iter();
        let results = results.filter(|operand| operand.direction == Direction::Out);
        let mut lane = Lane::new(self, state, op, guard);
        for operand in results {
            let function = Unknown {
                name: format!("{name} {:?}", operand.role),
                is_symmetric,
            };
            let values = &sources.values;
            match operand.class {
                Some(RegisterClass::Predicate) => {
                    let value = Term::apply(&function, values, Sort::Truth);
                    lane.set(op.operand(operand.role).column.into(), value);
                }
                _ if sources.has_lanes => {
                    let [low, high] = [0, 16].map(|from| {
                        let halves: Vec<Term> = values.iter().map(|v| v.part(from, 16)).collect();
                        Term::apply(&function, &halves, Sort::Bits(16))
                    });
                    lane.write(operand.role, high.above(low));
                }
                _ => {
                    let width = 32 * u32::from(op.operand(operand.role).words);
                    lane.write(
                        operand.role,
                        Term::apply(&function, values, Sort::Bits(width)),
                    );
                }
            }
        }
        Ok(())
    }

    /// What an operation reads, behind its guard.
    fn sources(&self, state: &State, op: &Op, inst: &Inst<PReg>) -> Result<Sources, Open> {
        let mut has_lanes = false;
        let mut values = Vec::new();
        // The guard is none of them: it stands first.
        let operands = inst.info().operands[1..].iter();
        for operand in operands.filter(|operand| operand.direction == Direction::In) {
            let place = op.operand(operand.role);
            if operand.class == Some(RegisterClass::Predicate) {
                let holds = state.predicate(usize::from(place.column));
                values.push(if place.invert { holds.not() } else { holds });
                continue;
            }
            let word = self.value(state, op, place)?;
            let flag = |field: Option<u8>| field.is_some_and(|index| inst.field(index) != 0);
            let (absolute, negate) = (flag(operand.absolute), flag(operand.negate));
            if inst.optype() == Optype::I2F {
                values.push(integer(inst, word));
                continue;
            }
            values.push(match selected(inst, operand) {
                Selected::Lanes(selection) => {
                    has_lanes = true;
                    halves(&Vector::<32>(word), selection, absolute, negate).0
                }
                Selected::Half(number) => signed(word.part(16 * number, 16), absolute, negate),
                Selected::Whole => signed(word, absolute, negate),
            });
        }
        Ok(Sources { values, has_lanes })
    }
}

/// Which part of an operand is read.
enum Selected {
    /// Two numbers.
    Lanes(HSel2),
    /// The half with this number.
    Half(u32),
    /// All of it.
    Whole,
}

fn selected(inst: &Inst<PReg>, operand: &OperandInfo) -> Selected {
    let Some(index) = operand.select else {
        return Selected::Whole;
    };
    let field = &inst.info().fields[usize::from(index)];
    match value_text(&field.ty, inst.field(index)).trim_start_matches('.') {
        "H1_H0" => Selected::Lanes(HSel2::H1H0),
        "H0_H0" => Selected::Lanes(HSel2::H0H0),
        "H1_H1" => Selected::Lanes(HSel2::H1H1),
        "H1" => Selected::Half(1),
        "H0" if is_half(inst) => Selected::Half(0),
        _ => Selected::Whole,
    }
}

/// Whether a conversion reads a half: of a number of another format the selection says nothing.
fn is_half(inst: &Inst<PReg>) -> bool {
    field_text(inst, SOURCE_FORMAT).is_some_and(|format| format.contains("16"))
}

/// The value of a field.
fn field_text(inst: &Inst<PReg>, name: &str) -> Option<String> {
    let mut fields = inst.info().fields.iter();
    let field = fields.find(|field| field.name == name)?;
    Some(value_text(&field.ty, field.get(inst.word())))
}

/// The integer that a conversion to floats reads, in 64 bits: how it is written does not matter.
fn integer(inst: &Inst<PReg>, word: Term) -> Term {
    let format = field_text(inst, SOURCE_FORMAT).unwrap_or_default();
    let format = format.trim_start_matches('.');
    let bits = format[1..].parse().unwrap_or(32).min(word.width());
    let number = word.part(0, bits);
    match format.starts_with('S') {
        true => number.sign_extended(64),
        false => number.zero_extended(64),
    }
}

/// The float that an integer becomes, where it is one of two small numbers, which all formats hold.
fn exact_float(inst: &Inst<PReg>, integer: Term) -> Option<Term> {
    let format = field_text(inst, "dstfmt")?;
    let float = |number: u128| {
        let number = i32::try_from(number as i64)
            .ok()
            .filter(|n| n.abs() <= 256)?;
        Some(match format.trim_start_matches('.') {
            "F32" => Term::number((number as f32).to_bits().into(), 32),
            "F64" => Term::number(f64::from(number).to_bits().into(), 64),
            _ => return None,
        })
    };
    // A choice between two, somewhere below. What is known altogether is left alone: divisions by constants are known
    // by it.
    let mut below = definitions_first(integer).into_iter();
    below.find_map(|choice| match choice.operation() {
        Operation::Choose(condition, yes, no) => {
            let number = |arm| substituted(integer, &HashMap::from([(choice, arm)])).as_number();
            Some(Term::choose(
                condition,
                float(number(yes)?)?,
                float(number(no)?)?,
            ))
        }
        _ => None,
    })
}

/// The field of the format that a conversion reads.
const SOURCE_FORMAT: &str = "srcfmt";

/// A number after its modifiers.
fn signed(value: Term, absolute: bool, negate: bool) -> Term {
    let sign = Term::number(1 << (value.width() - 1), value.width());
    let value = if absolute {
        value.and(sign.not())
    } else {
        value
    };
    if negate { value.xor(sign) } else { value }
}

/// The mnemonic, and all that says what is computed. An integer that becomes a float may be unsigned and above all
/// signed ones.
fn name(inst: &Inst<PReg>, is_unsigned: bool) -> String {
    let info = inst.info();
    let hidden: Vec<u8> = info
        .operands
        .iter()
        .flat_map(|o| [Some(o.field), o.not, o.negate, o.absolute, o.select])
        .flatten()
        .collect();
    let mut name = inst.optype().info().mnemonic.to_owned();
    for (index, field) in (0..).zip(info.fields) {
        let is_constant = matches!(field.value, FieldValue::Constant(_));
        if matches!(field.ty, FieldType::Enum(_)) && !is_constant && !hidden.contains(&index) {
            let value = value_text(&field.ty, field.get(inst.word()));
            // Of an integer it only matters whether 64 bits are all of it.
            let is_less = inst.optype() == Optype::I2F && field.name == SOURCE_FORMAT;
            if !is_less || is_unsigned && value.ends_with("U64") {
                name.push_str(&format!(" {}={value}", field.name));
            }
        }
    }
    let immediates = info.operands.iter();
    for operand in immediates.filter(|o| o.direction == Direction::Neither) {
        let value = inst.field(operand.field);
        name.push_str(&format!(" {}={value}", operand.name));
    }
    name
}
