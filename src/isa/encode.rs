//! Words from instructions and back; both refuse what the description does not allow.

use super::control::Control;
use super::generated::{FORMS, Form, MAX_REGISTERS, form_of};
use super::inst::Inst;
use super::register::{PReg, Register, RegisterClass};
use super::table::{FieldType, FieldValue, FormInfo, ModeInfo, OperandInfo};
use thiserror::Error;

/// Why a word or an instruction is not legal. Names are the documents'.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Illegal {
    /// No form has these `optype` and `stype` codes.
    #[error("no form has optype {optype} and stype {stype}")]
    UnknownForm {
        /// Code of the operation.
        optype: u8,
        /// Code of the operand kinds.
        stype: u8,
    },
    /// Bits outside the form's fields are set.
    #[error("{form}: bit {bit} belongs to no field and must be 0")]
    UnusedBit {
        /// The form.
        form: &'static str,
        /// The lowest such bit.
        bit: u32,
    },
    /// A code that names no member of its type.
    #[error("{form}: field {field} holds {value}, which is no {type_name}")]
    ReservedCode {
        /// The form.
        form: &'static str,
        /// The field.
        field: &'static str,
        /// Its type.
        type_name: &'static str,
        /// The code.
        value: u64,
    },
    /// The combination of mode fields is written by no syntax line.
    #[error("{form}: no syntax has {fields}")]
    NoMode {
        /// The form.
        form: &'static str,
        /// The mode fields with their values.
        fields: String,
    },
    /// A field that the chosen mode does not show is not at its default.
    #[error("{form}: field {field} is not part of this mode and must hold {expected}, not {value}")]
    Hidden {
        /// The form.
        form: &'static str,
        /// The field.
        field: &'static str,
        /// What it must hold.
        expected: String,
        /// What it holds.
        value: String,
    },
    /// A constant field was changed.
    #[error("{form}: field {field} is fixed at {expected}, not {value}")]
    Constant {
        /// The form.
        form: &'static str,
        /// The field.
        field: &'static str,
        /// What it must hold.
        expected: String,
        /// What it holds.
        value: String,
    },
    /// A documented rule is broken.
    #[error("{form}: {kind}: {message}")]
    Exception {
        /// The form.
        form: &'static str,
        /// Kind in the documents.
        kind: &'static str,
        /// Sentence in the documents.
        message: &'static str,
    },
    /// A wide operand does not start at a multiple of its width, or runs past the last register.
    #[error(
        "{form}: operand {operand} of {width} bits cannot start at {register}: it must be a multiple of {align}"
    )]
    Misaligned {
        /// The form.
        form: &'static str,
        /// The operand.
        operand: &'static str,
        /// Bits.
        width: u32,
        /// The first register.
        register: String,
        /// Required alignment in registers.
        align: u32,
    },
    /// The registers of a wide operand do not follow each other.
    #[error("{form}: the registers of operand {operand} are not consecutive")]
    NotConsecutive {
        /// The form.
        form: &'static str,
        /// The operand.
        operand: &'static str,
    },
    /// A constant memory offset is no multiple of the operand's size.
    #[error(
        "{form}: constant offset {offset:#x} of operand {operand} is not a multiple of {align}"
    )]
    ConstantOffset {
        /// The form.
        form: &'static str,
        /// The operand.
        operand: &'static str,
        /// Byte offset.
        offset: u64,
        /// Size of the operand in bytes.
        align: u64,
    },
    /// Scoreboard 6.
    #[error("control field {field} names a scoreboard that does not exist")]
    NoScoreboard {
        /// `wsb` or `rsb`.
        field: &'static str,
    },
}

/// Bytes of a word, little-endian, low half first (*assigned*).
pub const WORD_BYTES: usize = 16;

impl Inst<PReg> {
    /// The 128-bit word.
    ///
    /// # Errors
    /// What the description does not allow; see [`Illegal`].
    pub fn encode(&self, control: Control) -> Result<u128, Illegal> {
        let info = self.info();
        let mut word = self.word();
        for operand in info.operands {
            let Some(class) = operand.class else { continue };
            let regs = self.operand_regs(operand);
            let Some(first) = regs[0] else {
                if regs.iter().any(Option::is_some) {
                    return Err(Illegal::NotConsecutive {
                        form: info.name,
                        operand: operand.name,
                    });
                }
                continue;
            };
            for (i, r) in regs.iter().enumerate() {
                let expected = first.number() as usize + i;
                if r.is_none_or(|r| r.number() as usize != expected || r.class() != class) {
                    return Err(Illegal::NotConsecutive {
                        form: info.name,
                        operand: operand.name,
                    });
                }
            }
            word = info.fields[operand.field as usize].set(word, u64::from(first.number()));
        }
        check(info, word)?;
        Ok(word | control.encode())
    }

