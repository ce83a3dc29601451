//! What the macros wrote about kernels and formats, read out of the program.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use thisgpu_llvm::Program;

/// How symbols of descriptors begin.
const KERNEL: &str = "__thisgpu_kernel_";
/// How symbols of formats begin; the number that records have follows.
const FORMAT: &str = "__thisgpu_format_";
/// How symbols of descriptors of statics begin.
const HELD: &str = "__thisgpu_held_";
/// How symbols of statics begin that the host fills.
const BUFFER: &str = "__thisgpu_buffer_";
/// What the library calls the layout read here.
const VERSION: u32 = 2;
/// Bytes of a parameter's description.
const DESCRIPTION: usize = 24;

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// A number by value.
    Value,
    /// Memory of one element.
    Reference,
    /// Memory of elements one behind the other.
    Slice,
    /// Memory of rows of elements.
    Plane,
    /// Memory of planes of rows of elements.
    Volume,
}

/// All classes, at the places that the library's constants say.
const CLASSES: [Class; 5] = [
    Class::Value,
    Class::Reference,
    Class::Slice,
    Class::Plane,
    Class::Volume,
];

impl Class {
    /// How many extents the host says: along x, along y, along z.
    pub fn extents(self) -> usize {
        match self {
            Class::Value | Class::Reference => 0,
            Class::Slice => 1,
            Class::Plane => 2,
            Class::Volume => 3,
        }
    }
}

/// What a kernel does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// It is no memory.
    None,
    /// Threads read it, and nobody writes it.
    Read,
    /// Each thread has a part of it, which it alone reads and writes.
    Write,
    /// Threads change it by atomics.
    Atomic,
}

/// All accesses, at the places that the library's constants say.
const ACCESSES: [Access; 4] = [Access::None, Access::Read, Access::Write, Access::Atomic];

/// What a parameter's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the types'")]
pub enum Number {
    /// A structure or an array.
    Other,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
    Bool,
    F16,
    F16x2,
    U128,
    I128,
}

/// All numbers, at the places that the library's constants say.
const NUMBERS: [Number; 16] = [
    Number::Other,
    Number::U8,
    Number::I8,
    Number::U16,
    Number::I16,
    Number::U32,
    Number::I32,
    Number::U64,
    Number::I64,
    Number::F32,
    Number::F64,
    Number::Bool,
    Number::F16,
    Number::F16x2,
    Number::U128,
    Number::I128,
];

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name in the source.
    pub name: String,
    /// What it is.
    pub class: Class,
    /// What the kernel does with it.
    pub access: Access,
    /// Dimensions that a launch may have, so that each thread has a part of its own: 1 to 3.
    pub dimensions: u32,
    /// What it or its elements are.
    pub number: Number,
    /// Bytes of the value or of an element.
    pub size: u32,
    /// Its alignment.
    pub align: u32,
}

/// A kernel as its crate has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelDescription {
    /// The symbol of its entry.
    pub symbol: String,
    /// Its name in the source; of kernels that are no tests the same.
    pub name: String,
    /// File and line.
    pub place: String,
    /// Its documentation.
    pub documentation: Vec<String>,
    /// Threads of a block at most.
    pub max_threads: Option<u32>,
    /// Blocks that are to be resident together.
    pub min_blocks: Option<u32>,
    /// The threads of a test; none if it is no test.
    pub test_threads: Option<u32>,
    /// Whether the test passes by a panic.
    pub should_panic: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// A static that the host fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticDescription {
    /// Its name in the source.
    pub name: String,
    /// File and line.
    pub place: String,
    /// Its elements.
    pub elements: Parameter,
}

impl StaticDescription {
    /// The symbol of its memory.
    pub fn symbol(&self) -> String {
        format!("{BUFFER}{}", self.name)
    }
}

/// The kernels of a program, in the order of their symbols.
pub fn kernels(program: &Program) -> Result<Vec<KernelDescription>, Error> {
    described(program, KERNEL)
}

/// The statics of a program that the host fills, in the order of their names.
pub fn statics(program: &Program) -> Result<Vec<StaticDescription>, Error> {
    let all = described(program, HELD)?.into_iter();
    let statics = all.filter_map(|mut of| {
        Some(StaticDescription {
            elements: of.parameters.pop()?,
            name: of.name,
            place: of.place,
        })
    });
    Ok(statics.collect())
}

/// What has a descriptor whose symbol begins so.
fn described(program: &Program, prefix: &str) -> Result<Vec<KernelDescription>, Error> {
    let mut described = program
        .symbols()
        .into_iter()
        .filter_map(|symbol| symbol.strip_prefix(prefix))
        .map(|symbol| {
            let bytes = program.constant_bytes(&format!("{prefix}{symbol}"));
            let bytes = bytes.ok_or_else(|| bad(symbol, "its descriptor is no constant"))?;
            kernel(symbol, &bytes)
        })
        .collect::<Result<Vec<_>, _>>()?;
    described.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    Ok(described)
}

/// The formats of a program by their numbers.
///
/// # Errors
/// Two formats of one number.
pub fn formats(program: &Program) -> Result<Vec<(u32, String)>, Error> {
    let mut formats: Vec<(u32, String)> = Vec::new();
    for symbol in program
        .symbols()
        .into_iter()
        .filter(|symbol| symbol.starts_with(FORMAT))
    {
        let digits = symbol[FORMAT.len()..].split('_').next().unwrap_or_default();
        let (Ok(number), Some(bytes)) = (
            u32::from_str_radix(digits, 16),
            program.constant_bytes(symbol),
        ) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match formats.iter().find(|format| format.0 == number) {
            Some((_, known)) if *known == text => {}
            Some((_, known)) => {
                return Err(Error::Unexpected(format!(
                    "the formats {known:?} and {text:?} have the same number; change one of them a little"
                )));
            }
            None => formats.push((number, text)),
        }
    }
    formats.sort();
    Ok(formats)
}

