//! Numbers as text: what arguments, input files and `--print` are made of.

use cranelift_thisgpu::driver::argument::Kind;
use half::{bf16, f16};
use std::fmt::Write;
use std::str::FromStr;

/// What the bytes of an argument or a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// A signed integer of so many bytes.
    Signed(usize),
    /// An unsigned integer of so many bytes.
    Unsigned(usize),
    /// A float of 16 bits.
    F16,
    /// A float of 16 bits with the exponents of f32.
    BF16,
    /// A float of 32 bits.
    F32,
    /// A float of 64 bits.
    F64,
    /// Bytes, two hexadecimal digits each.
    Hex,
}

use NumberType::{BF16, F16, F32, F64, Hex, Signed, Unsigned};

/// All types with their names.
const TYPES: [(&str, NumberType); 15] = [
    ("i8", Signed(1)),
    ("i16", Signed(2)),
    ("i32", Signed(4)),
    ("i64", Signed(8)),
    ("i128", Signed(16)),
    ("u8", Unsigned(1)),
    ("u16", Unsigned(2)),
    ("u32", Unsigned(4)),
    ("u64", Unsigned(8)),
    ("u128", Unsigned(16)),
    ("f16", F16),
    ("bf16", BF16),
    ("f32", F32),
    ("f64", F64),
    ("hex", Hex),
];

impl FromStr for NumberType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = TYPES.iter().find(|(name, _)| *name == text);
        found.map(|(_, ty)| *ty).ok_or_else(|| {
            let names = TYPES.map(|(name, _)| name).join(", ");
            format!("`{text}` is no type; types are {names}")
        })
    }
}

impl NumberType {
    /// Its name.
    pub fn name(self) -> &'static str {
        let found = TYPES.iter().find(|(_, ty)| *ty == self);
        found.map_or("", |(name, _)| name)
    }

    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Signed(bytes) | Unsigned(bytes) => bytes,
            F16 | BF16 => 2,
            F32 => 4,
            F64 => 8,
            Hex => 1,
        }
    }

    /// What a kernel parameter takes it for. CLIF has no type for bf16; its values are those of i16.
    pub fn kind(self) -> Kind {
        match self {
            F16 | F32 | F64 => Kind::Float(self.name()),
            _ => Kind::Integer(self.name()),
        }
    }

    /// The bytes of a number, of several for [`Hex`].
    ///
    /// # Errors
    /// That it is none, or does not fit. A signed type takes what fits it without sign too, as CLIF does.
    pub fn read(self, text: &str) -> Result<Vec<u8>, String> {
        let number = |what: String| format!("`{text}` is no {what}");
        // Rounded once: f64 has more than twice the digits of either half.
        let float = || text.parse::<f64>().map_err(|_| number("number".to_owned()));
        Ok(match self {
            Signed(bytes) | Unsigned(bytes) => {
                let negative = matches!(self, Signed(_));
                let value = integer(text, 8 * bytes as u32)
                    .filter(|_| negative || !text.starts_with('-'))
                    .ok_or_else(|| {
                        let sign = if negative { "" } else { "unsigned " };
                        number(format!("{sign}{}-bit integer", 8 * bytes))
                    })?;
                value.to_le_bytes()[..bytes].to_vec()
            }
            F16 => f16::from_f64(float()?).to_le_bytes().to_vec(),
            BF16 => bf16::from_f64(float()?).to_le_bytes().to_vec(),
            F32 => {
                let value = text.parse::<f32>();
                let value = value.map_err(|_| number("number".to_owned()))?;
                value.to_le_bytes().to_vec()
            }
            F64 => float()?.to_le_bytes().to_vec(),
            Hex => {
                let digits: Option<Vec<u8>> = text
                    .chars()
                    .map(|c| c.to_digit(16).map(|digit| digit as u8))
                    .collect();
                let digits = digits.filter(|digits| digits.len() % 2 == 0);
                let digits =
                    digits.ok_or_else(|| number("pairs of hexadecimal digits".to_owned()))?;
                digits
                    .chunks(2)
                    .map(|pair| pair[0] << 4 | pair[1])
                    .collect()
            }
        })
    }

    /// The bytes of the numbers of a text, between which stand white space or commas.
    ///
    /// # Errors
    /// The first that is none, with its line.
    pub fn read_all(self, text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let words = line.split(|c: char| c == ',' || c.is_whitespace());
            for word in words.filter(|word| !word.is_empty()) {
                let read = self.read(word);
                bytes.extend(read.map_err(|error| format!("{}: {error}", index + 1))?);
            }
        }
        Ok(bytes)
    }

    /// A number as the shortest text that reads back.
    pub fn show(self, bytes: &[u8]) -> String {
        let mut word = [0; 16];
        word[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u128::from_le_bytes(word);
        match self {
            Signed(size) => {
                let above = 128 - 8 * size as u32;
                ((unsigned << above) as i128 >> above).to_string()
            }
            Unsigned(_) => unsigned.to_string(),
            F16 => format!("{:?}", f16::from_bits(unsigned as u16).to_f32()),
            BF16 => format!("{:?}", bf16::from_bits(unsigned as u16).to_f32()),
            F32 => format!("{:?}", f32::from_bits(unsigned as u32)),
            F64 => format!("{:?}", f64::from_bits(unsigned as u64)),
            Hex => format!("{unsigned:02x}"),
        }
    }

    /// The numbers of a buffer in rows, each with the number of its first: `arg2[8]: 1 2 3`.
    pub fn show_all(self, name: &str, bytes: &[u8]) -> String {
        let row = match self {
            Hex => 16,
            _ => 8,
        };
        let mut text = String::new();
        for (index, numbers) in bytes.chunks(row * self.bytes()).enumerate() {
            let numbers = numbers.chunks(self.bytes());
            let numbers: Vec<String> = numbers.map(|number| self.show(number)).collect();
            let _ = writeln!(text, "{name}[{}]: {}", index * row, numbers.join(" "));
        }
        text
    }
}

