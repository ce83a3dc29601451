//! Data as Rust's `{:?}` writes them, as far as that follows from their types.

use super::{Datum, TypeKind, base_name, pointee_name, type_of};
use crate::sim::debug::operand::Look;
use crate::variables::VariableType;
use std::cell::Cell;

/// Types inside of each other that are shown.
const LEVELS: u32 = 5;
/// Elements of an array or slice that are shown.
const ELEMENTS: usize = 16;
/// Bytes of a text that are shown.
const TEXT: u64 = 256;
/// Characters that are shown in all.
const MOST: usize = 2000;
/// What is not known.
const UNKNOWN: &str = "<not available>";

impl Datum {
    /// The text of it.
    pub(in crate::sim::debug) fn text(&self, look: &Look<'_>, lane: usize) -> String {
        let left = &Cell::new(MOST);
        Writer { look, lane, left }.datum(self, LEVELS)
    }
}

struct Writer<'a> {
    look: &'a Look<'a>,
    lane: usize,
    /// Characters that may still be written.
    left: &'a Cell<usize>,
}

impl Writer<'_> {
    fn datum(&self, datum: &Datum, levels: u32) -> String {
        let datum = &datum.content(self.look);
        if levels == 0 || self.left.get() == 0 {
            return "…".to_owned();
        }
        match type_of(self.look, datum.ty) {
            Some(ty) if !datum.is_unknown() => self.known(datum, ty, levels),
            _ => self.counted(UNKNOWN.to_owned()),
        }
    }

    /// What is made of nothing else counts.
    fn counted(&self, text: String) -> String {
        self.left.set(self.left.get().saturating_sub(text.len()));
        text
    }

    fn known(&self, datum: &Datum, ty: &VariableType, levels: u32) -> String {
        let (look, lane) = (self.look, self.lane);
        match &ty.kind {
            TypeKind::Structure(..) if datum.slice(look, lane).is_some() => {
                self.slice(datum, &ty.name, levels)
            }
            TypeKind::Structure(_, None) => self.fields(datum, base_name(&ty.name), levels),
            TypeKind::Structure(_, Some(variants)) => match datum.variant(look, variants, lane) {
                Some((name, content)) => self.fields(&content, &name, levels),
                None => UNKNOWN.to_owned(),
            },
            TypeKind::Union(_) => self.fields(datum, base_name(&ty.name), levels),
            TypeKind::Array(_, count) => {
                let parts = datum.parts(look, ELEMENTS, lane);
                self.elements(parts, *count, levels)
            }
            TypeKind::Pointer(_) => self.pointer(datum, &ty.name, levels),
            _ => self.counted(self.scalar(datum, ty)),
        }
    }

    fn scalar(&self, datum: &Datum, ty: &VariableType) -> String {
        let (look, lane) = (self.look, self.lane);
        if ty.bytes == 0 {
            return "()".to_owned();
        }
        let Some(bits) = datum.bits(look, lane) else {
            let bytes: Option<Vec<u8>> = datum.bytes(look, lane).into_iter().collect();
            let hexadecimal =
                |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            return bytes.map_or_else(|| UNKNOWN.to_owned(), hexadecimal);
        };
        match &ty.kind {
            TypeKind::Unsigned | TypeKind::Signed | TypeKind::Float => {
                let number = datum.number(look, lane);
                number.map_or_else(|| format!("{bits:#x}"), |number| number.to_string())
            }
            TypeKind::Boolean if bits < 2 => (bits == 1).to_string(),
            TypeKind::Character => {
                let character = u32::try_from(bits).ok().and_then(char::from_u32);
                character.map_or_else(
                    || format!("{bits:#x}"),
                    |character| format!("{character:?}"),
                )
            }
            TypeKind::Enumeration(values, _) => {
                let named = values.iter().find(|(_, value)| *value == bits);
                let unnamed = || {
                    datum
                        .number(look, lane)
                        .map_or(bits.to_string(), |n| n.to_string())
                };
                named.map_or_else(unnamed, |(name, _)| name.clone())
            }
            _ => format!("{bits:#x}"),
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
            (true, _) if name.is_empty() => self.counted("()".to_owned()),
            (true, _) => self.counted(name.to_owned()),
            (false, true) if name.is_empty() && texts.len() == 1 => format!("({},)", texts[0]),
            (false, true) => format!("{name}({})", texts.join(", ")),
            (false, false) => format!("{name} {{ {} }}", texts.join(", "))
                .trim_start()
                .to_owned(),
        }
    }

    fn slice(&self, datum: &Datum, name: &str, levels: u32) -> String {
        let Some((first, _, count)) = datum.slice(self.look, self.lane) else {
            return UNKNOWN.to_owned();
        };
        let mark = mark(name);
        if pointee_name(name) == Some("str") {
            let bytes = self.look.memory(first, count.min(TEXT) as usize, self.lane);
            let rest = if count > TEXT { "…" } else { "" };
            return self.counted(match bytes {
                Some(bytes) => format!("{:?}{rest}", String::from_utf8_lossy(&bytes)),
                None => UNKNOWN.to_owned(),
            });
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
        let Some(bits) = datum.bits(self.look, self.lane) else {
            return UNKNOWN.to_owned();
        };
        if name.starts_with('&')
            && let Some(pointee) = datum.pointee(self.look, self.lane)
        {
            let mark = mark(name);
            return format!("{mark}{}", self.datum(&pointee, levels - 1));
        }
        self.counted(format!("{bits:#x}"))
    }
}

/// `&` or `&mut ` of a reference.
fn mark(name: &str) -> &str {
    match name {
        _ if name.starts_with("&mut ") => "&mut ",
        _ if name.starts_with('&') => "&",
        _ => "",
    }
}
