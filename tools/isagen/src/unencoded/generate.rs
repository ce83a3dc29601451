//! Tables of a set without encodings, as Rust: an enumeration for each list of values, a structure of all modifiers,
//! and the lines of syntax. The types they fill are those of the module that includes them.

use super::{InstructionSet, Line, List, Operand, Shape};
use crate::generate::{camel, snake};
use std::fmt::Write;

/// The source of the tables.
pub fn rust(set: &InstructionSet) -> String {
    let lists = set.lists();
    let mut out = String::new();
    for list in &lists {
        enumeration(list, &mut out);
    }
    choice(&lists, &mut out);
    modifiers(&lists, &mut out);
    operations(set, &mut out);
    lines(set, &mut out);
    examples(set, &mut out);
    out
}

fn type_name(list: &List) -> String {
    camel(&list.name)
}

/// The variant of a value: `<NULL>` of the flags and of `.fmz` is `None`.
fn variant(list: &List, index: usize) -> String {
    match &list.values[index].text {
        None => "Off".to_owned(),
        Some(text) if *text == list.name => "On".to_owned(),
        Some(text) => camel(text),
    }
}

fn enumeration(list: &List, out: &mut String) {
    let name = type_name(list);
    let _ = writeln!(
        out,
        "/// Values of `.{}`.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub enum {name} {{",
        list.name
    );
    for (index, value) in list.values.iter().enumerate() {
        let text = value
            .text
            .as_deref()
            .map_or("Nothing written.".to_owned(), |t| format!("`.{t}`."));
        let default = if index == list.default() {
            "    #[default]\n"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "    /// {text}\n{default}    {},",
            variant(list, index)
        );
    }
    let variants: Vec<String> = (0..list.values.len())
        .map(|index| format!("{name}::{}", variant(list, index)))
        .collect();
    let _ = writeln!(
        out,
        "}}\n\nimpl {name} {{\n    /// In the order of the document.\n    pub const ALL: [{name}; {}] = [{}];\n}}\n",
        variants.len(),
        variants.join(", ")
    );
}

/// `Choice`: a list by its place.
fn choice(lists: &[List], out: &mut String) {
    out.push_str(
        "/// A modifier.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Choice {\n",
    );
    for list in lists {
        let _ = writeln!(out, "    /// `.{}`.\n    {},", list.name, type_name(list));
    }
    out.push_str("}\n\nimpl Choice {\n    /// The texts of its values without their dots; the empty one is not written.\n    pub const fn values(self) -> &'static [&'static str] {\n        match self {\n");
    for list in lists {
        let texts: Vec<&str> = list
            .values
            .iter()
            .map(|v| v.text.as_deref().unwrap_or(""))
            .collect();
        let _ = writeln!(
            out,
            "            Choice::{} => &{texts:?},",
            type_name(list)
        );
    }
    out.push_str("        }\n    }\n\n    /// The place of the default among the values; none if a value must be \
     written.\n    pub const fn default(self) -> Option<usize> {\n        match self {\n");
    for list in lists {
        let starred = list.values.iter().position(|v| v.starred);
        let _ = writeln!(
            out,
            "            Choice::{} => {starred:?},",
            type_name(list)
        );
    }
    out.push_str("        }\n    }\n}\n\n");
}

/// `Modifiers`: a field for each list that stands behind the mnemonic or an operand.
fn modifiers(lists: &[List], out: &mut String) {
    out.push_str(
        "/// The modifiers of an instruction; those that its line does not have hold their \
     defaults.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct Modifiers {\n",
    );
    for list in lists {
        let _ = writeln!(
            out,
            "    /// `.{}`.\n    pub {}: {},",
            list.name,
            snake(&list.name),
            type_name(list)
        );
    }
    out.push_str("}\n\nimpl Modifiers {\n    /// The place of a modifier's value among its values.\n    pub fn get(&self, choice: Choice) -> usize {\n        match choice {\n");
    for list in lists {
        let (ty, field) = (type_name(list), snake(&list.name));
        let _ = writeln!(out, "            Choice::{ty} => self.{field} as usize,");
    }
    out.push_str("        }\n    }\n\n    /// Sets a modifier to one of its values, by place.\n    ///\n    /// # \
     Panics\n    /// When there is no such value.\n    pub fn set(&mut self, choice: Choice, value: usize) \
    {\n        match choice {\n");
    for list in lists {
        let (ty, field) = (type_name(list), snake(&list.name));
        let _ = writeln!(
            out,
            "            Choice::{ty} => self.{field} = {ty}::ALL[value],"
        );
    }
    out.push_str("        }\n    }\n}\n\n");
}

fn operations(set: &InstructionSet, out: &mut String) {
    out.push_str("/// What an instruction does.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Operation {\n");
    for operation in &set.operations {
        let name = &operation.name.text;
        let _ = writeln!(out, "    /// `{name}`.\n    {},", camel(name));
    }
    out.push_str("}\n\n");
}

fn lines(set: &InstructionSet, out: &mut String) {
    let _ = writeln!(
        out,
        "/// The name of the set.\npub const NAME: &str = {:?};\n\n/// The ways to write an instruction, in the order \
         of the documents.\npub static LINES: &[Line] = &[",
        set.name.text
    );
    for operation in &set.operations {
        for written in &operation.lines {
            line(&camel(&operation.name.text), written, out);
        }
    }
    out.push_str("];\n\n");
}

fn line(operation: &str, line: &Line, out: &mut String) {
    let modifiers: Vec<String> = (line.modifiers.iter())
        .map(|m| format!("(Choice::{}, {})", camel(&m.name.text), m.optional))
        .collect();
    let _ = writeln!(
        out,
        "    Line {{\n        text: {:?},\n        operation: Operation::{operation},\n        mnemonic: \
         {:?},\n        modifiers: &[{}],\n        operands: &[",
        line.text,
        line.mnemonic.text,
        modifiers.join(", ")
    );
    for operand in &line.operands {
        let _ = writeln!(out, "            {},", operand_text(operand));
    }
    out.push_str("        ],\n    },\n");
}

fn operand_text(operand: &Operand) -> String {
    let shape = match operand.shape {
        Shape::Register => "Shape::Register".to_owned(),
        Shape::Predicate => "Shape::Predicate".to_owned(),
        Shape::Constant { bank, address } => {
            format!("Shape::Constant {{ bank: {bank}, address: {address} }}")
        }
        Shape::Immediate { bits } => format!("Shape::Immediate {{ bits: {bits} }}"),
    };
    let format = operand.suffix.as_ref().map_or("None".to_owned(), |list| {
        format!("Some(Choice::{})", camel(list))
    });
    // Which source it is does not depend on what it is.
    let part = match operand.name.as_str() {
        "Rd" => "Destination",
        "Ra" => "First",
        "Pp" => "Combined",
        _ => "Second",
    };
    let Operand {
        name,
        negate,
        absolute,
        not,
        ..
    } = operand;
    format!(
        "OperandSyntax {{ name: {name:?}, part: Part::{part}, shape: {shape}, negate: {negate}, absolute: {absolute}, \
         not: {not}, format: {format} }}"
    )
}

fn examples(set: &InstructionSet, out: &mut String) {
    out.push_str("/// The examples of the documents.\npub static EXAMPLES: &[&str] = &[\n");
    for example in set.operations.iter().flat_map(|o| &o.examples) {
        let _ = writeln!(out, "    {:?},", example.text);
    }
    out.push_str("];\n");
}
