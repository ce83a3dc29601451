//! `--arg KIND:VALUE`.

use anyhow::{Context, Result};
use cranelift_thisgpu::driver::argument::Value;
use cranelift_thisgpu::driver::{Argument, Buffer, Device};
use std::path::PathBuf;
use std::str::FromStr;

/// An argument as written.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchArgument {
    /// 32 bits.
    I32(u32),
    /// 64 bits.
    I64(u64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// A buffer with the file's contents; not written back.
    In(PathBuf),
    /// A buffer with the file's contents.
    InOut(PathBuf),
    /// A buffer of zeros.
    Zero(u64),
    /// A buffer that nobody has written.
    Uninit(u64),
}

impl FromStr for LaunchArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = "KIND:VALUE with one of i32, i64, f32, f64, in, inout, zero, uninit";
        let (kind, value) = text
            .split_once(':')
            .ok_or_else(|| format!("write {kinds}"))?;
        let number = |what: &str| format!("`{value}` is no {what}");
        Ok(match kind {
            "i32" => {
                let bits = integer(value)
                    .filter(|v| (i128::from(i32::MIN)..=i128::from(u32::MAX)).contains(v));
                Self::I32(bits.ok_or_else(|| number("32-bit integer"))? as u32)
            }
            "i64" => {
                let bits = integer(value)
                    .filter(|v| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(v));
                Self::I64(bits.ok_or_else(|| number("64-bit integer"))? as u64)
            }
            "f32" => Self::F32(value.parse().map_err(|_| number("number"))?),
            "f64" => Self::F64(value.parse().map_err(|_| number("number"))?),
            "in" => Self::In(value.into()),
            "inout" => Self::InOut(value.into()),
            "zero" => Self::Zero(value.parse().map_err(|_| number("number of bytes"))?),
            "uninit" => Self::Uninit(value.parse().map_err(|_| number("number of bytes"))?),
            _ => return Err(format!("`{kind}` is no kind of argument; write {kinds}")),
        })
    }
}

/// A decimal or hexadecimal integer.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// An argument on its device.
pub enum Prepared {
    /// A number.
    Scalar(Value),
    /// A buffer, and whether the kernel's changes are wanted.
    Buffer(Buffer, bool),
}

impl LaunchArgument {
    /// Makes the value, or the buffer on `device`.
    pub fn prepare(&self, device: &Device) -> Result<Prepared> {
        let from_file = |path: &PathBuf, wanted| {
            let bytes =
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(Prepared::Buffer(device.upload(&bytes)?, wanted))
        };
        match self {
            Self::I32(value) => Ok(Prepared::Scalar(value.value())),
            Self::I64(value) => Ok(Prepared::Scalar(value.value())),
            Self::F32(value) => Ok(Prepared::Scalar(value.value())),
            Self::F64(value) => Ok(Prepared::Scalar(value.value())),
            Self::In(path) => from_file(path, false),
            Self::InOut(path) => from_file(path, true),
            // Zeros are contents: reading them is no use of uninitialised memory.
            Self::Zero(bytes) => Ok(Prepared::Buffer(device.allocate_zeroed(*bytes)?, true)),
            Self::Uninit(bytes) => Ok(Prepared::Buffer(device.allocate(*bytes)?, true)),
        }
    }
}

impl Argument for Prepared {
    fn value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::Buffer(buffer, _) => buffer.value(),
        }
    }
}

impl Prepared {
    /// The contents of a buffer whose changes are wanted.
    pub fn result(&self) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::Buffer(buffer, true) => Some(buffer.read()?),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LaunchArgument::{self, *};

    fn parse(text: &str) -> Result<LaunchArgument, String> {
        text.parse()
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(parse("i32:-1"), Ok(I32(u32::MAX)));
        assert_eq!(parse("i32:0xffffffff"), Ok(I32(u32::MAX)));
        assert_eq!(parse("i64:-0x10"), Ok(I64(16u64.wrapping_neg())));
        assert_eq!(parse("f32:-inf"), Ok(F32(f32::NEG_INFINITY)));
        assert!(matches!(parse("f64:nan"), Ok(F64(value)) if value.is_nan()));
        assert!(matches!(parse("f32:-0.0"), Ok(F32(value)) if value.to_bits() == 1 << 31));
        assert_eq!(parse("zero:64"), Ok(Zero(64)));
        assert_eq!(parse("uninit:0"), Ok(Uninit(0)));
        assert_eq!(parse("inout:a:b"), Ok(InOut("a:b".into())));
        for wrong in [
            "i32:4294967296",
            "i32:-2147483649",
            "f32:one",
            "u8:1",
            "7",
            "zero:-1",
            "uninit:",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
