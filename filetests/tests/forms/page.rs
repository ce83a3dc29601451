//! `docs/forms.md`: every documented form, and what shows it.

use crate::corpus::{Place, Seen};
use crate::excuses;
use crate::rules::Rules;
use cranelift_thisgpu::unstable::isa::Optype;
use cranelift_thisgpu::unstable::isa::table::{OptypeInfo, Provenance};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The documented operations in the order of the documents.
pub fn documented() -> impl Iterator<Item = &'static OptypeInfo> {
    let all = Optype::ALL.iter().map(|optype| optype.info());
    all.filter(|info| info.provenance == Provenance::Documented)
}

/// The documented forms in the order of the documents.
pub fn documented_forms() -> impl Iterator<Item = &'static str> {
    documented().flat_map(|optype| optype.forms.iter().map(|form| form.info().name))
}

/// The golden that shows a form best: the function of its name, else one in which its words come from an operation,
/// rather of CLIF than an intrinsic, and of those the shortest.
pub fn golden<'a>(form: &str, seen: &'a Seen) -> Option<&'a Place> {
    let goldens = seen.get(form)?.iter().filter(|place| place.golden);
    goldens.min_by_key(|place| {
        let named = place.function.eq_ignore_ascii_case(form);
        let from_clif = place.operations.iter().any(|name| !name.starts_with('%'));
        (!named, place.operations.is_empty(), !from_clif, place.words)
    })
}

/// A document: its title as the description gives it, and its operations.
struct Document {
    title: String,
    optypes: BTreeSet<String>,
}

/// The documents, from the files of the description that begin with a title and define documented operations.
fn documents(root: &Path) -> Vec<Document> {
    let names = ["half", "integer", "special"];
    let document = |name| {
        let path = root.join(format!("src/isa/description/{name}.isa"));
        let text = std::fs::read_to_string(path).expect("the description can be read");
        // `// Half precision: document 000 without its prose.`
        let line = text.lines().next().unwrap_or_default();
        let title = line.trim_start_matches("// ").split(" without").next();
        let definitions = text
            .lines()
            .filter_map(|line| line.strip_prefix("__DefOptype "));
        let optypes = definitions.filter_map(|rest| rest.split([' ', ':']).next());
        Document {
            title: title.unwrap_or_default().to_owned(),
            optypes: optypes.map(str::to_owned).collect(),
        }
    };
    names.into_iter().map(document).collect()
}

/// Reads the rules of the repository.
fn rules(root: &Path) -> Rules {
    let mut rules = Rules::default();
    let families = std::fs::read_dir(root.join("isle/lower")).expect("the folder can be read");
    let mut files = vec![root.join("isle/inst.isle")];
    files.extend(families.map(|entry| entry.expect("the folder can be read").path()));
    for path in files {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        rules.add(
            &name,
            &std::fs::read_to_string(&path).expect("the file can be read"),
        );
    }
    rules
}

