//! Data as Rust's `{:?}` writes them, as far as that follows from their types.

use super::{Datum, TypeKind, type_of};
use crate::sim::debug::operand::Look;

/// Types inside of each other that are shown.
const LEVELS: u32 = 5;
/// Elements of an array or slice that are shown.
const ELEMENTS: usize = 16;
/// Bytes of a text that are shown.
const TEXT: u64 = 256;
/// What is not known.
const UNKNOWN: &str = "<not available>";

impl Datum {
    /// The text of it.
    pub(in crate::sim::debug) fn text(&self, look: &Look<'_>, lane: usize) -> String {
        if !self.bytes.is_empty() && self.bytes.iter().all(Option::is_none) {
            return UNKNOWN.to_owned();
        }
        Writer { look, lane }.datum(self, LEVELS)
    }
}

struct Writer<'a> {
    look: &'a Look<'a>,
    lane: usize,
}

impl Writer<'_> {
    fn datum(&self, datum: &Datum, levels: u32) -> String {
        let Some(ty) = type_of(self.look, datum.ty) else {
            return UNKNOWN.to_owned();
        };
        if levels == 0 {
            return "…".to_owned();
        }
        match &ty.kind {
            TypeKind::Structure(..) if datum.slice(self.look).is_some() => {
                self.slice(datum, &ty.name, levels)
            }
            TypeKind::Structure(_, None) => self.fields(datum, base_name(&ty.name), levels),
            TypeKind::Structure(_, Some(variants)) => match datum.variant(self.look, variants) {
                Some((name, content)) => self.fields(&content, &name, levels),
                None => UNKNOWN.to_owned(),
            },
            TypeKind::Union(_) => self.fields(datum, base_name(&ty.name), levels),
            TypeKind::Array(_, count) => {
                let parts = datum.parts(self.look, ELEMENTS, self.lane);
                self.elements(parts, *count, levels)
            }
            TypeKind::Pointer(_) => self.pointer(datum, &ty.name, levels),
            _ => scalar(datum, &ty.kind),
        }
    }

    /// `Name { x: 1 }`, `Name(1)`, `(1, 2)`, `Name`.
    fn fields(&self, datum: &Datum, name: &str, levels: u32) -> String {
        let parts = datum.parts(self.look, ELEMENTS, self.lane);
        let is_tuple = parts
            .first()
            .is_some_and(|(name, _)| name.starts_with(|c: char| c.is_ascii_digit()));
        let name = if name.starts_with('(') { "" } else { name };
        let texts = parts.iter().map(|(field, part)| {
            let text = self.datum(part, levels - 1);
            if is_tuple {
                text
            } else {
                format!("{field}: {text}")
            }
        });
        let texts: Vec<String> = texts.collect();
        match (texts.is_empty(), is_tuple) {
            (true, _) if name.is_empty() => "()".to_owned(),
            (true, _) => name.to_owned(),
            (false, true) => format!("{name}({})", texts.join(", ")),
            (false, false) => format!("{name} {{ {} }}", texts.join(", "))
                .trim_start()
                .to_owned(),
        }
    }

    fn slice(&self, datum: &Datum, name: &str, levels: u32) -> String {
        let Some((first, _, count)) = datum.slice(self.look) else {
            return UNKNOWN.to_owned();
        };
        let mark = if name.starts_with('&') { "&" } else { "" };
        if name.ends_with("str") {
            let bytes = self.look.memory(first, count.min(TEXT) as usize, self.lane);
            let rest = if count > TEXT { "…" } else { "" };
            return match bytes {
                Some(bytes) => format!("{:?}{rest}", String::from_utf8_lossy(&bytes)),
                None => UNKNOWN.to_owned(),
            };
        }
        let parts = datum.parts(self.look, ELEMENTS, self.lane);
        if parts.is_empty() && count > 0 {
            return format!("{mark}[{count} elements at {first:#x} that are not there]");
        }
        format!("{mark}{}", self.elements(parts, count, levels))
    }

    fn elements(&self, parts: Vec<(String, Datum)>, count: u64, levels: u32) -> String {
        let mut texts: Vec<String> = parts
            .iter()
            .map(|(_, part)| self.datum(part, levels - 1))
            .collect();
        if texts.len() as u64 != count {
            texts.push(format!("… {count} in all"));
        }
        format!("[{}]", texts.join(", "))
    }

    /// References with what they point to, other pointers with their address.
    fn pointer(&self, datum: &Datum, name: &str, levels: u32) -> String {
        let Some(bits) = datum.bits() else {
            return UNKNOWN.to_owned();
        };
        if name.starts_with('&')
            && let Some(pointee) = datum.pointee(self.look, self.lane)
        {
            let mark = if name.starts_with("&mut ") {
                "&mut "
            } else {
                "&"
            };
            return format!("{mark}{}", self.datum(&pointee, levels - 1));
        }
        format!("{bits:#x}")
    }
}

fn scalar(datum: &Datum, kind: &TypeKind) -> String {
    let size = datum.bytes.len();
    if size == 0 {
        return "()".to_owned();
    }
    let Some(bits) = datum.bits() else {
        return match datum.known() {
            Some(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            None => UNKNOWN.to_owned(),
        };
    };
    let unused = 128 - 8 * size as u32;
    match kind {
        TypeKind::Unsigned => bits.to_string(),
        TypeKind::Signed => ((bits << unused) as i128 >> unused).to_string(),
        TypeKind::Boolean if bits < 2 => (bits == 1).to_string(),
        TypeKind::Character => {
            let character = u32::try_from(bits).ok().and_then(char::from_u32);
            character.map_or_else(
                || format!("{bits:#x}"),
                |character| format!("{character:?}"),
            )
        }
        TypeKind::Enumeration(values) => {
            let named = values.iter().find(|(_, value)| u128::from(*value) == bits);
            named.map_or_else(|| bits.to_string(), |(name, _)| name.clone())
        }
        TypeKind::Float => match (float(bits, size), size) {
            // The shortest text of a narrow float is shorter than that of the same double.
            (Some(number), 2 | 4) => format!("{:?}", number as f32),
            (Some(number), _) => format!("{number:?}"),
            (None, _) => format!("{bits:#x}"),
        },
        _ => format!("{bits:#x}"),
    }
}

/// The float of so many bytes.
pub(super) fn float(bits: u128, size: usize) -> Option<f64> {
    Some(match size {
        2 => half::f16::from_bits(bits as u16).to_f64(),
        4 => f32::from_bits(bits as u32).into(),
        8 => f64::from_bits(bits as u64),
        _ => return None,
    })
}

/// The name of a type without its path and arguments: `Point` of `geometry::Point<f32>`.
fn base_name(name: &str) -> &str {
    let plain = name.split(['<', ' ']).next().unwrap_or(name);
    match plain.starts_with(['(', '{', '&', '*']) {
        true => plain,
        false => plain.rsplit("::").next().unwrap_or(plain),
    }
}
