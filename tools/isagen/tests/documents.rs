//! The committed description against the vendor's documents: the checksums of all fields always, everything where the documents are.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use isagen::ast::Document;
use isagen::diagnostic::render;
use isagen::diff::{diff, field_checksums};
use isagen::model::{Form, Machine, Provenance};
use isagen::parser::parse;
use isagen::resolve::load_with_warnings;
use isagen::source::SourceMap;

/// The documents of the set that the description copies; the others are pages of a predecessor.
const DOCUMENTS: [&str; 3] = ["000", "002", "003"];

fn description() -> SourceMap {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
    let mut sources = SourceMap::default();
    sources.read(&folder).expect("the description is readable");
    sources
}

fn machine() -> Machine {
    let sources = description();
    let (machine, diagnostics) = load_with_warnings(&sources);
    let texts: Vec<String> = diagnostics
        .iter()
        .map(|d| render(d, &sources, false))
        .collect();
    machine.unwrap_or_else(|| panic!("{}", texts.join("\n")))
}

/// The folder named by `THISGPU_DOCS`; says aloud when there is none.
fn documents() -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("THISGPU_DOCS") else {
        eprintln!(
            "NOT RUN: THISGPU_DOCS is not set, so the description was not compared with the vendor's documents"
        );
        return None;
    };
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("THISGPU_DOCS={}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
            name.is_some_and(|name| DOCUMENTS.iter().any(|d| name.starts_with(d)))
        })
        .collect();
    files.sort();
    assert_eq!(
        files.len(),
        DOCUMENTS.len(),
        "THISGPU_DOCS={} must hold one file for each of {DOCUMENTS:?}",
        folder.display()
    );
    Some(files)
}

/// Of the documented files of a source map only those whose definitions are documented.
fn documented(sources: &SourceMap) -> Vec<Document> {
    let documents = parse(sources, &mut Vec::new());
    documents
        .into_iter()
        .filter(|d| {
            d.constructs
                .iter()
                .any(|c| c.provenance == Provenance::Documented)
        })
        .collect()
}

fn checksum_table(documents: &[Document]) -> String {
    let mut table = String::new();
    for (form, checksum) in field_checksums(documents) {
        writeln!(table, "{form} {checksum:016x}").expect("a string can be written to");
    }
    table
}

fn committed_checksums() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documented_forms.checksums");
    let text = std::fs::read_to_string(path).expect("the checksum table is committed");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn every_documented_field_has_its_checksum() {
    let table = checksum_table(&documented(&description()));
    assert_eq!(table.lines().count(), 153);
    let committed = committed_checksums();
    for (line, expected) in table.lines().zip(committed.lines()) {
        assert_eq!(line, expected, "a documented field was changed");
    }
    assert_eq!(table, committed);
}

#[test]
fn description_agrees_with_the_documents() {
    let Some(files) = documents() else { return };
    let mut sources = SourceMap::default();
    for file in &files {
        sources.read(file).expect("the documents are readable");
    }
    let mut mistakes = Vec::new();
    let documents = parse(&sources, &mut mistakes);
    assert_eq!(mistakes, [], "the documents parse without a mistake");
    assert_eq!(
        checksum_table(&documents),
        committed_checksums(),
        "the committed checksums are those of the documents"
    );
    let ours = sources.files().len();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
    sources.read(&folder).expect("the description is readable");
    let mut documents = parse(&sources, &mut Vec::new());
    let description = documents.split_off(ours);
    let comparison = diff(&documents, &description);
    let differences: Vec<String> = comparison
        .differences
        .iter()
        .map(|d| render(d, &sources, false))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!((comparison.forms, comparison.fields), (153, 1842));
}

/// The documents themselves, with this project's numbers, make the same machine as their copies in the description.
#[test]
fn documents_make_the_same_machine() {
    let Some(files) = documents() else { return };
    let mut sources = SourceMap::default();
    for file in &files {
        sources.read(file).expect("the documents are readable");
    }
    for file in description().files() {
        if file.text.contains("__Provenance Assigned;") {
            sources.add(file.name.clone(), file.text.clone());
        }
    }
    let (from_documents, diagnostics) = load_with_warnings(&sources);
    let texts: Vec<String> = diagnostics
        .iter()
        .map(|d| render(d, &sources, false))
        .collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    let from_documents = from_documents.expect("no mistake");
    let description = machine();
    assert_eq!(from_documents.forms.len(), description.forms.len());
    for form in &description.forms {
        let other = from_documents.forms.iter().find(|f| f.name == form.name);
        let other = other.unwrap_or_else(|| panic!("{} is in the documents", form.name));
        let meaning = |f: &Form| {
            let fields: Vec<_> = f
                .fields
                .iter()
                .map(|f| (&f.name, f.bit, f.width, &f.type_name, f.value, f.hidden))
                .collect();
            format!(
                "{fields:?} {:?} {:?} {:?} {:?}",
                f.stype, f.operands, f.modes, f.exceptions
            )
        };
        assert_eq!(meaning(form), meaning(other), "{}", form.name);
    }
}

