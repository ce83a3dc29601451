//! What a person asks for by name: registers, and values of the source.

use crate::abi::STACK_POINTER;
use crate::launch::Image;
use crate::sim::warp::Warp;
use crate::sim::warp::registers::{GENERAL, PT, URZ};
use crate::values::{Location, Place, SourceValue};

/// A register, or a value of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A general register.
    Register(u8),
    /// Two general registers, as 64 bits.
    Pair(u8),
    /// A predicate, as 0 or 1.
    Predicate(u8),
    /// A uniform register.
    Uniform(u8),
    /// A value of the source in the function that the thread is in.
    Source(SourceValue),
}

/// Whom and what somebody looks at.
pub(super) struct Look<'a> {
    pub(super) image: &'a Image,
    /// The launch's constant bank.
    pub(super) bank: &'a [u8],
    pub(super) warp: &'a Warp,
    /// The code address of the next instruction.
    pub(super) pc: u32,
}

impl Operand {
    /// General registers: below this number.
    pub const REGISTERS: u8 = GENERAL as u8;
    /// Predicates that can be false.
    pub const PREDICATES: u8 = PT as u8;
    /// Uniform registers that are not hard-wired.
    pub const UNIFORM: u8 = URZ as u8;

    /// Its value in a lane; none if there is no such register, or the value is nowhere.
    pub(super) fn value(self, look: &Look<'_>, lane: usize) -> Option<u128> {
        let word = |place| look.word(place, lane).map(u128::from);
        match self {
            Operand::Register(number) => word(Place::Register(number)),
            Operand::Pair(number) => {
                let high = word(Place::Register(number.checked_add(1)?))?;
                Some(word(Place::Register(number))? | high << u32::BITS)
            }
            Operand::Predicate(number) => word(Place::Predicate(number, false)),
            Operand::Uniform(number) => word(Place::Uniform(number)),
            Operand::Source(value) => look.source(value, lane),
        }
    }
}

impl Look<'_> {
    /// The 32 bits, or the truth, of a place.
    fn word(&self, place: Place, lane: usize) -> Option<u32> {
        let registers = &self.warp.registers;
        match place {
            Place::Register(number) => {
                let exists = usize::from(number) < GENERAL;
                exists.then(|| registers.column(number.into())[lane])
            }
            Place::Uniform(number) => registers.uniform.get(usize::from(number)).copied(),
            Place::Predicate(number, opposite) => {
                let holds = registers.predicates.get(usize::from(number))? >> lane & 1 != 0;
                Some(u32::from(holds != opposite))
            }
            Place::Frame(offset) => {
                let frame = registers.column(STACK_POINTER.number().into())[lane];
                let address = u64::from(frame) + u64::from(offset);
                let fits = address + 4 <= u64::from(self.warp.local.size());
                fits.then(|| self.warp.local.load(lane, address as usize, 4) as u32)
            }
            Place::Launch(offset) => {
                let bytes = self.bank.get(offset as usize..)?.first_chunk()?;
                Some(u32::from_le_bytes(*bytes))
            }
            Place::Constant(word) => Some(word),
        }
    }

    /// A value of the source, in as many bits as its type has.
    fn source(&self, value: SourceValue, lane: usize) -> Option<u128> {
        let function = self.image.function_at(self.pc)?;
        let index = function
            .values
            .binary_search_by_key(&value, |v| v.source)
            .ok()?;
        let found = &function.values[index];
        let Location { places, addend } = found.at(self.pc - function.address)?;
        let mut bits = 0;
        for (word, &place) in places.iter().take(4).enumerate() {
            bits |= u128::from(self.word(place, lane)?) << (32 * word);
        }
        let bits = bits.wrapping_add_signed((*addend).into());
        let width = found.clif_type()?.bits();
        Some(match width {
            0..128 => bits & ((1 << width) - 1),
            _ => bits,
        })
    }
}

/// How a condition compares, without signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
}

/// What has to hold in a lane for a breakpoint to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is compared. What is nowhere never holds.
    pub operand: Operand,
    /// How.
    pub comparison: Comparison,
    /// With what.
    pub value: u64,
}

impl Condition {
    pub(super) fn holds(self, look: &Look<'_>, lane: usize) -> bool {
        let Some(value) = self.operand.value(look, lane) else {
            return false;
        };
        let other = self.value.into();
        match self.comparison {
            Comparison::Equal => value == other,
            Comparison::NotEqual => value != other,
            Comparison::Less => value < other,
            Comparison::Greater => value > other,
        }
    }
}
