//! What is passed to a kernel, and whether the kernel may have it: each argument for itself, all of them together, and
//! with the launch.
//!
//! The types of a kernel's parameters say that what one thread writes no other one reaches. What the types cannot see
//! is seen here, before anything runs: that no two parameters reach the same memory if one of them is written, and that
//! the launch has no more dimensions than tell threads apart.

use crate::descriptor::{Access, Class, KernelDescription, Number, Parameter, StaticDescription};
use crate::error::{Error, Mismatch};
use cranelift_thisgpu::driver::argument::Value;
use cranelift_thisgpu::driver::{self, Pod};
use cranelift_thisgpu::{Buffer, Grid};

/// A number by value, or memory.
#[derive(Clone, Debug)]
pub struct Passed {
    value: Value,
    /// None of a number.
    memory: Option<Memory>,
    name: &'static str,
}

/// Memory that is passed.
#[derive(Clone, Debug)]
struct Memory {
    address: u64,
    elements: u64,
    /// Bytes of an element.
    size: u64,
    /// Whether the kernel may write it.
    writable: bool,
    /// Elements along x, y, z, as far as they were said.
    extents: Vec<u32>,
}

/// What a parameter can take: a number, a buffer, or with its rows or planes `(buffer, [width, height])` and
/// `(buffer, [width, height, depth])`.
pub trait Argument {
    /// As it is passed.
    fn pass(self) -> Passed;
}

macro_rules! numbers {
    ($($type:ident)*) => {
        $(
            impl Argument for $type {
                fn pass(self) -> Passed {
                    Passed {
                        value: driver::Argument::value(&self),
                        memory: None,
                        name: stringify!($type),
                    }
                }
            }
        )*
    };
}

numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl Argument for bool {
    fn pass(self) -> Passed {
        Passed {
            name: "bool",
            ..u8::from(self).pass()
        }
    }
}

impl<T: Pod> Argument for &Buffer<T> {
    fn pass(self) -> Passed {
        let mut passed = Passed::memory(self, size_of::<T>() as u64, &[], false);
        passed.name = std::any::type_name::<T>();
        passed
    }
}

impl<T: Pod> Argument for &mut Buffer<T> {
    fn pass(self) -> Passed {
        let mut passed = (&*self).pass();
        passed.memory = passed.memory.map(|memory| Memory {
            writable: true,
            ..memory
        });
        passed
    }
}

impl<B: BufferArgument, const N: usize> Argument for (B, [u32; N]) {
    fn pass(self) -> Passed {
        let mut passed = self.0.pass();
        passed.memory = passed.memory.map(|memory| Memory {
            extents: self.1.to_vec(),
            ..memory
        });
        passed
    }
}

impl Argument for Passed {
    fn pass(self) -> Passed {
        self
    }
}

/// A buffer, to be read or to be written.
pub trait BufferArgument: Argument {}

impl<T: Pod> BufferArgument for &Buffer<T> {}
impl<T: Pod> BufferArgument for &mut Buffer<T> {}

impl Passed {
    /// Memory whose elements have so many bytes, with the extents that its parameter has beside its length.
    pub(crate) fn memory<T: Pod>(
        buffer: &Buffer<T>,
        element: u64,
        extents: &[u32],
        writable: bool,
    ) -> Passed {
        Passed {
            value: driver::Argument::value(buffer),
            memory: Some(Memory {
                writable,
                extents: extents.to_vec(),
                ..Memory::of(buffer, element)
            }),
            name: "bytes",
        }
    }
}

/// A value that has been checked.
pub(crate) struct Ready(Value);

impl driver::Argument for Ready {
    fn value(&self) -> Value {
        self.0.clone()
    }
}

