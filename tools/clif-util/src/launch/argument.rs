//! `--arg KIND:VALUE`.

use anyhow::{Context, Result};
use cranelift_thisgpu::driver::argument::Value;
use cranelift_thisgpu::driver::{Argument, Buffer, Device};
use half::{bf16, f16};
use std::path::PathBuf;
use std::str::FromStr;

/// An argument as written.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchArgument {
    /// 8 bits.
    I8(u8),
    /// 16 bits.
    I16(u16),
    /// 32 bits.
    I32(u32),
    /// 64 bits.
    I64(u64),
    /// 128 bits.
    I128(u128),
    /// A float of 16 bits.
    F16(f16),
    /// A float of 16 bits with the exponents of f32.
    BF16(bf16),
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
        let kinds = "KIND:VALUE with one of i8, i16, i32, i64, i128, f16, bf16, f32, f64, in, inout, zero, uninit";
        let (kind, value) = text
            .split_once(':')
            .ok_or_else(|| format!("write {kinds}"))?;
        let number = |what: &str| format!("`{value}` is no {what}");
        let integer = |bits: u32| {
            let value = integer(value, bits);
            value.ok_or_else(|| number(&format!("{bits}-bit integer")))
        };
        // Rounded once: f64 has more than twice the digits of either half.
        let float = || value.parse::<f64>().map_err(|_| number("number"));
        Ok(match kind {
            "i8" => Self::I8(integer(8)? as u8),
            "i16" => Self::I16(integer(16)? as u16),
            "i32" => Self::I32(integer(32)? as u32),
            "i64" => Self::I64(integer(64)? as u64),
            "i128" => Self::I128(integer(128)?),
            "f16" => Self::F16(f16::from_f64(float()?)),
            "bf16" => Self::BF16(bf16::from_f64(float()?)),
            "f32" => Self::F32(value.parse().map_err(|_| number("number"))?),
            "f64" => Self::F64(float()?),
            "in" => Self::In(value.into()),
            "inout" => Self::InOut(value.into()),
            "zero" => Self::Zero(value.parse().map_err(|_| number("number of bytes"))?),
            "uninit" => Self::Uninit(value.parse().map_err(|_| number("number of bytes"))?),
            _ => return Err(format!("`{kind}` is no kind of argument; write {kinds}")),
        })
    }
}

/// The two's complement of a decimal or hexadecimal integer that so many bits can hold, as a signed or an unsigned number.
fn integer(text: &str, bits: u32) -> Option<u128> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    let ones = u128::MAX >> (128 - bits);
    let most = if negative { ones / 2 + 1 } else { ones };
    let complement = if negative {
        value.wrapping_neg() & ones
    } else {
        value
    };
    (value <= most).then_some(complement)
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
            Self::I8(value) => Ok(Prepared::Scalar(value.value())),
            Self::I16(value) => Ok(Prepared::Scalar(value.value())),
            Self::I32(value) => Ok(Prepared::Scalar(value.value())),
            Self::I64(value) => Ok(Prepared::Scalar(value.value())),
            Self::I128(value) => Ok(Prepared::Scalar(value.value())),
            Self::F16(value) => Ok(Prepared::Scalar(value.value())),
            Self::BF16(value) => Ok(Prepared::Scalar(value.value())),
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
    use half::{bf16, f16};

    fn parse(text: &str) -> Result<LaunchArgument, String> {
        text.parse()
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(parse("i32:-1"), Ok(I32(u32::MAX)));
        assert_eq!(parse("i32:0xffffffff"), Ok(I32(u32::MAX)));
        assert_eq!(parse("i64:-0x10"), Ok(I64(16u64.wrapping_neg())));
        assert_eq!(parse("i8:255"), Ok(I8(255)));
        assert_eq!(parse("i8:-128"), Ok(I8(128)));
        assert_eq!(parse("i16:-1"), Ok(I16(u16::MAX)));
        assert_eq!(parse("i128:-1"), Ok(I128(u128::MAX)));
        let least = "i128:-170141183460469231731687303715884105728";
        assert_eq!(parse(least), Ok(I128(1 << 127)));
        assert_eq!(parse("f16:1.5"), Ok(F16(f16::from_bits(0x3e00))));
        assert_eq!(parse("bf16:-inf"), Ok(BF16(bf16::from_bits(0xff80))));
        assert_eq!(parse("f32:-inf"), Ok(F32(f32::NEG_INFINITY)));
        assert!(matches!(parse("f64:nan"), Ok(F64(value)) if value.is_nan()));
        assert!(matches!(parse("f32:-0.0"), Ok(F32(value)) if value.to_bits() == 1 << 31));
        assert_eq!(parse("zero:64"), Ok(Zero(64)));
        assert_eq!(parse("uninit:0"), Ok(Uninit(0)));
        assert_eq!(parse("inout:a:b"), Ok(InOut("a:b".into())));
        for wrong in [
            "i8:256",
            "i8:-129",
            "i16:65536",
            "i128:340282366920938463463374607431768211456",
            "i128:-170141183460469231731687303715884105729",
            "f16:",
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
