//! What can go wrong between a crate of kernels and a launch.

use cranelift_thisgpu::{DeviceError, Fault, FaultKind, Report};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why kernels were not compiled or not launched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such toolchain.
    #[error(
        "rustc does not say what it is: {found}. Kernels are compiled by rustc {wanted}: run `rustup toolchain install \
         {wanted}`"
    )]
    Toolchain {
        /// The version that is tested.
        wanted: &'static str,
        /// What `rustc -vV` says.
        found: String,
    },
    /// A program cannot be run.
    #[error("cannot run `{program}`: {error}")]
    Program {
        /// Which.
        program: String,
        /// Why.
        error: std::io::Error,
    },
    /// Cargo has failed; its messages are on standard error.
    #[error("cargo could not compile the kernels in {}: {status}", crate_dir.display())]
    Cargo {
        /// The crate.
        crate_dir: PathBuf,
        /// The exit status, or what cargo said where its messages were not shown.
        status: String,
    },
    /// Cargo said something unexpected.
    #[error("cargo: {0}")]
    Unexpected(String),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The program cannot be translated.
    #[error("{}", list(.0))]
    Translation(Vec<thisgpu_llvm::Error>),
    /// The crate has no kernel.
    #[error("{} has no kernel: mark a function with `#[kernel]` of thisgpu-gpu", .0.display())]
    NoKernels(PathBuf),
    /// A kernel's descriptor is not what this version writes.
    #[error(
        "kernel `{kernel}`: {message}; compile with versions of thisgpu-gpu and thisgpu-build that belong together"
    )]
    Descriptor {
        /// Which.
        kernel: String,
        /// What is wrong with it.
        message: String,
    },
    /// An argument is not what the parameter takes.
    #[error("kernel `{kernel}`, parameter `{parameter}`: {mismatch}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter's name.
        parameter: String,
        /// What it takes, and what was given.
        mismatch: Mismatch,
    },
    /// Two parameters reach the same memory, and one of them is written.
    #[error(
        "kernel `{kernel}`, parameters `{first}` and `{second}`: have {bytes} bytes of memory in common, and the \
         kernel {does}; pass buffers that have none, or copy one"
    )]
    Overlap {
        /// The kernel.
        kernel: String,
        /// One parameter.
        first: String,
        /// The other.
        second: String,
        /// How much is in both.
        bytes: u64,
        /// What the kernel does to it.
        does: String,
    },
    /// No static of this name that the host fills, or none that a kernel reads.
    #[error("no kernel reads a static `{name}` marked `#[device_static]`; there are {known}")]
    NoStatic {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The elements of a static are others.
    #[error("the static `{name}` has {elements}, not {wanted}")]
    StaticElements {
        /// The static.
        name: String,
        /// Its elements.
        elements: String,
        /// Those that were asked for.
        wanted: &'static str,
    },
    /// The number of arguments is wrong.
    #[error("kernel `{kernel}` takes {expected} arguments ({names}), {given} given")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// Their names.
        names: String,
        /// How many were given.
        given: usize,
    },
    /// A launch wants a larger heap than the one that has to stay.
    #[error(
        "a heap of {wanted} bytes: the static `{holder}` may point into the heap of the first launch, so that one \
         stays with the module, and has {bytes} bytes; give the first launch as many, or load the module again"
    )]
    Heap {
        /// The static.
        holder: String,
        /// Bytes of the heap that is there.
        bytes: u64,
        /// Bytes that the launch wants.
        wanted: u64,
    },
    /// A kernel panicked.
    #[error("{}", panicked(what, message.as_deref(), *heap, fault))]
    Panic {
        /// What kind of panic.
        what: &'static str,
        /// What it said, if messages are written down.
        message: Option<Box<Message>>,
        /// Where an allocation found no room.
        heap: Option<Heap>,
        /// Where: the line is the panic's own.
        fault: Box<Fault>,
        /// What was counted until then.
        report: Box<Report>,
    },
    /// The back end's errors.
    #[error(transparent)]
    Compile(#[from] cranelift_thisgpu::Error),
    /// The device's errors, faults among them.
    #[error(transparent)]
    Device(DeviceError),
}

/// How full the heap of a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    /// Its bytes.
    pub bytes: u64,
    /// Those that are or were in use.
    pub taken: u64,
}

/// The message of a panic, and where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The source file, as rustc names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The block of the thread that panicked first.
    pub block: [u32; 3],
    /// That thread in its block.
    pub thread: [u32; 3],
    /// What it said, without the place.
    pub text: String,
}

