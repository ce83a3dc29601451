//! Errors of the device interface.

use super::DriverError;
use crate::launch::{Fault, Report};
use crate::object::{LinkErrors, ReadError};
use crate::text;
use std::fmt;
use thiserror::Error;

/// What went wrong with a device, a module or a launch. Prints the same as `Debug`, which is what `main` and `unwrap`
/// show.
#[derive(Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The file is no object of this machine.
    #[error("cannot load the object: {0}")]
    Read(ReadError),
    /// Symbols without a value.
    #[error("cannot link: {0}")]
    Link(LinkErrors),
    /// A data object asks for more than a device gives.
    #[error("data `{name}` is to be aligned to {align} bytes; devices align to 256")]
    DataAlignment {
        /// Its name.
        name: String,
        /// What it asks for, in bytes.
        align: u32,
    },
    /// No room for a data object.
    #[error("data `{name}`: {error}")]
    Data {
        /// Its name.
        name: String,
        /// Why.
        error: Box<DeviceError>,
    },
    /// No kernel of this name.
    #[error("there is no kernel `{name}`; kernels: {known}")]
    NoKernel {
        /// The name asked for.
        name: String,
        /// Names of the module's kernels.
        known: String,
    },
    /// More or fewer arguments than parameters.
    #[error("kernel `{kernel}` takes {}, {given} {} given", text::count(*expected as u64, "argument"), was(*given))]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Its parameters.
        expected: usize,
        /// Arguments.
        given: usize,
    },
    /// An argument that its parameter does not take.
    #[error("argument {index} of kernel `{kernel}` is {given}, the parameter is {expected}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// Position, from 0.
        index: usize,
        /// What was given.
        given: String,
        /// What is expected.
        expected: String,
    },
    /// A buffer of another device.
    #[error("argument {index} of kernel `{kernel}` is a buffer of another device")]
    OtherDevice {
        /// The kernel.
        kernel: String,
        /// Position, from 0.
        index: usize,
    },
    /// A buffer whose size is no multiple of the element's.
    #[error(
        "a buffer of {bytes} bytes does not hold a whole number of elements of {element} bytes"
    )]
    ElementSize {
        /// Bytes of the buffer.
        bytes: u64,
        /// Bytes of an element.
        element: usize,
    },
    /// A buffer that does not begin where an element may be.
    #[error("a buffer at {address:#x} has no elements that are to be aligned to {element} bytes")]
    ElementAlignment {
        /// Where it begins.
        address: u64,
        /// Alignment of an element in bytes.
        element: usize,
    },
    /// Elements that a buffer does not have.
    #[error("{} from number {first} on {} not inside a buffer of \
     {len}", text::count(*count, "element"), if *count == 1 { "is" } else { "are" })]
    OutOfRange {
        /// Number of the first.
        first: u64,
        /// How many.
        count: u64,
        /// How many such elements the buffer has.
        len: u64,
    },
    /// A copy between buffers of different sizes.
    #[error("cannot copy {} to a buffer of {to}", text::count(*from, "element"))]
    CopyLength {
        /// Elements of the source.
        from: u64,
        /// Elements of the destination.
        to: u64,
    },
    /// A block of more threads than the kernel was compiled for.
    #[error(
        "kernel `{kernel}` was compiled for blocks of at most {most} threads, not of {threads}"
    )]
    Bounds {
        /// The kernel.
        kernel: String,
        /// Threads of a block of the launch.
        threads: u64,
        /// What the kernel says.
        most: u32,
    },
    /// A stream of another device.
    #[error("kernel `{kernel}` is put on a stream of another device")]
    OtherStream {
        /// The kernel.
        kernel: String,
    },
    /// A launch that did not run because of a fault before it.
    #[error(
        "kernel `{kernel}` was not launched: what was queued before it on its stream has failed"
    )]
    Skipped {
        /// The kernel.
        kernel: String,
    },
    /// A launch whose error somebody else got.
    #[error("kernel `{kernel}` has failed, and a `synchronize` has returned the error")]
    Reported {
        /// The kernel.
        kernel: String,
    },
    /// The kernel ended in a fault.
    #[error("{fault}")]
    Fault {
        /// What happened, and where.
        fault: Box<Fault>,
        /// What was counted until then.
        report: Box<Report>,
    },
}

impl fmt::Debug for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// It is no source of the error, whose text has its text.
impl From<ReadError> for DeviceError {
    fn from(error: ReadError) -> Self {
        DeviceError::Read(error)
    }
}

/// `was` or `were`, for a number of things.
fn was(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}
