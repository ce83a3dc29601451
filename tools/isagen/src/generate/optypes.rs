//! Per optype: a module with its typed fields and the types of its semantics, and the `Semantics` trait.

use super::naming::{camel, constant, module_name, role_name, snake};
use super::types::is_bool;
use crate::model::{Direction, FieldType, Form, Machine, Optype};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How a value of an operand is passed to the semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Bool,
    /// An unsigned number in the word: `lut`, `shiftamt`.
    Number,
    Word,
    Pair,
    Quad,
    /// The set of all predicates.
    Set,
    /// A signed number.
    Signed,
}

impl Kind {
    pub(super) fn rust(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Word | Kind::Number => "u32",
            Kind::Pair => "u64",
            Kind::Quad => "u128",
            Kind::Set => "u8",
            Kind::Signed => "i32",
        }
    }

    /// Words of a register that a result of this kind fills.
    fn words(self) -> usize {
        match self {
            Kind::Bool | Kind::Set => 0,
            Kind::Word | Kind::Number | Kind::Signed => 1,
            Kind::Pair => 2,
            Kind::Quad => 4,
        }
    }

    fn accessor(self) -> &'static str {
        match self {
            Kind::Bool => "predicate",
            Kind::Word | Kind::Number => "word",
            Kind::Pair => "pair",
            Kind::Quad => "quad",
            Kind::Set => "predicates",
            Kind::Signed => "signed",
        }
    }
}

/// The operands of an operation over all its forms, by role.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    pub(super) sources: Vec<(String, Kind)>,
    pub(super) results: Vec<(String, Kind)>,
}

pub(super) fn kind_of(form: &Form, operand: &crate::model::Operand) -> Kind {
    let Some(field) = operand.field else {
        return Kind::Set;
    };
    match form.fields[field].ty {
        FieldType::Predicate | FieldType::UniformPredicate => Kind::Bool,
        FieldType::Address | FieldType::Label => Kind::Signed,
        FieldType::Enum(_) | FieldType::Convergence => Kind::Number,
        FieldType::Signed | FieldType::Unsigned
            if form.fields[field].width < 32 || operand.direction == Direction::Neither =>
        {
            Kind::Number
        }
        _ => match operand.max_width {
            0..=32 => Kind::Word,
            33..=64 => Kind::Pair,
            _ => Kind::Quad,
        },
    }
}

/// The operands of `optype`, the guard left out; the widest form of each role wins.
pub fn signature(machine: &Machine, optype: &Optype) -> Signature {
    let mut result = Signature::default();
    let add = |list: &mut Vec<(String, Kind)>, role: String, kind: Kind| match list
        .iter_mut()
        .find(|(r, _)| *r == role)
    {
        Some(entry) => entry.1 = entry.1.max(kind),
        None => list.push((role, kind)),
    };
    for form in &machine.forms[optype.forms.clone()] {
        for operand in form.operands.iter().filter(|o| o.name != "pg") {
            let (role, kind) = (role_name(&operand.name), kind_of(form, operand));
            match operand.direction {
                Direction::Out => {
                    // An operation that writes the set of predicates keeps some of them (R2P): it reads the set as
                    // well.
                    if kind == Kind::Set {
                        add(&mut result.sources, role.clone(), kind);
                    }
                    add(&mut result.results, role, kind)
                }
                _ => add(&mut result.sources, role, kind),
            }
            if let Some(index) = operand.index {
                add(
                    &mut result.sources,
                    role_name(&form.fields[index].name),
                    Kind::Signed,
                );
            }
        }
    }
    result
}

/// Whether the semantics are a pure function of the operands: no effects, except on the set of predicates.
pub fn is_pure(optype: &Optype) -> bool {
    optype.effects.iter().all(|e| e == "predicates")
}

/// A modifier: the name in `Modifiers` and its field in every form that has it.
struct Modifier {
    name: String,
    rust: String,
    boolean: bool,
    /// `(form, bit, width)`.
    places: Vec<(usize, u8, u8)>,
    /// Belongs to an operand (`rb.neg`).
    decoration: bool,
}

