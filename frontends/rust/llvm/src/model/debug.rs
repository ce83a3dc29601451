//! Debug information: where instructions come from, and what variables of the source are where.

use super::Operand;
use std::sync::Arc;

/// From here on a variable of the source is this: `#dbg_value` or `#dbg_declare`.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How many instructions of the block stand before it.
    pub behind: usize,
    /// The variable: the number of a metadata node.
    pub variable: u32,
    /// What the expression begins with; none if that is nowhere.
    pub value: Option<Operand>,
    /// What is done to that.
    pub expression: Computation,
    /// Where it is declared: the number of a metadata node.
    pub location: u32,
}

/// What a record makes of its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Computation {
    /// Operations in order.
    pub steps: Vec<Step>,
    /// The bits of the variable that it is, by the first and how many; none if it is all of it.
    pub fragment: Option<(u32, u32)>,
}

/// An operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What stands at this address.
    Dereference,
    /// So much more.
    Plus(i64),
    /// One that is not known.
    Unknown,
}

/// A node of debug information.
#[derive(Clone, Debug, PartialEq)]
pub enum Metadata {
    /// A place.
    Location {
        /// From 1; 0 is unknown.
        line: u32,
        /// From 1; 0 is unknown.
        column: u32,
        /// What it is in.
        scope: u32,
        /// The place of the call, if it was inlined.
        inlined_at: Option<u32>,
    },
    /// A function or a block in one.
    Scope {
        /// Where it is.
        file: Option<u32>,
        /// What it is in.
        parent: Option<u32>,
        /// The name of a function.
        name: Option<Arc<str>>,
        /// The symbol of a function.
        symbol: Option<Arc<str>>,
        /// Where it begins.
        line: u32,
        /// Whether it is a function.
        subprogram: bool,
    },
    /// A variable.
    Variable {
        /// Its name.
        name: Arc<str>,
        /// The function or block that declares it.
        scope: u32,
        /// Its type.
        ty: Option<u32>,
        /// Whether it is a parameter.
        is_parameter: bool,
        /// Where it is declared; 0 is unknown.
        line: u32,
    },
    /// What a global variable is: the node of the variable of the source.
    Global(u32),
    /// A type.
    Type(DebugType),
    /// A list of nodes: members, bounds.
    List(Vec<u32>),
    /// How many elements an array has.
    Count(u64),
    /// A value of an enumeration, which wraps around at its size.
    Enumerator(Arc<str>, u128),
    /// A file.
    File {
        /// Its name.
        name: Arc<str>,
        /// The folder that the name begins in.
        directory: Arc<str>,
    },
}

/// A type as debug information has it; a member of a structure is one too.
#[derive(Clone, Debug, PartialEq)]
pub struct DebugType {
    /// What kind it is: `DW_TAG_member`, and `DW_TAG_base_type` for what has no tag.
    pub tag: Arc<str>,
    /// Its name; empty if it has none.
    pub name: Arc<str>,
    /// Its bits.
    pub size: u64,
    /// The bit of a structure that a member begins at.
    pub offset: u64,
    /// How bits of it are read: `DW_ATE_unsigned`.
    pub encoding: Arc<str>,
    /// What it points to, is an array of, or a member is.
    pub base: Option<u32>,
    /// A list of members, bounds or values.
    pub elements: Option<u32>,
    /// The member that says which variant it is.
    pub discriminator: Option<u32>,
    /// The discriminant of a variant, which wraps around at its size.
    pub value: Option<u128>,
}
