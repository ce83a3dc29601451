//! The types of the semantics of pure operations: per optype its modifiers, sources and results, and the traits that
//! give an operation its meaning.
//!
//! Operations of bit vectors take and give words of any kind (`W: Word`): their sources and results are generic, and so
//! is what gathers and scatters them. Floating-point operations know numbers of the host alone; they have a trait of
//! their own.

use super::naming::{camel, module_name, role_name, snake};
use super::signature::{Kind, Signature, signature};
use super::types::is_bool;
use crate::model::{FieldType, Machine, Optype};
use std::collections::BTreeMap;
use std::fmt::Write;

impl Kind {
    /// Its type in Rust: of a word of any kind where `generic`, else of the host.
    fn rust(self, generic: bool) -> &'static str {
        match (self, generic) {
            (Kind::Bool, true) => "W::Bit",
            (Kind::Bool, false) => "bool",
            (Kind::Word, true) => "W",
            (Kind::Word, false) | (Kind::Number, _) => "u32",
            (Kind::Pair, true) => "W::Pair",
            (Kind::Pair, false) => "u64",
            (Kind::Quad, true) => "W::Quad",
            (Kind::Quad, false) => "u128",
            (Kind::Set, true) => "W::Byte",
            (Kind::Set, false) => "u8",
            (Kind::Signed, _) => "i32",
        }
    }

    /// Whether its type depends on the words.
    fn of_words(self) -> bool {
        !matches!(self, Kind::Number | Kind::Signed)
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
            Kind::Number => "number",
            Kind::Word => "word",
            Kind::Pair => "pair",
            Kind::Quad => "quad",
            Kind::Set => "predicates",
            Kind::Signed => "signed",
        }
    }
}

/// Whether the semantics are a pure function of the operands: no effects, except on the set of predicates.
pub(super) fn is_pure(optype: &Optype) -> bool {
    optype.effects.iter().all(|e| e == "predicates")
}

/// The trait that gives pure operations their meaning, of bit vectors and of floating-point numbers.
pub(super) fn traits(machine: &Machine, w: &mut String) {
    let pure: Vec<&Optype> = machine.optypes.iter().filter(|o| is_pure(o)).collect();
    let (floating, bits): (Vec<&Optype>, Vec<&Optype>) = pure.iter().partition(|o| o.floating);
    let _ = writeln!(
        w,
        "/// The semantics of every pure operation on floating-point numbers. A new operation does not compile until \
         it has one.\npub trait FloatingSemantics {{"
    );
    methods(machine, &floating, w);
    let _ = writeln!(
        w,
        "}}\n\n/// The semantics of every pure operation: those of bit vectors on words of any kind. A new operation \
         does not compile until it has one.\npub trait Semantics<W: crate::bits::Word = u32>: FloatingSemantics {{"
    );
    methods(machine, &bits, w);
    let _ = writeln!(w, "}}\n");
    macro_of("for_each_pure_operation", "every pure operation", &pure, w);
    macro_of(
        "for_each_bit_vector_operation",
        "every operation of bit vectors",
        &bits,
        w,
    );
}

/// What a trait of semantics asks for.
fn methods(machine: &Machine, optypes: &[&Optype], w: &mut String) {
    for optype in optypes {
        let name = module_name(&optype.name);
        let signature = signature(machine, optype);
        let sources = arguments(generic(optype, &signature.sources));
        let results = arguments(generic(optype, &signature.results));
        let _ = writeln!(
            w,
            "    /// `{}`.\n    fn {name}(&self, m: &{name}::Modifiers, s: &{name}::Sources{sources}) -> \
             {name}::Results{results};",
            optype.mnemonic
        );
    }
}

