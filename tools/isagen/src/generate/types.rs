//! Enumerations, optypes, forms and roles as Rust types.

use super::naming::{camel, role_name};
use crate::model::{EnumType, Machine};
use crate::resolve::EFFECTS;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Types that are registers or codes, not enumerations of modifiers.
const NOT_MODIFIERS: [&str; 7] = ["Reg", "UReg", "Pred", "UPred", "BReg", "Optype", "SType"];

/// Enumerations that become Rust enums.
pub(super) fn modifier_types(machine: &Machine) -> impl Iterator<Item = (usize, &EnumType)> {
    machine
        .enums
        .iter()
        .enumerate()
        .filter(|(_, e)| !NOT_MODIFIERS.contains(&e.name.as_str()))
}

/// Whether the members are False and True: such a field is a `bool`.
pub(super) fn is_bool(ty: &EnumType) -> bool {
    ty.members.len() == 2 && ty.members[0].name == "False" && ty.members[1].name == "True"
}

pub(super) fn write(machine: &Machine, out: &mut String) {
    let w = out;
    let _ = writeln!(
        w,
        "use super::inst::{{FieldEnum, TypedField}};\nuse super::table::*;\nuse super::register::RegisterClass;\n"
    );
    hardwired(machine, w);
    for (_, ty) in modifier_types(machine).filter(|(_, t)| !is_bool(t)) {
        enumeration(ty, w);
    }
    let _ = writeln!(
        w,
        "/// An operation.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, \
         Hash)]\n#[allow(non_camel_case_types)]\n#[repr(u8)]\npub enum Optype {{"
    );
    for optype in &machine.optypes {
        let _ = writeln!(w, "    /// `{}`.\n    {},", optype.mnemonic, optype.name);
    }
    let _ = writeln!(
        w,
        "}}\n\nimpl Optype {{\n    /// All, in the order of the description.\n    pub const ALL: &'static [Optype] = &["
    );
    for optype in &machine.optypes {
        let _ = writeln!(w, "        Optype::{},", optype.name);
    }
    let _ = writeln!(
        w,
        "    ];\n    /// Its tables.\n    pub fn info(self) -> &'static OptypeInfo {{ &OPTYPES[self as usize] }}\n}}\n"
    );
    let _ = writeln!(
        w,
        "/// An encoding of an operation.\n#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\npub struct \
         Form(u16);\n\nimpl Form {{"
    );
    for (i, form) in machine.forms.iter().enumerate() {
        let _ = writeln!(
            w,
            "    /// `{0}`.\n    pub const {0}: Form = Form({i});",
            form.name
        );
    }
    let _ = writeln!(
        w,
        "    /// Its tables.\n    pub const fn info(self) -> &'static FormInfo {{ &FORMS[self.0 as usize] }}
    /// The form of a position in [`FORMS`].\n    pub fn from_index(index: usize) -> Option<Form> {{ (index < FORMS.len()).then_some(Form(index as u16)) }}
    /// Position in [`FORMS`].\n    pub const fn index(self) -> usize {{ self.0 as usize }}\n}}
impl std::fmt::Debug for Form {{\n    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{ f.write_str(self.info().name) }}\n}}\n"
    );
    let _ = writeln!(
        w,
        "/// The words for effects in the order of their bits.\n#[cfg(test)]\npub const EFFECT_WORDS: [&str; {}] = \
         {EFFECTS:?};\n",
        EFFECTS.len()
    );
    let roles = roles(machine);
    let _ = writeln!(
        w,
        "/// An operand's part in its operation.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, \
         Hash)]\n#[repr(u8)]\npub enum Role {{"
    );
    for role in &roles {
        let _ = writeln!(w, "    /// `{role}`.\n    {},", camel(role));
    }
    let _ = writeln!(
        w,
        "}}\nimpl Role {{\n    /// Number of roles.\n    pub const COUNT: usize = {};\n}}\n",
        roles.len()
    );
}

/// Every role that an operand of any form has.
pub(super) fn roles(machine: &Machine) -> Vec<String> {
    let mut names = BTreeSet::new();
    for form in &machine.forms {
        for operand in &form.operands {
            names.insert(role_name(&operand.name));
            if let Some(index) = operand.index {
                names.insert(role_name(&form.fields[index].name));
            }
        }
    }
    names.into_iter().collect()
}

fn hardwired(machine: &Machine, w: &mut String) {
    let _ = writeln!(
        w,
        "/// Name and number of the hard-wired register of each class.\npub const HARDWIRED: [(&str, u8); 3] = ["
    );
    for name in ["Reg", "UReg", "Pred"] {
        let member = machine
            .enums
            .iter()
            .find(|e| e.name == name)
            .and_then(|e| e.members.last());
        let (name, value) = member.map_or(("", 255), |m| (m.name.as_str(), m.value));
        let _ = writeln!(w, "    ({name:?}, {value}),");
    }
    let _ = writeln!(w, "];\n");
}

fn enumeration(ty: &EnumType, w: &mut String) {
    let name = &ty.name;
    let _ = writeln!(
        w,
        "/// Type `{name}` of the description ({}).\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, \
         Hash)]\n#[repr(u8)]\npub enum {name} {{",
        ty.provenance.name()
    );
    let mut seen = BTreeSet::new();
    let (mut first, mut aliases) = (Vec::new(), Vec::new());
    for member in &ty.members {
        if seen.insert(member.value) {
            first.push(member);
        } else {
            aliases.push(member);
        }
    }
    for m in &first {
        let _ = writeln!(
            w,
            "    /// `{}`.\n    {} = {},",
            m.name,
            camel(&m.name),
            m.value
        );
    }
    let _ = writeln!(w, "}}");
    if !aliases.is_empty() {
        let _ = writeln!(w, "#[allow(non_upper_case_globals)]\nimpl {name} {{");
        for m in &aliases {
            let original = first
                .iter()
                .find(|f| f.value == m.value)
                .map_or("", |f| f.name.as_str());
            let _ = writeln!(
                w,
                "    /// `{}`.\n    pub const {}: {name} = {name}::{};",
                m.name,
                camel(&m.name),
                camel(original)
            );
        }
        let _ = writeln!(w, "}}");
    }
    let _ = writeln!(
        w,
        "impl FieldEnum for {name} {{\n    fn code(self) -> u64 {{ self as u64 }}\n    fn from_code(code: u64) -> \
         Option<Self> {{\n        Some(match code {{"
    );
    for m in &first {
        let _ = writeln!(w, "            {} => {name}::{},", m.value, camel(&m.name));
    }
    let _ = writeln!(
        w,
        "            _ => return None,\n        }})\n    }}\n    fn name(self) -> &'static str \
         {{\n        match self {{"
    );
    for m in &first {
        let _ = writeln!(w, "            {name}::{} => {:?},", camel(&m.name), m.name);
    }
    let _ = writeln!(w, "        }}\n    }}\n}}\n");
}
