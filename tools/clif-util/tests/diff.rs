//! `diff` from outside.

mod common;

use common::{fail, kernel, succeed};
use serde_json::Value;

#[test]
fn the_same_settings_make_no_difference() {
    let file = kernel("saxpy_f32");
    let out = succeed(&[
        "diff",
        &file,
        "--a",
        "opt_level=speed",
        "--b",
        "opt_level=speed",
    ]);
    assert!(
        out.contains("the code is the same") && !out.contains('|'),
        "{out}"
    );
}

#[test]
fn both_texts_stand_beside_each_other_below_their_numbers() {
    let file = kernel("saxpy_f32");
    let out = succeed(&["diff", &file, "--b", "sched=serial"]);
    assert!(
        out.starts_with("a: default\nb: sched=serial\n\n%saxpy_f32\n"),
        "{out}"
    );
    let row = |name: &str| {
        let row = out
            .lines()
            .find(|line| line.trim().starts_with(name))
            .unwrap();
        row.trim()[name.len()..]
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    let instructions = row("instructions");
    assert_eq!(instructions[0], instructions[1]);
    let cycles = row("weighed cycles");
    let (a, b): (u64, u64) = (cycles[0].parse().unwrap(), cycles[1].parse().unwrap());
    assert!(b > a, "{out}");
    assert_eq!(cycles[2], format!("+{}", b - a));
    let of = |settings: &[&str]| {
        let line = [
            &[
                "compile",
                &file,
                "--target",
                "thisgpu",
                "--cycles",
                "-o",
                "/dev/null",
            ],
            settings,
        ]
        .concat();
        let cycles = succeed(&line);
        let blocks = cycles
            .lines()
            .filter_map(|line| line.split_once(" instructions, ")?.1.split(' ').next());
        blocks
            .map(|number| number.parse::<u64>().unwrap())
            .sum::<u64>()
    };
    assert_eq!((of(&[]), of(&["--set", "sched=serial"])), (a, b));
}

#[test]
fn a_unified_difference_applies() {
    let file = kernel("collatz");
    let out = succeed(&[
        "diff",
        &file,
        "-u",
        "--a",
        "if_convert=false",
        "--b",
        "regalloc_algorithm=single_pass",
    ]);
    let text = |setting: &str| {
        let listing = succeed(&["compile", &file, "--target", "thisgpu", "--set", setting]);
        let code = listing
            .lines()
            .filter(|line| line.ends_with(" ;") || line.ends_with(':'));
        code.map(str::to_owned).collect::<Vec<_>>()
    };
    let (a, b) = (
        text("if_convert=false"),
        text("regalloc_algorithm=single_pass"),
    );
    let mut made: Vec<String> = Vec::new();
    let mut taken = 0;
    for line in out.lines().skip_while(|line| !line.starts_with("@@")) {
        if let Some(hunk) = line.strip_prefix("@@ -") {
            let start: usize = hunk.split(',').next().unwrap().parse().unwrap();
            made.extend_from_slice(&a[taken..start - 1]);
            taken = start - 1;
            continue;
        }
        let (mark, line) = line.split_at(1);
        if mark != "+" {
            assert_eq!(a[taken], line);
            taken += 1;
        }
        if mark != "-" {
            made.push(line.to_owned());
        }
    }
    made.extend_from_slice(&a[taken..]);
    assert_ne!(a, b);
    assert_eq!(made, b);
}

#[test]
fn registers_can_be_ignored() {
    let file = kernel("saxpy_f32");
    let rows = |more: &[&str]| {
        let line = ["diff", &file, "--a", "opt_level=none", "--json"];
        let whole: Value = serde_json::from_str(&succeed(&[&line, more].concat())).unwrap();
        whole["functions"][0]["rows"].as_array().unwrap().clone()
    };
    let same = |rows: &[Value]| rows.iter().filter(|row| row["kind"] == "same").count();
    let (all, blanked) = (rows(&[]), rows(&["--ignore-registers"]));
    assert!(same(&blanked) > same(&all), "{blanked:?}");
    for row in blanked.iter().filter(|row| row["kind"] == "same") {
        let [a, b] = ["a", "b"].map(|side| row[side].as_str().unwrap());
        let shape = |line: &str| line.replace(|c: char| c.is_ascii_digit(), "");
        assert_eq!(shape(a), shape(b));
    }
}

#[test]
fn wrong_settings_are_errors_that_name_their_side() {
    let file = kernel("saxpy_f32");
    fail(2, &["diff", &file]);
    let error = fail(
        2,
        &["diff", &file, "--a", "opt_level=speed", "--b", "unrol=off"],
    );
    assert!(
        error.contains("for '--b") && error.contains("did you mean `unroll`"),
        "{error}"
    );
    assert!(fail(1, &["diff", "missing.clif", "--b", "unroll=off"]).contains("missing.clif"));
}

#[test]
fn several_settings_a_side_go_over_those_of_both() {
    let file = kernel("matmul8");
    let line = [
        "diff",
        &file,
        "--set",
        "opt_level=none",
        "--a",
        "unroll=off",
        "hoist=false",
        "--b",
        "opt_level=speed",
        "--json",
    ];
    let whole: Value = serde_json::from_str(&succeed(&line)).unwrap();
    assert_eq!(whole["a"], "opt_level=none unroll=off hoist=false");
    assert_eq!(whole["b"], "opt_level=none opt_level=speed");
    let function = &whole["functions"][0];
    assert_eq!(function["name"], "matmul8");
    assert_eq!(function["same"], false);
    for side in ["a", "b"] {
        let lines = function["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|row| row[side].as_str());
        let instructions = lines.filter(|line| line.ends_with(" ;")).count() as u64;
        assert_eq!(function[side]["instructions"], instructions);
    }
}

/// What takes twice as long in a launch does not look cheaper, though its text is shorter.
#[test]
fn blocks_count_as_often_as_they_run() {
    let file = kernel("softmax");
    let out = succeed(&["diff", &file, "--b", "unroll=off", "--json"]);
    let whole: Value = serde_json::from_str(&out).unwrap();
    let function = &whole["functions"][0];
    let cycles = |side: &str| function[side]["cycles"].as_f64().unwrap();
    assert!(
        cycles("b") > 1.2 * cycles("a"),
        "{} {}",
        cycles("a"),
        cycles("b")
    );
    let launched = |settings: &[&str]| {
        let line = [
            "launch",
            &file,
            "--kernel",
            "softmax",
            "--grid",
            "1",
            "--block",
            "32",
            "--arg",
            "i32:64",
            "--arg",
            "zero:8192",
            "--arg",
            "zero:8192",
            "--timed",
            "--stats=json",
        ];
        let counts = succeed(&[&line[..], settings].concat());
        let counts: Value = serde_json::from_str(&counts).unwrap();
        counts["cycles"].as_f64().unwrap()
    };
    assert!(launched(&["--set", "unroll=off"]) > launched(&[]));
    let text = succeed(&["diff", &file, "--b", "unroll=off"]);
    assert!(text.contains("taken to turn 16 times"), "{text}");
}
