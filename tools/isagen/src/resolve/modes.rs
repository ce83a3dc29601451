//! Lines of `__Syntax` → modes of a form.
//!
//! A literal of a line's head (`.X`) belongs to the field whose type has that member. Where several lines tell by their
//! literals which instruction is meant they are modes: each fixes the fields that any line's literals set. What is
//! matched how is said in `docs/description.md`, "Reading `__Syntax`".

use super::Context;
use super::expression::find;
use super::types::built_in;
use super::written_operands::shown_fields;
use crate::diagnostic::Diagnostic;
use crate::model::{Field, FieldType, FieldValue, Form, Mode, Modifier};
use crate::syntax::{ModifierList, ModifierToken, SyntaxBlock, SyntaxLine};

/// The mnemonic of an optype.
pub(super) struct Mnemonic {
    /// `IMAD.WIDE`.
    pub text: String,
    /// How many of each line's modifiers belong to it.
    parts: usize,
}

/// What a modifier of a line's head is for a form.
enum Meaning<'s> {
    /// A name with values: `.itype`.
    Choice(&'s ModifierList),
    /// A name without list, of a field: all members of its type.
    Members(usize),
    /// A literal of a field: `.X`.
    Literal(usize, u64),
    /// A literal of no field: `.F32` of HADD2.
    Text,
}