/// The values as a kernel's entry takes them.
///
/// # Errors
/// Too few or too many, others than the parameters take; two that reach the same memory, one of them to write it; a
/// launch with more dimensions than tell apart who has which part.
pub(crate) fn values(
    kernel: &KernelDescription,
    statics: &[(&StaticDescription, &Buffer)],
    grid: Grid,
    given: &[Passed],
) -> Result<Vec<Ready>, Error> {
    if kernel.parameters.len() != given.len() {
        let names = kernel.parameters.iter().map(|of| of.name.as_str());
        return Err(Error::ArgumentCount {
            kernel: kernel.name.clone(),
            expected: kernel.parameters.len(),
            names: names.collect::<Vec<_>>().join(", "),
            given: given.len(),
        });
    }
    let mut values = Vec::new();
    for (parameter, passed) in kernel.parameters.iter().zip(given) {
        let wrong = |mismatch| Error::Argument {
            kernel: kernel.name.clone(),
            parameter: parameter.name.clone(),
            mismatch,
        };
        check(parameter, passed).map_err(wrong)?;
        if parameter.access == Access::Write {
            check_grid(parameter, grid).map_err(wrong)?;
        }
        values.push(Ready(passed.value.clone()));
        let Some(memory) = &passed.memory else {
            continue;
        };
        // `check` has looked that they fit, and that there are as many.
        let line = [memory.elements as u32];
        let extents = match parameter.class {
            Class::Slice => &line,
            _ => &memory.extents[..],
        };
        let extents = extents.iter().map(driver::Argument::value);
        values.extend(extents.map(Ready));
    }
    check_overlaps(kernel, statics, given)?;
    Ok(values)
}

/// Whether a parameter takes what was passed; else what is wrong.
fn check(parameter: &Parameter, passed: &Passed) -> Result<(), Mismatch> {
    let (wanted, given) = (parameter.number.value_type(), passed.name);
    match (parameter.class, &passed.memory) {
        (Class::Value, None) => {
            let is_float = |name: &str| name.starts_with('f');
            let fits = passed.value.bytes.len() == parameter.size as usize
                && is_float(given) == is_float(wanted)
                && (parameter.number == Number::Bool) == (given == "bool");
            match fits {
                true => Ok(()),
                false => Err(Mismatch::Value { wanted, given }),
            }
        }
        (Class::Value, Some(_)) => {
            let given = "a buffer";
            Err(Mismatch::Value { wanted, given })
        }
        (_, None) => {
            let elements = elements(parameter);
            Err(Mismatch::NoBuffer { elements, given })
        }
        (_, Some(memory)) => check_memory(parameter, memory, given),
    }
}

/// What the elements of memory are, for messages.
pub(crate) fn elements(parameter: &Parameter) -> String {
    match parameter.number.host_type() {
        Some(name) => format!("elements {name}"),
        None => format!("elements of {} bytes", parameter.size),
    }
}

fn check_memory(
    parameter: &Parameter,
    memory: &Memory,
    given: &'static str,
) -> Result<(), Mismatch> {
    let wanted = match parameter.class {
        Class::Plane | Class::Volume => parameter.class.extents(),
        _ => 0,
    };
    if memory.size != u64::from(parameter.size) {
        let elements = elements(parameter);
        return Err(Mismatch::Elements { elements, given });
    }
    if parameter.access == Access::Write && !memory.writable {
        return Err(Mismatch::ReadOnly);
    }
    if memory.elements > u64::from(u32::MAX) {
        return Err(Mismatch::TooLong(memory.elements));
    }
    if parameter.class == Class::Reference && memory.elements == 0 {
        return Err(Mismatch::Empty);
    }
    if memory.extents.len() != wanted {
        return Err(Mismatch::ExtentCount {
            wanted,
            given: memory.extents.len(),
            how: match wanted {
                0 => "the buffer alone",
                2 => "`(buffer, [width, height])`",
                _ => "`(buffer, [width, height, depth])`",
            },
        });
    }
    let mut extents = memory.extents.iter().map(|extent| u64::from(*extent));
    let product = extents.try_fold(1, |product: u64, extent| product.checked_mul(extent));
    if wanted > 0 && product != Some(memory.elements) {
        return Err(Mismatch::Extents {
            extents: memory.extents.clone(),
            elements: memory.elements,
        });
    }
    Ok(())
}