    /// [`Inst::encode`] of an instruction that is known to be legal: nothing is checked but in debug builds.
    pub fn pack(&self, control: Control) -> u128 {
        let info = self.info();
        let mut word = self.word();
        for (place, reg) in self.entries() {
            if let Some(bit) = info.register_bits[place] {
                // The field is 0 while the register stands beside the word.
                word |= u128::from(reg.number()) << bit;
            }
        }
        let word = word | control.encode();
        debug_assert_eq!(Ok(word), self.encode(control));
        word
    }
}

/// Reads a word.
///
/// # Errors
/// Why it is no legal instruction.
pub fn decode(word: u128) -> Result<(Inst<PReg>, Control), Illegal> {
    let (optype, stype) = (word as u8, (word >> 8) as u8 & 15);
    let form = form_of(optype, stype).ok_or(Illegal::UnknownForm { optype, stype })?;
    let info = form.info();
    let unused = word & !info.used;
    if unused != 0 {
        return Err(Illegal::UnusedBit {
            form: info.name,
            bit: unused.trailing_zeros(),
        });
    }
    let control = Control::decode(word).map_err(|field| Illegal::NoScoreboard { field })?;
    let word = word & !control_mask();
    check(info, word)?;
    Ok((registers_out(form, word), control))
}

/// Bits of the control fields.
pub fn control_mask() -> u128 {
    let used: u128 = super::generated::CONTROL
        .iter()
        .fold(0, |mask, f| mask | f.mask());
    used
}

/// Moves register numbers from the word to the register array.
fn registers_out(form: Form, mut word: u128) -> Inst<PReg> {
    let info = form.info();
    let mut regs = [None; MAX_REGISTERS];
    for operand in info.operands {
        let Some(class) = operand.class else { continue };
        let field = &info.fields[operand.field as usize];
        let number = field.get(word) as u8;
        if number == class.hardwired() {
            continue;
        }
        for i in 0..register_count(operand, word) {
            regs[operand.first as usize + i] = Some(PReg::new(class, number + i as u8));
        }
        word = field.set(word, 0);
    }
    Inst::from_parts(form, word, regs)
}

fn register_count(operand: &OperandInfo, word: u128) -> usize {
    match operand.class {
        Some(RegisterClass::Predicate) => 1,
        _ => ((operand.width)(word) as usize / 32).max(1),
    }
}

/// Everything that must hold of a word without control bits.
fn check(info: &'static FormInfo, word: u128) -> Result<(), Illegal> {
    let changed = (word ^ info.initial) & info.constant_mask != 0;
    if changed
        && let Some(field) = info
            .fields
            .iter()
            .find(|f| matches!(f.value, FieldValue::Constant(v) if f.get(word) != v))
    {
        let FieldValue::Constant(expected) = field.value else {
            unreachable!()
        };
        return Err(Illegal::Constant {
            form: info.name,
            field: field.name,
            expected: value_text(&field.ty, expected),
            value: value_text(&field.ty, field.get(word)),
        });
    }
    for &(index, low, high) in info.legal_codes {
        let field = &info.fields[index as usize];
        let value = field.get(word);
        let legal = match value {
            0..64 => low,
            _ => high.get((value / 64) as usize - 1).copied().unwrap_or(0),
        };
        if legal >> (value % 64) & 1 == 0 {
            return Err(Illegal::ReservedCode {
                form: info.name,
                field: field.name,
                type_name: field.type_name,
                value,
            });
        }
    }
    for exception in info.exceptions {
        if (exception.broken)(word) {
            return Err(Illegal::Exception {
                form: info.name,
                kind: exception.kind,
                message: exception.message,
            });
        }
    }
    let mode = mode_of(info, word).ok_or_else(|| no_mode(info, word))?;
    let changed = (word ^ mode.hidden_bits) & mode.hidden_mask != 0;
    let hidden = if changed { mode.hidden } else { &[] };
    let hidden = hidden
        .iter()
        .copied()
        .chain(conditionally_hidden(info, word));
    for index in hidden {
        let field = &info.fields[index as usize];
        if field.get(word) != field.hidden {
            return Err(Illegal::Hidden {
                form: info.name,
                field: field.name,
                expected: value_text(&field.ty, field.hidden),
                value: value_text(&field.ty, field.get(word)),
            });
        }
    }
    info.operands
        .iter()
        .try_for_each(|operand| check_operand(info, operand, word))
}

