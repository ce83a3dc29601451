//! Variables of the Rust source: their scopes, their types, and what they are where.
//!
//! Debug information names a variable once for each place that its function was inlined at, so a variable here is one
//! of LLVM's and the call around it. Scopes are those that instructions come from, seen as faults see them: of code
//! that was inlined from the standard library that of the user's line. Variables of other scopes are left out, and so
//! are types that nothing that is left has.

use super::function::{Body, Parts};
use super::locations::Numbers;
use crate::link::{Program, file};
use crate::model::{DebugType, Metadata, Operand, Record, Step, Value};
use cranelift_codegen::ir;
use cranelift_thisgpu::locations::Location;
use cranelift_thisgpu::variables::{
    Assigned, Assignment, Base, Member, Position, Scope, ScopeKind, TypeKind, Variable,
    VariableType, Variables, Variant, Variants,
};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::ops::Range;

/// A scope: module, node, and the node of the call that it was inlined at.
type ScopeKey = (usize, u32, Option<u32>);

/// What a record of a function says, before the scopes of the function are known.
pub struct Said {
    /// The record's variable and the place where that is declared.
    variable: u32,
    location: u32,
    /// The bits that it is of the variable; none for all.
    fragment: Option<(u32, u32)>,
    /// Bytes that are known, if they are fewer.
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
    pub fn assign(&mut self, program: &Program, module: usize, function: &str, said: Vec<Said>) {
        let mut assignments = Vec::new();
        for said in said {
            let Some((variable, size)) =
                self.variable(program, module, said.variable, said.location)
            else {
                continue;
            };
            // Of bits that are no bytes nobody knows anything, nor of what stood there before.
            let (mut bytes, assigned) = match bytes(said.fragment, size) {
                Some(bytes) => (bytes, said.assigned),
                None => (0..size, Assigned::Nothing),
            };
            let known = said.bytes.unwrap_or(u32::MAX);
            bytes.end = bytes.end.min(bytes.start.saturating_add(known));
            assignments.push(Assignment {
                variable,
                bytes,
                assigned,
                from: said.from,
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

    /// The number of a type, which is read with all that it is made of.
    fn ty(&mut self, program: &Program, module: usize, node: u32) -> Option<u32> {
        let number = self.reserve(program, module, node)?;
        // LLVM has no names for arrays. They are made of those of their elements, which are read behind them.
        let mut arrays: Vec<(u32, u32, u64)> = Vec::new();
        while let Some((module, node, number)) = self.open.pop() {
            if let Some(ty) = debug_type(program, module, node) {
                let kind = self.kind(program, module, ty);
                if let TypeKind::Array(element, count) = kind {
                    arrays.push((number, element, count));
                }
                let (name, bytes) = (ty.name.to_string(), ty.size / 8);
                self.variables
                    .set_type(number, VariableType { name, bytes, kind });
            }
        }
        for (number, element, count) in arrays.into_iter().rev() {
            let types = self.variables.types();
            let (ty, element_of) = (types.get(number as usize), types.get(element as usize));
            if let (Some(ty), Some(element_of)) = (ty.cloned(), element_of)
                && ty.name.is_empty()
            {
                let name = format!("[{}; {count}]", element_of.name);
                self.variables.set_type(number, VariableType { name, ..ty });
            }
        }
        Some(number)
    }

    /// The number that a type has, or will have; `void` is none.
    fn reserve(&mut self, program: &Program, module: usize, node: u32) -> Option<u32> {
        let ty = debug_type(program, module, node)?;
        Some(match self.types.entry((module, node)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(entry) => {
                let (name, bytes) = (ty.name.to_string(), ty.size / 8);
                let kind = TypeKind::Opaque;
                let number = self.variables.add_type(VariableType { name, bytes, kind });
                self.open.push((module, node, number));
                *entry.insert(number)
            }
        })
    }

    fn kind(&mut self, program: &Program, module: usize, ty: &DebugType) -> TypeKind {
        match &*ty.tag {
            "DW_TAG_base_type" => match &*ty.encoding {
                "DW_ATE_unsigned" | "DW_ATE_unsigned_char" => TypeKind::Unsigned,
                "DW_ATE_signed" | "DW_ATE_signed_char" => TypeKind::Signed,
                "DW_ATE_float" => TypeKind::Float,
                "DW_ATE_boolean" => TypeKind::Boolean,
                "DW_ATE_UTF" => TypeKind::Character,
                _ => TypeKind::Opaque,
            },
            "DW_TAG_pointer_type" => {
                let to = ty.base.and_then(|to| self.reserve(program, module, to));
                to.map_or(TypeKind::Opaque, TypeKind::Pointer)
            }
            "DW_TAG_structure_type" => {
                let elements = elements(program, module, ty);
                let part = elements.iter().copied().find_map(|node| {
                    debug_type(program, module, node)
                        .filter(|part| &*part.tag == "DW_TAG_variant_part")
                });
                let variants = part.map(|part| self.variants(program, module, part));
                TypeKind::Structure(self.members(program, module, &elements), variants)
            }
            "DW_TAG_union_type" => {
                let elements = elements(program, module, ty);
                TypeKind::Union(self.members(program, module, &elements))
            }
            "DW_TAG_array_type" => {
                let of = ty.base.and_then(|of| self.reserve(program, module, of));
                let counts = elements(program, module, ty);
                let counts = counts.iter().map(|node| match program.node(module, *node) {
                    Some(Metadata::Count(count)) => Some(*count),
                    _ => None,
                });
                let count = counts.product::<Option<u64>>();
                match (of, count) {
                    (Some(of), Some(count)) => TypeKind::Array(of, count),
                    _ => TypeKind::Opaque,
                }
            }
            "DW_TAG_enumeration_type" => {
                let values = elements(program, module, ty).into_iter();
                let values = values.filter_map(|node| match program.node(module, node)? {
                    Metadata::Enumerator(name, value) => {
                        Some((name.to_string(), low(*value, ty.size)))
                    }
                    _ => None,
                });
                TypeKind::Enumeration(values.collect())
            }
            _ => TypeKind::Opaque,
        }
    }

    fn members(&mut self, program: &Program, module: usize, nodes: &[u32]) -> Vec<Member> {
        let member = |node: &u32| {
            let member = debug_type(program, module, *node)?;
            (&*member.tag == "DW_TAG_member").then(|| self.member(program, module, member))?
        };
        nodes.iter().filter_map(member).collect()
    }

    fn member(&mut self, program: &Program, module: usize, member: &DebugType) -> Option<Member> {
        Some(Member {
            name: member.name.to_string(),
            offset: member.offset / 8,
            ty: self.reserve(program, module, member.base?)?,
        })
    }

    fn variants(&mut self, program: &Program, module: usize, part: &DebugType) -> Variants {
        let discriminant = part
            .discriminator
            .and_then(|node| debug_type(program, module, node));
        let discriminant = discriminant.and_then(|member| self.member(program, module, member));
        let bits = discriminant.as_ref().and_then(|member| {
            let ty = self.variables.types().get(member.ty as usize)?;
            Some(ty.bytes * 8)
        });
        let nodes = elements(program, module, part);
        let variants = nodes.into_iter().filter_map(|node| {
            let variant = debug_type(program, module, node)?;
            Some(Variant {
                value: variant.value.map(|value| low(value, bits.unwrap_or(128))),
                member: self.member(program, module, variant)?,
            })
        });
        Variants {
            variants: variants.collect(),
            discriminant,
        }
    }

    /// The table.
    pub fn into_variables(self) -> Variables {
        self.variables
    }
}

/// Most scopes around each other that are looked at (*assumed*: rustc nests far fewer).
const MOST_SCOPES: usize = 4096;

/// The low bits of a number.
fn low(value: u128, bits: u64) -> u128 {
    match bits {
        0..128 => value & ((1 << bits) - 1),
        _ => value,
    }
}

/// The bytes of a variable that a fragment is; none of one that is no whole bytes, or outside.
fn bytes(fragment: Option<(u32, u32)>, size: u32) -> Option<Range<u32>> {
    let (first, bits) = fragment.unwrap_or((0, size.checked_mul(8)?));
    let is_whole = first % 8 == 0 && bits % 8 == 0 && bits != 0;
    let end = (first / 8).checked_add(bits / 8)?;
    (is_whole && end <= size).then_some(first / 8..end)
}

fn debug_type(program: &Program, module: usize, node: u32) -> Option<&DebugType> {
    match program.node(module, node)? {
        Metadata::Type(ty) => Some(ty),
        _ => None,
    }
}

fn elements(program: &Program, module: usize, ty: &DebugType) -> Vec<u32> {
    match ty.elements.and_then(|node| program.node(module, node)) {
        Some(Metadata::List(nodes)) => nodes.clone(),
        _ => Vec::new(),
    }
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

impl<'p> Body<'_, 'p, '_> {
    /// What a record says at this place.
    pub fn record(&mut self, record: &'p Record) {
        let Some(block) = self.builder.current_block() else {
            return;
        };
        let from = match self.builder.func.layout.last_inst(block) {
            Some(inst) => Position::Behind(inst),
            None => Position::Start(block),
        };
        let (assigned, bytes) = self.recorded(record).unwrap_or((Assigned::Nothing, None));
        self.said.push(Said {
            variable: record.variable,
            location: record.location,
            fragment: record.expression.fragment,
            bytes,
            assigned,
            from,
        });
    }

    /// What a record says, and how many bytes of it are known, if not all.
    fn recorded(&mut self, record: &Record) -> Option<(Assigned, Option<u32>)> {
        let operand = record.value.as_ref()?;
        let Some((last, steps)) = record.expression.steps.split_last() else {
            return self.as_value(operand);
        };
        if *last != Step::Dereference {
            return None;
        }
        let mut path: Vec<i64> = vec![0];
        for step in steps {
            match step {
                Step::Dereference => path.push(0),
                Step::Plus(more) => {
                    let offset = path.last_mut()?;
                    *offset = offset.checked_add(*more)?;
                }
                Step::Unknown => return None,
            }
        }
        let first = path.remove(0);
        let base = self.base(operand, first)?;
        Some((Assigned::Memory { base, path }, None))
    }

    /// A value, or a constant.
    fn as_value(&mut self, operand: &Operand) -> Option<(Assigned, Option<u32>)> {
        if let Value::Constant(constant) = &operand.value {
            return match crate::data::scalar(&operand.ty, constant).ok()? {
                crate::data::Scalar::Bits(bits) => {
                    let low = bits as u64;
                    (u128::from(low) == bits).then_some((Assigned::Constant(low), None))
                }
                crate::data::Scalar::Address(..) => None,
            };
        }
        let value = self.alone(operand)?;
        let bytes = self.builder.func.dfg.value_type(value).bytes();
        Some((Assigned::Value(value), Some(bytes)))
    }

    /// Memory so many bytes behind what an operand points to.
    fn base(&mut self, operand: &Operand, offset: i64) -> Option<Base> {
        if let Value::Local(local) = &operand.value
            && let Some(Some(slot)) = self.slots.get(local)
        {
            return Some(Base::Slot(*slot, u32::try_from(offset).ok()?));
        }
        Some(Base::Value(self.alone(operand)?, offset))
    }

    /// The value of CLIF that a value of the function is, if it is one.
    fn alone(&mut self, operand: &Operand) -> Option<ir::Value> {
        let parts: Parts = self.operand(operand).ok()?;
        match (&operand.value, &parts[..]) {
            (Value::Local(_), [value]) => Some(*value),
            _ => None,
        }
    }
}