/// How an argument differs from what the parameter takes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The parameter is a number of another type, or none that was given.
    #[error("is {wanted}, {given} was given")]
    Value {
        /// The type of the parameter.
        wanted: &'static str,
        /// What was given: a type, or a buffer.
        given: &'static str,
    },
    /// The parameter is memory, and a number was given.
    #[error("is memory with {elements}, {given} was given; pass a buffer")]
    NoBuffer {
        /// The elements of the memory.
        elements: String,
        /// The type of the number.
        given: &'static str,
    },
    /// The elements of the memory are others.
    #[error("is memory with {elements}, a buffer of {given} was given")]
    Elements {
        /// The elements of the memory.
        elements: String,
        /// Those of the buffer.
        given: &'static str,
    },
    /// The kernel writes the memory, and the buffer was passed to be read.
    #[error("is written by the kernel: pass `&mut buffer`")]
    ReadOnly,
    /// The buffer has more elements than a slice can have.
    #[error("has {0} elements; a slice of a kernel has at most {most}", most = u32::MAX)]
    TooLong(u64),
    /// The memory has rows or planes, and nothing was said of them, or something where it has none.
    #[error("is memory with {wanted} extents, {given} were given: pass {how}")]
    ExtentCount {
        /// How many there are.
        wanted: usize,
        /// How many were given.
        given: usize,
        /// What to pass.
        how: &'static str,
    },
    /// The extents multiplied are not the elements of the buffer.
    #[error("has extents {extents:?}, which is not its number of elements, {elements}")]
    Extents {
        /// The extents.
        extents: Vec<u32>,
        /// Elements of the buffer.
        elements: u64,
    },
    /// The launch has more dimensions than tell threads apart where they share out this memory.
    #[error(
        "is shared out among the threads of a launch of {} at most; this one has blocks {blocks:?} of threads \
         {threads:?}: {how}",
        if *.most == 1 { "one dimension".to_string() } else { format!("{most} dimensions") }
    )]
    Dimensions {
        /// How many a launch may have.
        most: u32,
        /// Its blocks.
        blocks: [u32; 3],
        /// Threads of one.
        threads: [u32; 3],
        /// What to do instead.
        how: &'static str,
    },
    /// Numbers of threads or blocks have 32 bits, and there are more.
    #[error(
        "is shared out by numbers of 32 bits, of which there are too few for blocks {blocks:?} of threads {threads:?}"
    )]
    TooMany {
        /// The blocks.
        blocks: [u32; 3],
        /// Threads of one.
        threads: [u32; 3],
    },
    /// The parameter is a reference, and the buffer is empty.
    #[error("is a reference to one value, and the buffer has none")]
    Empty,
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |error| Error::File {
            path: path.into(),
            error,
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Error {
        match error {
            DeviceError::Fault { fault, report } => match fault.kind {
                FaultKind::Trap { code }
                    if let Some(what) = thisgpu_llvm::panics::meaning(code) =>
                {
                    Error::Panic {
                        what,
                        message: None,
                        heap: None,
                        fault,
                        report,
                    }
                }
                _ => Error::Device(DeviceError::Fault { fault, report }),
            },
            other => Error::Device(other),
        }
    }
}

/// The place is that of the fault, which knows the calls that were inlined; another thread may have written the
/// message.
fn panicked(what: &str, message: Option<&Message>, heap: Option<Heap>, fault: &Fault) -> String {
    let place = &fault.place;
    let (mut block, mut thread) = (place.block, place.thread);
    let mut source = place.source.as_ref().map(ToString::to_string);
    let why = match message {
        Some(message) => {
            if (message.block, message.thread) != (block, thread) {
                (block, thread) = (message.block, message.thread);
                source = Some(format!(
                    "{}:{}:{}",
                    message.file, message.line, message.column
                ));
            }
            &message.text
        }
        None => what
            .strip_prefix("panicked")
            .unwrap_or(what)
            .trim_start_matches(": "),
    };
    let source = source.map_or(String::new(), |source| format!(" at {source}"));
    let mut why = match why {
        "" => String::new(),
        why => format!(": {why}"),
    };
    if let Some(Heap { bytes, taken }) = heap {
        let left = bytes.saturating_sub(taken);
        why += &format!(
            " ({left} of {bytes} bytes have not been in use; `Launch::heap` gives a launch more)"
        );
    }
    let triple = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    format!(
        "kernel `{}` panicked{source}{why}; block {}, thread {}",
        place.kernel,
        triple(block),
        triple(thread)
    )
}

fn list(errors: &[thisgpu_llvm::Error]) -> String {
    let lines: Vec<String> = errors
        .iter()
        .map(|error| format!("error: {error}"))
        .collect();
    lines.join("\n")
}
