//! `FORMS`, `OPTYPES` and what belongs to them.

use super::naming::{camel, constant, role_name};
use super::types::roles;
use crate::expr::{Expr, Op};
use crate::model::{
    Direction, Field, FieldType, FieldValue, Form, Machine, Mode, Operand, Optype,
    SyntaxOperandKind,
};
use crate::resolve::EFFECTS;
use std::fmt::Write;

pub(super) fn write(machine: &Machine, out: &mut String) {
    let w = out;
    for ty in &machine.enums {
        let _ = writeln!(
            w,
            "/// Members of `{0}`.\npub static {1}: EnumInfo = EnumInfo {{ name: {0:?}, width: {2}, provenance: \
             Provenance::{3:?}, members: &{4:?} }};",
            ty.name,
            enum_static(&ty.name),
            ty.width,
            ty.provenance,
            ty.members
                .iter()
                .map(|m| (m.name.as_str(), m.value))
                .collect::<Vec<_>>()
        );
    }
    let _ = writeln!(
        w,
        "/// All enumerations of the description.\npub static ENUMS: &[&EnumInfo] = &["
    );
    for ty in &machine.enums {
        let _ = writeln!(w, "    &{},", enum_static(&ty.name));
    }
    let _ = writeln!(w, "];\n");
    control(machine, w);
    let most = machine
        .forms
        .iter()
        .map(register_entries)
        .max()
        .unwrap_or(0);
    let _ = writeln!(
        w,
        "/// Entries of an instruction's register array.\npub const MAX_REGISTERS: usize = {most};\n"
    );
    let _ = writeln!(
        w,
        "/// Tables of all operations, by [`Optype`].\npub static OPTYPES: &[OptypeInfo] = &["
    );
    for optype in &machine.optypes {
        let latency = optype.latency.map(|l| &machine.latencies[l]);
        let time = |name: &str| {
            latency
                .and_then(|l| l.timing.iter().find(|t| t.0 == name))
                .map_or(0, |t| t.1)
        };
        let _ = writeln!(
            w,
            "    OptypeInfo {{ name: {:?}, number: {}, mnemonic: {:?}, forms: &[{}], syntax: &{:?}, examples: &{:?}, \
             effects: Effects({:#x}), options_mask: {:#x}, write_scoreboard: {}, swap: {}, provenance: Provenance::{:?},
        latency: LatencyInfo {{ class: {:?}, result: {}, predicate: {}, wide: {}, sources: {}, variable: {} }} }},",
            optype.name,
            optype.number,
            optype.mnemonic,
            optype.forms.clone().map(|f| format!("Form::{}", machine.forms[f].name)).collect::<Vec<_>>().join(", "),
            optype.syntax,
            optype.examples,
            effect_bits(&optype.effects),
            super::optypes::options(machine, optype).iter().fold(0u128, |m, o| m | o.mask()),
            optype.write_scoreboard,
            swap(machine, optype),
            optype.provenance,
            latency.map_or("", |l| l.class.as_str()),
            time("result"),
            time("predicate"),
            time("wide"),
            time("sources"),
            time("variable") != 0
        );
    }
    let _ = writeln!(
        w,
        "];\n\n/// Tables of all forms, by [`Form`].\npub static FORMS: &[FormInfo] = &["
    );
    let roles = roles(machine);
    for form in &machine.forms {
        write_form(machine, form, &roles, w);
    }
    let _ = writeln!(w, "];\n");
    form_index(machine, w);
}

/// How SrcA and SrcB of an operation may change places, as `Swap`.
fn swap(machine: &Machine, optype: &Optype) -> String {
    let says = |word: &str| optype.selection.iter().any(|s| s == word);
    if says("commutative") {
        return "Swap::Free".to_string();
    }
    if says("exchanged") {
        return "Swap::Exchange".to_string();
    }
    let form = optype.forms.clone().next().map(|f| &machine.forms[f]);
    let comparison = form.filter(|_| says("mirrored")).and_then(|form| {
        form.fields.iter().find_map(|field| match field.ty {
            FieldType::Enum(ty) if machine.enums[ty].members.iter().any(|m| m.name == "LT") => {
                Some((field.bit, &machine.enums[ty]))
            }
            _ => None,
        })
    });
    let Some((bit, ty)) = comparison else {
        return "Swap::Never".to_string();
    };
    let turned = |name: &str| match name.split_at_checked(1) {
        Some(("L", rest)) => format!("G{rest}"),
        Some(("G", rest)) => format!("L{rest}"),
        _ => name.to_string(),
    };
    let code = |name: &str| ty.members.iter().find(|m| m.name == name).map(|m| m.value);
    let codes: Vec<u64> = (0..1 << ty.width)
        .map(|value| {
            let member = ty.members.iter().find(|m| m.value == value);
            member.and_then(|m| code(&turned(&m.name))).unwrap_or(value)
        })
        .collect();
    format!("Swap::Mirror {{ bit: {bit}, codes: &{codes:?} }}")
}

