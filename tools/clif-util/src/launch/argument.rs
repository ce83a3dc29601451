//! `--arg KIND:VALUE`.

use super::numbers::NumberType;
use crate::input;
use anyhow::{Result, anyhow};
use cranelift_thisgpu::driver::argument::{Kind, Value};
use cranelift_thisgpu::driver::{Argument, Buffer, Device};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An argument as written.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchArgument {
    /// A number, or several, which are a vector: their bytes.
    Numbers(NumberType, Vec<u8>),
    /// A buffer with the file's contents; not written back.
    In(Contents),
    /// A buffer with the file's contents.
    InOut(Contents),
    /// A buffer of zeros.
    Zero(u64),
    /// A buffer that nobody has written.
    Uninit(u64),
}

/// What is in a buffer at first.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// The file as written, perhaps with the type behind a colon.
    text: String,
}

/// Kinds of arguments that are numbers.
const NUMBERS: [&str; 9] = [
    "i8", "i16", "i32", "i64", "i128", "f16", "bf16", "f32", "f64",
];

impl FromStr for LaunchArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = format!(
            "KIND:VALUE with one of {}, in, inout, zero, uninit",
            NUMBERS.join(", ")
        );
        let (kind, value) = text
            .split_once(':')
            .ok_or_else(|| format!("write {kinds}"))?;
        let bytes = || {
            let bytes = value.parse().ok();
            bytes.ok_or_else(|| format!("`{value}` is no number of bytes"))
        };
        let contents = || match value {
            "" => Err("the name of the file is missing".to_owned()),
            _ => Ok(Contents {
                text: value.to_owned(),
            }),
        };
        Ok(match kind {
            "in" => Self::In(contents()?),
            "inout" => Self::InOut(contents()?),
            "zero" => Self::Zero(bytes()?),
            "uninit" => Self::Uninit(bytes()?),
            _ if NUMBERS.contains(&kind) => {
                let ty: NumberType = kind.parse()?;
                let numbers: Result<Vec<_>, _> =
                    value.split(',').map(|number| ty.read(number)).collect();
                Self::Numbers(ty, numbers?.concat())
            }
            _ => return Err(format!("`{kind}` is no kind of argument; write {kinds}")),
        })
    }
}

impl Contents {
    /// The file, and the type of the numbers that it holds as text. A file whose name ends like a type is meant itself.
    pub fn file(&self) -> (&Path, Option<NumberType>) {
        let whole = Path::new(&self.text);
        let split = self.text.rsplit_once(':').filter(|_| !whole.exists());
        match split.and_then(|(file, ty)| Some((file, ty.parse().ok()?))) {
            Some((file, ty)) if !file.is_empty() => (Path::new(file), Some(ty)),
            _ => (whole, None),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let (file, ty) = self.file();
        let Some(ty) = ty else {
            // A file ends, and the device says if it is too large for it; a pipe may not end.
            return match std::fs::metadata(file) {
                Ok(data) if data.is_file() => input::bytes_up_to(data.len(), file),
                _ => input::bytes(file),
            };
        };
        let bytes = ty.read_all(&input::text(file)?);
        bytes.map_err(|error| anyhow!("{}:{error}", input::name(file)))
    }
}

/// An argument on its device.
pub enum Prepared {
    /// Numbers.
    Numbers(Value),
    /// A buffer, and whether the kernel's changes are wanted.
    Buffer(Buffer, bool),
}

impl LaunchArgument {
    /// The file that it reads.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::In(contents) | Self::InOut(contents) => Some(contents.file().0.to_owned()),
            Self::Numbers(..) | Self::Zero(_) | Self::Uninit(_) => None,
        }
    }

    /// What its numbers are, as far as that was said.
    pub fn number_type(&self) -> Option<NumberType> {
        match self {
            Self::In(contents) | Self::InOut(contents) => contents.file().1,
            Self::Numbers(..) | Self::Zero(_) | Self::Uninit(_) => None,
        }
    }

    /// Whether it is a buffer.
    pub fn is_buffer(&self) -> bool {
        !matches!(self, Self::Numbers(..))
    }

    /// Makes the value, or the buffer on `device`, which is called by the argument's number.
    pub fn prepare(&self, device: &Device, index: usize) -> Result<Prepared> {
        let name = |kind: &str| format!("argument {index} ({kind})");
        Ok(match self {
            Self::Numbers(ty, bytes) => Prepared::Numbers(Value {
                kind: if bytes.len() == ty.bytes() {
                    ty.kind()
                } else {
                    Kind::Vector(ty.name())
                },
                bytes: bytes.clone(),
                owner: None,
            }),
            Self::In(contents) => {
                let name = name(&format!("in:{}", contents.text));
                Prepared::Buffer(device.upload(&contents.bytes()?)?.named(name), false)
            }
            Self::InOut(contents) => {
                let name = name(&format!("inout:{}", contents.text));
                Prepared::Buffer(device.upload(&contents.bytes()?)?.named(name), true)
            }
            // Zeros are contents: reading them is no use of uninitialised memory.
            Self::Zero(bytes) => {
                let buffer = device.allocate_zeroed(*bytes)?;
                Prepared::Buffer(buffer.named(name("zero")), true)
            }
            Self::Uninit(bytes) => {
                let buffer = device.allocate(*bytes)?;
                Prepared::Buffer(buffer.named(name("uninit")), true)
            }
        })
    }
}

