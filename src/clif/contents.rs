//! What a function has in it, found in one look at its instructions.
//!
//! Most steps of the preparation rewrite operations that few functions have. Each asks here first, so that the common
//! function is not walked once for every step. Takes any function; what is said holds until the function changes.

use super::mid_end::opaque::lacks_constants;
use cranelift_codegen::ir::{Function, Opcode, Type, Value};
use std::sync::LazyLock;

/// The opcodes and types that occur in the layout of a function.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    opcodes: Opcodes,
    types: Types,
    /// How many values they are.
    values: usize,
    /// The type looked at last: the next value mostly has it, too.
    last: Type,
}

/// A set of opcodes: a bit for each, by its number.
#[derive(Clone, Copy, Debug, Default)]
struct Opcodes([u64; 4]);

impl Opcodes {
    fn insert(&mut self, opcode: Opcode) {
        let number = opcode as u8;
        self.0[usize::from(number / 64)] |= 1 << (number % 64);
    }

    fn contains(&self, opcode: Opcode) -> bool {
        let number = opcode as u8;
        self.0[usize::from(number / 64)] & 1 << (number % 64) != 0
    }

    fn intersects(&self, other: &Opcodes) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

/// The operations that may read or write memory, calls included.
static ACCESSES: LazyLock<Opcodes> = LazyLock::new(|| {
    let mut accesses = Opcodes::default();
    let reaches = |opcode: &&Opcode| opcode.can_load() || opcode.can_store() || opcode.is_call();
    (Opcode::all().iter().filter(reaches)).for_each(|&opcode| accesses.insert(opcode));
    accesses
});

/// The types of all results and block parameters, and so of all operands.
#[derive(Clone, Copy, Debug, Default)]
struct Types {
    vectors: bool,
    /// Some of which the mid-end's rules cannot make constants.
    without_constants: bool,
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
                found.opcodes.insert(func.dfg.insts[inst].opcode());
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
            self.types.without_constants |= lacks_constants(ty);
            if ty.is_vector() {
                self.types.vectors = true;
            } else {
                self.types.wide |= ty.is_int() && ty.bits() == 128;
            }
        }
    }

    /// Whether any of these operations occurs.
    pub fn has(&self, opcodes: &[Opcode]) -> bool {
        (opcodes.iter()).any(|&opcode| self.opcodes.contains(opcode))
    }

    /// Whether anything may read or write memory: nothing else asks where addresses point.
    pub fn has_accesses(&self) -> bool {
        self.opcodes.intersects(&ACCESSES)
    }

    /// Number of results and block parameters.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Whether a value is a vector.
    pub fn has_vectors(&self) -> bool {
        self.types.vectors
    }

    /// Whether a value is of a type of which the mid-end's rules cannot make constants.
    pub fn has_types_without_constants(&self) -> bool {
        self.types.without_constants
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
        assert!(!found.has_accesses());
        for access in [
            "v1 = load.i32 v0",
            "store v0, v0",
            "v1 = atomic_load.i32 v0",
        ] {
            let found = contents(&format!(
                "function %f(i64) {{ block0(v0: i64): {access}  return }}"
            ));
            assert!(found.has_accesses(), "{access}");
        }
    }

    #[test]
    fn types_are_those_of_results_and_parameters() {
        let of = |ty: &str| {
            let found = contents(&format!("function %f({ty}) {{ block0(v0: {ty}): return }}"));
            [
                found.has_vectors(),
                found.has_types_without_constants(),
                found.has_wide_integers(),
            ]
        };
        assert_eq!(of("i64"), [false, false, false]);
        assert_eq!(of("i128"), [false, false, true]);
        assert_eq!(of("f128"), [false, true, false]);
        assert_eq!(of("i32x4"), [true, false, false]);
        assert_eq!(of("i16x2"), [true, true, false]);
        assert_eq!(of("f16x2"), [true, false, false]);
        let made = contents(
            "function %f(i16) -> i16 { block0(v0: i16): v1 = splat.i16x4 v0  v2 = extractlane v1, 0  return v2 }",
        );
        assert!(made.has_types_without_constants());
    }
}