#[test]
fn description_has_no_mistake_and_all_documented_optypes() {
    let machine = machine();
    let documented = |p: &Provenance| *p == Provenance::Documented;
    let optypes = machine.optypes.iter().map(|o| o.provenance);
    assert_eq!(optypes.filter(documented).count(), 36);
    let forms = machine.forms.iter().map(|f| f.provenance);
    assert_eq!(forms.filter(documented).count(), 153);
    for form in &machine.forms {
        assert!(!form.modes.is_empty(), "{} has a mode", form.name);
        assert_eq!(form.operands[0].name, "pg", "{}: guard first", form.name);
    }
    for (index, optype) in machine.optypes.iter().enumerate() {
        assert!(
            machine.forms[optype.forms.clone()]
                .iter()
                .all(|f| f.optype == index)
        );
        assert!(optype.latency.is_some(), "{} has a latency", optype.name);
    }
}

#[test]
fn reference_lists_every_form_with_its_provenance() {
    let machine = machine();
    let reference = isagen::reference::reference(&machine);
    for form in &machine.forms {
        assert!(reference.contains(&format!("\n### {}\n", form.name)));
    }
    assert!(reference.contains("\n| 16..23 | rd | Reg |  | documented |\n"));
    assert!(
        reference.contains("Error if `width==\"64\"`: MOV_I does not support .64 . (documented)")
    );
    assert!(
        reference.contains("Error if `width==\"64\"`: MOV_U does not support .64 . (assigned)")
    );
}

/// The comparison finds every kind of change; each is planted in a copy of the description.
#[test]
fn planted_differences_are_found() {
    let plants = [
        (
            "field<32,  8> Reg rb;",
            "field<33,  8> Reg rb;",
            "field `rb`",
        ),
        (
            "field<80,  2> HSel2 ra.hsel2",
            "field<80,  2> HSel ra.hsel2",
            "field `ra.hsel2`",
        ),
        ("FPFtz ftz = NoFTZ", "FPFtz ftz = FTZ", "field `ftz`"),
        (
            "SATRelu satrelu==SAT",
            "SATRelu satrelu=SAT",
            "field `satrelu`",
        ),
        (
            "InList<pg, ra, rb, rc>;",
            "InList<pg, ra, rc, rb>;",
            "`InList`",
        ),
        ("OutList<pu, pv>;", "OutList<pu>;", "`OutList`"),
        ("Order<pg, pu, rd, ra,", "Order<pg, rd, pu, ra,", "`Order`"),
        (
            "Bitwidth<rd> = 64;",
            "Bitwidth<rd> = 32;",
            "the width of `rd`",
        ),
        (
            "CvtINegX(rb.neg, ext)",
            "CvtINegX(rb.neg, pp)",
            "the format of `rb.neg`",
        ),
        ("= width==\"64\";", "= width==\"32\";", "the exception"),
        ("    SX32;", "    SX33;", "member `SX33`"),
        ("B3;", "B3 = 2;", "member `B3`"),
        ("LEASX32<1>", "LEASX32<2>", "the width"),
        ("IABS Rd, {-}SrcB", "IABS Rd, SrcB", "syntax line 1"),
        (
            ".bmbf = {.BM*, .BF}",
            ".bmbf = {.BM, .BF*}",
            "the list of `.bmbf`",
        ),
        ("ModiOrder<afmt, bfmt>;", "", "`ModiOrder`"),
        (
            "__DefOpcode SEL_RR : [SEL]",
            "__DefOpcode SEL_RX : [SEL]",
            "form `SEL_RX`",
        ),
        (
            "__DefOpcode SEL_RR : [SEL]",
            "__DefOpcode SEL_RX : [SEL]",
            "form `SEL_RR`",
        ),
        ("__DefGroup XU : [ALL]", "__DefGroup XU", "the parent"),
    ];
    let original = description();
    for (from, to, finding) in plants {
        let mut sources = SourceMap::default();
        let mut planted = false;
        for file in original.files() {
            let text = if planted {
                file.text.clone()
            } else {
                file.text.replacen(from, to, 1)
            };
            planted |= text != file.text;
            sources.add(file.name.clone(), text);
        }
        assert!(planted, "`{from}` is in the description");
        for file in original.files() {
            sources.add(file.name.clone(), file.text.clone());
        }
        let mut documents = parse(&sources, &mut Vec::new());
        let changed: Vec<Document> = documents.drain(..original.files().len()).collect();
        let comparison = diff(&documents, &changed);
        let found: Vec<&str> = comparison
            .differences
            .iter()
            .map(|d| d.message.as_str())
            .collect();
        assert!(
            found.iter().any(|message| message.contains(finding)),
            "`{from}` → `{to}`: {found:?}"
        );
    }
}
