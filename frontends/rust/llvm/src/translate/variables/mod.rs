//! Variables of the Rust source: their scopes, their types, and what they are where.
//!
//! Debug information names a variable once for each place that its function was inlined at, so a variable here is one
//! of LLVM's and the call around it. Scopes are those that instructions come from, seen as faults see them: of code
//! that was inlined from the standard library that of the user's line. Variables of other scopes are left out, and so
//! are types that nothing that is left has.

mod records;
mod statics;
mod types;

pub use statics::Placed;

use super::locations::Numbers;
use crate::link::{Program, file};
use crate::model::Metadata;
use cranelift_thisgpu::locations::Location;
use cranelift_thisgpu::variables::{
    Assigned, Assignment, Position, Scope, ScopeKind, Variable, Variables,
};
use hashbrown::HashMap;
use std::ops::Range;

/// A scope: module, node, and the node of the call that it was inlined at.
type ScopeKey = (usize, u32, Option<u32>);

/// What a record of a function says, before the scopes of the function are known.
pub struct PendingAssignment {
    /// The record's variable: the number of a metadata node.
    variable: u32,
    /// The place where that is declared: the number of a metadata node.
    location: u32,
    /// The bits that it is of the variable; none for all.
    fragment: Option<(u32, u32)>,
    /// Bytes of it that are known, if they are fewer.
    bytes: Option<u32>,
    assigned: Assigned,
    from: Position,
}

/// The table of variables while it is filled.
#[derive(Default)]
pub struct Table {
    variables: Variables,
    scopes: HashMap<ScopeKey, u32>,
    /// By scope and node, the number and the size in bytes.
    known: HashMap<(u32, u32), (u32, u32)>,
    types: HashMap<(usize, u32), u32>,
    /// Types that have a number and are not read yet.
    open: Vec<(usize, u32, u32)>,
}

impl Table {
    /// The number of the scope of a place, as the user sees it; 0 if it has none.
    pub fn scope(
        &mut self,
        program: &Program,
        module: usize,
        node: Option<u32>,
        numbers: &mut Numbers,
    ) -> u32 {
        let place = node.and_then(|node| program.location_of_user(module, node));
        let Some((scope, inlined_at)) = place.and_then(|node| location(program, module, node))
        else {
            return 0;
        };
        // From the inside out, up to one that is known.
        let mut chain: Vec<ScopeKey> = Vec::new();
        let mut next = Some((module, scope, inlined_at));
        let mut number = 0;
        while let Some(key) = next.filter(|_| chain.len() < MOST_SCOPES) {
            if let Some(known) = self.scopes.get(&key) {
                number = *known;
                break;
            }
            chain.push(key);
            next = around(program, key);
        }
        for key in chain.into_iter().rev() {
            if let Some(kind) = kind(program, key, numbers) {
                number = self.variables.add_scope(Scope {
                    parent: number,
                    kind,
                });
                self.scopes.insert(key, number);
            }
        }
        number
    }

    /// Adds what a function's records say.
    pub fn assign(
        &mut self,
        program: &Program,
        module: usize,
        function: &str,
        pending: Vec<PendingAssignment>,
    ) {
        let mut assignments = Vec::new();
        for record in pending {
            let Some((variable, size)) =
                self.variable(program, module, record.variable, record.location)
            else {
                continue;
            };
            // Of bits that are no bytes nobody knows anything, nor of what stood there before.
            let (mut bytes, assigned) = match bytes(record.fragment, size) {
                Some(bytes) => (bytes, record.assigned),
                None => (0..size, Assigned::Nothing),
            };
            let known = record.bytes.unwrap_or(u32::MAX);
            bytes.end = bytes.end.min(bytes.start.saturating_add(known));
            assignments.push(Assignment {
                variable,
                bytes,
                assigned,
                from: record.from,
            });
        }
        self.variables.assign(function, assignments);
    }

    /// The number of a variable and its size in bytes.
    fn variable(
        &mut self,
        program: &Program,
        module: usize,
        node: u32,
        at: u32,
    ) -> Option<(u32, u32)> {
        let Metadata::Variable {
            name,
            scope,
            ty,
            is_parameter,
            ..
        } = program.node(module, node)?
        else {
            return None;
        };
        let (_, inlined_at) = location(program, module, at)?;
        let scope = *self.scopes.get(&(module, *scope, inlined_at))?;
        if let Some(known) = self.known.get(&(scope, node)) {
            return Some(*known);
        }
        let ty = self.ty(program, module, (*ty)?)?;
        let size = self.variables.types().get(ty as usize)?.bytes;
        let size = u32::try_from(size).ok()?;
        let variable = self.variables.add_variable(Variable {
            name: name.to_string(),
            ty,
            scope,
            is_parameter: *is_parameter,
        });
        self.known.insert((scope, node), (variable, size));
        Some((variable, size))
    }

    /// The table.
    pub fn into_variables(self) -> Variables {
        self.variables
    }
}

/// Most scopes around each other that are looked at (*assumed*: rustc nests far fewer).
const MOST_SCOPES: usize = 4096;

/// The bytes of a variable that a fragment is; none of one that is no whole bytes, or outside.
fn bytes(fragment: Option<(u32, u32)>, size: u32) -> Option<Range<u32>> {
    let (first, bits) = fragment.unwrap_or((0, size.checked_mul(8)?));
    let is_whole = first % 8 == 0 && bits % 8 == 0 && bits != 0;
    let end = (first / 8).checked_add(bits / 8)?;
    (is_whole && end <= size).then_some(first / 8..end)
}

/// The scope of a place, and the call that it was inlined at.
fn location(program: &Program, module: usize, node: u32) -> Option<(u32, Option<u32>)> {
    match program.node(module, node)? {
        Metadata::Location {
            scope, inlined_at, ..
        } => Some((*scope, *inlined_at)),
        _ => None,
    }
}

/// The scope that a scope is in; of an inlined function that of the call.
fn around(program: &Program, (module, scope, inlined_at): ScopeKey) -> Option<ScopeKey> {
    match program.node(module, scope)? {
        Metadata::Scope {
            subprogram: true, ..
        } => {
            let (scope, inlined_at) = location(program, module, inlined_at?)?;
            Some((module, scope, inlined_at))
        }
        Metadata::Scope { parent, .. } => Some((module, (*parent)?, inlined_at)),
        _ => None,
    }
}

/// What a scope is; none of what is no scope, or outside of functions.
fn kind(
    program: &Program,
    (module, scope, inlined_at): ScopeKey,
    numbers: &mut Numbers,
) -> Option<ScopeKind> {
    let Metadata::Scope {
        name,
        subprogram,
        file: has_file,
        ..
    } = program.node(module, scope)?
    else {
        return None;
    };
    if !subprogram {
        // A namespace is in no file.
        return has_file.map(|_| ScopeKind::Block);
    }
    let name = name.as_deref().unwrap_or_default().to_owned();
    let Some(call) = inlined_at else {
        return Some(ScopeKind::Function(name));
    };
    let Metadata::Location {
        line,
        column,
        scope,
        ..
    } = program.node(module, call)?
    else {
        return None;
    };
    let file = file(program.metadata(module)?, *scope).map_or(0, |file| numbers.file(&file));
    let (line, column) = (*line, *column);
    Some(ScopeKind::Inlined(
        name,
        Location {
            file,
            line,
            column,
            inlined: 0,
        },
    ))
}