/// The two's complement of a decimal or hexadecimal integer that so many bits can hold, as a signed or an unsigned
/// number.
fn integer(text: &str, bits: u32) -> Option<u128> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    // A second sign is no digit, which `parse` does not mind.
    let digits = Some(digits).filter(|digits| !digits.starts_with(['+', '-']))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_what_they_show() {
        for (name, ty) in TYPES {
            assert_eq!(name.parse(), Ok(ty));
            for pattern in [0x00, 0x01, 0x7b, 0x7f, 0x80, 0xff] {
                let bytes = vec![pattern; ty.bytes()];
                let text = ty.show(&bytes);
                let again = ty.read(&text).unwrap();
                // Of NaNs only that they are some is told.
                assert!(again == bytes || text == "NaN", "{name}: {text}");
            }
        }
        assert!("f80".parse::<NumberType>().is_err());
    }

    #[test]
    fn texts_are_lists_of_numbers() {
        assert_eq!(
            Signed(2).read_all("1, -2\n\n0x10,,"),
            Ok(vec![1, 0, 254, 255, 16, 0])
        );
        assert_eq!(F16.read_all("1.5 -0"), Ok(vec![0, 0x3e, 0, 0x80]));
        assert_eq!(
            Hex.read_all("dead be\tef"),
            Ok(vec![0xde, 0xad, 0xbe, 0xef])
        );
        assert_eq!(F64.read_all(" \n"), Ok(vec![]));
        let error = Unsigned(1).read_all("1\n2 -3").unwrap_err();
        assert_eq!(error, "2: `-3` is no unsigned 8-bit integer");
        for (ty, wrong) in [
            (Hex, "abc"),
            (Hex, "0x"),
            (F32, "1,2"),
            (Signed(4), "+-1"),
            (Signed(4), ""),
        ] {
            assert!(ty.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn buffers_show_in_rows() {
        let bytes: Vec<u8> = (0..9u16).flat_map(|n| (n * 1000).to_le_bytes()).collect();
        assert_eq!(
            Signed(2).show_all("arg1", &bytes),
            "arg1[0]: 0 1000 2000 3000 4000 5000 6000 7000\narg1[8]: 8000\n"
        );
        assert_eq!(Hex.show_all("arg1", &bytes[..3]), "arg1[0]: 00 00 e8\n");
    }
}
