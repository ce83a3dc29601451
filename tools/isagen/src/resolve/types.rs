//! Types of fields.

use std::collections::HashSet;

use crate::ast::{FieldDeclaration, TypeDefinition};
use crate::definitions::Definitions;
use crate::diagnostic::Diagnostic;
use crate::model::{EnumType, FieldType, Member};

/// A type the notation knows without definition.
pub(super) struct BuiltIn {
    pub ty: FieldType,
    /// The width a field of it must have; none where a definition says so or any will do.
    pub width: Option<u64>,
    /// Whether a definition gives the number of the hard-wired register.
    pub register: bool,
}

/// The built-in type of that name.
pub(super) fn built_in(name: &str) -> Option<BuiltIn> {
    let register = |ty| BuiltIn {
        ty,
        width: None,
        register: true,
    };
    let plain = |ty, width| BuiltIn {
        ty,
        width,
        register: false,
    };
    let immediate = |prefix: &str| {
        let digits = name.strip_prefix(prefix)?;
        let width: u64 = digits.parse().ok()?;
        ((1..=64).contains(&width) && !digits.starts_with('0')).then_some(Some(width))
    };
    Some(match name {
        "Reg" => register(FieldType::Gpr),
        "UReg" => register(FieldType::Uniform),
        "Pred" => register(FieldType::Predicate),
        "UPred" => register(FieldType::UniformPredicate),
        "BReg" => register(FieldType::Convergence),
        // Five bits of bank above a 17-bit byte offset.
        "CMem" => plain(FieldType::ConstantMemory, Some(22)),
        "Addr" => plain(FieldType::Address, None),
        "Label" => plain(FieldType::Label, None),
        "F32Imm" => plain(FieldType::Float32, Some(32)),
        "F16ImmX2" => plain(FieldType::Half2, Some(32)),
        _ => match (immediate("SImm"), immediate("UImm")) {
            (Some(width), _) => plain(FieldType::Signed, width),
            (_, Some(width)) => plain(FieldType::Unsigned, width),
            _ => return None,
        },
    })
}

/// All enumerations with their numbers, and the names of types that are used but defined nowhere.
pub(super) fn enums<'a>(
    definitions: &Definitions<'a>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<EnumType>, HashSet<&'a str>) {
    let enums = definitions
        .types
        .iter()
        .map(|definition| enumeration(definition, diagnostics))
        .collect();
    let mut uses: Vec<(&'a FieldDeclaration, usize)> = Vec::new();
    let constructs = definitions
        .groups
        .iter()
        .chain(&definitions.optypes)
        .chain(&definitions.forms);
    for field in constructs.flat_map(|construct| &construct.fields) {
        let name = field.type_name.text.as_str();
        if definitions.type_index(name).is_some() || built_in(name).is_some() {
            continue;
        }
        match uses.iter_mut().find(|(f, _)| f.type_name.text == name) {
            Some((_, count)) => *count += 1,
            None => uses.push((field, 1)),
        }
    }
    for (field, count) in &uses {
        let name = &field.type_name;
        diagnostics.push(
            Diagnostic::error(name.span, format!("type `{}` is not defined", name.text))
                .label(format!("used by {count} field(s), first here"))
                .help(format!(
                    "add `__DefBitFieldType {}<{}>` with its members",
                    name.text, field.width.value
                )),
        );
    }
    let undefined = uses.iter().map(|(f, _)| f.type_name.text.as_str());
    (enums, undefined.collect())
}

fn enumeration(definition: &TypeDefinition, diagnostics: &mut Vec<Diagnostic>) -> EnumType {
    let name = &definition.name;
    if let Some(built_in) = built_in(&name.text)
        && !built_in.register
    {
        let message = format!("type `{}` is built in", name.text);
        diagnostics.push(Diagnostic::error(name.span, message));
    }
    let width = definition.width.value;
    if !(1..=64).contains(&width) {
        let message = format!("a type has 1 to 64 bits, not {width}");
        diagnostics.push(Diagnostic::error(definition.width.span, message));
    }
    let width = width.clamp(1, 64) as u8;
    let mut members: Vec<Member> = Vec::new();
    let mut next = Some(0u64);
    for member in &definition.members {
        let value = match (member.value, next) {
            (Some(number), _) => number.value,
            (None, Some(next)) => next,
            (None, None) => u64::MAX,
        };
        if !fits(value, width) || (member.value.is_none() && next.is_none()) {
            let span = member.value.map_or(member.name.span, |v| v.span);
            let message = format!(
                "`{}` = {value} does not fit the {width} bits of `{}`",
                member.name.text, name.text
            );
            diagnostics.push(Diagnostic::error(span, message));
        }
        if let Some(first) = members.iter().find(|m| m.name == member.name.text) {
            let message = format!("member `{}` is defined twice", first.name);
            diagnostics.push(
                Diagnostic::error(member.name.span, message).related(first.span, "first here"),
            );
            continue;
        }
        members.push(Member {
            name: member.name.text.clone(),
            value,
            span: member.name.span,
        });
        next = value.checked_add(1);
    }
    EnumType {
        name: name.text.clone(),
        width,
        members,
        provenance: definition.provenance,
        span: name.span,
    }
}

/// Whether a number needs at most `width` bits.
pub(super) fn fits(value: u64, width: u8) -> bool {
    width >= 64 || value >> width == 0
}
