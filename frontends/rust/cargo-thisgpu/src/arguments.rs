//! Arguments of a launch as one writes them on a command line.
//!
//! A number is a number. Memory is `COUNT` elements of 0, `COUNT:VALUE` of a value, `COUNT:ramp` of 0, 1, 2, …, `A,B,C`
//! those elements, `@FILE` the bytes of a file. Of rows and planes the extents stand before: `WIDTHxHEIGHT`,
//! `WIDTHxHEIGHT:VALUE`, `WIDTHxHEIGHT:ramp`, `WIDTHxHEIGHT=A,B,C`, `WIDTHxHEIGHT=@FILE`.

use anyhow::{Context, Result, anyhow, bail};
use half::f16;
use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;
use thisgpu_build::{Access, Buffer, Class, Device, Launch, Number, Parameter};

/// Most bytes of an argument: a device that never ends must not fill memory (*assumed*: no kernel here gets more).
const MOST_BYTES: u64 = 4 << 30;

/// An argument that is ready.
pub enum Ready {
    /// A number, as the type says.
    Value(Number, Scalar),
    /// Memory, and the extents of its rows or planes.
    Memory(Buffer<u8>, Vec<u32>),
}

/// A number as it was written.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    Whole(i128),
    Float(f64),
}

/// Reads an argument for a parameter.
pub fn read(device: &Device, parameter: &Parameter, text: &str) -> Result<Ready> {
    let place = || {
        format!(
            "`{text}` for the parameter {}: {}",
            parameter.name,
            crate::build::type_of(parameter)
        )
    };
    if parameter.class == Class::Value {
        return Ok(Ready::Value(
            parameter.number,
            scalar(parameter.number, text).with_context(place)?,
        ));
    }
    let (extents, text) = extents(parameter.class, text).with_context(place)?;
    let bytes = memory(parameter, &text).with_context(place)?;
    Ok(Ready::Memory(device.upload(&bytes)?, extents))
}

/// The extents that stand before memory of rows or planes, and what is left, with the number of elements in their
/// place.
fn extents(class: Class, text: &str) -> Result<(Vec<u32>, String)> {
    let wanted = match class {
        Class::Plane | Class::Volume => class.extents(),
        _ => return Ok((Vec::new(), text.to_string())),
    };
    let end = text.find([':', '=']).unwrap_or(text.len());
    let (before, behind) = text.split_at(end);
    let extents: Result<Vec<u32>, _> = before.split('x').map(str::parse).collect();
    let extents = extents.ok().filter(|extents| extents.len() == wanted);
    let Some(extents) = extents else {
        bail!(
            "say how much there is along x, y{}: `{}:ramp`",
            if wanted == 3 { ", z" } else { "" },
            if wanted == 3 { "4x3x2" } else { "4x3" },
        );
    };
    let text = match behind.strip_prefix('=') {
        Some(elements) => elements.to_string(),
        None => {
            let count = (extents.iter()).try_fold(1u64, |all, of| all.checked_mul((*of).into()));
            let count = count.context("too many elements")?;
            format!("{count}{behind}")
        }
    };
    Ok((extents, text))
}

fn is_float(number: Number) -> bool {
    matches!(number, Number::F16 | Number::F32 | Number::F64)
}

/// The integers that a number of a size may be; of those of 128 bits without a sign, as many as can be written here.
fn range(number: Number, size: usize) -> RangeInclusive<i128> {
    let bits = 8 * size as u32;
    let signed = match number {
        Number::I8 | Number::I16 | Number::I32 | Number::I64 | Number::I128 => true,
        Number::Bool => return 0..=1,
        _ => false,
    };
    match (signed, bits) {
        (true, 128..) => i128::MIN..=i128::MAX,
        (true, _) => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
        (false, 128..) => 0..=i128::MAX,
        (false, _) => 0..=(1 << bits) - 1,
    }
}

fn scalar(number: Number, text: &str) -> Result<Scalar> {
    match (number, text) {
        (Number::Bool, "true") => Ok(Scalar::Whole(1)),
        (Number::Bool, "false") => Ok(Scalar::Whole(0)),
        (Number::Bool, _) => bail!("a bool is `true` or `false`"),
        (number, text) if is_float(number) => {
            Ok(Scalar::Float(text.parse().context("not a float")?))
        }
        (Number::Other, _) => bail!("a structure is passed as the bytes of a file, `@FILE`"),
        (_, text) => {
            let parsed = match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16),
                None => text.parse(),
            };
            Ok(Scalar::Whole(parsed.context("not an integer")?))
        }
    }
}

