//! Forms: fields, operands and exceptions with inheritance flattened and amendments applied.

use super::Context;
use super::expression::{find, has_all_fields};
use crate::ast::{Construct, FieldDeclaration, ValueDeclaration};
use crate::definitions::Definitions;
use crate::diagnostic::Diagnostic;
use crate::model::{Exception, Field, FieldValue, Form, Format};

/// The effects an instruction may have.
pub const EFFECTS: [&str; 19] = [
    "load",
    "store",
    "atomic",
    "global",
    "shared",
    "local",
    "generic",
    "constant",
    "barrier",
    "convergence",
    "branch",
    "call",
    "return",
    "exit",
    "trap",
    "convergent",
    "anygpr",
    "predicates",
    "special",
];

/// What stands among the effects for selection and is none: how SrcA and SrcB may change places, and that it uses no
/// negation of operands.
pub const SELECTION: [&str; 4] = ["commutative", "mirrored", "exchanged", "unnegated"];

/// What stands among the effects for the semantics and is none: that the operation computes with floating-point
/// numbers, where all others are of bit vectors.
pub const FLOATING: &str = "floating";

impl<'a> Context<'a> {
    /// Resolves a form, its modes aside.
    pub(super) fn form(&self, form: &'a Construct, optype: usize) -> Form {
        self.check_duplicate_fields(form);
        let chain = self.definitions.chain(form);
        let declarations = Definitions::fields(&chain);
        let mut fields = self.fields(&declarations);
        let amendments = self.definitions.amendments_of(&chain);
        for amendment in &amendments {
            self.amend_fields(amendment, &mut fields);
        }
        for construct in chain.iter().chain(&amendments) {
            self.formats(construct, &mut fields);
        }
        let mut exceptions = Vec::new();
        for construct in &chain {
            self.exceptions(construct, &fields, &mut exceptions);
        }
        for amendment in &amendments {
            self.exceptions(amendment, &fields, &mut exceptions);
        }
        if !form.operands.effects.is_empty() {
            let span = form.operands.effects[0].span;
            self.report(
                Diagnostic::error(span, "a form has the effects of its optype")
                    .help("state `Effect` in the optype"),
            );
        }
        Form {
            name: form.name.text.clone(),
            optype,
            stype: self.source_type(form, &declarations, &fields),
            operands: self.operands(form, &chain, &amendments, &fields),
            modes: Vec::new(),
            fields,
            exceptions,
            provenance: form.provenance,
            span: form.name.span,
        }
    }

    /// `__Default` and `__Shown`.
    fn amend_fields(&self, amendment: &Construct, fields: &mut [Field]) {
        for (name, member) in &amendment.defaults {
            let Some(index) = find(fields, &name.text) else {
                continue;
            };
            self.mark_used(name.span);
            if fields[index].value != FieldValue::Free {
                let message = format!("field `{}` has a value in its encoding", name.text);
                self.report(
                    Diagnostic::error(name.span, message).related(fields[index].span, "here"),
                );
                continue;
            }
            fields[index].hidden = self.value(member, &fields[index]);
        }
        for (name, condition) in &amendment.shown {
            let Some(index) = find(fields, &name.text) else {
                continue;
            };
            if !has_all_fields(condition, fields) {
                continue;
            }
            self.mark_used(name.span);
            fields[index].shown = self.expression(condition, fields);
        }
    }

    fn formats(&self, construct: &Construct, fields: &mut [Field]) {
        for format in &construct.operands.formats {
            let function = format.function.text.as_str();
            if !matches!(function, "CvtFImm" | "CvtINegX") {
                self.report(
                    Diagnostic::error(
                        format.function.span,
                        format!("unknown format function `{function}`"),
                    )
                    .help("`CvtFImm` for immediates, `CvtINegX` for signs"),
                );
            }
            if format.subject.text != format.field.text {
                self.report(
                    Diagnostic::error(
                        format.subject.span,
                        format!("the format of `{}` is about itself", format.field.text),
                    )
                    .help(format!("write `{}`", format.field.text)),
                );
            }
            let Some(index) = find(fields, &format.field.text) else {
                self.unknown_field(&format.field, fields);
                continue;
            };
            let Some(by) = find(fields, &format.by.text) else {
                self.unknown_field(&format.by, fields);
                continue;
            };
            fields[index].format = Some(Format {
                function: function.to_owned(),
                by,
            });
        }
    }