/// Whether each thread of a launch has a part of its own of what a parameter shares out.
fn check_grid(parameter: &Parameter, grid: Grid) -> Result<(), Mismatch> {
    let Grid { blocks, threads } = grid;
    let along = |axis: usize| u64::from(blocks[axis]) * u64::from(threads[axis]);
    if (parameter.dimensions as usize..3).any(|axis| along(axis) > 1) {
        return Err(Mismatch::Dimensions {
            most: parameter.dimensions,
            blocks,
            threads,
            how: match parameter.dimensions {
                1 => "launch so, or part it by `Plane`, `Volume` or `Blocks`",
                _ => "launch so, or part it by `Volume` or `Blocks`",
            },
        });
    }
    // Numbers of threads along an axis, and of blocks altogether, have 32 bits.
    let most = u64::from(u32::MAX);
    let all = (blocks.iter()).try_fold(1u64, |all, blocks| all.checked_mul(u64::from(*blocks)));
    if (0..3).any(|axis| along(axis) > most) || all.is_none_or(|all| all > most) {
        return Err(Mismatch::TooMany { blocks, threads });
    }
    Ok(())
}

/// Whether memory that is written, or changed by atomics, is reached by one parameter alone, and by no static.
fn check_overlaps(
    kernel: &KernelDescription,
    statics: &[(&StaticDescription, &Buffer)],
    given: &[Passed],
) -> Result<(), Error> {
    let statics: Vec<(&Parameter, Memory)> = (statics.iter())
        .map(|(of, buffer)| (&of.elements, Memory::of(*buffer, 1)))
        .collect();
    let passed = (kernel.parameters.iter().zip(given))
        .filter_map(|(parameter, passed)| Some((parameter, passed.memory.as_ref()?)));
    let memories: Vec<(&Parameter, &Memory)> = (statics.iter())
        .map(|(parameter, memory)| (*parameter, memory))
        .chain(passed)
        .collect();
    for (index, (second, memory)) in memories.iter().enumerate() {
        for (first, other) in &memories[..index] {
            let bytes = memory.common(other);
            let does = match (first.access, second.access) {
                (Access::Read, Access::Read) => continue,
                // Atomics of one size agree with each other.
                (Access::Atomic, Access::Atomic) if first.size == second.size => continue,
                (Access::Write, Access::Write) => "writes both".to_string(),
                (Access::Write, _) => format!("writes `{}`", first.name),
                (_, Access::Write) => format!("writes `{}`", second.name),
                (Access::Atomic, Access::Atomic) => {
                    "changes both by atomics of different sizes".to_string()
                }
                (Access::Atomic, _) => format!("changes `{}` by atomics", first.name),
                _ => format!("changes `{}` by atomics", second.name),
            };
            if bytes > 0 {
                return Err(Error::Overlap {
                    kernel: kernel.name.clone(),
                    first: first.name.clone(),
                    second: second.name.clone(),
                    bytes,
                    does,
                });
            }
        }
    }
    Ok(())
}

impl Memory {
    /// A buffer with elements of so many bytes.
    fn of<T: Pod>(buffer: &Buffer<T>, size: u64) -> Memory {
        Memory {
            address: buffer.address(),
            elements: buffer.bytes().checked_div(size).unwrap_or(0),
            size,
            writable: false,
            extents: Vec::new(),
        }
    }

    /// Bytes that are also another's.
    fn common(&self, other: &Memory) -> u64 {
        let end = |of: &Memory| of.address.saturating_add(of.elements * of.size);
        let start = self.address.max(other.address);
        end(self).min(end(other)).saturating_sub(start)
    }
}
