//! What a function has in it, found in one look at its instructions.
//!
//! Most steps of the preparation rewrite operations that few functions have. Each asks here first, so that the common function is not walked
//! once for every step. Takes any function; what is said holds until the function changes.

use cranelift_codegen::ir::{Function, Opcode, Type, Value};

/// The opcodes and types that occur in the layout of a function.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// A bit for each opcode, by its number.
    opcodes: [u64; 4],
    types: Types,
    /// How many values they are.
    values: usize,
    /// The type looked at last: the next value mostly has it, too.
    last: Type,
}

/// The types of all results and block parameters, and so of all operands.
#[derive(Clone, Copy, Debug, Default)]
struct Types {
    vectors: bool,
    short_integer_vectors: bool,
    /// Integers of 128 bits.
    wide: bool,
}

impl Contents {
    /// Looks at the whole function.
    pub fn of(func: &Function) -> Self {
        let mut found = Self::default();
        for block in func.layout.blocks() {
            found.add_types(func, func.dfg.block_params(block));
            for inst in func.layout.block_insts(block) {
                let number = func.dfg.insts[inst].opcode() as u8;
                found.opcodes[usize::from(number / 64)] |= 1 << (number % 64);
                found.add_types(func, func.dfg.inst_results(inst));
            }
        }
        found
    }

    fn add_types(&mut self, func: &Function, values: &[Value]) {
        self.values += values.len();
        for &value in values {
            let ty = func.dfg.value_type(value);
            if std::mem::replace(&mut self.last, ty) == ty {
                continue;
            }
            if ty.is_vector() {
                self.types.vectors = true;
                self.types.short_integer_vectors |= ty.lane_type().is_int() && ty.bits() != 128;
            } else {
                self.types.wide |= ty.is_int() && ty.bits() == 128;
            }
        }
    }

    /// Whether any of these operations occurs.
    pub fn has(&self, opcodes: &[Opcode]) -> bool {
        opcodes.iter().any(|&opcode| {
            let number = opcode as u8;
            self.opcodes[usize::from(number / 64)] & 1 << (number % 64) != 0
        })
    }

    /// Number of results and block parameters.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Whether a value is a vector.
    pub fn has_vectors(&self) -> bool {
        self.types.vectors
    }

    /// Whether a value is a vector of integers that has not 128 bits.
    pub fn has_short_integer_vectors(&self) -> bool {
        self.types.short_integer_vectors
    }

    /// Whether a value is an i128.
    pub fn has_wide_integers(&self) -> bool {
        self.types.wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> Contents {
        let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        Contents::of(&func)
    }

    #[test]
    fn opcodes_of_all_blocks_are_found() {
        let found = contents(
            "function %f(i32, i16x8) -> i32 {
            block0(v0: i32, v1: i16x8):
                v2 = iadd v0, v0
                jump block1
            block1:
                v3 = x86_pmulhrsw v1, v1
                return v2
            block2:
                trap user1
            }",
        );
        for opcode in [
            Opcode::Iadd,
            Opcode::Jump,
            Opcode::Return,
            Opcode::Trap,
            Opcode::X86Pmulhrsw,
        ] {
            assert!(found.has(&[Opcode::Isub, opcode]), "{opcode}");
        }
        assert!(!found.has(&[Opcode::Isub, Opcode::Brif, Opcode::Nop]));
    }

    #[test]
    fn types_are_those_of_results_and_parameters() {
        let of = |ty: &str| {
            let found = contents(&format!("function %f({ty}) {{ block0(v0: {ty}): return }}"));
            [
                found.has_vectors(),
                found.has_short_integer_vectors(),
                found.has_wide_integers(),
            ]
        };
        assert_eq!(of("i64"), [false, false, false]);
        assert_eq!(of("i128"), [false, false, true]);
        assert_eq!(of("f128"), [false, false, false]);
        assert_eq!(of("i32x4"), [true, false, false]);
        assert_eq!(of("i16x2"), [true, true, false]);
        assert_eq!(of("f16x2"), [true, false, false]);
        let made = contents(
            "function %f(i16) -> i16 { block0(v0: i16): v1 = splat.i16x4 v0  v2 = extractlane v1, 0  return v2 }",
        );
        assert!(made.has_short_integer_vectors());
    }
}