impl Argument for Prepared {
    fn value(&self) -> Value {
        match self {
            Self::Numbers(value) => value.clone(),
            Self::Buffer(buffer, _) => buffer.value(),
        }
    }
}

impl Prepared {
    /// The contents of a buffer.
    pub fn contents(&self) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Buffer(buffer, _) => buffer.read()?,
            Self::Numbers(value) => value.bytes.clone(),
        })
    }

    /// The contents of a buffer whose changes are wanted.
    pub fn result(&self) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::Buffer(buffer, true) => Some(buffer.read()?),
            _ => None,
        })
    }

    /// Bytes of a buffer.
    pub fn size(&self) -> u64 {
        match self {
            Self::Buffer(buffer, _) => buffer.len(),
            Self::Numbers(value) => value.bytes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LaunchArgument::{self, *};

    fn parse(text: &str) -> Result<LaunchArgument, String> {
        text.parse()
    }

    /// The bytes of numbers as one little-endian number.
    fn bits(text: &str) -> u128 {
        let Ok(Numbers(_, bytes)) = parse(text) else {
            panic!("{text} is a number");
        };
        bytes
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u128::from(*byte))
    }

    #[test]
    fn arguments_are_read() {
        for (text, expected) in [
            ("i32:-1", u128::from(u32::MAX)),
            ("i32:0xffffffff", u128::from(u32::MAX)),
            ("i64:-0x10", u128::from(16u64.wrapping_neg())),
            ("i8:255", 255),
            ("i8:-128", 128),
            ("i16:-1", 0xffff),
            ("i128:-1", u128::MAX),
            ("i128:-170141183460469231731687303715884105728", 1 << 127),
            ("f16:1.5", 0x3e00),
            ("bf16:-inf", 0xff80),
            ("f32:-inf", 0xff80_0000),
            ("f32:-0.0", 1 << 31),
            ("f64:2", 0x4000_0000_0000_0000),
            ("i16:1,2,-1", 0xffff_0002_0001),
        ] {
            assert_eq!(bits(text), expected, "{text}");
        }
        assert!(f64::from_bits(bits("f64:nan") as u64).is_nan());
        assert_eq!(parse("zero:64"), Ok(Zero(64)));
        assert_eq!(parse("uninit:0"), Ok(Uninit(0)));
    }

    #[test]
    fn a_type_behind_a_file_makes_it_a_text() {
        for (text, file, ty) in [
            ("a:b", "a:b", None),
            ("a:f32", "a", Some("f32")),
            ("a:b:hex", "a:b", Some("hex")),
            (":f32", ":f32", None),
        ] {
            let Ok(InOut(contents)) = parse(&format!("inout:{text}")) else {
                panic!("{text} is a file");
            };
            let (found, found_type) = contents.file();
            assert_eq!(found.to_str(), Some(file), "{text}");
            assert_eq!(found_type.map(|ty| ty.name()), ty, "{text}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in [
            "i8:256",
            "i8:-129",
            "i16:65536",
            "i128:340282366920938463463374607431768211456",
            "i128:-170141183460469231731687303715884105729",
            "f16:",
            "i32:4294967296",
            "i32:-2147483649",
            "i32:--1",
            "i32:1,",
            "f32:one",
            "u8:1",
            "hex:00",
            "7",
            "zero:-1",
            "uninit:",
            "in:",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
