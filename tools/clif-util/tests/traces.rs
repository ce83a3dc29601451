//! Both traces, of a launch and of a compilation, by the rules of their format and by the totals of other reports.

#[path = "common/chrome.rs"]
mod chrome;
mod common;

use chrome::{Slice, Trace};
use common::{Folder, kernel, succeed};
use cranelift_thisgpu::compile::Pass;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> Trace {
    let text = std::fs::read_to_string(path).unwrap();
    chrome::read(&text).unwrap_or_else(|reason| panic!("{path}: {reason}"))
}

fn of<'a>(trace: &'a Trace, category: &'a str) -> impl Iterator<Item = &'a Slice> {
    trace
        .slices
        .iter()
        .filter(move |slice| slice.category == category)
}

fn total(trace: &Trace, category: &str) -> u64 {
    of(trace, category).map(|slice| slice.duration).sum()
}

#[test]
fn the_reader_refuses_what_breaks_a_rule() {
    let slice = |ts: u64, dur: u64| json!({"name": "n", "cat": "c", "ph": "X", "ts": ts, "dur": dur, "pid": 0, "tid": 1, "args": {}});
    let names = [
        json!({"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "p"}}),
        json!({"name": "thread_name", "ph": "M", "ts": 0, "pid": 0, "tid": 1, "args": {"name": "t"}}),
    ];
    let file = |events: &[Value]| {
        json!({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {}}).to_string()
    };
    let with = |events: &[Value]| chrome::read(&file(&[&names[..], events].concat()));
    let good = [
        slice(0, 10),
        slice(0, 4),
        slice(4, 6),
        slice(4, 0),
        slice(10, 3),
    ];
    assert_eq!(with(&good).unwrap().slices.len(), good.len());

    let changed = |key: &str, value: Value| {
        let mut event = slice(0, 1);
        event[key] = value;
        event
    };
    let mut without = slice(0, 1);
    without.as_object_mut().unwrap().remove("dur");
    let bad = [
        (vec![slice(0, 5), slice(3, 5)], "overlaps"),
        (vec![without], "without dur"),
        (vec![changed("ts", json!(-1))], "ts is no whole number"),
        (vec![changed("dur", json!(1.5))], "dur is no whole number"),
        (vec![changed("tid", json!(7))], "nothing names"),
        (vec![changed("pid", json!(7))], "nothing names"),
        (vec![changed("ph", json!("B"))], "unknown phase"),
        (vec![changed("name", json!(""))], "name is no name"),
        (vec![changed("extra", json!(0))], "unknown extra"),
        (vec![names[1].clone()], "second time"),
    ];
    for (events, expected) in bad {
        let reason = with(&events).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }
    assert!(chrome::read("[]").unwrap_err().contains("no object"));
    assert!(
        chrome::read(&file(&[slice(0, 1)]))
            .unwrap_err()
            .contains("nothing names")
    );
}

#[test]
fn the_trace_of_a_launch_is_valid_and_its_totals_are_those_of_the_counts_and_the_profile() {
    let folder = Folder::new("launch-trace");
    // Lanes that turn differently often: 1, 2, 3, …
    let numbers = (1..=200u32).flat_map(u32::to_le_bytes);
    let numbers = folder.file("numbers.bin", numbers.collect::<Vec<u8>>());
    let numbers = format!("in:{numbers}");
    let launches: [(&str, &str, &[&str]); 2] = [
        (
            "saxpy_f32",
            "3",
            &["i32:300", "f32:2.5", "zero:1200", "zero:1200"],
        ),
        ("collatz", "2", &["i32:200", &numbers, "zero:800"]),
    ];
    for (name, grid, arguments) in launches {
        let file = kernel(name);
        let (trace, profile) = (folder.path("trace.json"), folder.path("profile.json"));
        let mut line = vec![
            "launch", &file, "--kernel", name, "--grid", grid, "--block", "128",
        ];
        line.extend(["--trace", &trace, "--profile", &profile, "--stats=json"]);
        line.extend(arguments.iter().flat_map(|argument| ["--arg", argument]));
        let stats: Value = serde_json::from_str(&succeed(&line)).unwrap();
        let profile: Value =
            serde_json::from_str(&std::fs::read_to_string(&profile).unwrap()).unwrap();
        let trace = read(&trace);

        assert_eq!(trace.totals["dropped_events"], 0);
        for key in ["cycles", "warp_instructions"] {
            assert_eq!(trace.totals[key], stats[key], "{name}: {key}");
        }
        assert_eq!(
            Some(total(&trace, "issue")),
            stats["warp_instructions"].as_u64()
        );
        let end = trace.slices.iter().map(Slice::end).max();
        assert_eq!(end, stats["cycles"].as_u64(), "{name}: the end");
        let instructions = profile["instructions"].as_array().unwrap();
        let stalls = instructions
            .iter()
            .flat_map(|i| i["stalls"].as_object().unwrap().values());
        let stalls: u64 = stalls.map(|cycles| cycles.as_u64().unwrap()).sum();
        assert_eq!(total(&trace, "wait"), stalls, "{name}: waits");
        let lanes = of(&trace, "issue").map(|slice| slice.arguments["lanes"].as_u64().unwrap());
        assert_eq!(
            Some(lanes.sum()),
            stats["thread_instructions"].as_u64(),
            "{name}: lanes"
        );
        let warps = trace
            .rows
            .values()
            .filter(|row| !row.contains("scoreboard"))
            .count();
        assert_eq!(warps, grid.parse::<usize>().unwrap() * 128 / 32);
    }
}

#[test]
fn the_trace_of_a_compilation_is_valid_and_its_totals_are_those_of_the_table() {
    let folder = Folder::new("compile-trace");
    let functions = (0..60).map(|number| {
        format!("function %f{number}(i32) -> i32 {{\nblock0(v0: i32):\n    v1 = iconst.i32 {number}\n    v2 = iadd v0, \
         v1\n    return v2\n}}\n\n")
    });
    let file = folder.file("many.clif", functions.collect::<String>());
    let out = folder.path("many.elf");
    for threads in ["1", "3"] {
        let trace = folder.path("trace.json");
        let line = [
            "compile",
            &file,
            "--target",
            "thisgpu",
            "-T",
            "-j",
            threads,
            "-o",
            &out,
            "--time-trace",
            &trace,
        ];
        let report = succeed(&line);
        let trace = read(&trace);

        assert_eq!(
            trace.totals["threads"].as_u64(),
            Some(trace.rows.len() as u64)
        );
        assert!(
            trace.rows.len() <= threads.parse().unwrap(),
            "{:?}",
            trace.rows
        );
        assert_eq!(trace.totals["functions"], 60);
        let time = |slice: &Slice| slice.arguments["nanoseconds"].as_u64().unwrap();
        let sum: u64 = of(&trace, "pass").map(time).sum();
        assert_eq!(trace.totals["pass_nanoseconds"].as_u64(), Some(sum));
        let total = report
            .lines()
            .find_map(|line| line.strip_prefix("total"))
            .unwrap();
        let total: f64 = total.trim().strip_suffix(" ms").unwrap().parse().unwrap();
        assert!(
            (total - sum as f64 / 1e6).abs() < 0.001,
            "{total} ms, {sum} ns"
        );

        let known: BTreeSet<&str> = Pass::ALL.map(Pass::name).into();
        for function in of(&trace, "function") {
            let passes: Vec<&Slice> = of(&trace, "pass")
                .filter(|pass| pass.arguments["function"] == *function.name)
                .collect();
            let names: BTreeSet<&str> = passes.iter().map(|pass| pass.name.as_str()).collect();
            assert_eq!(names, known, "%{}", function.name);
            assert!(passes.iter().all(|pass| {
                pass.row == function.row
                    && pass.start >= function.start
                    && pass.end() <= function.end()
            }));
        }
    }
}

#[test]
fn a_compilation_that_fails_leaves_its_trace_and_one_that_is_not_asked_leaves_none() {
    let folder = Folder::new("failed-trace");
    let file = folder.file(
        "bad.clif",
        "function %f(f128) -> f128 {\nblock0(v0: f128):\n    v1 = fadd v0, v0\n    return v1\n}\n",
    );
    let trace = folder.path("trace.json");
    let error = common::fail(
        1,
        &[
            "compile",
            &file,
            "--target",
            "thisgpu",
            "--time-trace",
            &trace,
        ],
    );
    assert!(error.contains("fadd.f128"), "{error}");
    assert_eq!(of(&read(&trace), "function").count(), 1);
    std::fs::remove_file(&trace).unwrap();
    common::fail(1, &["compile", &file, "--target", "thisgpu"]);
    assert!(!Path::new(&trace).exists());
}

#[test]
fn the_report_of_a_profile_lists_the_dearest_and_sums_the_reasons() {
    let folder = Folder::new("profile-report");
    let (file, profile) = (kernel("saxpy_f32"), folder.path("profile.json"));
    let line = [
        "launch",
        &file,
        "--kernel",
        "saxpy_f32",
        "--grid",
        "2",
        "--block",
        "64",
        "--arg",
        "i32:100",
        "--arg",
        "f32:2",
        "--arg",
        "zero:400",
        "--arg",
        "zero:400",
        "--profile-report",
        "--profile",
        &profile,
    ];
    let report = succeed(&line);
    let profile: Value = serde_json::from_str(&std::fs::read_to_string(profile).unwrap()).unwrap();
    let instructions = profile["instructions"].as_array().unwrap();
    let cost = |instruction: &Value| {
        let stalls = instruction["stalls"].as_object().unwrap().values();
        let stalls: u64 = stalls.map(|cycles| cycles.as_u64().unwrap()).sum();
        stalls + instruction["issues"].as_u64().unwrap()
    };
    let all: u64 = instructions.iter().map(cost).sum();
    assert!(
        report.contains(&format!("{all} cycles of all warps")),
        "{report}"
    );
    let rows: Vec<&str> = report.lines().filter(|line| line.contains(" % ")).collect();
    let (listed, reasons): (Vec<&str>, Vec<&str>) =
        rows.iter().partition(|row| row.contains("saxpy_f32+"));
    assert_eq!(listed.len(), 10);
    let cycles = |row: &&str| {
        row.split_whitespace()
            .nth(2)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let most = instructions.iter().map(cost).max();
    assert_eq!(listed.first().map(cycles), most);
    assert!(
        listed.is_sorted_by_key(|row| std::cmp::Reverse(cycles(row))),
        "{report}"
    );
    assert_eq!(reasons.iter().map(cycles).sum::<u64>(), all);
    assert!(
        reasons.iter().any(|row| row.ends_with("  global")),
        "{report}"
    );
}
