//! The committed description against the vendor's documents: the checksums of all fields always, everything where the
//! documents are.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use isagen::ast::Document;
use isagen::diagnostic::render;
use isagen::diff::{diff, field_checksums};
use isagen::model::{Form, Machine, Provenance};
use isagen::parser::parse;
use isagen::resolve::load_with_warnings;
use isagen::source::SourceMap;
use isagen::unencoded;

/// The documents of the set that the description copies.
const DOCUMENTS: [&str; 3] = ["000", "002", "003"];
/// The pages of a predecessor, SPA 5.3.
const PAGES: [&str; 2] = ["001", "004"];

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

/// The files of these documents in the folder named by `THISGPU_DOCS`; says aloud when there is none.
fn documents(numbers: &[&str]) -> Option<Vec<PathBuf>> {
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
            name.is_some_and(|name| numbers.iter().any(|d| name.starts_with(d)))
        })
        .collect();
    files.sort();
    assert_eq!(
        files.len(),
        numbers.len(),
        "THISGPU_DOCS={} must hold one file for each of {numbers:?}",
        folder.display()
    );
    Some(files)
}

/// Of the documented files of a source map only those whose definitions are documented.
fn documented(sources: &SourceMap) -> Vec<Document> {
    let documents = parse(sources, &mut Vec::new());
    documents
        .into_iter()
        .filter(|d| d.instruction_set.is_none())
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
    let Some(files) = documents(&DOCUMENTS) else {
        return;
    };
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
    let Some(files) = documents(&DOCUMENTS) else {
        return;
    };
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

/// A page as scrambled as the vendor's: immediates before the guard, lists in the middle of an instruction, prose
/// around them.
const PAGE: &str = "\
ISA 4.1:
{@{!}Pg}
HTEST2{.mode}.cmp{.FTZ}
Rd, {-}{|}Ra{|}{.fmt}, {-} c[#BankU05][#AddrU16]
{&req_6}
{&rdN}
{&wrN}
{?sched}
;
{{-}{|}#Immfp10H1{|}}, {{-}{|}#Immfp10H0{|}},
{@{!}Pg}
HTEST2{.mode}.cmp{.FTZ}
Rd, {-}{|}Ra{|}{.fmt},
.mode: { < NULL >*, .BM, INVALID }
{!}Pp
{&req_6}
{&rdN}
{&wrN}
{?sched}
;// Imm order: H1, H0
What it does is to compare.
.cmp: { .LT, .EQ, numeric
.NUM } comparisons
.FTZ: Flush inputs.
.fmt: { .H1_H0*, .F32 }
HTEST2.LT R2, -R0, c[0][4]; # R2 = R0 < c
";

const DESCRIBED: &str = "\
__InstructionSet ISA 4.1;

__DefOptype HTEST2 : [ALL]
  __Syntax
```asm
{@{!}Pg} HTEST2{.mode}.cmp{.FTZ} Rd, {-}{|}Ra{|}{.fmt}, {-}c[#BankU05][#AddrU16] {&req_6} {&rdN} {&wrN} {?sched} ;
{@{!}Pg} HTEST2{.mode}.cmp{.FTZ} Rd, {-}{|}Ra{|}{.fmt}, {{-}{|}#Immfp10H1{|}}, {{-}{|}#Immfp10H0{|}}, {!}Pp {&req_6} \
{&rdN} {&wrN} {?sched} ;

.mode = {<NULL>*, .BM, INVALID}
.cmp = {.LT, .EQ, .NUM}
.fmt = {.H1_H0*, .F32}
```
  __Examples
```asm
HTEST2.LT R2, -R0, c[0][4];
```
";

/// Differences between a page and a description without encodings.
fn unencoded_differences(
    page: &str,
    described: &str,
) -> (unencoded::diff::Comparison, Vec<String>) {
    let mut sources = SourceMap::default();
    let file = sources.add("page", page);
    let mut diagnostics = Vec::new();
    let page = unencoded::document::read(file, page, &mut diagnostics);
    sources.add("described.isa", described);
    let documents = parse(&sources, &mut diagnostics);
    let sets = unencoded::load(&documents, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let comparison = unencoded::diff::diff(page.as_slice(), &sets[0]);
    let texts = comparison.differences.iter();
    let texts = texts
        .map(|d| format!("{}: {}", d.message, d.label))
        .collect();
    (comparison, texts)
}

#[test]
fn a_scrambled_page_is_put_together_and_compared() {
    assert_eq!(unencoded::document::instruction_set(PAGE), Some("ISA 4.1"));
    assert_eq!(unencoded::document::instruction_set("Note: this"), None);
    let (comparison, differences) = unencoded_differences(PAGE, DESCRIBED);
    assert_eq!(differences, [""; 0]);
    assert_eq!(
        (comparison.lines, comparison.lists, comparison.examples),
        (2, 3, 1)
    );
    for (from, to, expected) in [
        (
            "{-}c[#BankU05]",
            "{-}c[#BankU06]",
            "line of syntax is in no document",
        ),
        (".cmp = {.LT, .EQ", ".cmp = {.EQ, .LT", "cmp=EQ,LT,NUM"),
        ("-R0, c", "R0, c", "this example is not in the description"),
        (
            ".H1_H0*",
            ".H1_H0",
            "list of values is not in the description",
        ),
    ] {
        let changed = DESCRIBED.replacen(from, to, 1);
        assert_ne!(changed, DESCRIBED);
        let (_, differences) = unencoded_differences(PAGE, &changed);
        assert_eq!(differences.len(), 2, "{differences:?}");
        assert!(
            differences.iter().any(|d| d.contains(expected)),
            "{differences:?}"
        );
    }
}

#[test]
fn mistakes_in_lines_without_encodings_have_a_place() {
    for (from, to, expected) in [
        (
            "{@{!}Pg} HTEST2{.mode}.cmp{.FTZ} Rd, {-}{|}Ra{|}{.fmt}, {-}c",
            "HTEST2.cmp Rd, {-}c",
            "begins with its guard",
        ),
        ("{|}Ra{|}", "{|}Ra", "the second `{|}` is missing"),
        (" {&rdN}", "", "ends with the control suffix"),
        (
            ".fmt = {.H1_H0*, .F32}",
            "",
            "the values of `.fmt` are not listed",
        ),
        ("#Immfp10H1", "#Immfp17H1", "this is no operand"),
        (".EQ, .NUM", ".EQ, .EQ", "listed before"),
        (
            "ISA 4.1;",
            "ISA 4.1",
            "expected the name of an instruction set",
        ),
    ] {
        let changed = DESCRIBED.replacen(from, to, 1);
        assert_ne!(changed, DESCRIBED);
        let mut sources = SourceMap::default();
        sources.add("described.isa", changed);
        let (_, diagnostics) = load_with_warnings(&sources);
        let found = diagnostics.iter().find(|d| d.message.contains(expected));
        let found = found.unwrap_or_else(|| panic!("{expected}: {diagnostics:?}"));
        assert!(found.span.end > found.span.start, "{expected}");
    }
}

#[test]
fn the_predecessors_pages_say_what_is_described() {
    let Some(pages) = documents(&PAGES) else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spa53/description");
    let mut sources = SourceMap::default();
    sources.read(&folder).expect("the description is readable");
    let (machine, diagnostics) = load_with_warnings(&sources);
    assert_eq!(diagnostics, []);
    let described = &machine.expect("no mistake").unencoded[0];
    for path in pages {
        let text = std::fs::read_to_string(&path).expect("the page is readable");
        assert_eq!(unencoded::document::instruction_set(&text), Some("SPA 5.3"));
        let page = unencoded::document::read(0, &text, &mut Vec::new());
        let comparison = unencoded::diff::diff(page.as_slice(), described);
        assert!(comparison.differences.is_empty(), "{comparison:?}");
        assert!(comparison.lines >= 4 && comparison.examples >= 2);
    }
}
