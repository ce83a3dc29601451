//! Products of values that are extended to 64 bits, which one IMAD.WIDE computes; recognised, not emitted.

use super::rules::Product;
use super::state::Lower;
use crate::isa::generated::IType;
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};

impl Lower<'_> {
    /// The word that a value extends, and how.
    pub(super) fn extended_word(&self, value: Value) -> Option<(IType, Value)> {
        match self.def_data(value)? {
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => Some((IType::U32, arg)),
            InstructionData::Unary {
                opcode: Opcode::Sextend,
                arg,
            } => Some((IType::S32, arg)),
            _ => None,
        }
    }

    /// The word whose extension is the constant `value`.
    pub(super) fn factor_of(&self, itype: IType, value: Value) -> Option<u32> {
        let c = i64::try_from(self.signed_constant_of(value)?).ok()?;
        let fits = match itype {
            IType::S32 => i32::try_from(c).is_ok(),
            IType::U32 => u32::try_from(c).is_ok(),
        };
        fits.then_some(c as u32)
    }
}

/// Products that IMAD.WIDE computes.
impl Lower<'_> {
    /// `value` as a product of extended values: a multiplication, a shift by a constant, or an extension itself.
    pub(super) fn extended_product(&mut self, value: Value) -> Option<Product> {
        if self.type_of(value) != types::I64 {
            return None;
        }
        if let Some((itype, a)) = self.extended_word(value) {
            return Some(Product::Scaled { itype, a, by: 1 });
        }
        match self.def_data(value)? {
            InstructionData::Binary {
                opcode: Opcode::Imul,
                args: [x, y],
            } => {
                let (itype, a) = self.extended_word(x)?;
                match self.extended_word(y) {
                    Some((other, b)) if other == itype => Some(Product::Values { itype, a, b }),
                    _ => self
                        .factor_of(itype, y)
                        .map(|by| Product::Scaled { itype, a, by }),
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Ishl,
                args: [x, n],
            } => {
                let (itype, a) = self.extended_word(x)?;
                let n = self.constant_of(n)? & 63;
                // A signed product needs the factor below 2^31.
                let limit = match itype {
                    IType::S32 => 31,
                    IType::U32 => 32,
                };
                (n < limit).then(|| Product::Scaled {
                    itype,
                    a,
                    by: 1 << n,
                })
            }
            _ => None,
        }
    }
}