fn modifiers(machine: &Machine, optype: &Optype) -> Vec<Modifier> {
    let mut found: BTreeMap<(bool, String), Modifier> = BTreeMap::new();
    let mut order = Vec::new();
    for index in optype.forms.clone() {
        let form = &machine.forms[index];
        for field in &form.fields {
            let FieldType::Enum(e) = field.ty else {
                continue;
            };
            let ty = &machine.enums[e];
            let base = field.name.split('.').next().unwrap_or_default();
            let suffix = field.name.split_once('.').map(|(_, s)| s);
            let is_operand = form.operands.iter().any(|o| o.name == base);
            if ["Optype", "SType"].contains(&ty.name.as_str())
                || suffix == Some("not")
                || (is_operand && suffix.is_none())
            {
                continue;
            }
            let name = match suffix {
                Some(suffix) => format!("{}_{}", role_name(base), suffix),
                None => snake(&field.name),
            };
            let key = (suffix.is_some(), name.clone());
            let boolean = is_bool(ty);
            let entry = found.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                Modifier {
                    name,
                    rust: if boolean {
                        "bool".to_string()
                    } else {
                        ty.name.clone()
                    },
                    boolean,
                    places: Vec::new(),
                    decoration: suffix.is_some(),
                }
            });
            entry.places.push((index, field.bit, field.width));
        }
    }
    order
        .into_iter()
        .filter_map(|key| found.remove(&key))
        .collect()
}

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
    let pure: Vec<&Optype> = machine.optypes.iter().filter(|o| is_pure(o)).collect();
    let _ = writeln!(
        w,
        "/// The semantics of every pure operation. A new operation does not compile until it has one.\npub trait \
         Semantics {{"
    );
    for optype in &pure {
        let name = module_name(&optype.name);
        let _ = writeln!(
            w,
            "    /// `{}`.\n    fn {name}(&self, m: &{name}::Modifiers, s: &{name}::Sources) -> {name}::Results;",
            optype.mnemonic
        );
    }
    let _ = writeln!(
        w,
        "}}\n\n/// Calls the macro `$m` with the name and module of every pure operation: `NAME \
         module;`.\n#[allow(unused_macros, reason = \"only the simulator calls it\")]\nmacro_rules! \
        for_each_pure_operation {{\n    ($m:ident) => {{\n        $m! {{"
    );
    for optype in &pure {
        let _ = writeln!(
            w,
            "            {} {};",
            optype.name,
            module_name(&optype.name)
        );
    }
    let _ = writeln!(w, "        }}\n    }};\n}}");
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
    if is_pure(optype) {
        semantics_types(machine, optype, w);
    }
    let _ = writeln!(w, "}}\n");
}

fn semantics_types(machine: &Machine, optype: &Optype, w: &mut String) {
    let name = module_name(&optype.name);
    let signature = signature(machine, optype);
    semantics_modifiers(machine, optype, w);
    semantics_values(&signature, w);
    let _ = writeln!(
        w,
        "    /// The operation as a type.\n    pub struct Operation;\n    impl crate::isa::semantics::PureOperation for Operation {{
        const OPTYPE: Optype = Optype::{};\n        const WORDS: usize = {};\n        type Modifiers = Modifiers;\n        type Sources = Sources;\n        type Results = Results;
        fn decode(form: Form, word: u128) -> Modifiers {{ Modifiers::decode(form, word) }}
        #[inline(always)]\n        fn gather<G: crate::isa::semantics::Gather>(g: &G) -> Sources {{\n            let _ = g;\n            Sources {{",
        optype.name,
        signature.results.iter().map(|(_, kind)| kind.words()).max().unwrap_or(0),
    );
    for (role, kind) in &signature.sources {
        let argument = if *kind == Kind::Set {
            String::new()
        } else {
            format!("Role::{}", camel(role))
        };
        let _ = writeln!(
            w,
            "                {}: g.{}({argument}),",
            snake(role),
            kind.accessor()
        );
    }
    let _ = writeln!(
        w,
        "            }}\n        }}\n        #[inline(always)]\n        fn scatter<S: crate::isa::semantics::Scatter>(r: &Results, s: &mut S) {{\n            let _ = (r, &s);"
    );
    for (role, kind) in &signature.results {
        let argument = if *kind == Kind::Set {
            String::new()
        } else {
            format!("Role::{}, ", camel(role))
        };
        let _ = writeln!(
            w,
            "            s.{}({argument}r.{});",
            kind.accessor(),
            snake(role)
        );
    }
    let _ = writeln!(
        w,
        "        }}\n        #[inline(always)]\n        fn evaluate<X: Semantics>(x: &X, m: &Modifiers, s: &Sources) -> Results {{ x.{name}(m, s) }}\n    }}"
    );
}