/// The page.
pub fn markdown(root: &Path, seen: &Seen) -> String {
    let rules = rules(root);
    let optypes: Vec<&str> = Optype::ALL
        .iter()
        .map(|optype| optype.info().name)
        .collect();
    let all = documented_forms().count();
    let shown = documented_forms()
        .filter(|form| golden(form, seen).is_some())
        .count();
    let mut text = format!(
        "# Documented forms\n\n\
         The documents have {all} forms of {} operations; the compiler emits {shown} of them. For each form this page \
         names a test of\n\
         `filetests/lower` in whose expected words it stands and the operation there that it comes from, or says why \
         the compiler does not\n\
         emit it. *Rules* are the CLIF operations whose rules in `isle/lower` construct the operation, by way of other \
         terms or directly;\n\
         what the terms construct that are Rust ([lowering.md](lowering.md)) is not listed there. *Intrinsics* become \
         the operation wherever they are called.\n\n\
         The page is generated from the compiled tests; bless it with\n\
         `CRANELIFT_TEST_BLESS=1 cargo test -p cranelift-thisgpu-filetests --test forms`.\n",
        documented().count()
    );
    for document in documents(root) {
        let _ = write!(text, "\n## {}\n", document.title);
        for optype in documented().filter(|info| document.optypes.contains(info.name)) {
            let _ = write!(text, "\n### {}\n\n", optype.name);
            let reaching = rules.operations_reaching(optype.name, &optypes);
            let files = reaching.iter().map(|(file, operations)| {
                let operations = listed(operations.iter().map(String::as_str));
                format!("{operations} (`{file}`)")
            });
            let files: Vec<String> = files.collect();
            if !files.is_empty() {
                let _ = write!(text, "Rules: {}\n\n", files.join("; "));
            }
            let intrinsics = intrinsics(optype, seen);
            if !intrinsics.is_empty() {
                let names = listed(intrinsics.into_iter());
                let _ = write!(text, "Intrinsics: {names}\n\n");
            }
            text.push_str("| form | from | shown by, or why not |\n| --- | --- | --- |\n");
            for form in optype.forms {
                let form = form.info().name;
                let (from, shown) = match golden(form, seen) {
                    Some(place) => {
                        let from = listed(place.operations.iter().map(String::as_str));
                        (from, format!("`{}` `%{}`", place.file, place.function))
                    }
                    None => {
                        let reason = excuses::reason(form).unwrap_or("not shown");
                        (String::new(), reason.to_owned())
                    }
                };
                let _ = writeln!(text, "| {form} | {from} | {shown} |");
            }
        }
    }
    text
}

/// The intrinsics that become an operation in every golden with a call of them.
fn intrinsics<'a>(optype: &OptypeInfo, seen: &'a Seen) -> BTreeSet<&'a str> {
    let forms: BTreeSet<&str> = optype.forms.iter().map(|form| form.info().name).collect();
    // For each intrinsic the functions with words that come from it, and those where they are of the operation.
    let mut functions: BTreeMap<&str, [BTreeSet<(&str, usize)>; 2]> = BTreeMap::new();
    for (form, places) in seen {
        for place in places.iter().filter(|place| place.golden) {
            let called = place.operations.iter().filter(|name| name.starts_with('%'));
            for name in called {
                let [all, these] = functions.entry(name).or_default();
                all.insert((&place.file, place.index));
                if forms.contains(form) {
                    these.insert((&place.file, place.index));
                }
            }
        }
    }
    let always = functions.iter().filter(|(_, [all, these])| all == these);
    always.map(|(name, _)| *name).collect()
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// What is wrong: forms that nothing shows or excuses, excuses for forms that are emitted, excuses for what is no
/// documented form or has two, functions that are named after a form and do not show it.
pub fn complaints(seen: &Seen) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut excused: BTreeMap<&str, usize> = BTreeMap::new();
    for form in excuses::EXCUSES.iter().flat_map(|excuse| excuse.forms) {
        *excused.entry(form).or_default() += 1;
    }
    for form in documented_forms() {
        let places = seen.get(form).map(Vec::as_slice).unwrap_or_default();
        match (golden(form, seen), excused.remove(form), places.first()) {
            (_, Some(1), Some(place)) => complaints.push(format!(
                "{form} is excused, but %{} of {} has it",
                place.function, place.file
            )),
            (_, Some(1), None) | (Some(_), None, _) => {}
            (_, Some(_), _) => complaints.push(format!("{form} is excused twice")),
            (None, None, Some(place)) => complaints.push(format!(
                "{form} is in no golden of filetests/lower; %{} of {} has it",
                place.function, place.file
            )),
            (None, None, None) => {
                complaints.push(format!("{form} is emitted nowhere and not excused"));
            }
        }
    }
    let unknown = excused
        .keys()
        .map(|form| format!("{form} is no documented form"));
    complaints.extend(unknown);
    let mut named: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for (form, places) in seen {
        for place in places.iter().filter(|place| place.golden) {
            let is_form = documented_forms().any(|f| place.function.eq_ignore_ascii_case(f));
            if is_form {
                let shown = named.entry((&place.file, &place.function)).or_default();
                *shown |= place.function.eq_ignore_ascii_case(form);
            }
        }
    }
    let lying = named.iter().filter(|(_, shown)| !**shown);
    complaints.extend(lying.map(|((file, function), _)| {
        format!("%{function} of {file} does not have the form of its name")
    }));
    complaints
}