    fn exceptions(&self, construct: &Construct, fields: &[Field], into: &mut Vec<Exception>) {
        let amendment = construct.kind == crate::ast::ConstructKind::Amend;
        for exception in &construct.exceptions {
            if amendment && !has_all_fields(&exception.condition, fields) {
                continue;
            }
            self.mark_used(exception.message.span);
            let Some(condition) = self.expression(&exception.condition, fields) else {
                continue;
            };
            into.push(Exception {
                kind: exception.kind.text.clone(),
                message: exception.message.text.clone(),
                condition,
                provenance: construct.provenance,
            });
        }
    }

    /// Name and code of the constant field `stype`.
    fn source_type(
        &self,
        form: &Construct,
        declarations: &[(&FieldDeclaration, &Construct)],
        fields: &[Field],
    ) -> (String, u64) {
        let constant = declarations.iter().zip(fields).find_map(|((d, _), field)| {
            match (&d.value, field.value) {
                (ValueDeclaration::Constant(name), FieldValue::Constant(value))
                    if field.name == "stype" =>
                {
                    Some((name.text.clone(), value))
                }
                _ => None,
            }
        });
        constant.unwrap_or_else(|| {
            let message = format!("form `{}` has no constant field `stype`", form.name.text);
            self.report(
                Diagnostic::error(form.name.span, message)
                    .help("add `field<8, 4> SType stype == NAME;`"),
            );
            (String::new(), 0)
        })
    }

    /// The code of the constant field `optype`.
    pub(super) fn optype_number(&self, optype: &'a Construct) -> u64 {
        let chain = self.definitions.chain(optype);
        let declarations = Definitions::fields(&chain);
        let constant = declarations
            .iter()
            .find(|(d, _)| d.name.text == "optype")
            .map(|declaration| self.fields(&[*declaration]))
            .and_then(|fields| match fields.first()?.value {
                FieldValue::Constant(value) => Some(value),
                _ => None,
            });
        constant.unwrap_or_else(|| {
            let message = format!(
                "optype `{}` has no constant field `optype`",
                optype.name.text
            );
            self.report(Diagnostic::error(optype.name.span, message).help(format!(
                "add `field<0, 8> Optype optype == {};`",
                optype.name.text
            )));
            0
        })
    }

    /// The effects of an optype and its amendments, and what they say for selection, each once; whether they say
    /// [`FLOATING`].
    pub(super) fn effects(&self, optype: &'a Construct) -> (Vec<String>, Vec<String>, bool) {
        let mut chain = self.definitions.chain(optype);
        chain.extend(self.definitions.amendments_of(&chain));
        let (mut effects, mut selection, mut floating) = (Vec::new(), Vec::new(), false);
        for effect in chain
            .iter()
            .flat_map(|construct| &construct.operands.effects)
        {
            let word = effect.text.as_str();
            let list: &mut Vec<String> = if EFFECTS.contains(&word) {
                &mut effects
            } else if SELECTION.contains(&word) {
                &mut selection
            } else if word == FLOATING {
                floating = true;
                continue;
            } else {
                let words = [&EFFECTS[..], &SELECTION[..], &[FLOATING]].concat();
                self.report(
                    Diagnostic::error(effect.span, format!("unknown effect `{word}`"))
                        .help(format!("the effects are {}", words.join(", "))),
                );
                continue;
            };
            if !list.iter().any(|e| e == word) {
                list.push(word.to_owned());
            }
        }
        (effects, selection, floating)
    }
}