/// The bytes of a number of a size.
fn bytes_of(number: Number, size: usize, scalar: Scalar) -> Result<Vec<u8>> {
    Ok(match (number, scalar) {
        (Number::F16, Scalar::Float(value)) => f16::from_f64(value).to_le_bytes().to_vec(),
        (Number::F32, Scalar::Float(value)) => (value as f32).to_le_bytes().to_vec(),
        (Number::F64, Scalar::Float(value)) => value.to_le_bytes().to_vec(),
        (_, Scalar::Whole(value)) => {
            let range = range(number, size);
            if !range.contains(&value) {
                let (least, most) = range.into_inner();
                bail!("{value} is not from {least} to {most}");
            }
            value.to_le_bytes()[..size].to_vec()
        }
        (_, Scalar::Float(value)) => bail!("{value} is no integer"),
    })
}

fn memory(parameter: &Parameter, text: &str) -> Result<Vec<u8>> {
    let (number, size) = (parameter.number, parameter.size as usize);
    if let Some(path) = text.strip_prefix('@') {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
            .with_context(|| path.to_string())?;
        if bytes.len() as u64 > MOST_BYTES {
            bail!("{path} has more than {MOST_BYTES} bytes");
        }
        return Ok(bytes);
    }
    let one = |text: &str| bytes_of(number, size, scalar(number, text)?);
    if text.contains(',') {
        // A comma behind the last one makes a single element.
        let elements = text.strip_suffix(',').unwrap_or(text).split(',');
        let elements = elements.enumerate().map(|(index, element)| {
            one(element.trim()).with_context(|| format!("element {index}, `{element}`"))
        });
        return Ok(elements.collect::<Result<Vec<_>>>()?.concat());
    }
    let (count, value) = text.split_once(':').unwrap_or((text, ""));
    let count: usize = count.parse().map_err(|_| {
        anyhow!("memory is `COUNT`, `COUNT:VALUE`, `COUNT:ramp`, `A,B,C` or `@FILE`")
    })?;
    let bytes = (count as u64).checked_mul(size as u64);
    if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
        bail!("{count} elements of {size} bytes are more than {MOST_BYTES} bytes");
    }
    let elements = match value {
        "" => vec![0; count * size],
        "ramp" => {
            let element = |index| {
                let value = match is_float(number) {
                    true => Scalar::Float(index as f64),
                    false => Scalar::Whole(index as i128),
                };
                bytes_of(number, size, value).with_context(|| format!("element {index}"))
            };
            (0..count)
                .map(element)
                .collect::<Result<Vec<_>>>()?
                .concat()
        }
        value => one(value)?.repeat(count),
    };
    Ok(elements)
}

/// Passes an argument on.
pub fn pass<'a>(
    launch: Launch<'a>,
    parameter: &Parameter,
    ready: &mut Ready,
) -> Result<Launch<'a>> {
    Ok(match ready {
        Ready::Value(Number::Bool, Scalar::Whole(value)) => launch.arg(*value != 0),
        Ready::Value(Number::F32, Scalar::Float(value)) => launch.arg(*value as f32),
        Ready::Value(Number::F64, Scalar::Float(value)) => launch.arg(*value),
        Ready::Value(number, scalar) => {
            let bytes = bytes_of(*number, parameter.size as usize, *scalar)
                .with_context(|| parameter.name.clone())?;
            let mut wide = [0; 8];
            wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            let bits = u64::from_le_bytes(wide);
            match parameter.size {
                1 => launch.arg(bits as u8),
                2 => launch.arg(bits as u16),
                4 => launch.arg(bits as u32),
                _ => launch.arg(bits),
            }
        }
        Ready::Memory(buffer, extents) => launch.memory(
            buffer,
            u64::from(parameter.size),
            extents,
            parameter.access == Access::Write,
        ),
    })
}

/// The first elements of memory, as text.
pub fn show(parameter: &Parameter, bytes: &[u8], most: usize) -> String {
    let size = (parameter.size as usize).max(1);
    let mut shown: Vec<String> = bytes
        .chunks_exact(size)
        .take(most)
        .map(|element| element_text(parameter.number, element))
        .collect();
    if bytes.len() / size > most {
        shown.push("…".into());
    }
    format!("{} = [{}]", parameter.name, shown.join(", "))
}

