//! Variables of a front end's language: their names, their types, and where they are by code address.
//!
//! A front end fills one table for all that it compiles ([`Variables`]): the types, the scopes that variables are
//! declared in, the variables, and for each function what is assigned to them where ([`Assignment`]). It puts the scope
//! of each instruction into its [`Locations`](crate::locations::Locations) (`add_scoped`), and hands both over
//! ([`Compiler::set_variables`](crate::Compiler::set_variables)). Nothing of it is looked at without the setting
//! `value_locations`, and code is the same with it and without.
//!
//! In this order:
//!
//! 1. [`moments`] finds, in the function as it was given, what each variable is before each instruction: a forward data
//!    flow over assignments. Instructions between which nothing is assigned have one *moment* number.
//! 2. The moment of an instruction goes through all passes with its place in the source ([`crate::values::tracking`]).
//! 3. [`scopes`] walks the code in its final order: the scope of an instruction says which variables are seen from it,
//!    its moment what they are: a value of the CLIF, a constant, or memory. Where that value is at this address is
//!    known already ([`crate::values`]), so a variable is never more than the name of what was proven to be there.
//!
//! Objects keep the result, and the same as entries of DWARF: lexical blocks, inlined calls, variables, types.

mod locations;
pub(crate) mod moments;
pub(crate) mod scopes;
mod statics;
mod types;

pub use locations::{
    Address, Part, PartPlace, ScopeKind, ScopeLocations, VariableLocations, VariableRange,
};
pub use statics::{Static, StaticPlace};
pub use types::{Member, TypeKind, VariableType, Variant, Variants};

use cranelift_codegen::ir::{Block, Inst, StackSlot, Value};
use hashbrown::HashMap;
use std::ops::Range;

/// What a front end knows of variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    types: Vec<VariableType>,
    scopes: Vec<Scope>,
    /// By scope, how many are around it, with itself.
    depths: Vec<u32>,
    variables: Vec<Variable>,
    /// By scope, the variables that are declared in it.
    declared: Vec<Vec<u32>>,
    /// Those that are there as long as a launch.
    statics: Vec<Static>,
    /// By the symbol of a function.
    functions: HashMap<String, Vec<Assignment>>,
}

/// Where variables are declared: a function, a block in one, or a function that the front end inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The scope that it is in, as [`Variables::add_scope`] gave it; 0 of a function. Of an inlined function it is the
    /// scope of the call.
    pub parent: u32,
    /// What it is.
    pub kind: ScopeKind,
}

/// A variable, or a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type, as [`Variables::add_type`] gave it.
    pub ty: u32,
    /// Its scope, as [`Variables::add_scope`] gave it.
    pub scope: u32,
    /// Whether the function takes it.
    pub is_parameter: bool,
}

/// From a place of a function on, some bytes of a variable are something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable, as [`Variables::add_variable`] gave it.
    pub variable: u32,
    /// The bytes of it, from its first on.
    pub bytes: Range<u32>,
    /// What they are.
    pub assigned: Assigned,
    /// Since when.
    pub from: Position,
}

/// What bytes of a variable are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Assigned {
    /// The low bytes of a value.
    Value(Value),
    /// Always these, the lowest first; those behind the eighth are 0.
    Constant(u64),
    /// Memory. It begins at `base`; then for each number of `path`, so many bytes behind the address that is there.
    Memory {
        /// Where the way begins.
        base: Base,
        /// The way.
        path: Vec<i64>,
    },
    /// Nobody knows.
    Nothing,
}

/// Where the way to memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// In a stack slot, at this offset.
    Slot(StackSlot, u32),
    /// At a generic address, and bytes behind it.
    Value(Value, i64),
}

/// A place between instructions of a function as the front end gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// Before the first instruction of a block.
    Start(Block),
    /// Behind an instruction.
    Behind(Inst),
}

impl Variables {
    /// Adds a type; its number. A type that refers to itself is reserved first ([`TypeKind::Opaque`]) and filled in
    /// with [`Variables::set_type`].
    pub fn add_type(&mut self, ty: VariableType) -> u32 {
        self.types.push(ty);
        self.types.len() as u32 - 1
    }

    /// Says what a type is. A number that [`Variables::add_type`] has not given is ignored.
    pub fn set_type(&mut self, number: u32, ty: VariableType) {
        if let Some(known) = self.types.get_mut(number as usize) {
            *known = ty;
        }
    }

    /// Adds a scope; its number, from 1. Its parent has to be there already, otherwise it has none.
    pub fn add_scope(&mut self, mut scope: Scope) -> u32 {
        if scope.parent as usize > self.scopes.len() {
            scope.parent = 0;
        }
        self.depths.push(self.depth(scope.parent) + 1);
        self.scopes.push(scope);
        self.declared.push(Vec::new());
        self.scopes.len() as u32
    }

    /// Adds a variable; its number. One in no scope that is known is seen from nowhere.
    pub fn add_variable(&mut self, variable: Variable) -> u32 {
        let number = self.variables.len() as u32;
        let scope = (variable.scope as usize).checked_sub(1);
        if let Some(declared) = scope.and_then(|scope| self.declared.get_mut(scope)) {
            declared.push(number);
        }
        self.variables.push(variable);
        number
    }

    /// Adds a static variable, of a type that [`Variables::add_type`] gave. One whose data the object does not have is
    /// not shown.
    pub fn add_static(&mut self, variable: Static) {
        self.statics.push(variable);
    }

    /// The static variables, in the order in which they were added.
    pub fn statics(&self) -> &[Static] {
        &self.statics
    }

    /// Says what is assigned to variables in a function of this symbol.
    pub fn assign(&mut self, function: &str, assignments: Vec<Assignment>) {
        self.functions.insert(function.to_owned(), assignments);
    }

    /// What is assigned in a function.
    pub fn assignments(&self, function: &str) -> &[Assignment] {
        self.functions.get(function).map_or(&[], Vec::as_slice)
    }

    /// The types, in the order of their numbers.
    pub fn types(&self) -> &[VariableType] {
        &self.types
    }

    /// A scope by its number.
    pub(crate) fn scope(&self, number: u32) -> Option<&Scope> {
        self.scopes.get((number as usize).checked_sub(1)?)
    }

    /// The scope that a scope is in; 0 if it is in none.
    pub(crate) fn parent(&self, number: u32) -> u32 {
        self.scope(number).map_or(0, |scope| scope.parent)
    }

    /// How many scopes are around a scope, with itself.
    pub(crate) fn depth(&self, number: u32) -> u32 {
        let index = (number as usize).checked_sub(1);
        index
            .and_then(|index| self.depths.get(index))
            .copied()
            .unwrap_or(0)
    }

    /// The variables that are declared in a scope, by number.
    pub(crate) fn declared(&self, scope: u32) -> &[u32] {
        let index = (scope as usize).checked_sub(1);
        index
            .and_then(|index| self.declared.get(index))
            .map_or(&[], Vec::as_slice)
    }

    /// A variable by its number.
    pub(crate) fn variable(&self, number: u32) -> Option<&Variable> {
        self.variables.get(number as usize)
    }
}
