//! Wide immediates as constant operands.
//!
//! An instruction has room for 32 bits of an immediate. A number of two words that does not fit there costs two moves
//! in registers and nothing as a constant operand, so it goes to the function's constants, each number once, if a form
//! has a place for it. The word says where it stands among the function's own; linking adds where these are.

use super::candidate::Candidate;
use super::choice::places_to_change;
use super::fold::fold;
use super::mode::{Mode, Source};
use crate::abi::CONSTANT_BANK;
use crate::emit::Constants;
use crate::emit::constants::CONSTANTS;
use crate::isa::operand::Constant;
use crate::isa::table::FieldType;
use crate::isa::{Inst, VReg};
use crate::lower::source::{Base, Src};
use crate::lower::state::Lower;
use crate::vcode::{SymbolKind, SymbolUse};
use hashbrown::HashMap;

/// The wide numbers among the constants of a function.
pub(in crate::lower) struct Pool<'a> {
    /// All constants of the function.
    pub constants: &'a mut Constants,
    /// Byte offsets by number.
    pub places: &'a mut HashMap<u64, u32>,
}

impl Pool<'_> {
    /// Whether a number is there, or has room.
    fn takes(&mut self, bits: u64) -> bool {
        self.places.contains_key(&bits) || self.constants.has_room_for_number()
    }

    /// The byte offset of a number, which is added if it is new; none if there is no room.
    fn place(&mut self, bits: u64) -> Option<u32> {
        if let Some(&place) = self.places.get(&bits) {
            return Some(place);
        }
        let place = self.constants.add_number(bits)?;
        self.places.insert(bits, place);
        Some(place)
    }
}

impl Lower<'_> {
    /// Makes a source of two words one that may be read from constant memory: an immediate that no form takes there,
    /// if a form takes constants.
    pub(super) fn offer_pool(&mut self, mode: &'static Mode, index: usize, src: &mut Src) {
        let Base::Imm(bits) = src.base else { return };
        let other = match places_to_change(mode) {
            Some((a, b)) if index == a => Some(b),
            Some((a, b)) if index == b => Some(a),
            _ => None,
        };
        let mut takes_constants = false;
        for place in [Some(index), other].into_iter().flatten() {
            for candidate in mode.candidates {
                match takes(candidate, place, src) {
                    Takes::Immediate => return,
                    Takes::Constant => takes_constants = true,
                    Takes::Other => {}
                }
            }
        }
        if bits != 0 && takes_constants && self.pool.takes(bits as u64) {
            src.base = Base::Pooled(bits as u64);
        }
    }

    /// Puts the place of a number from the pool into the operand that reads it, and says what linking has to do.
    pub(super) fn place_pooled(
        &mut self,
        inst: &mut Inst<VReg>,
        candidate: &Candidate,
        sources: &[Source],
    ) -> Option<SymbolUse> {
        let mut operands = sources.iter().zip(&candidate.operands);
        let (bits, operand) = operands.find_map(|(source, operand)| match (source, operand) {
            (Source::Value(src), Some(operand)) if operand.class.is_none() => match src.base {
                Base::Pooled(bits) => Some((bits, operand)),
                _ => None,
            },
            _ => None,
        })?;
        let place = self.pool.place(bits)?;
        let bank = u64::from(CONSTANT_BANK) << Constant::OFFSET_BITS;
        inst.set_field(operand.field, bank | u64::from(place));
        Some(SymbolUse {
            role: operand.role,
            kind: SymbolKind::Constant,
            name: CONSTANTS.to_owned(),
            addend: place.into(),
        })
    }
}

/// What an operand of a form takes of a wide immediate.
enum Takes {
    /// The immediate itself.
    Immediate,
    /// Its place in constant memory.
    Constant,
    /// Neither.
    Other,
}

fn takes(candidate: &Candidate, index: usize, src: &Src) -> Takes {
    let Some(operand) = candidate.operands[index] else {
        return Takes::Other;
    };
    let field = &candidate.form.info().fields[operand.field as usize];
    match (operand.class, field.ty) {
        (None, FieldType::ConstantMemory) if operand.modifiers.contain(src.modifiers()) => {
            Takes::Constant
        }
        (None, _) if fold(field, src).is_some() => Takes::Immediate,
        _ => Takes::Other,
    }
}