/// Fields whose condition to be shown does not hold.
fn conditionally_hidden(info: &'static FormInfo, word: u128) -> impl Iterator<Item = u8> {
    let hidden = move |index: &u8| {
        let shown = info.fields[usize::from(*index)].shown;
        shown.is_some_and(|shown| !shown(word))
    };
    info.conditional.iter().copied().filter(hidden)
}

fn check_operand(info: &FormInfo, operand: &OperandInfo, word: u128) -> Result<(), Illegal> {
    if operand.field == u8::MAX {
        return Ok(());
    }
    let field = &info.fields[operand.field as usize];
    let width = u32::from((operand.width)(word));
    match (field.ty, operand.class) {
        (FieldType::ConstantMemory, _) if width > 8 => {
            let (offset, align) = (field.get(word) & 0x1_ffff, u64::from(width / 8));
            if offset % align != 0 {
                return Err(Illegal::ConstantOffset {
                    form: info.name,
                    operand: operand.name,
                    offset,
                    align,
                });
            }
        }
        (_, Some(class)) if width > 32 => {
            let (number, align) = (field.get(word) as u32, width.next_power_of_two() / 32);
            let fixed = number == u32::from(class.hardwired());
            if !fixed
                && (!number.is_multiple_of(align)
                    || number + width / 32 > u32::from(class.hardwired()))
            {
                return Err(Illegal::Misaligned {
                    form: info.name,
                    operand: operand.name,
                    width,
                    register: format!("{}{number}", class.prefix()),
                    align,
                });
            }
        }
        _ => {}
    }
    Ok(())
}

/// The way `word` is written: the syntax line whose selecting fields match.
pub fn mode_of(info: &'static FormInfo, word: u128) -> Option<&'static ModeInfo> {
    // A mode that fixes more is the more special one: `.X` before none.
    info.modes
        .iter()
        .filter(|m| word & m.fixed_mask == m.fixed_bits)
        .max_by_key(|m| m.fixed_mask.count_ones())
}

fn no_mode(info: &'static FormInfo, word: u128) -> Illegal {
    let mask = info.modes.iter().fold(0, |mask, m| mask | m.fixed_mask);
    let fields: Vec<String> = info
        .fields
        .iter()
        .filter(|f| f.mask() & mask != 0)
        .map(|f| format!("{}={}", f.name, value_text(&f.ty, f.get(word))))
        .collect();
    Illegal::NoMode {
        form: info.name,
        fields: fields.join(" and "),
    }
}

/// A field's value as messages write it: the member's name or the number.
pub fn value_text(ty: &FieldType, value: u64) -> String {
    match ty {
        FieldType::Enum(e) => e
            .name_of(value)
            .map_or_else(|| value.to_string(), str::to_string),
        FieldType::Register(class) if value == u64::from(class.hardwired()) => {
            class.hardwired_name().to_string()
        }
        FieldType::Register(class) => format!("{}{value}", class.prefix()),
        _ => value.to_string(),
    }
}

/// All forms, for tools and tests.
pub fn all_forms() -> impl Iterator<Item = Form> {
    (0..FORMS.len()).map(|i| Form::from_index(i).expect("below the number of forms"))
}

#[cfg(test)]
mod tests {
    use crate::isa::generated::{EFFECT_WORDS, FORMS};
    use crate::isa::table::Effects;

    /// [`super::Inst::set_regs`] rests on it.
    #[test]
    fn hard_wired_registers_are_all_ones() {
        for form in FORMS {
            for operand in form.operands {
                let Some(class) = operand.class else { continue };
                let field = &form.fields[operand.field as usize];
                let place = (form.name, operand.name);
                assert_eq!(operand.mask, field.mask(), "{place:?}");
                let number = field.get(operand.mask);
                assert_eq!(number, u64::from(class.hardwired()), "{place:?}");
            }
        }
    }

    /// The generator numbers effects by its own list of words.
    #[test]
    fn effect_words_agree_with_the_generator() {
        let words: Vec<&str> = Effects::NAMES.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, EFFECT_WORDS);
        for (i, (_, effect)) in Effects::NAMES.iter().enumerate() {
            assert_eq!(effect.0, 1 << i);
        }
    }
}
