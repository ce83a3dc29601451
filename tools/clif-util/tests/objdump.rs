//! `objdump` from outside: what it says of an object that is known, and that damage is told, not met by a panic.

mod common;

use common::{Folder, clif_util, fail, succeed, text};
use serde_json::Value;

const SOURCE: &str = "\
; kernel shared=64 max_threads=128
function %twice(i32, i64) {
    fn0 = %next(i32) -> i32
block0(v0: i32, v1: i64):
    v2 = call fn0(v0)
    store v2, v1
    return
}

function %next(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 77
    v2 = imul v0, v1
    return v2
}
";

/// A folder with the source and its object, and the path of that.
fn object(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let source = folder.file("two.clif", SOURCE);
    let object = folder.path("two.elf");
    succeed(&["compile", &source, "--target", "thisgpu", "-o", &object]);
    (folder, object)
}

#[test]
fn each_part_says_what_is_in_the_object() {
    let (_folder, object) = object("objdump-parts");
    let headers = succeed(&["objdump", "-h", &object]);
    for expected in [
        "relocatable, machine 0x7467",
        ".text.twice",
        ".note.thisgpu",
        " AX",
    ] {
        assert!(headers.contains(expected), "{headers}");
    }
    let symbols = succeed(&["objdump", "-t", &object]);
    assert!(
        symbols.contains("global function .text.next next"),
        "{symbols}"
    );
    let relocations = succeed(&["objdump", "-r", &object]);
    let calls: Vec<&str> = (relocations.lines().map(str::trim))
        .filter(|line| line.starts_with(".text.twice+") && line.ends_with(" next"))
        .collect();
    assert_eq!(calls.len(), 1, "{relocations}");
    assert!(calls[0].contains(" REL "), "{relocations}");
    let resources = succeed(&["objdump", "--resources", &object]);
    for expected in [
        "kernel twice",
        "parameter 0: i32 at 0x160, 4 bytes",
        "parameter 1: i64 at 0x168, 8 bytes",
        "shared memory: 64 bytes",
        "threads of a block at most: 128",
        "calls next",
        "function next",
    ] {
        assert!(resources.contains(expected), "{resources}");
    }
    // What is not asked for is not there.
    assert!(!resources.contains("sections:") && !resources.contains("EXIT"));
}

#[test]
fn the_disassembly_has_the_words_and_the_text_of_disasm() {
    let (folder, object) = object("objdump-code");
    let dump = succeed(&["objdump", "-d", &object]);
    let rows: Vec<(&str, &str)> = dump
        .lines()
        .filter_map(|line| line.strip_prefix("  0x")?.split_once("  "))
        .filter_map(|(_, rest)| rest.split_once("  "))
        .collect();
    let words: Vec<&str> = rows.iter().map(|(word, _)| *word).collect();
    let listed = succeed(&["disasm", &object]);
    let listed: Vec<&str> = (listed.lines().map(str::trim))
        .filter(|line| line.ends_with(" ;"))
        .collect();
    let texts: Vec<&str> = rows.iter().map(|(_, text)| *text).collect();
    assert_eq!(texts, listed);
    // The words by themselves are the same instructions, with numbers in the place of names.
    let alone = succeed(&["disasm", &folder.file("words.hex", words.join("\n"))]);
    assert_eq!(alone.lines().count(), texts.len());
    let name = |line: &str| {
        line.split(' ')
            .find(|word| !word.starts_with('@'))
            .map(str::to_owned)
    };
    assert!(
        alone.lines().map(name).eq(texts.iter().copied().map(name)),
        "{alone}"
    );
}

#[test]
fn lines_of_the_source_stand_above_their_instructions() {
    let (_folder, object) = object("objdump-source");
    let dump = succeed(&["objdump", "-S", &object]);
    let lines: Vec<&str> = dump.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.ends_with("two.clif:13: v2 = imul v0, v1"))
        .unwrap_or_else(|| panic!("{dump}"));
    assert!(
        lines[at + 1].contains("IMUL") || lines[at + 1].contains("IMAD"),
        "{dump}"
    );
    let is_word = |line: &&str| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|w| w.len() == 32)
    };
    assert!(!lines.iter().any(is_word), "{dump}");
    let with_words = succeed(&["objdump", "-S", "--words", &object]);
    assert!(
        with_words.lines().any(|line| is_word(&line)),
        "{with_words}"
    );
    assert!(with_words.contains("two.clif:13: v2 = imul"));
}

