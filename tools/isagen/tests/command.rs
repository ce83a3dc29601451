//! The command: exit status, and where what is printed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn isagen(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isagen"))
        .args(arguments)
        .output()
        .expect("isagen runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn description() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
    folder.to_string_lossy().into_owned()
}

/// A file with this text, in the folder that Cargo keeps for tests.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the file is writable");
    path
}

#[test]
fn without_arguments_it_prints_the_instruction_table() {
    let output = isagen(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("# Instruction set\n"));
    assert!(stdout(&output).contains("\n### HFMA2_RRI\n"));
}

#[test]
fn check_accepts_the_description() {
    let output = isagen(&["check", &description()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).ends_with(" forms: 0 errors, 0 warnings\n"));
}

#[test]
fn check_shows_file_line_and_caret_of_every_mistake() {
    let path = file(
        "mistakes.isa",
        "__DefGroup A : [B]\n  __Encoding\n    field<12, 3> Pred pg = PT;\n    field<14, 4> Kind kind;\n",
    );
    let path = path.to_string_lossy();
    let output = isagen(&["check", &path]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("error: group `B` is not defined"), "{text}");
    assert!(text.contains("error: type `Kind` is not defined"), "{text}");
    assert!(text.contains(&format!("{path}:1:17")), "{text}");
    assert!(
        text.contains("1 | __DefGroup A : [B]\n  |                 ^ "),
        "{text}"
    );
    assert_eq!(stdout(&output), "2 errors, 0 warnings\n");
}

#[test]
fn diff_fails_if_a_file_says_something_else() {
    let half = format!("{}/half.isa", description());
    let output = isagen(&["diff", "--against", &description(), &half]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("27 forms"), "{}", stdout(&output));
    assert!(stdout(&output).ends_with(": 0 differences\n"));

    let text = std::fs::read_to_string(&half).expect("half.isa is readable");
    let changed = text.replacen("field<16,  8> Reg rd;", "field<18,  8> Reg rd;", 1);
    assert_ne!(text, changed);
    let path = file("half_changed.isa", &changed);
    let output = isagen(&["diff", "--against", &description(), &path.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains("field `rd` of group `H_ARITH` differs"),
        "{text}"
    );
    assert!(text.contains("field<18, 8> Reg rd"), "{text}");
    assert!(text.contains("half_changed.isa:"), "{text}");
}

#[test]
fn files_without_definitions_are_no_success() {
    let path = file("prose.txt", "IADD adds.\n").display().to_string();
    for arguments in [
        &["check", &path][..],
        &["diff", "--against", &description(), &path],
    ] {
        let output = isagen(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let text = stderr(&output);
        assert!(text.contains("the files define nothing"), "{text}");
    }
}

#[test]
fn a_byte_order_mark_hides_no_definition() {
    let special = std::fs::read_to_string(format!("{}/special.isa", description()))
        .expect("special.isa is readable");
    let first = special.find("__Def").expect("a definition");
    let path = file("marked.isa", &format!("\u{feff}{}", &special[first..]));
    let output = isagen(&["diff", "--against", &description(), &path.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn wrong_usage_and_missing_files() {
    assert_eq!(isagen(&["check"]).status.code(), Some(2));
    assert_eq!(isagen(&["compare"]).status.code(), Some(2));
    let output = isagen(&["check", "no/such/file.isa"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read `no/such/file.isa`"));
}

/// Who stops reading changes nothing of what was found.
#[test]
fn a_closed_pipe_changes_no_exit_status() {
    let wrong = file("closed.isa", "__DefGroup(\n");
    let wrong = wrong.to_string_lossy();
    for (arguments, status) in [
        (vec![], 0),
        (vec!["check", &*description()], 0),
        (vec!["check", &*wrong], 1),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_isagen"))
            .args(&arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("isagen runs");
        drop(child.stdout.take());
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(status), "{arguments:?}");
    }
}