/// A macro that calls another one with a list of operations.
fn macro_of(name: &str, which: &str, optypes: &[&Optype], w: &mut String) {
    let _ = writeln!(
        w,
        "/// Calls the macro `$m` with the name and module of {which}: `NAME module;`.\n#[allow(unused_macros, \
         reason = \"only the simulator and tests call it\")]\nmacro_rules! {name} {{\n    ($m:ident) => {{\n        $m! {{"
    );
    for optype in optypes {
        let _ = writeln!(
            w,
            "            {} {};",
            optype.name,
            module_name(&optype.name)
        );
    }
    let _ = writeln!(w, "        }}\n    }};\n}}");
}

/// Whether a structure of these values is one of words of any kind.
fn generic(optype: &Optype, values: &[(String, Kind)]) -> bool {
    !optype.floating && values.iter().any(|(_, kind)| kind.of_words())
}

/// The generic argument of a structure of values.
fn arguments(generic: bool) -> &'static str {
    if generic { "<W>" } else { "" }
}

/// The types of the semantics of a pure operation, for its module.
pub(super) fn types(machine: &Machine, optype: &Optype, w: &mut String) {
    let signature = signature(machine, optype);
    modifiers_type(machine, optype, w);
    let sources = "Values read, `!` of predicates applied";
    values_type("Sources", sources, optype, &signature.sources, w);
    values_type("Results", "Values written", optype, &signature.results, w);
    operation(optype, &signature, w);
}

/// The operation as a type: how its values are read and written, and which method of the semantics it is.
fn operation(optype: &Optype, signature: &Signature, w: &mut String) {
    let name = module_name(&optype.name);
    let sources = arguments(generic(optype, &signature.sources));
    let results = arguments(generic(optype, &signature.results));
    let (parameter, argument) = match optype.floating {
        true => ("", ""),
        false => ("<W: crate::bits::Word>", "<W>"),
    };
    let words = signature.results.iter().map(|(_, kind)| kind.words()).max();
    let _ = writeln!(
        w,
        "    /// The operation as a type.\n    pub struct Operation;
    impl{parameter} crate::isa::semantics::PureOperation{argument} for Operation {{
        const OPTYPE: Optype = Optype::{};\n        const WORDS: usize = {};\n        type Modifiers = Modifiers;
        type Sources = Sources{sources};\n        type Results = Results{results};
        fn decode(form: Form, word: u128) -> Modifiers {{ Modifiers::decode(form, word) }}
        #[inline(always)]
        fn gather<G: crate::isa::semantics::Gather{argument}>(g: &G) -> Self::Sources {{
            let _ = g;\n            Sources {{",
        optype.name,
        words.unwrap_or(0),
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
        "            }}\n        }}\n        #[inline(always)]
        fn scatter<S: crate::isa::semantics::Scatter{argument}>(r: Self::Results, s: &mut S) {{
            let _ = (&r, &s);"
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
        "        }}\n        #[inline(always)]
        fn evaluate<X: Semantics{argument}>(x: &X, m: &Modifiers, s: &Self::Sources) -> Self::Results {{
            x.{name}(m, s)\n        }}\n    }}"
    );
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

/// The structure of the modifiers, and how they are read from a word.
fn modifiers_type(machine: &Machine, optype: &Optype, w: &mut String) {
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
        "    }}\n    impl Modifiers {{\n        /// The modifiers in a legal word of `form`.\n        pub fn \
         decode(form: Form, w: u128) -> Self {{\n            let _ = (form, w);\n            Modifiers {{"
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

/// The structure of the values that are read or written.
fn values_type(name: &str, doc: &str, optype: &Optype, values: &[(String, Kind)], w: &mut String) {
    let generic = generic(optype, values);
    let parameter = if generic {
        "<W: crate::bits::Word = u32>"
    } else {
        ""
    };
    let _ = writeln!(
        w,
        "    /// {doc}.\n    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\n    pub struct {name}{parameter} {{"
    );
    for (role, kind) in values {
        let _ = writeln!(
            w,
            "        /// Operand `{role}`.\n        pub {}: {},",
            snake(role),
            kind.rust(generic)
        );
    }
    let _ = writeln!(w, "    }}");
}