/// The structure of the modifiers, and how they are read from a word.
fn semantics_modifiers(machine: &Machine, optype: &Optype, w: &mut String) {
    let modifiers = modifiers(machine, optype);
    let _ = writeln!(
        w,
        "    /// Modifiers, those of operands by role.\n    #[derive(Clone, Copy, Debug, PartialEq, Eq)]\n    pub \
         struct Modifiers {{"
    );
    for m in &modifiers {
        let _ = writeln!(
            w,
            "        /// Field{} of {} form(s).\n        pub {}: {},",
            if m.decoration { " of an operand" } else { "" },
            m.places.len(),
            m.name,
            m.rust
        );
    }
    let _ = writeln!(
        w,
        "    }}\n    impl Modifiers {{\n        /// The modifiers in a legal word of `form`.\n        pub fn decode(form: Form, w: u128) -> Self {{\n            let _ = (form, w);\n            Modifiers {{"
    );
    for m in &modifiers {
        let read = |bit: u8, width: u8| {
            let raw = format!(
                "(w >> {bit}) as u64 & {:#x}",
                u64::MAX >> (64 - u32::from(width))
            );
            if m.boolean {
                format!("({raw}) != 0")
            } else {
                format!("{}::from_code({raw}).expect(\"legal word\")", m.rust)
            }
        };
        let (_, bit, width) = m.places[0];
        let everywhere = m.places.len() == optype.forms.len()
            && m.places.iter().all(|p| (p.1, p.2) == (bit, width));
        if everywhere {
            let _ = writeln!(w, "                {}: {},", m.name, read(bit, width));
            continue;
        }
        let _ = writeln!(w, "                {}: match form {{", m.name);
        for &(form, bit, width) in &m.places {
            let _ = writeln!(
                w,
                "                    Form::{} => {},",
                machine.forms[form].name,
                read(bit, width)
            );
        }
        let missing = if m.boolean {
            "false".to_string()
        } else {
            format!("{}::from_code(0).expect(\"first code\")", m.rust)
        };
        if m.places.len() < optype.forms.len() {
            let _ = writeln!(w, "                    _ => {missing},");
        } else {
            let _ = writeln!(
                w,
                "                    _ => unreachable!(\"a form of another operation\"),"
            );
        }
        let _ = writeln!(w, "                }},");
    }
    let _ = writeln!(w, "            }}\n        }}\n    }}");
}

/// The structures of the values that are read and written.
fn semantics_values(signature: &Signature, w: &mut String) {
    for (ty, list) in [
        ("Sources", &signature.sources),
        ("Results", &signature.results),
    ] {
        let doc = if ty == "Sources" {
            "Values read, `!` of predicates applied"
        } else {
            "Values written"
        };
        let _ = writeln!(
            w,
            "    /// {doc}.\n    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\n    pub struct {ty} {{"
        );
        for (role, kind) in list {
            let _ = writeln!(
                w,
                "        /// Operand `{role}`.\n        pub {}: {},",
                snake(role),
                kind.rust()
            );
        }
        let _ = writeln!(w, "    }}");
    }
}
