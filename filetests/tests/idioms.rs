//! `docs/idioms.md` is a table of the goldens `filetests/lower/idioms_*.clif`: for each function its operations, how
//! many instructions they take, and how many a person would write. The comment above a function says the latter, what
//! it was before, the rule, and why it is longer, if it is.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use thisgpu_filetests::expectation;

/// A function of a golden.
#[derive(Debug, PartialEq)]
struct Idiom {
    name: String,
    /// Its CLIF operations but constants and the return.
    operations: Vec<String>,
    /// Instructions but the one that returns or exits.
    after: usize,
    by_hand: usize,
    before: Option<usize>,
    /// A file of `isle/` and a word of the rule there.
    rule: Option<(String, String)>,
    longer: Option<String>,
}

fn repository() -> PathBuf {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    parent
        .expect("the package lies in the repository")
        .to_owned()
}

/// The idioms of a golden's text.
fn idioms(text: &str) -> Vec<Idiom> {
    let mut lines = text.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(note) = line.strip_prefix(";; by hand ") else {
            assert!(!line.starts_with("function %"), "no note above {line}");
            continue;
        };
        let mut idiom = noted(note);
        let mut in_code = false;
        // Up to the note of the next function.
        while let Some(line) = lines.next_if(|line| !line.starts_with(";; by hand ")) {
            if let Some(rest) = line.strip_prefix("function %") {
                idiom.name = rest.split('(').next().unwrap_or_default().to_owned();
            } else if let Some(operation) = line.strip_prefix("    ").and_then(operation) {
                idiom.operations.push(operation);
            } else if line.starts_with("; .func ") || line.starts_with("; .kernel ") {
                in_code = true;
            } else if in_code && is_instruction(line) {
                idiom.after += 1;
            }
        }
        idiom.after = (idiom.after.checked_sub(1)).expect("a function ends in an instruction");
        found.push(idiom);
    }
    found
}

/// `3, before 8; lower/sum.isle ones_below; longer: why`.
fn noted(note: &str) -> Idiom {
    let mut parts = note.split("; ");
    let mut numbers = parts.next().unwrap_or_default().split(", before ");
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no number: {note}"));
    let mut idiom = Idiom {
        name: String::new(),
        operations: Vec::new(),
        after: 0,
        by_hand: number(numbers.next().unwrap_or_default()),
        before: numbers.next().map(number),
        rule: None,
        longer: None,
    };
    for part in parts {
        if let Some(why) = part.strip_prefix("longer: ") {
            idiom.longer = Some(why.to_owned());
        } else {
            let (file, word) = (part.split_once(' ')).unwrap_or_else(|| panic!("no rule: {note}"));
            idiom.rule = Some((file.to_owned(), word.to_owned()));
        }
    }
    idiom
}

/// What a line of CLIF does, types left out; nothing for constants and returns.
fn operation(line: &str) -> Option<String> {
    let body = line.split_once(" = ").map_or(line, |(_, body)| body);
    let mut words = body.split_whitespace();
    let opcode = words.next()?.split('.').next()?;
    if opcode.ends_with("const") || opcode == "return" || opcode == "jump" {
        return None;
    }
    let condition = match opcode {
        "icmp" | "fcmp" => words.next(),
        _ => None,
    };
    Some(match condition {
        Some(condition) => format!("{opcode} {condition}"),
        None => opcode.to_owned(),
    })
}

/// Whether a line of a golden's listing is an instruction.
fn is_instruction(line: &str) -> bool {
    let code = line.trim_start_matches(';').trim_start();
    line.starts_with(";     ") && code.ends_with(';') && !code.starts_with('.')
}

/// Operations, equal ones next to each other counted.
fn pattern(operations: &[String]) -> String {
    let runs = operations.chunk_by(|a, b| a == b);
    let run = |run: &[String]| match run.len() {
        1 => format!("`{}`", run[0]),
        n => format!("{n} `{}`", run[0]),
    };
    runs.map(run).collect::<Vec<_>>().join(" ")
}

/// The idioms of the repository, by the file that they are in.
fn all(repository: &Path) -> Vec<(String, Vec<Idiom>)> {
    let folder = repository.join("filetests/lower");
    let entries = fs::read_dir(&folder).expect("the goldens can be listed");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry can be read").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("idioms_"))
        .collect();
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(folder.join(&name)).expect("a golden can be read");
        (name, idioms(&text))
    };
    names.into_iter().map(read).collect()
}

/// What the notes say and is not so.
fn complaints(repository: &Path, idiom: &Idiom) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = &idiom.name;
    if let Some((file, word)) = &idiom.rule {
        let folder = if file.ends_with(".rs") { "src" } else { "isle" };
        let text = fs::read_to_string(repository.join(folder).join(file)).unwrap_or_default();
        if !text.contains(word.as_str()) {
            complaints.push(format!("%{name}: no {word} in {folder}/{file}"));
        }
    }
    let longer = idiom.after > idiom.by_hand;
    if longer != idiom.longer.is_some() {
        complaints.push(format!(
            "%{name}: {} instructions, {} by hand, and longer: {:?}",
            idiom.after, idiom.by_hand, idiom.longer
        ));
    }
    if idiom.before.is_some_and(|before| idiom.after > before) {
        complaints.push(format!("%{name} has become longer"));
    }
    complaints
}

