//! Dot products: sums of products of the bytes of two words, or of the halves of one with bytes of another, which IDP
//! adds up at once.
//!
//! The sum may be in any order with other summands between; its inner sums must have no other users. Factors are bytes
//! of a word, extended by zeros or by their sign however that is said (module `bytes`). All sums are modulo 2^32, as
//! are those of the machine.

use super::Fuser;
use super::word::Byte;
use crate::intrinsics::Lowering;
use crate::isa::generated::{I8Type, I16Type, LOHI};
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};
use smallvec::SmallVec;

/// How many sums are looked at (*assumed*: four products and an accumulator for each of two words).
const SUMS: usize = 9;

/// Most summands beside the products.
const REST: usize = 2;

/// A dot product of two words plus what else is summed.
pub(super) struct Dot {
    pub(super) lowering: Lowering,
    pub(super) factors: [Factor; 2],
    pub(super) rest: SmallVec<[Value; REST]>,
}

/// A word whose parts are factors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Factor {
    pub(super) value: Value,
    pub(super) word: u8,
    signed: bool,
}

impl Factor {
    fn bytes_type(self) -> I8Type {
        match self.signed {
            true => I8Type::S8,
            false => I8Type::U8,
        }
    }

    fn halves_type(self) -> I16Type {
        match self.signed {
            true => I16Type::S16,
            false => I16Type::U16,
        }
    }
}

/// A part of a word as a factor: from which byte on, and how many.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    word: Factor,
    first: u8,
    bytes: u8,
}

/// Whether an operation may give a part of a word, extended.
pub(super) fn may_be_factor(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Band
            | Opcode::Uextend
            | Opcode::Sextend
            | Opcode::Ushr
            | Opcode::Sshr
            | Opcode::Uload8
            | Opcode::Uload16
    )
}

impl Fuser<'_> {
    /// The part of a word that a word is the extension of.
    fn extended_part(&self, value: Value) -> Option<Part> {
        let extends = may_be_factor(self.def_data(value)?.opcode());
        let bytes = extends.then(|| self.bytes_of(value))?;
        let Byte::Of {
            value,
            byte: first,
            sign: false,
        } = bytes[0]
        else {
            return None;
        };
        let own = |i: u8| Byte::Of {
            value,
            byte: first + i,
            sign: false,
        };
        let len = (1..4)
            .take_while(|&i| bytes[usize::from(i)] == own(i))
            .count() as u8
            + 1;
        if len == 4 || (len == 2 && first % 2 == 1) {
            return None;
        }
        let signs = Byte::Of {
            value,
            byte: first + len - 1,
            sign: true,
        };
        let above = &bytes[usize::from(len)..4];
        let signed = match above[0] {
            Byte::Zero => false,
            _ => above[0] == signs,
        };
        let same = above.iter().all(|&byte| byte == above[0]);
        (same && (signed || above[0] == Byte::Zero)).then_some(Part {
            word: Factor {
                value,
                word: first / 4,
                signed,
            },
            first: first % 4,
            bytes: len,
        })
    }

    /// The factors of a product that nobody else reads.
    fn factors(&self, product: Value) -> Option<[Part; 2]> {
        match self.def_data(product)? {
            InstructionData::Binary {
                opcode: Opcode::Imul,
                args: [x, y],
            } if self.is_used_once(product) => {
                Some([self.extended_part(x)?, self.extended_part(y)?])
            }
            _ => None,
        }
    }

    /// The dot product that a sum of words is.
    pub(super) fn dot_product(&self, root: Value) -> Option<Dot> {
        if self.type_of(root) != types::I32 {
            return None;
        }
        let mut work: SmallVec<[Value; 8]> = SmallVec::new();
        let mut rest: SmallVec<[Value; 8]> = SmallVec::new();
        let mut found: SmallVec<[[Part; 2]; 4]> = SmallVec::new();
        work.push(root);
        for _ in 0..2 * SUMS {
            let value = work.pop()?;
            if let Some(parts) = self.factors(value) {
                match joined(&found, parts) {
                    Some(parts) => found.push(parts),
                    None => rest.push(value),
                }
                if let Some((lowering, factors)) = complete(&found) {
                    rest.extend(work);
                    return (rest.len() <= REST).then(|| Dot {
                        lowering,
                        factors,
                        rest: rest.into_iter().collect(),
                    });
                }
                continue;
            }
            match self.def_data(value) {
                Some(InstructionData::Binary {
                    opcode: Opcode::Iadd,
                    args,
                }) if value == root || self.is_used_once(value) => {
                    work.extend(args);
                }
                _ => rest.push(value),
            }
        }
        None
    }
}

/// The parts of a further product in the order of those before, if they are other parts of the same words.
fn joined(found: &[[Part; 2]], [x, y]: [Part; 2]) -> Option<[Part; 2]> {
    let fits = |[a, b]: [Part; 2]| match found.first() {
        // A half comes first.
        None => {
            (a.bytes == 2 && b.bytes == 1) || (a.bytes == 1 && b.bytes == 1 && a.first == b.first)
        }
        Some([first, second]) => {
            let same = a.word == first.word
                && b.word == second.word
                && a.bytes == first.bytes
                && b.bytes == second.bytes;
            let new = found.iter().all(|[other, _]| other.first != a.first);
            let step = match a.bytes {
                2 => {
                    i16::from(a.first) / 2 - i16::from(first.first) / 2
                        == i16::from(b.first) - i16::from(second.first)
                }
                _ => a.first == b.first,
            };
            same && new && step
        }
    };
    [[x, y], [y, x]].into_iter().find(|&parts| fits(parts))
}

/// The operation and the words of a complete dot product; halves go with the two lower or the two higher bytes.
fn complete(found: &[[Part; 2]]) -> Option<(Lowering, [Factor; 2])> {
    let [a, b] = found.first()?.map(|part| part.word);
    let lowering = match found {
        [[first, _], ..] if first.bytes == 1 => {
            (found.len() == 4).then_some(Lowering::Dp4a(a.bytes_type(), b.bytes_type()))?
        }
        [[x, y], _] => {
            // The byte of the lower half.
            let half = match y.first.checked_sub(x.first / 2)? {
                0 => LOHI::Lo,
                2 => LOHI::Hi,
                _ => return None,
            };
            Lowering::Dp2a(half, a.halves_type(), b.bytes_type())
        }
        _ => return None,
    };
    Some((lowering, [a, b]))
}
