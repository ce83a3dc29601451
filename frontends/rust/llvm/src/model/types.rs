//! Types, and how much they are.

use std::fmt;
use std::sync::Arc;

/// A type.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    Void,
    /// An integer of so many bits.
    Int(u32),
    /// IEEE binary16.
    Half,
    /// IEEE binary32.
    Float,
    /// IEEE binary64.
    Double,
    /// A pointer to an address space.
    Pointer(u32),
    /// So many lanes.
    Vector(u32, Arc<Type>),
    /// So many elements.
    Array(u64, Arc<Type>),
    /// A structure.
    Struct(Arc<Struct>),
    /// One that has no meaning on the device, by its name: `x86_fp80`, `bfloat`, `token`, a scalable vector.
    Other(Arc<str>),
}

impl Type {
    /// The truth of a condition.
    pub const BOOL: Type = Type::Int(1);
    /// A generic address.
    pub const POINTER: Type = Type::Pointer(0);

    /// The type of the lanes of a vector, or the type itself.
    pub fn lane(&self) -> &Type {
        match self {
            Type::Vector(_, lane) => lane,
            other => other,
        }
    }

    /// How many lanes a vector has.
    pub fn lanes(&self) -> Option<u32> {
        match self {
            Type::Vector(lanes, _) => Some(*lanes),
            _ => None,
        }
    }

    /// The same shape with other lanes.
    pub fn with_lane(&self, lane: Type) -> Type {
        match self {
            Type::Vector(lanes, _) => Type::Vector(*lanes, Arc::new(lane)),
            _ => lane,
        }
    }

    /// The type of an element of an aggregate or vector.
    pub fn element(&self, index: u64) -> Option<&Type> {
        match self {
            Type::Vector(lanes, lane) => (index < u64::from(*lanes)).then_some(lane),
            Type::Array(count, element) => (index < *count).then_some(element),
            Type::Struct(of) => of.fields().get(usize::try_from(index).ok()?),
            _ => None,
        }
    }

    /// How much it is.
    pub fn extent(&self) -> Extent {
        let of = |count: u64, element: &Type| {
            let inner = element.extent();
            Extent {
                depth: inner.depth.saturating_add(1),
                nodes: inner.nodes.saturating_add(1),
                parts: inner.parts.saturating_mul(count),
            }
        };
        match self {
            Type::Vector(lanes, lane) => of((*lanes).into(), lane),
            Type::Array(count, element) => of(*count, element),
            Type::Struct(of) => of.extent,
            // Two of 128 bits.
            Type::Int(256) => Extent {
                depth: 0,
                nodes: 1,
                parts: 2,
            },
            scalar => Extent {
                depth: 0,
                nodes: 1,
                parts: u64::from(*scalar != Type::Void),
            },
        }
    }

    /// How many elements an aggregate or vector has.
    pub fn elements(&self) -> Option<u64> {
        match self {
            Type::Vector(lanes, _) => Some(u64::from(*lanes)),
            Type::Array(count, _) => Some(*count),
            Type::Struct(of) => Some(of.fields().len() as u64),
            _ => None,
        }
    }

    /// Writes it as LLVM does, down to `levels` inside of it.
    fn write(&self, f: &mut fmt::Formatter<'_>, levels: u32) -> fmt::Result {
        if levels == 0 {
            return f.write_str("…");
        }
        match self {
            Type::Void => f.write_str("void"),
            Type::Int(bits) => write!(f, "i{bits}"),
            Type::Half => f.write_str("half"),
            Type::Float => f.write_str("float"),
            Type::Double => f.write_str("double"),
            Type::Pointer(0) => f.write_str("ptr"),
            Type::Pointer(space) => write!(f, "ptr addrspace({space})"),
            Type::Vector(count, inner) => {
                write!(f, "<{count} x ")?;
                inner.write(f, levels - 1)?;
                f.write_str(">")
            }
            Type::Array(count, inner) => {
                write!(f, "[{count} x ")?;
                inner.write(f, levels - 1)?;
                f.write_str("]")
            }
            Type::Struct(of) => {
                f.write_str(if of.packed { "<{" } else { "{" })?;
                for (number, field) in of.fields.iter().take(SHOWN_FIELDS).enumerate() {
                    f.write_str(if number == 0 { " " } else { ", " })?;
                    field.write(f, levels - 1)?;
                }
                if of.fields.len() > SHOWN_FIELDS {
                    f.write_str(", …")?;
                }
                f.write_str(if of.packed { " }>" } else { " }" })
            }
            Type::Other(name) => f.write_str(name),
        }
    }
}

/// Levels and fields that a message shows of a type: enough to tell which one it is.
const SHOWN_LEVELS: u32 = 3;
const SHOWN_FIELDS: usize = 6;

impl fmt::Display for Type {
    /// As LLVM writes it; of a large one only the outside.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, SHOWN_LEVELS)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fields in order, and what follows from them. That is computed once: fields that are structures themselves are many
/// after a few levels.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Struct {
    packed: bool,
    extent: Extent,
    places: Option<Places>,
    fields: Vec<Type>,
}

impl Struct {
    /// A structure, `packed` if no field is aligned, whose fields have these places in memory.
    pub fn new(packed: bool, fields: Vec<Type>, places: Option<Places>) -> Self {
        let empty = Extent {
            depth: 0,
            nodes: 1,
            parts: 0,
        };
        let extent = fields.iter().map(Type::extent).fold(empty, |all, field| {
            let depth = all.depth.max(field.depth.saturating_add(1));
            let nodes = all.nodes.saturating_add(field.nodes);
            let parts = all.parts.saturating_add(field.parts);
            Extent {
                depth,
                nodes,
                parts,
            }
        });
        Self {
            packed,
            extent,
            places,
            fields,
        }
    }

    /// Whether no field is aligned.
    pub fn is_packed(&self) -> bool {
        self.packed
    }

    /// The types of the fields.
    pub fn fields(&self) -> &[Type] {
        &self.fields
    }

    /// Where they are in memory; none if one of them has no place there.
    pub fn places(&self) -> Option<&Places> {
        self.places.as_ref()
    }
}

impl fmt::Debug for Struct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fields, {:?}", self.fields.len(), self.extent)
    }
}

/// Where the fields of a structure are in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Places {
    /// The byte at which each begins.
    pub offsets: Vec<u64>,
    /// Bytes of the structure.
    pub size: u64,
    /// Its alignment in bytes.
    pub align: u64,
}

/// How much a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// How many types are nested in each other around the innermost.
    pub depth: u32,
    /// Types that it is made of, each as often as it is written.
    pub nodes: u64,
    /// Scalars of a value of it.
    pub parts: u64,
}
