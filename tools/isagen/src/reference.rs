//! The whole instruction table as Markdown: a reference for readers, generated from the same [`Machine`] as the code.

use std::fmt::Write;

use crate::model::{
    Direction, EnumType, Field, FieldType, FieldValue, Form, Machine, Operand, Optype, Provenance,
};

/// The reference of a machine.
pub fn reference(machine: &Machine) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_reference(machine, &mut out);
    out
}

fn write_reference(machine: &Machine, out: &mut String) -> std::fmt::Result {
    let documented = |p: &Provenance| *p == Provenance::Documented;
    let forms = machine.forms.iter().map(|form| form.provenance);
    let documented_forms = forms.filter(documented).count();
    let optypes = machine.optypes.iter().map(|optype| optype.provenance);
    let documented_optypes = optypes.filter(documented).count();
    writeln!(out, "# Instruction set\n")?;
    writeln!(
        out,
        "{} optypes with {} forms; {documented_optypes} optypes with {documented_forms} forms are documented by the \
         vendor, the others \
         and every number marked *assigned* were chosen by this project.\n",
        machine.optypes.len(),
        machine.forms.len(),
    )?;
    writeln!(out, "## Control fields of every form\n")?;
    write_fields(machine, &machine.control, out)?;
    writeln!(out, "\n## Types\n")?;
    writeln!(out, "| type | bits | members | provenance |")?;
    writeln!(out, "| --- | ---: | --- | --- |")?;
    for enumeration in &machine.enums {
        write_type(enumeration, out)?;
    }
    for optype in &machine.optypes {
        write_optype(machine, optype, out)?;
    }
    Ok(())
}

fn write_type(enumeration: &EnumType, out: &mut String) -> std::fmt::Result {
    let members: Vec<String> = enumeration
        .members
        .iter()
        .map(|member| format!("{} = {}", member.name, member.value))
        .collect();
    writeln!(
        out,
        "| {} | {} | {} | {} |",
        enumeration.name,
        enumeration.width,
        members.join(", "),
        enumeration.provenance.name()
    )
}

fn write_optype(machine: &Machine, optype: &Optype, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n## {}\n", optype.name)?;
    write!(
        out,
        "Optype {} ({}), group {}, {}.",
        optype.number,
        number_provenance(machine, "Optype", optype.provenance).name(),
        optype.group,
        optype.provenance.name()
    )?;
    if let Some(latency) = optype
        .latency
        .and_then(|index| machine.latencies.get(index))
    {
        write!(out, " Latency class {}.", latency.class)?;
    }
    if !optype.effects.is_empty() {
        write!(out, " Effects: {}.", optype.effects.join(", "))?;
    }
    if !optype.selection.is_empty() {
        write!(out, " For selection: {}.", optype.selection.join(", "))?;
    }
    if optype.floating {
        write!(out, " Floating point.")?;
    }
    writeln!(out, "\n\n```asm")?;
    for line in &optype.syntax {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "```")?;
    for form in machine.forms.get(optype.forms.clone()).unwrap_or_default() {
        write_form(machine, optype, form, out)?;
    }
    Ok(())
}

fn write_form(
    machine: &Machine,
    optype: &Optype,
    form: &Form,
    out: &mut String,
) -> std::fmt::Result {
    writeln!(out, "\n### {}\n", form.name)?;
    let (stype, code) = &form.stype;
    writeln!(
        out,
        "optype {} = {}, stype {stype} = {code} ({}); {}.\n",
        optype.name,
        optype.number,
        number_provenance(machine, "SType", form.provenance).name(),
        form.provenance.name()
    )?;
    write_fields(machine, &form.fields, out)?;
    writeln!(out, "\n| operand | class | direction | bits |")?;
    writeln!(out, "| --- | --- | --- | --- |")?;
    for operand in &form.operands {
        let class = operand
            .field
            .map_or("all predicates", |field| class(&form.fields[field]));
        writeln!(
            out,
            "| {} | {class} | {} | {} |",
            operand.name,
            direction(operand),
            operand.width.text(&|field| form.fields[field].name.clone())
        )?;
    }
    if !form.exceptions.is_empty() {
        writeln!(out)?;
    }
    for exception in &form.exceptions {
        writeln!(
            out,
            "- Error if `{}`: {} ({})",
            exception
                .condition
                .text(&|field| form.fields[field].name.clone()),
            exception.message,
            exception.provenance.name()
        )?;
    }
    Ok(())
}

/// By ascending bit.
fn write_fields(machine: &Machine, fields: &[Field], out: &mut String) -> std::fmt::Result {
    writeln!(out, "| bits | field | type | value | provenance |")?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    let mut sorted: Vec<&Field> = fields.iter().collect();
    sorted.sort_by_key(|field| field.bit);
    for field in sorted {
        let last = u32::from(field.bit) + u32::from(field.width) - 1;
        let bits = if field.width == 1 {
            field.bit.to_string()
        } else {
            format!("{}..{last}", field.bit)
        };
        let value = match field.value {
            FieldValue::Free => String::new(),
            FieldValue::Default(value) => format!("default {}", member(machine, field, value)),
            FieldValue::Constant(value) => format!("always {}", member(machine, field, value)),
        };
        writeln!(
            out,
            "| {bits} | {} | {} | {value} | {} |",
            field.name,
            field.type_name,
            field.provenance.name()
        )?;
    }
    Ok(())
}

/// A field's value by its name, else as a number.
fn member(machine: &Machine, field: &Field, value: u64) -> String {
    let enumeration = machine.enums.iter().find(|e| e.name == field.type_name);
    let member = enumeration.and_then(|e| e.members.iter().find(|m| m.value == value));
    member.map_or_else(|| value.to_string(), |m| m.name.clone())
}

/// The provenance of the numbers of a type; `otherwise` where the type has no definition.
fn number_provenance(machine: &Machine, name: &str, otherwise: Provenance) -> Provenance {
    let found = machine.enums.iter().find(|e| e.name == name);
    found.map_or(otherwise, |e| e.provenance)
}

fn class(field: &Field) -> &'static str {
    match field.ty {
        FieldType::Gpr => "general register",
        FieldType::Uniform => "uniform register",
        FieldType::Predicate => "predicate",
        FieldType::UniformPredicate => "uniform predicate",
        FieldType::Convergence => "convergence barrier",
        FieldType::ConstantMemory => "constant memory",
        FieldType::Address => "address offset",
        FieldType::Label => "label",
        FieldType::Signed => "signed immediate",
        FieldType::Unsigned => "unsigned immediate",
        FieldType::Float32 => "f32 immediate",
        FieldType::Half2 => "immediate of two halves",
        FieldType::Enum(_) => "enumeration",
    }
}

fn direction(operand: &Operand) -> &'static str {
    match operand.direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::Neither => "immediate",
    }
}
