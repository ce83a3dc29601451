//! One typed function per form that builds an instruction.

use super::naming::{module_name, snake};
use super::optypes::options;
use super::types::is_bool;
use crate::expr::Expr;
use crate::model::{FieldType, Form, Machine, Operand};
use std::fmt::Write;

/// An argument of a builder.
struct Argument {
    name: String,
    ty: String,
    /// The call that puts it into the instruction.
    call: String,
}

/// The module `build`. Labels are no arguments: their distances are not known before the code is laid out.
pub(super) fn write(machine: &Machine, w: &mut String) {
    let _ = writeln!(
        w,
        "/// Every form as a function of its operands, in the order of the documents: the modifiers behind the \
         mnemonic first, if it has any, then
/// results and sources. The guard is always, operands have no sign, and labels are left open.
pub mod build {{\n    use super::*;\n    use crate::isa::inst::Inst;\n    use crate::isa::operand::*;\n    use crate::isa::register::Register;\n"
    );
    for form in &machine.forms {
        function(machine, form, w);
    }
    let _ = writeln!(w, "}}\n");
}

fn function(machine: &Machine, form: &Form, w: &mut String) {
    let optype = &machine.optypes[form.optype];
    let arguments: Vec<Argument> = form
        .operands
        .iter()
        .enumerate()
        .filter(|(_, operand)| operand.name != "pg")
        .flat_map(|(index, operand)| arguments(machine, form, index, operand))
        .collect();
    let has_options = !options(machine, optype).is_empty();
    let mut parameters = Vec::new();
    if has_options {
        let module = module_name(&optype.name);
        parameters.push(format!("options: {module}::Options"));
    }
    parameters.extend(arguments.iter().map(|a| format!("{}: {}", a.name, a.ty)));
    let word = if has_options { "options.word()" } else { "0" };
    let calls: String = arguments.iter().map(|a| a.call.as_str()).collect();
    let _ = writeln!(
        w,
        "    /// `{}`, form `{}`.\n    pub fn {}<R: Register>({}) -> Inst<R> {{ Inst::with_options(Form::{}, \
         {word}){calls} }}",
        optype.mnemonic,
        form.name,
        snake(&form.name),
        parameters.join(", "),
        form.name,
    );
}

/// An operand's arguments: mostly one, none for a label and the set of all predicates, two for an indexed register.
fn arguments(
    machine: &Machine,
    form: &Form,
    index: usize,
    operand: &Operand,
) -> impl Iterator<Item = Argument> {
    let own = operand.field.and_then(|field| {
        let (ty, call) = match register(form, index, operand, field) {
            Some((ty, method)) => {
                let name = snake(&form.fields[field].name);
                (
                    format!("impl Argument<{ty}>"),
                    format!(".{method}({index}, {name})"),
                )
            }
            None => number(machine, form, field)?,
        };
        let name = snake(&form.fields[field].name);
        Some(Argument { name, ty, call })
    });
    let offset = operand.index.and_then(|field| {
        let (ty, call) = number(machine, form, field)?;
        let name = snake(&form.fields[field].name);
        Some(Argument { name, ty, call })
    });
    own.into_iter().chain(offset)
}

/// Type and method of a register operand.
fn register(
    form: &Form,
    index: usize,
    operand: &Operand,
    field: usize,
) -> Option<(String, &'static str)> {
    let class = match form.fields[field].ty {
        FieldType::Gpr => "Gpr",
        FieldType::Uniform => "Uniform",
        FieldType::Predicate => {
            let negation = format!("{}.not", form.operands[index].name);
            let can_be_negated = form.fields.iter().any(|f| f.name == negation);
            return Some(if can_be_negated {
                ("Predicate<R>".to_string(), "with_predicate")
            } else {
                ("PredicateResult<R>".to_string(), "with_reg")
            });
        }
        _ => return None,
    };
    Some(match operand.width {
        Expr::Number(bits) => (format!("{class}<R, {}>", bits / 32), "with_reg"),
        _ => (format!("{class}s<R>"), "with_regs"),
    })
}

/// Type and call of a field that holds no register; none for a label.
fn number(machine: &Machine, form: &Form, index: usize) -> Option<(String, String)> {
    let field = &form.fields[index];
    let name = snake(&field.name);
    let (ty, value) = match field.ty {
        FieldType::Label => return None,
        FieldType::Gpr | FieldType::Uniform | FieldType::Predicate => return None,
        // No instruction writes a uniform predicate but UPT, which the field holds from the start: its negation is all
        // there is to choose.
        FieldType::UniformPredicate => {
            let negation = format!("{}.not", field.name);
            let not = form.fields.iter().position(|f| f.name == negation)?;
            return Some((
                "bool".to_string(),
                format!(".with_number({not}, i64::from(!{name}))"),
            ));
        }
        FieldType::Convergence => ("u8", format!("i64::from({name})")),
        FieldType::ConstantMemory => ("Constant", format!("{name}.bits() as i64")),
        FieldType::Address => ("i32", format!("i64::from({name})")),
        FieldType::Signed if field.width == 32 => (
            "impl Argument<Imm32>",
            format!("{name}.argument().number()"),
        ),
        FieldType::Signed => ("i32", format!("i64::from({name})")),
        FieldType::Unsigned if field.width <= 8 => ("u8", format!("i64::from({name})")),
        FieldType::Unsigned => ("u32", format!("i64::from({name})")),
        FieldType::Float32 => ("f32", format!("i64::from({name}.to_bits())")),
        FieldType::Half2 => (
            "[u16; 2]",
            format!("i64::from({name}[0]) | i64::from({name}[1]) << 16"),
        ),
        FieldType::Enum(e) if is_bool(&machine.enums[e]) => ("bool", format!("i64::from({name})")),
        FieldType::Enum(e) => (machine.enums[e].name.as_str(), format!("{name} as i64")),
    };
    Some((ty.to_string(), format!(".with_number({index}, {value})")))
}

#[cfg(test)]
mod tests {
    use crate::resolve::load;
    use crate::source::SourceMap;
    use std::path::Path;

    /// The arguments of the builder of a form, by the description of the machine.
    fn arguments<'t>(text: &'t str, function: &str) -> &'t str {
        let head = format!("pub fn {function}<R: Register>(");
        let at = text
            .find(&head)
            .unwrap_or_else(|| panic!("no builder {function}"));
        let rest = &text[at + head.len()..];
        &rest[..rest.find(") -> Inst<R>").expect("a result")]
    }

    #[test]
    fn arguments_have_the_types_of_their_operands() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
        let mut sources = SourceMap::default();
        sources.read(&folder).expect("the description is readable");
        let machine = load(&sources).expect("the description has no mistake");
        let mut text = String::new();
        super::write(&machine, &mut text);
        assert_eq!(text.matches("pub fn ").count(), machine.forms.len());
        for (function, expected) in [
            // One width, and one that a modifier chooses.
            (
                "stg_rr",
                "options: stg::Options, ra: impl Argument<Gpr<R, 2>>, addr: i32, rb: impl Argument<Gprs<R>>",
            ),
            // Written and read predicates.
            (
                "sel_rr",
                "rd: impl Argument<Gpr<R, 1>>, ra: impl Argument<Gpr<R, 1>>, rb: impl Argument<Gpr<R, 1>>, pp: impl \
                 Argument<Predicate<R>>",
            ),
            (
                "plop3_u",
                "pu: impl Argument<PredicateResult<R>>, pa: impl Argument<Predicate<R>>, pb: impl \
                 Argument<Predicate<R>>, upc: bool, lut: u8",
            ),
            // A label, and the set of all predicates.
            ("bra_x", ""),
            (
                "r2p_ri",
                "ra: impl Argument<Gpr<R, 1>>, vb: impl Argument<Imm32>",
            ),
            // Two fields of one operand.
            (
                "getgpr_u",
                "rd: impl Argument<Gpr<R, 1>>, urb: impl Argument<Uniform<R, 1>>, ridx: i32",
            ),
            ("s2r_x", "rd: impl Argument<Gpr<R, 1>>, sreg: SReg"),
        ] {
            assert_eq!(arguments(&text, function), expected, "{function}");
        }
    }
}