fn element_text(number: Number, bytes: &[u8]) -> String {
    let mut wide = [0; 16];
    wide[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
    let bits = u128::from_le_bytes(wide);
    match number {
        Number::F16 => f16::from_bits(bits as u16).to_string(),
        Number::F32 => f32::from_bits(bits as u32).to_string(),
        Number::F64 => f64::from_bits(bits as u64).to_string(),
        Number::I8 => (bits as i8).to_string(),
        Number::I16 => (bits as i16).to_string(),
        Number::I32 => (bits as i32).to_string(),
        Number::I64 => (bits as i64).to_string(),
        Number::I128 => (bits as i128).to_string(),
        Number::Other | Number::F16x2 => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => bits.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(number: Number, size: u32) -> Parameter {
        Parameter {
            name: "x".into(),
            class: Class::Slice,
            access: Access::Read,
            dimensions: 3,
            number,
            size,
            align: size,
        }
    }

    #[test]
    fn memory_is_written_in_a_word() {
        let floats = parameter(Number::F32, 4);
        assert_eq!(
            memory(&floats, "3:1.5").unwrap(),
            [1.5f32; 3].map(f32::to_le_bytes).concat()
        );
        assert_eq!(
            memory(&floats, "1, -2").unwrap(),
            [1.0f32, -2.0].map(f32::to_le_bytes).concat()
        );
        assert_eq!(
            memory(&parameter(Number::U16, 2), "3:ramp").unwrap(),
            [0, 0, 1, 0, 2, 0]
        );
        assert_eq!(
            memory(&parameter(Number::I8, 1), "2:-1").unwrap(),
            [255, 255]
        );
        assert_eq!(memory(&parameter(Number::Other, 12), "2").unwrap(), [0; 24]);
        assert_eq!(memory(&parameter(Number::U8, 1), "7,").unwrap(), [7]);
        assert_eq!(
            memory(&parameter(Number::F16, 2), "1:-1.5").unwrap(),
            0xbe00u16.to_le_bytes()
        );
        for (number, size, text, what) in [
            (Number::U8, 1, "1:256", "256 is not from 0 to 255"),
            (
                Number::U8,
                1,
                "1,-1",
                "element 1, `-1`: -1 is not from 0 to 255",
            ),
            (Number::I8, 1, "-129,", "-129 is not from -128 to 127"),
            (
                Number::U64,
                8,
                "1:-1",
                "-1 is not from 0 to 18446744073709551615",
            ),
            (
                Number::U8,
                1,
                "257:ramp",
                "element 256: 256 is not from 0 to 255",
            ),
            (Number::U32, 4, "1,2,,3", "element 2, ``: not an integer"),
            (Number::U32, 4, ",", "element 0, ``: not an integer"),
        ] {
            let error = memory(&parameter(number, size), text).expect_err("wrong");
            let message = format!("{error:#}");
            assert!(message.contains(what), "{text}: {message}");
        }
        assert!(memory(&floats, "many").is_err());
        assert!(memory(&floats, "99999999999999").is_err());
        assert!(memory(&floats, "18446744073709551615:1").is_err());
        assert_eq!(
            show(&floats, &[2.0f32; 3].map(f32::to_le_bytes).concat(), 2),
            "x = [2, 2, …]"
        );
    }

    #[test]
    fn extents_stand_before_rows_and_planes() {
        let parse = |class, text| extents(class, text).map_err(|error| error.to_string());
        assert_eq!(
            parse(Class::Plane, "4x3:ramp"),
            Ok((vec![4, 3], "12:ramp".into()))
        );
        assert_eq!(
            parse(Class::Volume, "1x2x1=5,6"),
            Ok((vec![1, 2, 1], "5,6".into()))
        );
        assert_eq!(parse(Class::Plane, "0x3"), Ok((vec![0, 3], "0".into())));
        assert_eq!(parse(Class::Slice, "7:1"), Ok((vec![], "7:1".into())));
        for text in ["12", "4x3x2", "4x", "-4x3"] {
            assert!(parse(Class::Plane, text).is_err(), "{text}");
        }
    }
}
