//! Shapes over words: extension, shifts of 64 bits, logic trees, extended products.

use super::Lower;
use super::context::generated_code::{Factor, Product};
use super::integer::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{PSrc, Regs, Src, words_of_bits};
use crate::isa::VReg;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, Value, types};
use smallvec::SmallVec;

/// Most leaves of a tree of bitwise operations that one LOP3 takes.
const LEAVES: usize = 3;

impl Lower<'_> {
    /// `uextend` and `sextend` to any width.
    pub(super) fn extend(&mut self, ty: Type, value: Value, signed: bool) -> Regs {
        let src = if signed {
            self.sign_extended(value)
        } else {
            self.zero_extended(value)
        };
        let low = self.gpr(src);
        let words = words_of_bits(ty.bits());
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::from_slice(low.as_slice());
        if words > regs.len() {
            let fill = if signed {
                self.sign_word(Src::reg(low.word(low.len() - 1)))
            } else {
                self.gpr(Src::ZERO).word(0)
            };
            regs.resize(words, fill);
        }
        Regs::new(&regs)
    }

    /// `value` as the product of two extended words.
    pub(super) fn product_of(&self, value: Value) -> Option<Product> {
        if self.type_of(value) != types::I64 {
            return None;
        }
        match self.def_data(value)? {
            InstructionData::Unary {
                opcode: opcode @ (Opcode::Uextend | Opcode::Sextend),
                arg,
            } => Some(Product {
                signed: opcode == Opcode::Sextend,
                a: arg,
                b: Factor::Constant(1),
            }),
            InstructionData::Binary {
                opcode: Opcode::Imul,
                args: [x, y],
            } => {
                let (signed, a) = self.extended_word(x)?;
                match self.extended_word(y) {
                    Some((s, b)) if s == signed => Some(Product {
                        signed,
                        a,
                        b: Factor::Value(b),
                    }),
                    _ => self
                        .constant_factor(signed, y)
                        .map(|b| Product { signed, a, b }),
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Ishl,
                args: [x, n],
            } => {
                let (signed, a) = self.extended_word(x)?;
                let n = self.constant_of(n)? & 63;
                // A signed product needs the factor below 2^31.
                (n < if signed { 31 } else { 32 }).then(|| Product {
                    signed,
                    a,
                    b: Factor::Constant(1 << n),
                })
            }
            _ => None,
        }
    }

    fn extended_word(&self, value: Value) -> Option<(bool, Value)> {
        match self.def_data(value)? {
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => Some((false, arg)),
            InstructionData::Unary {
                opcode: Opcode::Sextend,
                arg,
            } => Some((true, arg)),
            _ => None,
        }
    }

    fn constant_factor(&self, signed: bool, value: Value) -> Option<Factor> {
        let c = i64::try_from(self.signed_constant_of(value)?).ok()?;
        let fits = if signed {
            i32::try_from(c).is_ok()
        } else {
            u32::try_from(c).is_ok()
        };
        fits.then_some(Factor::Constant(c as u32))
    }

    /// A tree of `band`, `bor`, `bxor`, `bnot` with up to three leaves as one truth table, on every word.
    pub(super) fn logic_of(&mut self, inst: Inst) -> Regs {
        let value = self.func.dfg.first_result(inst);
        let mut leaves: SmallVec<[Value; 3]> = SmallVec::new();
        let table = self
            .collect(value, true, &mut leaves)
            .expect("an operation of two or three operands fits");
        let sources: SmallVec<[Src; 3]> = leaves.iter().map(|&v| self.src(v)).collect();
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for word in 0..self.words_of(value) as u8 {
            let leaf = |i: usize| sources.get(i).map_or(Src::ZERO, |s| s.slice(word, 1));
            regs.push(self.logic3(leaf(0), leaf(1), leaf(2), table));
        }
        Regs::new(&regs)
    }

    /// Whether a one-word tree of bitwise operations is not zero: the predicate of its LOP3. None when `value` is no such tree.
    pub(super) fn logic_test(&mut self, value: Value) -> Option<PSrc> {
        if self.type_of(value) != types::I32
            || !matches!(
                self.def_data(value),
                Some(InstructionData::Binary {
                    opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                    ..
                })
            )
        {
            return None;
        }
        let mut leaves: SmallVec<[Value; 3]> = SmallVec::new();
        let table = self.collect(value, true, &mut leaves)?;
        let leaf = |i: usize| leaves.get(i).map_or(Src::ZERO, |&v| self.src(v));
        let (a, b, c) = (leaf(0), leaf(1), leaf(2));
        Some(self.logic3_test(a, b, c, table))
    }

    /// The truth table of `value` over `leaves`, which it extends; none when a fourth leaf would be needed.
    fn collect(&self, value: Value, root: bool, leaves: &mut SmallVec<[Value; 3]>) -> Option<u8> {
        let fold = root || (self.is_used_once(value) && !self.is_truth(value));
        if fold && let Some(data) = self.def_data(value) {
            let before = leaves.len();
            let table = match data {
                InstructionData::Binary {
                    opcode,
                    args: [x, y],
                } => {
                    let combine: Option<fn(u8, u8) -> u8> = match opcode {
                        Opcode::Band => Some(|a, b| a & b),
                        Opcode::Bor => Some(|a, b| a | b),
                        Opcode::Bxor => Some(|a, b| a ^ b),
                        _ => None,
                    };
                    match combine {
                        Some(f) => self.collect_both(x, y, leaves).map(|(a, b)| f(a, b)),
                        None => None,
                    }
                }
                InstructionData::Unary {
                    opcode: Opcode::Bnot,
                    arg,
                } => self.collect(arg, false, leaves).map(|t| !t),
                InstructionData::Ternary {
                    opcode: Opcode::Bitselect,
                    args: [c, x, y],
                } => self.collect_select(c, x, y, leaves),
                _ => None,
            };
            if table.is_some() {
                return table;
            }
            leaves.truncate(before);
        }
        let index = match leaves.iter().position(|&l| l == value) {
            Some(index) => index,
            None if leaves.len() < LEAVES => {
                leaves.push(value);
                leaves.len() - 1
            }
            None => return None,
        };
        Some([TABLE_A, TABLE_B, TABLE_C][index])
    }

    /// Both operands of a binary operation: the first folded as far as it leaves a place for the second.
    fn collect_both(
        &self,
        x: Value,
        y: Value,
        leaves: &mut SmallVec<[Value; 3]>,
    ) -> Option<(u8, u8)> {
        let before = leaves.clone();
        if let Some(a) = self.collect(x, false, leaves)
            && let Some(b) = self.collect(y, false, leaves)
        {
            return Some((a, b));
        }
        *leaves = before.clone();
        if let Some(a) = self.leaf(x, leaves)
            && let Some(b) = self.collect(y, false, leaves)
        {
            return Some((a, b));
        }
        *leaves = before;
        Some((self.leaf(x, leaves)?, self.leaf(y, leaves)?))
    }

    fn collect_select(
        &self,
        c: Value,
        x: Value,
        y: Value,
        leaves: &mut SmallVec<[Value; 3]>,
    ) -> Option<u8> {
        let (c, x, y) = (
            self.leaf(c, leaves)?,
            self.leaf(x, leaves)?,
            self.leaf(y, leaves)?,
        );
        Some((c & x) | (!c & y))
    }

    fn leaf(&self, value: Value, leaves: &mut SmallVec<[Value; 3]>) -> Option<u8> {
        let index = match leaves.iter().position(|&l| l == value) {
            Some(index) => index,
            None if leaves.len() < LEAVES => {
                leaves.push(value);
                leaves.len() - 1
            }
            None => return None,
        };
        Some([TABLE_A, TABLE_B, TABLE_C][index])
    }
}
