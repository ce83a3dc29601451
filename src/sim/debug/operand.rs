//! What a person asks for by name: registers, values of the source, and variables.

use super::data::{Number, Path};
use crate::abi::{LOCAL_WINDOW, STACK_POINTER};
use crate::launch::{Image, Window};
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::global::Table;
use crate::sim::memory::in_window;
use crate::sim::warp::Warp;
use crate::sim::warp::calls::Kept;
use crate::sim::warp::registers::{GENERAL, PT, URZ};
use crate::values::{Location, Place, SourceValue, ValueLocations};
use cranelift_codegen::ir::types;

/// A register, a value of the source, or a variable of it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// A variable, or a part of one, that is a number.
    Variable(Path),
}

/// Whom and what somebody looks at.
pub(super) struct Look<'a> {
    pub(super) image: &'a Image,
    /// The symbol of the kernel that runs.
    pub(super) kernel: &'a str,
    /// The launch's constant bank.
    pub(super) bank: &'a [u8],
    pub(super) warp: &'a Warp,
    pub(super) global: &'a Table,
    /// Shared memory of the block.
    pub(super) shared: &'a Bytes,
    /// The code address of the next instruction, or of a call that the lane is in.
    pub(super) pc: u32,
    /// Of a call, what it finds again in registers.
    pub(super) kept: Option<&'a Kept>,
}

impl Operand {
    /// General registers: below this number.
    pub const REGISTERS: u8 = GENERAL as u8;
    /// Predicates that can be false.
    pub const PREDICATES: u8 = PT as u8;
    /// Uniform registers that are not hard-wired.
    pub const UNIFORM: u8 = URZ as u8;

    /// Its value in a lane; none if there is no such register, or the value is nowhere.
    pub(super) fn value(&self, look: &Look<'_>, lane: usize) -> Option<u128> {
        let word = |place| look.word(place, lane).map(u128::from);
        match *self {
            Operand::Register(number) => word(Place::Register(number)),
            Operand::Pair(number) => {
                let high = word(Place::Register(number.checked_add(1)?))?;
                Some(word(Place::Register(number))? | high << u32::BITS)
            }
            Operand::Predicate(number) => word(Place::Predicate(number, false)),
            Operand::Uniform(number) => word(Place::Uniform(number)),
            Operand::Source(value) => look.source(value, lane),
            Operand::Variable(ref path) => path.resolve(look, 0, lane).ok()?.scalar(look, lane),
        }
    }

    /// The number that it is in a lane, to be compared with another. A variable and a float of CLIF are what their
    /// types say. CLIF's integers have a sign beside a negative number; registers, which have no type, also are floats
    /// beside one.
    fn number(&self, look: &Look<'_>, lane: usize, beside: Number) -> Option<Number> {
        if let Operand::Variable(path) = self {
            return path.resolve(look, 0, lane).ok()?.number(look, lane);
        }
        let bits = self.value(look, lane)?;
        let is_float = matches!(beside, Number::Double(_));
        let ty = match self {
            Operand::Source(value) => look.values(*value)?.ty,
            Operand::Pair(_) if is_float => types::F64,
            Operand::Pair(_) => types::I64,
            Operand::Predicate(_) => types::I8,
            Operand::Register(_) | Operand::Uniform(_) if is_float => types::F32,
            Operand::Register(_) | Operand::Uniform(_) | Operand::Variable(_) => types::I32,
        };
        Some(match ty {
            types::F16 => Number::Half(half::f16::from_bits(bits as u16)),
            types::F32 => Number::Single(f32::from_bits(bits as u32)),
            types::F64 => Number::Double(f64::from_bits(bits as u64)),
            _ if matches!(beside, Number::Integer(..0)) => Number::signed(bits, ty.bits()),
            _ => Number::unsigned(bits),
        })
    }
}

