//! Whether bytes are what the data accepts.

use half::f16;
use serde_json::Value;

/// A type of the data: how large its scalars are, and what they are.
pub struct Type {
    bytes: usize,
    is_float: bool,
    /// Whether it is an array of vectors of three, whose bytes the data has without the gaps between them.
    is_packed: bool,
}

impl Type {
    /// By its name, `vec3<f16>`.
    pub fn of(name: &str) -> Type {
        let is_abstract = name.contains("abstract");
        let is_half = name.contains("f16");
        Type {
            bytes: match (is_abstract, is_half) {
                (true, _) => 8,
                (_, true) => 2,
                _ => 4,
            },
            is_packed: name.starts_with("array<vec3<"),
            is_float: is_half || name.contains("f32") || name.contains("abstract-float"),
        }
    }

    fn float(&self, bytes: &[u8]) -> Option<f64> {
        if !self.is_float || bytes.len() != self.bytes {
            return None;
        }
        Some(match *bytes {
            [a, b] => f16::from_le_bytes([a, b]).to_f64(),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
            _ => f64::from_le_bytes(bytes.try_into().ok()?),
        })
    }

    /// Bytes that a value of this shape takes: of three parts as many as of four.
    fn extent(&self, shape: &Value) -> usize {
        match shape {
            Value::Array(parts) => {
                let count = match parts.len() {
                    3 => 4,
                    count => count,
                };
                count * parts.first().map_or(0, |part| self.extent(part))
            }
            Value::Object(object) => match object.get("any").and_then(|any| any.get(0)) {
                Some(shape) if !object.contains_key("v") => self.extent(shape),
                _ => self.bytes,
            },
            _ => self.bytes,
        }
    }

    /// Whether the bytes are what is expected; otherwise what differs.
    pub fn compare(&self, expected: &Value, bytes: &[u8]) -> Result<(), String> {
        match expected {
            Value::Null => Ok(()),
            Value::Array(parts) => {
                let step = parts.first().map_or(0, |part| self.extent(part));
                for (number, part) in parts.iter().enumerate() {
                    let rest = bytes.get(number * step..).ok_or("too few bytes")?;
                    self.compare(part, rest)
                        .map_err(|error| format!("[{number}]: {error}"))?;
                }
                Ok(())
            }
            Value::Object(object) => {
                if let Some(any) = object.get("any").and_then(Value::as_array) {
                    if any.iter().any(|one| self.compare(one, bytes).is_ok()) {
                        return Ok(());
                    }
                    return Err(self.differs(expected, bytes));
                }
                let fits = match (object.get("v"), object.get("i")) {
                    (Some(Value::String(text)), _) => self.equals(text, bytes),
                    (_, Some(Value::Array(ends))) => {
                        self.is_within(ends, bytes.get(..self.bytes).ok_or("too few bytes")?)
                    }
                    _ => return Err(format!("a form that is not known: {expected}")),
                };
                match fits {
                    true => Ok(()),
                    false => Err(self.differs(expected, bytes)),
                }
            }
            _ => Err(format!("a form that is not known: {expected}")),
        }
    }

    fn differs(&self, expected: &Value, bytes: &[u8]) -> String {
        let bytes = bytes.get(..self.extent(expected).min(16)).unwrap_or(bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let float = self
            .float(bytes)
            .map_or(String::new(), |f| format!(" ({f:e})"));
        format!("expected {expected}, is {hex}{float}")
    }

    /// The very bytes, of all scalars of a value; of floats an equal number, which is NaN for NaN, and either zero for
    /// zero.
    fn equals(&self, hex: &str, bytes: &[u8]) -> bool {
        let wanted = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16));
        let Ok(wanted) = wanted.collect::<Result<Vec<u8>, _>>() else {
            return false;
        };
        let Some(bytes) = bytes.get(..wanted.len()) else {
            return false;
        };
        let present = bytes.chunks(self.bytes).enumerate();
        let present = present.filter(|(number, _)| !self.is_packed || number % 4 != 3);
        let mut scalars = wanted
            .chunks(self.bytes)
            .zip(present.map(|(_, scalar)| scalar));
        scalars.all(|(wanted, is)| match (self.float(wanted), self.float(is)) {
            (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => wanted == is,
        })
    }

    fn is_within(&self, ends: &[Value], bytes: &[u8]) -> bool {
        // The interval of all numbers is that of results that are not defined, NaN among them.
        let is_end = |end: Option<&Value>, text: &str| end.and_then(Value::as_str) == Some(text);
        if is_end(ends.first(), "-Infinity") && is_end(ends.get(1), "Infinity") {
            return true;
        }
        let number = |value: &Value| match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.as_str() {
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                "-0" => Some(-0.0),
                "NaN" => Some(f64::NAN),
                _ => None,
            },
            _ => None,
        };
        let (Some(low), Some(high), Some(is)) = (
            ends.first().and_then(number),
            ends.get(1).and_then(number),
            self.float(bytes),
        ) else {
            return false;
        };
        (low.is_nan() && high.is_nan() && is.is_nan()) || (low <= is && is <= high)
    }
}
