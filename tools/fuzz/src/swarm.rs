//! What a program leaves out: a random half of the operations and of the forms of control.
//!
//! A program of everything has little of each thing, and what is frequent hides what is rare behind it: a load that is
//! never far from a store, a comparison that always goes to a `select`. Programs that each leave out another half have
//! more of the rest, and all halves come up (Groce et al., *Swarm testing*, 2012). One program in eight leaves nothing
//! out, since some mistakes need everything.

use crate::operation::{Operand, Operation};
use crate::random::Random;
use cranelift_codegen::ir::{Opcode, Type};

/// A form that a function may be made of, besides operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Branches that meet again.
    Diamond,
    /// Loops.
    Repetition,
    /// Jump tables.
    Switch,
    /// Returns inside of a form.
    EarlyReturn,
    /// Calls of other functions, also in tail position.
    Call,
    /// Calls of itself.
    Recursion,
    /// So many values at once that registers run out.
    ManyValues,
    /// Addresses in slots that an index computes.
    Indices,
    /// Slots, and accesses to them.
    Memory,
    /// Calls through addresses.
    Addresses,
    /// Floats.
    Floats,
    /// Vectors.
    Vectors,
    /// Slots that are variables: each of one type, wherever it is accessed.
    Variables,
    /// Accesses beside and over each other.
    Bursts,
    /// Calls that pass on what the one before has returned.
    Chains,
    /// Calls of one of several functions, chosen by control.
    Choices,
    /// Values that loops carry, in other places, and sums and products of them.
    Carried,
    /// What is computed in a loop and used behind it.
    Escapes,
    /// Comparisons that control passes on.
    Truths,
    /// Several bitwise operations on each other.
    Logic,
    /// Numbers limited to the range of a narrower type, and vectors made of them.
    Limited,
    /// Floats beside the limits of integers.
    Limits,
    /// Jump tables that about fill the constant bank.
    LargeTables,
}

/// Words of bits for opcodes, which have one byte.
const WORDS: usize = 4;

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swarm {
    operations: [u64; WORDS],
    forms: u64,
}

impl Swarm {
    /// Nothing is left out.
    pub const WHOLE: Swarm = Swarm {
        operations: [0; WORDS],
        forms: 0,
    };

    /// A random half. Of a tape it takes nine bytes, however many operations there are.
    pub fn drawn(random: &mut Random) -> Swarm {
        let whole = random.once_in(8);
        let mut bits = Random::new(random.bits());
        if whole {
            return Swarm::WHOLE;
        }
        Swarm {
            operations: [(); WORDS].map(|()| bits.bits()),
            forms: bits.bits(),
        }
    }

    /// The same without some forms.
    pub fn without(mut self, forms: &[Form]) -> Swarm {
        for form in forms {
            self.forms |= 1 << *form as u64;
        }
        self
    }

    /// Whether an operation may be written.
    pub fn has(&self, operation: &Operation) -> bool {
        let accesses = || operation.operands().contains(&Operand::Address);
        self.has_opcode(operation.opcode) && (self.has_form(Form::Memory) || !accesses())
    }

    fn has_opcode(&self, opcode: Opcode) -> bool {
        let bit = opcode as usize;
        self.operations[bit / 64] >> (bit % 64) & 1 == 0
    }

    /// Whether values may have a type.
    pub fn has_type(&self, ty: Type) -> bool {
        (self.has_form(Form::Floats) || !ty.lane_type().is_float())
            && (self.has_form(Form::Vectors) || !ty.is_vector())
    }

    /// Whether a form may be written.
    pub fn has_form(&self, form: Form) -> bool {
        self.forms >> form as u64 & 1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_left_out_by_a_half_and_each_pair_meets() {
        let swarms: Vec<Swarm> = (0..400)
            .map(|seed| Swarm::drawn(&mut Random::new(seed)))
            .collect();
        for opcode in Opcode::all() {
            let with = swarms
                .iter()
                .filter(|swarm| swarm.has_opcode(*opcode))
                .count();
            assert!((170..280).contains(&with), "{opcode}: {with} of 400");
        }
        let (one, other) = (Opcode::Iadd, Opcode::Load);
        for wanted in [(false, false), (false, true), (true, false), (true, true)] {
            let found = |swarm: &&Swarm| (swarm.has_opcode(one), swarm.has_opcode(other)) == wanted;
            assert!(swarms.iter().filter(found).count() > 60, "{wanted:?}");
        }
        let whole = swarms.iter().filter(|swarm| **swarm == Swarm::WHOLE);
        assert!((20..90).contains(&whole.count()));
    }

    #[test]
    fn a_swarm_takes_nine_bytes_of_a_tape() {
        let mut random = Random::of_bytes(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 42]);
        assert_ne!(Swarm::drawn(&mut random), Swarm::WHOLE);
        assert_eq!(random.below(256), 42);
    }
}