impl Look<'_> {
    /// The 32 bits, or the truth, of a place; of a caller, only what its callee cannot have overwritten.
    fn word(&self, place: Place, lane: usize) -> Option<u32> {
        let registers = &self.warp.registers;
        match place {
            Place::Register(number) => match self.kept {
                Some(kept) => kept.register(number),
                None => {
                    let exists = usize::from(number) < GENERAL;
                    exists.then(|| registers.column(number.into())[lane])
                }
            },
            Place::Uniform(_) | Place::Predicate(..) if self.kept.is_some() => None,
            Place::Uniform(number) => registers.uniform.get(usize::from(number)).copied(),
            Place::Predicate(number, opposite) => {
                let holds = registers.predicates.get(usize::from(number))? >> lane & 1 != 0;
                Some(u32::from(holds != opposite))
            }
            Place::Frame(offset) => {
                let frame = self.word(Place::Register(STACK_POINTER.number()), lane)?;
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

    /// The beginning of the lane's frame, as a generic address.
    pub(super) fn frame(&self, lane: usize) -> Option<u64> {
        let frame = self.word(Place::Register(STACK_POINTER.number()), lane)?;
        Some(LOCAL_WINDOW + u64::from(frame))
    }

    /// Whether there are so many bytes of memory at a generic address.
    pub(super) fn has_memory(&self, address: u64, bytes: u64) -> bool {
        let (window, address) = in_window(None, address);
        let ends_within = |size: u64| address.checked_add(bytes).is_some_and(|end| end <= size);
        bytes == 0
            || match window {
                Window::Global => self.global.find(address, bytes).is_some(),
                Window::Shared => ends_within(self.shared.data().len() as u64),
                Window::Local => ends_within(self.warp.local.size().into()),
            }
    }

    /// Bytes of memory at a generic address.
    pub(super) fn memory(&self, address: u64, bytes: usize, lane: usize) -> Option<Vec<u8>> {
        // What is empty may be anywhere.
        if bytes == 0 {
            return Some(Vec::new());
        }
        let (window, address) = in_window(None, address);
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(bytes)?;
        match window {
            Window::Global => {
                let (allocation, offset) = self.global.find(address, bytes as u64)?;
                let mut data = vec![0; bytes];
                self.global.words(allocation).read(offset, &mut data);
                Some(data)
            }
            Window::Shared => self.shared.data().get(start..end).map(<[u8]>::to_vec),
            Window::Local => {
                let is_inside = end as u64 <= u64::from(self.warp.local.size());
                let byte = |offset| self.warp.local.load(lane, offset, 1) as u8;
                is_inside.then(|| (start..end).map(byte).collect())
            }
        }
    }

    /// All that is known of where a value of the source is in the present function.
    fn values(&self, value: SourceValue) -> Option<&ValueLocations> {
        let values = &self.image.function_at(self.pc)?.values;
        let index = values.binary_search_by_key(&value, |v| v.source).ok()?;
        Some(&values[index])
    }

    /// A value of the source, in as many bits as its type has.
    pub(super) fn source(&self, value: SourceValue, lane: usize) -> Option<u128> {
        let function = self.image.function_at(self.pc)?;
        let found = self.values(value)?;
        let Location { places, addend } = found.at(self.pc - function.address)?;
        let mut bits = 0;
        for (word, &place) in places.iter().take(4).enumerate() {
            bits |= u128::from(self.word(place, lane)?) << (32 * word);
        }
        let bits = bits.wrapping_add_signed((*addend).into());
        let width = found.ty.bits();
        Some(match width {
            0..128 => bits & ((1 << width) - 1),
            _ => bits,
        })
    }
}

/// How a condition compares.
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
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
}

/// What has to hold in a lane for a breakpoint to stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// What is compared. What is nowhere never holds.
    pub operand: Operand,
    /// How.
    pub comparison: Comparison,
    /// With what.
    pub value: Number,
}

impl Condition {
    pub(super) fn holds(&self, look: &Look<'_>, lane: usize) -> bool {
        let number = self.operand.number(look, lane, self.value);
        let Some(order) = number.and_then(|number| number.compare(self.value)) else {
            return false;
        };
        match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtMost => order.is_le(),
            Comparison::AtLeast => order.is_ge(),
        }
    }
}
