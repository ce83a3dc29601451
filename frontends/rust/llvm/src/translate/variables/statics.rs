//! Static variables of the Rust source: data of the module, and shared memory.
//!
//! Those of the standard library and of the device's own are left out.

use super::Table;
use crate::link::{Program, Symbol};
use crate::model::Metadata;
use crate::shared::PREFIX;
use cranelift_thisgpu::variables::{Static, StaticPlace};

/// Crates whose variables are nobody's business.
const LIBRARIES: [&str; 4] = ["core", "alloc", "std", "thisgpu_gpu"];

/// A variable of the program that has a place.
pub struct Placed {
    /// The variable.
    pub symbol: Symbol,
    /// Where it is.
    pub place: StaticPlace,
}

impl Table {
    /// Adds the static variables of the source among those that have places.
    pub fn add_statics(&mut self, program: &Program, placed: Vec<Placed>) {
        let mut statics: Vec<Static> = Vec::new();
        for Placed { symbol, place } in placed {
            if let Some((name, ty)) = self.named(program, symbol) {
                statics.push(Static { name, ty, place });
            }
        }
        statics.sort_by(|a, b| a.name.cmp(&b.name));
        for of in statics {
            self.variables.add_static(of);
        }
    }

    /// The path of a variable as the source has it, and its type.
    fn named(&mut self, program: &Program, symbol: Symbol) -> Option<(String, u32)> {
        let Symbol::Variable(module, _) = symbol else {
            return None;
        };
        let variable = program.variable_of(symbol)?;
        let Metadata::Global(node) = program.node(module, variable.debug?)? else {
            return None;
        };
        let Metadata::Variable {
            name,
            scope,
            ty,
            line,
            ..
        } = program.node(module, *node)?
        else {
            return None;
        };
        // What has no name in the source is none of its variables: tables of traits.
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let mut names = path(program, module, *scope);
        if names
            .first()
            .is_some_and(|of| LIBRARIES.contains(&of.as_str()))
        {
            return None;
        }
        // `shared!` has no name for it, and several stand in one function.
        names.push(match variable.name.starts_with(PREFIX) {
            true => format!("shared_at_{line}"),
            false => name.to_string(),
        });
        Some((names.join("::"), self.ty(program, module, (*ty)?)?))
    }
}

/// Scopes around each other that are looked at, at most (*assumed*: rustc nests far fewer).
const MOST_SCOPES: usize = 64;

/// The names of the modules and functions around a scope, and its own, the outermost first.
fn path(program: &Program, module: usize, scope: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = Some(scope);
    while let Some(scope) = next.filter(|_| names.len() < MOST_SCOPES) {
        let Some(Metadata::Scope { name, parent, .. }) = program.node(module, scope) else {
            break;
        };
        // Blocks have no names.
        names.extend(name.as_deref().map(str::to_owned));
        next = *parent;
    }
    names.reverse();
    names
}