fn markdown(files: &[(String, Vec<Idiom>)]) -> String {
    let mut page = "# Idioms

What everyday kernels are made of, and how many instructions it takes: *measured*, counted in the goldens \
`filetests/lower/idioms_*.clif` without
the RET or EXIT at their end. *Before* is what it was before the rules of this table were there. *By hand* is what a \
person would write
for this instruction set, with arguments and results in the registers of the calling convention.

The page is generated from the goldens; bless it with `CRANELIFT_TEST_BLESS=1 cargo test -p \
cranelift-thisgpu-filetests --test idioms`.
"
    .to_owned();
    let sums = |idioms: &[&Idiom]| {
        let before: usize = idioms.iter().map(|i| i.before.unwrap_or(i.after)).sum();
        let after: usize = idioms.iter().map(|i| i.after).sum();
        let by_hand: usize = idioms.iter().map(|i| i.by_hand).sum();
        format!("| {before} | {after} | {by_hand} |")
    };
    let everything: Vec<&Idiom> = files.iter().flat_map(|(_, idioms)| idioms).collect();
    page += "\n| file | idioms | before | after | by hand |\n| --- | --- | --- | --- | --- |\n";
    for (file, idioms) in files {
        let idioms: Vec<&Idiom> = idioms.iter().collect();
        _ = writeln!(page, "| `{file}` | {} {}", idioms.len(), sums(&idioms));
    }
    _ = writeln!(page, "| all | {} {}", everything.len(), sums(&everything));
    page += "\n## Longer than by hand\n\n";
    for idiom in everything.iter().filter(|i| i.longer.is_some()) {
        let why = idiom.longer.as_deref().unwrap_or_default();
        let (name, after, by_hand) = (&idiom.name, idiom.after, idiom.by_hand);
        _ = writeln!(page, "- `%{name}`, {after} instead of {by_hand}: {why}");
    }
    for (file, idioms) in files {
        _ = writeln!(
            page,
            "\n## `{file}`\n\n| function | operations | before | after | by hand | rule |\n| --- | --- | --- | --- | \
             --- | --- |"
        );
        for idiom in idioms {
            let before = idiom.before.map_or(String::new(), |n| n.to_string());
            let rule = (idiom.rule.as_ref())
                .map_or(String::new(), |(file, word)| format!("`{file}` `{word}`"));
            _ = writeln!(
                page,
                "| `%{}` | {} | {before} | {} | {} | {rule} |",
                idiom.name,
                pattern(&idiom.operations),
                idiom.after,
                idiom.by_hand
            );
        }
    }
    page
}

#[test]
fn the_table_says_what_the_goldens_show() {
    let repository = repository();
    let files = all(&repository);
    let idioms = files.iter().flat_map(|(_, idioms)| idioms);
    let complaints: Vec<String> = idioms.flat_map(|i| complaints(&repository, i)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let page = markdown(&files);
    let path = repository.join("docs/idioms.md");
    if expectation::blessing() {
        fs::write(&path, &page).expect("the page can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/idioms.md is out of date; bless it with {}=1",
        expectation::BLESS
    );
}

/// Notes and listings are read as they are meant, and what is wrong with them is found.
#[test]
fn notes_are_held_against_the_listing() {
    let read = idioms(
        ";; by hand 1, before 4; lower/sum.isle ones_below; longer: for no reason
function %two(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 8
    v2 = icmp slt v0, v1
    v3 = ushr.i32 v0, v1
    return v3
}
; function two(%v0@R4) {
; block0:
;     PRMT %v3, %v0, RZ, 0x4441
; }
;
; .func two
;     .registers 5
;     PRMT R4, R4, RZ, 0x4441 ?4 ;
;     @P0 IADD R4, R4, R5 ?1 ;
;     RET R[2:3] ?3 ;
",
    );
    let [idiom] = &read[..] else {
        panic!("{read:?}");
    };
    assert_eq!(
        *idiom,
        Idiom {
            name: "two".to_owned(),
            operations: vec!["icmp slt".to_owned(), "ushr".to_owned()],
            after: 2,
            by_hand: 1,
            before: Some(4),
            rule: Some(("lower/sum.isle".to_owned(), "ones_below".to_owned())),
            longer: Some("for no reason".to_owned()),
        }
    );
    assert_eq!(complaints(&repository(), idiom), [""; 0]);
    let wrong = Idiom {
        by_hand: 2,
        before: Some(1),
        rule: Some(("lower/sum.isle".to_owned(), "no_such_rule".to_owned())),
        operations: Vec::new(),
        name: "wrong".to_owned(),
        longer: idiom.longer.clone(),
        after: 2,
    };
    assert_eq!(complaints(&repository(), &wrong).len(), 3);
}