#[test]
fn everything_is_what_comes_without_options_and_linked_code_has_addresses() {
    let (folder, object) = object("objdump-all");
    let linked = folder.path("linked.elf");
    succeed(&["link", &object, "-o", &linked]);
    let dump = succeed(&["objdump", &linked]);
    for expected in [
        "linked",
        "sections:",
        "symbols:",
        "relocations:",
        "resources:",
        "two.clif:13: ",
    ] {
        assert!(dump.contains(expected), "{dump}");
    }
    assert!(dump.contains("0x00000010 kernel twice"), "{dump}");
    let all = succeed(&["objdump", "-x", &linked]);
    assert!(all.len() > dump.len());
}

#[test]
fn programs_read_an_object_a_file() {
    let (_folder, object) = object("objdump-json");
    let out = succeed(&["objdump", "-x", "--json", &object, &object]);
    assert_eq!(out.lines().count(), 2);
    let dump: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(dump["header"]["kind"], "relocatable");
    let kernel = &dump["resources"][0];
    assert_eq!(kernel["name"], "twice");
    assert_eq!(kernel["kernel"]["parameters"][1]["offset"], 0x168);
    assert_eq!(kernel["callees"], serde_json::json!(["next"]));
    let instructions = dump["code"][1]["instructions"].as_array().unwrap();
    assert_eq!(
        kernel["instructions"].as_u64(),
        dump["code"][0]["instructions"]
            .as_array()
            .map(|i| i.len() as u64)
    );
    let mul = |i: &Value| i["source"][0]["line"] == 13 && i["text"].is_string();
    assert!(instructions.iter().any(mul), "{dump}");
    let symbols = dump["symbols"].as_array().unwrap();
    assert!(
        symbols
            .iter()
            .any(|s| s["name"] == "next" && s["section"] == ".text.next")
    );
}

#[test]
fn help_is_long_and_no_object_is_an_error() {
    assert!(succeed(&["objdump", "--help"]).contains("-h, --headers"));
    fail(2, &["objdump"]);
    fail(2, &["objdump", "--words", "x.elf"]);
    let folder = Folder::new("objdump-none");
    let text = folder.file("a.txt", "no object");
    assert!(
        fail(1, &["objdump", &text]).contains("a.txt: no ELF file of 64 bits: the header, at 0x0")
    );
    assert!(fail(1, &["objdump", &folder.path("missing.elf")]).contains("cannot open"));
    let own = std::env::current_exe().unwrap().display().to_string();
    assert!(fail(1, &["objdump", &own]).contains("machine 0x"));
}

/// Runs `objdump` over damaged files; its messages.
fn damaged(files: &[String]) -> String {
    let mut line = vec!["objdump", "-x"];
    line.extend(files.iter().map(String::as_str));
    let output = clif_util(&line);
    let errors = text(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{:?}: {errors}",
        output.status
    );
    assert!(
        errors.lines().all(|line| line.starts_with("error: ")),
        "{errors}"
    );
    errors
}

#[test]
fn a_file_that_is_cut_off_is_an_error_with_its_place() {
    let (folder, object) = object("objdump-cut");
    let bytes = std::fs::read(object).unwrap();
    let files: Vec<String> = (0..bytes.len())
        .step_by(97)
        .map(|length| folder.file(&format!("cut{length}.elf"), &bytes[..length]))
        .collect();
    let errors = damaged(&files);
    assert_eq!(errors.lines().count(), files.len(), "{errors}");
    for (file, error) in files.iter().zip(errors.lines()) {
        assert!(error.contains(file) && error.contains(", at 0x"), "{error}");
    }
}

#[test]
fn bits_that_flip_are_no_panic() {
    let (folder, object) = object("objdump-flips");
    let bytes = std::fs::read(object).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        ((state >> 33) % below as u64) as usize
    };
    let files: Vec<String> = (0..600)
        .map(|number| {
            let mut damaged = bytes.clone();
            for _ in 0..=random(4) {
                damaged[random(bytes.len())] ^= 1 << random(8);
            }
            folder.file(&format!("flip{number}.elf"), damaged)
        })
        .collect();
    let errors = damaged(&files);
    // A good part of an object is checked.
    assert!(errors.lines().count() > files.len() / 4, "{errors}");
}