fn enum_static(name: &str) -> String {
    format!("{}_MEMBERS", constant(name))
}

fn effect_bits(words: &[String]) -> u32 {
    words
        .iter()
        .filter_map(|word| EFFECTS.iter().position(|e| e == word))
        .fold(0, |bits, i| bits | 1 << i)
}

fn control(machine: &Machine, w: &mut String) {
    let _ = writeln!(
        w,
        "/// Typed control fields.\npub mod control {{\n    use super::*;"
    );
    for field in &machine.control {
        let _ = writeln!(
            w,
            "    /// `{}`.\n    pub const {}: TypedField<u64> = TypedField::new({}, {});",
            field.name,
            constant(&field.name),
            field.bit,
            field.width
        );
    }
    let _ = writeln!(
        w,
        "}}\n\n/// Control fields, which every form has.\npub static CONTROL: &[FieldInfo] = &["
    );
    for field in &machine.control {
        write_field(machine, &machine.control, field, w);
    }
    let _ = writeln!(w, "];\n");
}

fn mask(field: &Field) -> u128 {
    (u128::MAX >> (128 - u32::from(field.width))) << field.bit
}

fn at(field: &Field, value: u64) -> u128 {
    (u128::from(value) << field.bit) & mask(field)
}

fn write_form(machine: &Machine, form: &Form, roles: &[String], w: &mut String) {
    let constants = form
        .fields
        .iter()
        .filter(|f| matches!(f.value, FieldValue::Constant(_)));
    let constant_mask = constants.fold(0, |m, f| m | mask(f));
    let initial = form.fields.iter().fold(0, |word, f| {
        word | match f.value {
            FieldValue::Constant(v) | FieldValue::Default(v) => at(f, v),
            FieldValue::Free => at(f, f.hidden),
        }
    });
    let used = form
        .fields
        .iter()
        .chain(&machine.control)
        .fold(0, |m, f| m | mask(f));
    let _ = writeln!(
        w,
        "    FormInfo {{ name: {:?}, optype: Optype::{}, stype: {:?}, provenance: Provenance::{:?}, constant_mask: \
         {constant_mask:#x}, initial: {initial:#x}, used: {used:#x}, register_bits: &{:?}, reads: {:#x}, writes: \
        {:#x}, wide: {},",
        form.name,
        machine.optypes[form.optype].name,
        form.stype.0,
        form.provenance,
        register_bits(form),
        entry_mask(form, Direction::In),
        entry_mask(form, Direction::Out),
        form.operands.iter().any(|o| entries(form, o) > 1),
    );
    let index: Vec<u8> = roles
        .iter()
        .map(|role| {
            form.operands
                .iter()
                .position(|o| role_name(&o.name) == *role)
                .map_or(255, |i| i as u8)
        })
        .collect();
    let conditional: Vec<usize> = (0..form.fields.len())
        .filter(|&i| form.fields[i].shown.is_some())
        .collect();
    let _ = writeln!(w, "      roles: {index:?}, conditional: &{conditional:?},");
    let legal: Vec<(u8, String)> = form
        .fields
        .iter()
        .enumerate()
        .filter_map(|(i, f)| {
            let FieldType::Enum(e) = f.ty else {
                return None;
            };
            let codes = code_set(machine.enums[e].members.iter().map(|member| member.value));
            let legal: u32 = codes.iter().map(|word| word.count_ones()).sum();
            let is_full = u64::from(legal) == 1 << f.width;
            (!is_full && !matches!(f.value, FieldValue::Constant(_)))
                .then(|| (i as u8, format!("{:#x}, &{:#x?}", codes[0], &codes[1..])))
        })
        .collect();
    let _ = writeln!(
        w,
        "      legal_codes: &[{}],",
        legal
            .iter()
            .map(|(i, c)| format!("({i}, {c})"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    let _ = writeln!(w, "      fields: &[");
    for field in &form.fields {
        write_field(machine, &form.fields, field, w);
    }
    let _ = writeln!(w, "      ],\n      operands: &[");
    let mut first = 0;
    for operand in &form.operands {
        write_operand(form, operand, first, w);
        first += entries(form, operand);
    }
    let _ = writeln!(w, "      ],\n      modes: &[");
    for mode in &form.modes {
        write_mode(form, mode, w);
    }
    let _ = writeln!(w, "      ],\n      exceptions: &[");
    for e in &form.exceptions {
        let _ = writeln!(
            w,
            "        ExceptionInfo {{ kind: {:?}, message: {:?}, provenance: Provenance::{:?}, broken: |w| \
             {{ let _ = w; {} != 0 }} }},",
            e.kind,
            e.message,
            e.provenance,
            expression(&e.condition, &form.fields)
        );
    }
    let _ = writeln!(w, "      ] }},");
}

/// Codes as sets of bits: bit `n % 64` of word `n / 64` stands for code n.
fn code_set(codes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut words = vec![0];
    for code in codes {
        let word = (code / 64) as usize;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (code % 64);
    }
    words
}

fn write_field(machine: &Machine, fields: &[Field], field: &Field, w: &mut String) {
    let ty = match field.ty {
        FieldType::Gpr => "FieldType::Register(RegisterClass::Gpr)".to_string(),
        FieldType::Uniform => "FieldType::Register(RegisterClass::Uniform)".to_string(),
        FieldType::Predicate => "FieldType::Register(RegisterClass::Predicate)".to_string(),
        FieldType::Enum(e) => format!("FieldType::Enum(&{})", enum_static(&machine.enums[e].name)),
        other => format!("FieldType::{other:?}"),
    };
    let format_by = field
        .format
        .as_ref()
        .filter(|f| f.function == "CvtFImm")
        .map(|f| f.by as u8);
    let shown = field.shown.as_ref().map_or("None".to_string(), |e| {
        format!("Some(|w| {} != 0)", expression(e, fields))
    });
    let _ = writeln!(
        w,
        "        FieldInfo {{ name: {:?}, bit: {}, width: {}, type_name: {:?}, ty: {ty}, value: FieldValue::{:?}, \
         hidden: {}, format_by: {format_by:?}, shown: {shown}, provenance: Provenance::{:?} }},",
        field.name,
        field.bit,
        field.width,
        field.type_name,
        field.value,
        field.hidden,
        field.provenance
    );
}

fn class(form: &Form, operand: &Operand) -> Option<&'static str> {
    match form.fields[operand.field?].ty {
        FieldType::Gpr => Some("Gpr"),
        FieldType::Uniform => Some("Uniform"),
        FieldType::Predicate => Some("Predicate"),
        _ => None,
    }
}

/// Entries in the register array: one for every 32 bits, one for a predicate.
fn entries(form: &Form, operand: &Operand) -> usize {
    match class(form, operand) {
        None => 0,
        Some("Predicate") => 1,
        Some(_) => (operand.max_width as usize).div_ceil(32).max(1),
    }
}

fn register_entries(form: &Form) -> usize {
    form.operands.iter().map(|o| entries(form, o)).sum()
}

/// For every entry where the number of its register stands in the word; none for the registers of an operand behind its
/// first.
fn register_bits(form: &Form) -> Vec<Option<u8>> {
    let mut bits = Vec::with_capacity(register_entries(form));
    for operand in form.operands.iter().filter(|o| entries(form, o) > 0) {
        bits.push(operand.field.map(|f| form.fields[f].bit));
        bits.resize(bits.len() + entries(form, operand) - 1, None);
    }
    bits
}

/// The entries of the operands of a direction, a bit each.
fn entry_mask(form: &Form, direction: Direction) -> u16 {
    let (mut mask, mut first) = (0, 0);
    for operand in &form.operands {
        let count = entries(form, operand);
        if operand.direction == direction {
            mask |= ((1 << count) - 1) << first;
        }
        first += count;
    }
    mask
}

fn write_operand(form: &Form, operand: &Operand, first: usize, w: &mut String) {
    let name = &operand.name;
    let modifier = |suffix: &str| {
        form.fields
            .iter()
            .position(|f| f.name == format!("{name}.{suffix}"))
            .map(|i| i as u8)
    };
    let select = modifier("hsel2").or(modifier("hsel")).or(modifier("bsel"));
    let (negate, absolute) = (modifier("neg"), modifier("abs"));
    let bitnot = modifier("bitnot");
    let _ = writeln!(
        w,
        "        OperandInfo {{ name: {name:?}, role: Role::{}, field: {}, class: {}, direction: Direction::{}, first: \
         {first}, max_width: {}, width: {}, index: {:?}, negate: {:?}, absolute: {:?}, bitnot: {:?}, not: {:?}, \
        select: {select:?}, modifiers: Modifiers::new({}, {}, {}, {}), mask: {:#x} }},",
        camel(&role_name(name)),
        operand.field.map_or(255, |f| f as u8),
        class(form, operand).map_or("None".to_string(), |c| format!("Some(RegisterClass::{c})")),
        match operand.direction {
            Direction::In => "In",
            Direction::Out => "Out",
            Direction::Neither => "Neither",
        },
        operand.max_width,
        match &operand.width {
            // One function for all operands of this width.
            Expr::Number(n) => format!("constant_width::<{n}>"),
            e => format!("|w| ({}) as u8", expression(e, &form.fields)),
        },
        operand.index.map(|f| f as u8),
        negate,
        absolute,
        bitnot,
        modifier("not"),
        negate.is_some(),
        absolute.is_some(),
        bitnot.is_some(),
        select.is_some(),
        operand.field.map_or(0, |f| mask(&form.fields[f])),
    );
}

fn write_mode(form: &Form, mode: &Mode, w: &mut String) {
    let mut fixed = (0, 0);
    for &(field, value) in &mode.fixed {
        fixed.0 |= mask(&form.fields[field]);
        fixed.1 |= at(&form.fields[field], value);
    }
    let mut hidden = (0, 0);
    for &field in &mode.hidden {
        let field = &form.fields[field];
        hidden.0 |= mask(field);
        hidden.1 |= at(field, field.hidden);
    }
    let _ = writeln!(
        w,
        "        ModeInfo {{ fixed_mask: {:#x}, fixed_bits: {:#x}, hidden: &{:?}, hidden_mask: {:#x}, hidden_bits: \
         {:#x}, modifiers: &[",
        fixed.0, fixed.1, mode.hidden, hidden.0, hidden.1
    );
    for m in &mode.modifiers {
        let _ = writeln!(
            w,
            "          ModifierInfo {{ field: {:?}, values: &{:?}, optional: {}, literal: {} }},",
            m.field.map(|f| f as u8),
            m.values,
            m.optional,
            m.literal
        );
    }
    let _ = writeln!(w, "        ], operands: &[");
    for o in &mode.operands {
        let short = |f: Option<usize>| f.map(|f| f as u8);
        let kind = match &o.kind {
            SyntaxOperandKind::AllPredicates => "AllPredicates".to_string(),
            SyntaxOperandKind::Indexed { base, offset } => {
                format!("Indexed {{ base: {base}, offset: {offset} }}")
            }
            SyntaxOperandKind::Memory {
                base,
                uniform,
                offset,
            } => format!(
                "Memory {{ base: {:?}, uniform: {:?}, offset: {:?} }}",
                short(*base),
                short(*uniform),
                short(*offset)
            ),
            SyntaxOperandKind::Plain(d) => format!(
                "Plain {{ field: {}, negate: {:?}, negate_by: {:?}, absolute: {:?}, bitnot: {:?}, not: {:?}, suffix: \
                 {:?} }}",
                d.field,
                short(d.negate),
                short(d.negate_by),
                short(d.absolute),
                short(d.bitnot),
                short(d.not),
                short(d.suffix)
            ),
        };
        let _ = writeln!(
            w,
            "          SyntaxOperand {{ optional: {}, kind: SyntaxOperandKind::{kind} }},",
            o.optional
        );
    }
    let _ = writeln!(w, "        ] }},");
}

/// An expression over the word `w` as Rust of type `i64`.
pub(super) fn expression(e: &Expr, fields: &[Field]) -> String {
    let get = |f: usize| {
        format!(
            "((w >> {}) as u64 & {:#x}) as i64",
            fields[f].bit,
            u64::MAX >> (64 - u32::from(fields[f].width))
        )
    };
    match e {
        Expr::Number(n) => format!("{n}i64"),
        Expr::Field(f) => get(*f),
        Expr::Is { field, value, .. } => format!("(({}) == {value}) as i64", get(*field)),
        Expr::Not(e) => format!("(({}) == 0) as i64", expression(e, fields)),
        Expr::Binary(op, a, b) => {
            let (a, b) = (expression(a, fields), expression(b, fields));
            match op {
                Op::Add => format!("(({a}) + ({b}))"),
                Op::Sub => format!("(({a}) - ({b}))"),
                Op::Mul => format!("(({a}) * ({b}))"),
                Op::And => format!("((({a}) != 0) & (({b}) != 0)) as i64"),
                Op::Or => format!("((({a}) != 0) | (({b}) != 0)) as i64"),
                Op::Equal => format!("(({a}) == ({b})) as i64"),
                Op::NotEqual => format!("(({a}) != ({b})) as i64"),
            }
        }
    }
}

fn form_index(machine: &Machine, w: &mut String) {
    let mut index = vec![u16::MAX; 256 * 16];
    for (i, form) in machine.forms.iter().enumerate() {
        let slot = (machine.optypes[form.optype].number as usize & 255) * 16
            + (form.stype.1 as usize & 15);
        index[slot] = i as u16;
    }
    let _ = writeln!(
        w,
        "static FORM_OF: [u16; 4096] = {index:?};\n\n/// The form of an `optype` code and an `stype` code.\npub fn \
         form_of(optype: u8, stype: u8) -> Option<Form> \
        {{\n    Form::from_index(FORM_OF[optype as usize * 16 + (stype as usize & 15)] as usize)\n}}\n"
    );
}
