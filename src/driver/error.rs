//! Errors of the device interface.

use super::DriverError;
use crate::launch::{Fault, Report};
use crate::object::{LinkError, ReadError};
use crate::text::count;
use thiserror::Error;

/// What went wrong with a device, a module or a launch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The file is no object of this machine.
    #[error("cannot load the object: {0}")]
    Read(ReadError),
    /// Symbols without a value.
    #[error("cannot link: {}", list(.0))]
    Link(Vec<LinkError>),
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
    #[error("kernel `{kernel}` takes {}, {given} {} given", count(*expected as u64, "argument"), was(*given))]
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
    /// The kernel ended in a fault.
    #[error("{fault}")]
    Fault {
        /// What happened, and where.
        fault: Box<Fault>,
        /// What was counted until then.
        report: Box<Report>,
    },
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

fn list(errors: &[LinkError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