fn bad(kernel: &str, message: impl Into<String>) -> Error {
    Error::Descriptor {
        kernel: kernel.into(),
        message: message.into(),
    }
}

fn kernel(symbol: &str, bytes: &[u8]) -> Result<KernelDescription, Error> {
    let word = |offset: usize| {
        let word = bytes
            .get(offset..offset + 4)
            .and_then(|word| word.try_into().ok());
        word.map(u32::from_le_bytes)
            .ok_or_else(|| bad(symbol, "its descriptor is too short"))
    };
    if word(0)? != VERSION {
        return Err(bad(
            symbol,
            format!("its descriptor has version {}, this is {VERSION}", word(0)?),
        ));
    }
    let count = word(4)? as usize;
    let mut parameters = Vec::new();
    for index in 0..count {
        let at = 8 + DESCRIPTION * index;
        let unknown = || bad(symbol, format!("parameter {index} is of an unknown type"));
        parameters.push(Parameter {
            name: String::new(),
            class: (CLASSES.get(word(at)? as usize).copied()).ok_or_else(unknown)?,
            access: (ACCESSES.get(word(at + 4)? as usize).copied()).ok_or_else(unknown)?,
            dimensions: word(at + 8)?,
            number: (NUMBERS.get(word(at + 12)? as usize).copied()).ok_or_else(unknown)?,
            size: word(at + 16)?,
            align: word(at + 20)?,
        });
    }
    let text = bytes
        .get(8 + DESCRIPTION * count..)
        .ok_or_else(|| bad(symbol, "its descriptor is too short"))?;
    let text = String::from_utf8_lossy(text);
    let mut kernel = KernelDescription {
        symbol: symbol.into(),
        name: symbol.into(),
        place: String::new(),
        documentation: Vec::new(),
        max_threads: None,
        min_blocks: None,
        test_threads: None,
        should_panic: false,
        parameters,
    };
    let mut named = 0;
    // The compiler may have put zeros behind it to keep the alignment.
    for line in text.trim_end_matches('\0').lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "name" => kernel.name = value.into(),
            "at" => kernel.place = value.into(),
            "doc" => kernel.documentation.push(value.trim_start().into()),
            "max_threads" => kernel.max_threads = value.parse().ok(),
            "min_blocks" => kernel.min_blocks = value.parse().ok(),
            "test" => kernel.test_threads = value.parse().ok(),
            "should_panic" => kernel.should_panic = true,
            "parameter" => {
                let parameter = kernel
                    .parameters
                    .get_mut(named)
                    .ok_or_else(|| bad(symbol, "more names than parameters"))?;
                parameter.name = value.into();
                named += 1;
            }
            _ => {
                return Err(bad(
                    symbol,
                    format!("`{line}` in its descriptor is unknown"),
                ));
            }
        }
    }
    Ok(kernel)
}

impl Number {
    /// Rust's name of the type on the host, if it has one.
    pub fn host_type(self) -> Option<&'static str> {
        Some(match self {
            Number::Other | Number::F16 | Number::F16x2 => return None,
            Number::U8 => "u8",
            Number::I8 => "i8",
            Number::U16 => "u16",
            Number::I16 => "i16",
            Number::U32 => "u32",
            Number::I32 => "i32",
            Number::U64 => "u64",
            Number::I64 => "i64",
            Number::F32 => "f32",
            Number::F64 => "f64",
            Number::Bool => "bool",
            Number::U128 => "u128",
            Number::I128 => "i128",
        })
    }

    /// The type that a parameter by value has on the host: halves are their bits.
    pub fn value_type(self) -> &'static str {
        match self {
            Number::F16 => "u16",
            Number::F16x2 => "u32",
            other => other.host_type().unwrap_or("u8"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32], text: &str) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        words.chain(text.bytes()).collect()
    }

    #[test]
    fn a_descriptor_is_read() {
        let text = "name saxpy\nat src/lib.rs:3\nmax_threads 256\nparameter a\nparameter x\ndoc Adds.\n\0\0";
        let words = [2, 2, 0, 0, 3, 9, 4, 4, 3, 2, 2, 9, 4, 4];
        let kernel = kernel("saxpy", &bytes(&words, text)).unwrap();
        assert_eq!(kernel.max_threads, Some(256));
        assert_eq!(kernel.parameters[0].name, "a");
        assert_eq!(kernel.parameters[1].class, Class::Plane);
        assert_eq!(kernel.parameters[1].access, Access::Write);
        assert_eq!(kernel.parameters[1].dimensions, 2);
        assert_eq!(kernel.parameters[1].number, Number::F32);
        assert_eq!(kernel.documentation, ["Adds."]);
    }

    #[test]
    fn a_descriptor_of_another_version_is_refused() {
        assert!(kernel("k", &bytes(&[1, 0], "")).is_err());
        assert!(kernel("k", &bytes(&[2, 1, 0, 9], "")).is_err());
        assert!(kernel("k", &bytes(&[2, 0], "colour red\n")).is_err());
    }
}