impl Context<'_> {
    /// Reports lines that have different mnemonics.
    pub(super) fn mnemonic(&self, block: &SyntaxBlock, forms: &[Form]) -> Mnemonic {
        let mut mnemonic: Option<(Mnemonic, &SyntaxLine)> = None;
        for line in &block.lines {
            let of_mnemonic = |modifier: &&ModifierToken| {
                !modifier.optional
                    && forms
                        .iter()
                        .all(|form| matches!(self.meaning(modifier, block, form), Meaning::Text))
            };
            let parts: Vec<&str> = line
                .modifiers
                .iter()
                .take_while(of_mnemonic)
                .map(|modifier| modifier.name.text.as_str())
                .collect();
            let text = std::iter::once(line.mnemonic.text.as_str())
                .chain(parts.iter().copied())
                .collect::<Vec<_>>()
                .join(".");
            match &mnemonic {
                Some((first, first_line)) if first.text != text => {
                    let message = format!("this line is of `{text}`, another of `{}`", first.text);
                    self.report(
                        Diagnostic::error(line.mnemonic.span, message)
                            .related(first_line.mnemonic.span, "another mnemonic")
                            .help("all lines of an optype have one mnemonic"),
                    );
                }
                Some(_) => {}
                None => {
                    let parts = parts.len();
                    mnemonic = Some((Mnemonic { text, parts }, line));
                }
            }
        }
        mnemonic.map_or(
            Mnemonic {
                text: String::new(),
                parts: 0,
            },
            |(mnemonic, _)| mnemonic,
        )
    }

    /// Works out the modes of all forms of an optype.
    pub(super) fn resolve_modes(
        &self,
        block: &SyntaxBlock,
        mnemonic: &Mnemonic,
        forms: &mut [Form],
    ) {
        for form in forms {
            // What each line's own literals demand.
            let demands: Vec<Vec<(usize, u64)>> = block
                .lines
                .iter()
                .map(|line| self.demands(line, mnemonic, block, form))
                .collect();
            let mut modes = Vec::new();
            for (index, line) in block.lines.iter().enumerate() {
                modes.extend(self.mode(index, line, mnemonic, block, &demands, form));
            }
            form.modes = modes;
        }
    }

    /// The fields that the literals of a line set: those not in braces, and those in braces that name the default.
    fn demands(
        &self,
        line: &SyntaxLine,
        mnemonic: &Mnemonic,
        block: &SyntaxBlock,
        form: &Form,
    ) -> Vec<(usize, u64)> {
        let mut demands = Vec::new();
        for modifier in line.modifiers.iter().skip(mnemonic.parts) {
            if let Meaning::Literal(field, value) = self.meaning(modifier, block, form)
                && selects(&form.fields[field], value, modifier.optional)
            {
                demands.push((field, value));
            }
        }
        demands
    }

    fn mode(
        &self,
        index: usize,
        line: &SyntaxLine,
        mnemonic: &Mnemonic,
        block: &SyntaxBlock,
        demands: &[Vec<(usize, u64)>],
        form: &Form,
    ) -> Option<Mode> {
        let mut modifiers = Vec::new();
        for token in line.modifiers.iter().skip(mnemonic.parts) {
            modifiers.extend(self.modifier(token, block, form)?);
        }
        let operands = self.syntax_operands(line, block, form)?;
        let mut shown: Vec<usize> = modifiers.iter().filter_map(|m| m.field).collect();
        operands.iter().for_each(|o| shown_fields(o, &mut shown));
        if let Some(twice) = (1..shown.len()).find(|&i| shown[..i].contains(&shown[i])) {
            let field = &form.fields[shown[twice]];
            self.report(
                Diagnostic::error(
                    line.span,
                    format!("field `{}` is twice in this line", field.name),
                )
                .related(field.span, "this field"),
            );
            return None;
        }
        let mut fixed = demands.get(index)?.clone();
        for &(field, _) in demands.iter().flatten() {
            if !shown.contains(&field) && !fixed.iter().any(|(f, _)| *f == field) {
                fixed.push((field, form.fields[field].hidden));
            }
        }
        let hidden = |&i: &usize| {
            let field = &form.fields[i];
            !matches!(field.value, FieldValue::Constant(_))
                && !field.is_guard()
                && !shown.contains(&i)
                && !fixed.iter().any(|(f, _)| *f == i)
        };
        Some(Mode {
            line: index,
            hidden: (0..form.fields.len()).filter(hidden).collect(),
            fixed,
            modifiers,
            operands,
        })
    }

    fn meaning<'s>(
        &self,
        token: &ModifierToken,
        block: &'s SyntaxBlock,
        form: &Form,
    ) -> Meaning<'s> {
        let name = token.name.text.as_str();
        if let Some(list) = block.list(name) {
            return Meaning::Choice(list);
        }
        if let Some(field) = find(&form.fields, name).filter(|&f| is_modifier(&form.fields[f])) {
            return Meaning::Members(field);
        }
        let mut owners = form.fields.iter().enumerate().filter_map(|(i, field)| {
            if !is_modifier(field) {
                return None;
            }
            if self.is_undefined(field) {
                return (field.name == name.to_ascii_lowercase()).then_some((i, 0));
            }
            let members = &self.members_of(field)?.members;
            let member = members.iter().find(|member| member.name == name)?;
            Some((i, member.value))
        });
        let Some(first) = owners.next() else {
            return Meaning::Text;
        };
        let others: Vec<(usize, u64)> = owners.collect();
        let named = std::iter::once(first)
            .chain(others.iter().copied())
            .find(|(i, _)| form.fields[*i].name == name.to_ascii_lowercase());
        if named.is_none() && !others.is_empty() {
            let fields: Vec<&str> = std::iter::once(first.0)
                .chain(others.iter().map(|(i, _)| *i))
                .map(|i| form.fields[i].name.as_str())
                .collect();
            self.report(
                Diagnostic::error(
                    token.name.span,
                    format!("`.{name}` is a value of {}", fields.join(" and of ")),
                )
                .help("name the modifier and list its values instead"),
            );
        }
        let (field, value) = named.unwrap_or(first);
        Meaning::Literal(field, value)
    }

    /// None after an error; an empty option for what cannot be written for this form.
    #[allow(clippy::option_option)]
    fn modifier(
        &self,
        token: &ModifierToken,
        block: &SyntaxBlock,
        form: &Form,
    ) -> Option<Option<Modifier>> {
        let name = token.name.text.as_str();
        Some(match self.meaning(token, block, form) {
            Meaning::Choice(list) => self.choice(token, list, form)?,
            Meaning::Members(field) => {
                let members = self.members_of(&form.fields[field]);
                let members = members.map_or(&[][..], |e| &e.members);
                Some(Modifier {
                    field: Some(field),
                    values: members.iter().map(|m| (m.name.clone(), m.value)).collect(),
                    optional: token.optional,
                    literal: false,
                })
            }
            Meaning::Literal(field, value) => Some(Modifier {
                field: Some(field),
                values: vec![(name.to_owned(), value)],
                optional: token.optional,
                literal: selects(&form.fields[field], value, token.optional),
            }),
            Meaning::Text if token.optional => None,
            Meaning::Text => Some(Modifier {
                field: None,
                values: vec![(name.to_owned(), 0)],
                optional: false,
                literal: true,
            }),
        })
    }

    #[allow(clippy::option_option)]
    fn choice(
        &self,
        token: &ModifierToken,
        list: &ModifierList,
        form: &Form,
    ) -> Option<Option<Modifier>> {
        let starred = list.values.iter().find(|value| value.starred);
        let optional = token.optional || starred.is_some();
        let by_name = find(&form.fields, &list.name.text);
        let field = by_name
            .filter(|&f| is_modifier(&form.fields[f]))
            .or_else(|| {
                form.fields
                    .iter()
                    .position(|field| is_modifier(field) && self.has_all(list, field))
            });
        let Some(field) = field else {
            let values: Vec<(String, u64)> =
                starred.iter().map(|v| (v.name.text.clone(), 0)).collect();
            if values.is_empty() && !optional {
                let message = format!(
                    "`.{}` belongs to no field of `{}`",
                    token.name.text, form.name
                );
                self.report(
                    Diagnostic::error(token.name.span, message)
                        .help("mark a value with `*` if it needs no encoding"),
                );
                return None;
            }
            return Some((!values.is_empty()).then_some(Modifier {
                field: None,
                values,
                optional,
                literal: false,
            }));
        };
        let values = self.list_values(list, &form.fields[field])?;
        if let Some(starred) = starred
            && let Some((_, value)) = values.iter().find(|(text, _)| *text == starred.name.text)
            && *value != form.fields[field].hidden
            && !self.is_undefined(&form.fields[field])
        {
            let message = format!(
                "the starred value of `.{}` is not the default of field `{}`",
                list.name.text, form.fields[field].name
            );
            self.report(
                Diagnostic::error(starred.name.span, message)
                    .related(form.fields[field].span, "this field"),
            );
        }
        Some(Some(Modifier {
            field: Some(field),
            values,
            optional,
            literal: false,
        }))
    }

    /// Whether all values of a list are members of a field's type.
    fn has_all(&self, list: &ModifierList, field: &Field) -> bool {
        self.members_of(field).is_some_and(|e| {
            list.values
                .iter()
                .all(|value| e.members.iter().any(|m| m.name == value.name.text))
        })
    }

    /// The numbers of a list's values: by name, or by position if the type has none of the names.
    pub(super) fn list_values(
        &self,
        list: &ModifierList,
        field: &Field,
    ) -> Option<Vec<(String, u64)>> {
        let texts = list.values.iter().map(|value| value.name.text.clone());
        if self.is_undefined(field) {
            return Some(texts.map(|text| (text, 0)).collect());
        }
        let members = self.members_of(field).map_or(&[][..], |e| &e.members);
        let by_name: Vec<Option<u64>> = list
            .values
            .iter()
            .map(|value| {
                let member = members.iter().find(|m| m.name == value.name.text)?;
                Some(member.value)
            })
            .collect();
        if by_name.iter().all(Option::is_none) && members.len() == list.values.len() {
            return Some(texts.zip(members.iter().map(|m| m.value)).collect());
        }
        let mut complete = true;
        for (value, found) in list.values.iter().zip(&by_name) {
            if found.is_none() {
                complete = false;
                let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
                let message = format!("`{}` is no value of `{}`", value.name.text, field.type_name);
                self.report(
                    Diagnostic::error(value.name.span, message)
                        .help(format!("its members are {}", names.join(", "))),
                );
            }
        }
        complete.then(|| texts.zip(by_name.into_iter().flatten()).collect())
    }
}

/// Whether a literal selects a mode rather than being a choice.
fn selects(field: &Field, value: u64, optional: bool) -> bool {
    !optional || (field.value == FieldValue::Default(value))
}

/// Whether a field can be set by a modifier of the head.
fn is_modifier(field: &Field) -> bool {
    let enumerated = match field.ty {
        FieldType::Enum(_) => true,
        // What an undefined type is taken for.
        FieldType::Unsigned => built_in(&field.type_name).is_none(),
        _ => false,
    };
    enumerated && !field.name.contains('.') && field.name != "optype" && field.name != "stype"
}
