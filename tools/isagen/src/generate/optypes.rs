//! Per optype: a module with its typed fields, the modifiers behind its mnemonic and the types of its semantics.

use super::naming::{constant, module_name, snake};
use super::semantics;
use super::types::is_bool;
use crate::model::{FieldType, Machine, Optype};
use std::fmt::Write;

/// A modifier behind the mnemonic: the same bits in all forms.
pub(super) struct OptionField {
    /// Name of the field.
    pub(super) name: String,
    /// Index of its type in [`Machine::enums`].
    pub(super) ty: usize,
    bit: u8,
    width: u8,
}

impl OptionField {
    /// All ones at its bits.
    pub(super) fn mask(&self) -> u128 {
        (u128::MAX >> (128 - u32::from(self.width))) << self.bit
    }
}

/// The modifiers of an operation that belong to no operand, in the order of its fields.
pub(super) fn options(machine: &Machine, optype: &Optype) -> Vec<OptionField> {
    let forms = &machine.forms[optype.forms.clone()];
    let Some(first) = forms.first() else {
        return Vec::new();
    };
    let mut list = Vec::new();
    for field in &first.fields {
        let FieldType::Enum(ty) = field.ty else {
            continue;
        };
        let operand = first.operands.iter().any(|o| o.name == field.name);
        let constant = matches!(field.value, crate::model::FieldValue::Constant(_));
        if operand
            || constant
            || field.name.contains('.')
            || ["optype", "stype"].contains(&field.name.as_str())
        {
            continue;
        }
        list.push(OptionField {
            name: field.name.clone(),
            ty,
            bit: field.bit,
            width: field.width,
        });
    }
    list
}

fn options_type(machine: &Machine, optype: &Optype, w: &mut String) {
    let options = options(machine, optype);
    let rust = |o: &OptionField| {
        if is_bool(&machine.enums[o.ty]) {
            "bool".to_string()
        } else {
            machine.enums[o.ty].name.clone()
        }
    };
    let parameters: Vec<String> = options
        .iter()
        .map(|o| format!("{}: {}", snake(&o.name), rust(o)))
        .collect();
    let _ = writeln!(
        w,
        "    /// The modifiers behind the mnemonic, at their bits.\n    #[derive(Clone, Copy, Debug, PartialEq, \
         Eq)]\n    pub struct Options(u128);\n    impl Options \
        {{\n        /// Options from every modifier.\n        pub const fn new({}) -> Options \
        {{\n            Options(0",
        parameters.join(", ")
    );
    for o in &options {
        let _ = writeln!(
            w,
            "                | (({} as u128 & {:#x}) << {})",
            snake(&o.name),
            u64::MAX >> (64 - u32::from(o.width)),
            o.bit
        );
    }
    let _ = writeln!(
        w,
        "            )\n        }}\n        /// The bits.\n        pub const fn word(self) -> u128 {{ self.0 }}\n    }}"
    );
}

pub(super) fn write(machine: &Machine, out: &mut String) {
    let w = out;
    for optype in &machine.optypes {
        module(machine, optype, w);
    }
    semantics::traits(machine, w);
}

fn module(machine: &Machine, optype: &Optype, w: &mut String) {
    let name = module_name(&optype.name);
    let _ = writeln!(
        w,
        "/// Fields and operands of `{}`.\npub mod {name} {{\n    #[allow(unused_imports)]\n    use super::*;",
        optype.mnemonic
    );
    let forms = &machine.forms[optype.forms.clone()];
    let Some(first) = forms.first() else {
        let _ = writeln!(w, "}}\n");
        return;
    };
    // Fields that all forms have at the same bits.
    for field in &first.fields {
        let same = forms.iter().all(|f| {
            f.fields
                .iter()
                .any(|g| g.name == field.name && g.bit == field.bit && g.width == field.width)
        });
        if !same
            || field.name.contains('.')
            || ["optype", "stype", "pg"].contains(&field.name.as_str())
        {
            continue;
        }
        let ty = match field.ty {
            FieldType::Enum(e) if !is_bool(&machine.enums[e]) => machine.enums[e].name.clone(),
            _ => "u64".to_string(),
        };
        let _ = writeln!(
            w,
            "    /// `{}`.\n    pub const {}: TypedField<{ty}> = TypedField::new({}, {});",
            field.name,
            constant(&field.name),
            field.bit,
            field.width
        );
    }
    options_type(machine, optype, w);
    if semantics::is_pure(optype) {
        semantics::types(machine, optype, w);
    }
    let _ = writeln!(w, "}}\n");
}
