//! `clif-util isa [NAME] [--json]`: the description with its provenance.

use crate::{Outcome, input};
use anyhow::{Result, bail};
use clap::Args;
use cranelift_thisgpu::unstable::isa::Form;
use cranelift_thisgpu::unstable::isa::encode::value_text;
use cranelift_thisgpu::unstable::isa::generated::{CONTROL, ENUMS, OPTYPES};
use cranelift_thisgpu::unstable::isa::table::{
    EnumInfo, FieldInfo, FieldType, FieldValue, FormInfo, OptypeInfo, Provenance,
};
use cranelift_thisgpu::unstable::text::did_you_mean;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;

/// Options of `isa`.
#[derive(Args)]
pub struct Options {
    /// An operation, mnemonic, form or enumeration; without it everything.
    name: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Options {
    /// Prints the description.
    pub fn run(self) -> Result<Outcome> {
        let selection = Selection::new(self.name.as_deref())?;
        let out = if self.json {
            serde_json::to_string_pretty(&selection.json())? + "\n"
        } else {
            selection.text()
        };
        input::write(Path::new("-"), out.as_bytes())?;
        Ok(Outcome::Success)
    }
}

/// What is shown.
struct Selection {
    optypes: Vec<(&'static OptypeInfo, Vec<Form>)>,
    enums: Vec<&'static EnumInfo>,
    all: bool,
}

impl Selection {
    fn new(name: Option<&str>) -> Result<Selection> {
        let is = |candidate: &str| name.is_none_or(|n| n.eq_ignore_ascii_case(candidate));
        let mut optypes = Vec::new();
        for optype in OPTYPES {
            let whole = is(optype.name) || is(optype.mnemonic);
            let forms: Vec<Form> = optype
                .forms
                .iter()
                .copied()
                .filter(|f| whole || is(f.info().name))
                .collect();
            if !forms.is_empty() {
                optypes.push((optype, forms));
            }
        }
        let enums: Vec<&EnumInfo> = ENUMS.iter().copied().filter(|e| is(e.name)).collect();
        if let (Some(name), true, true) = (name, optypes.is_empty(), enums.is_empty()) {
            let known = OPTYPES.iter().flat_map(|o| [o.name, o.mnemonic]);
            let known = known.chain(ENUMS.iter().map(|e| e.name));
            bail!(
                "there is no operation, form or enumeration `{name}`{}",
                did_you_mean(name, known)
            );
        }
        Ok(Selection {
            optypes,
            enums,
            all: name.is_none(),
        })
    }

    fn text(&self) -> String {
        let mut out = String::new();
        if self.all {
            out.push_str("Control fields of every form\n");
            fields(CONTROL, &mut out);
        }
        for (optype, forms) in &self.optypes {
            let _ = writeln!(
                out,
                "\n{} ({}), {}; number {}, {}",
                optype.name,
                optype.mnemonic,
                optype.provenance.name(),
                optype.number,
                numbers("Optype").name()
            );
            for line in optype.syntax {
                let _ = writeln!(out, "    {line}");
            }
            let latency = optype.latency;
            let _ = writeln!(
                out,
                "    latency {} (assumed): result {}, predicate {}, wide {}{}",
                latency.class,
                latency.result,
                latency.predicate,
                latency.wide,
                if latency.variable { ", variable" } else { "" }
            );
            for form in forms {
                form_text(form.info(), &mut out);
            }
        }
        for ty in &self.enums {
            let _ = writeln!(out, "\n{}<{}>, {}", ty.name, ty.width, ty.provenance.name());
            for (name, code) in ty.members {
                let _ = writeln!(out, "    {name} = {code}");
            }
        }
        out.trim_start().to_string()
    }

    fn json(&self) -> Value {
        let members = |ty: &EnumInfo| -> Map<String, Value> {
            ty.members
                .iter()
                .map(|(name, code)| (name.to_string(), json!(code)))
                .collect()
        };
        let stypes = ENUMS.iter().find(|e| e.name == "SType");
        let forms = self.optypes.iter().flat_map(|(_, forms)| forms);
        let forms = forms.map(|f| (f.info().name.to_string(), form_json(f.info())));
        json!({
            "optypes": self.optypes.iter().map(|(o, _)| (o.name.to_string(), json!(o.number))).collect::<Map<_, _>>(),
            "stypes": stypes.map(|e| members(e)).unwrap_or_default(),
            "enums": self.enums.iter().map(|e| (e.name.to_string(), Value::Object(members(e)))).collect::<Map<_, _>>(),
            "control": CONTROL.iter().map(|f| (f.name.to_string(), json!([f.bit, f.width]))).collect::<Map<_, _>>(),
            "forms": forms.collect::<Map<_, _>>(),
        })
    }
}

fn form_json(form: &FormInfo) -> Value {
    let field = |f: &FieldInfo| json!({"name": f.name, "bit": f.bit, "width": f.width, "type": f.type_name});
    json!({
        "optype": form.optype.info().name,
        "stype": form.stype,
        "provenance": form.provenance.name(),
        "fields": form.fields.iter().map(field).collect::<Vec<_>>(),
    })
}

fn form_text(form: &FormInfo, out: &mut String) {
    let _ = writeln!(
        out,
        "  {} ({}), {}",
        form.name,
        form.stype,
        form.provenance.name()
    );
    fields(form.fields, out);
    for e in form.exceptions {
        let _ = writeln!(
            out,
            "    refused: {}: {} ({})",
            e.kind,
            e.message,
            e.provenance.name()
        );
    }
}

/// Where the numbers of an enumeration come from.
fn numbers(name: &str) -> Provenance {
    let found = ENUMS.iter().find(|e| e.name == name);
    found.map_or(Provenance::Assigned, |e| e.provenance)
}

fn fields(fields: &[FieldInfo], out: &mut String) {
    let mut fields: Vec<&FieldInfo> = fields.iter().collect();
    fields.sort_by_key(|f| f.bit);
    for f in fields {
        let value = match f.value {
            FieldValue::Free => String::new(),
            FieldValue::Default(v) => format!(" = {}", value_text(&f.ty, v)),
            FieldValue::Constant(v) => format!(" == {}", value_text(&f.ty, v)),
        };
        let code = match (f.value, f.ty) {
            // A documented name may stand for a number that is not.
            (FieldValue::Default(v) | FieldValue::Constant(v), FieldType::Enum(_)) => {
                format!(" ({v}, {})", numbers(f.type_name).name())
            }
            _ => String::new(),
        };
        let bits = format!("{}..{}", f.bit, f.bit + f.width - 1);
        let _ = writeln!(
            out,
            "    {bits:<9} {:<12} {}{value}{code}",
            f.type_name, f.name
        );
    }
}
