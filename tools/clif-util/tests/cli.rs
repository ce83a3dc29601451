//! The commands from outside: exit statuses, messages, what is written and what is not.

mod common;

use common::{Folder, clif_util, fail, kernel, succeed, text};
use std::path::Path;
use std::process::Command;

#[test]
fn bad_input_is_one_clear_error_and_leaves_no_file() {
    let folder = Folder::new("bad");
    let cases = [
        (
            "unparsable",
            "function %f() {\nblock0:\n    v0 = bogus.i32 1\n    return\n}\n",
            ":3: ",
            "bogus",
        ),
        (
            "verifier",
            "function %f(i32) -> i64 {\nblock0(v0: i32):\n    return v0\n}\n",
            ":3: ",
            "invalid CLIF",
        ),
        (
            "unsupported",
            "function %f(f128) -> f128 {\nblock0(v0: f128):\n    v1 = fadd v0, v0\n    return v1\n}\n",
            ":3: ",
            "fadd.f128",
        ),
        (
            "result",
            "; kernel\nfunction %k(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n",
            ":2: ",
            "returns nothing",
        ),
        (
            "unknown",
            "function %f() {\n    fn0 = %gpu_tid_q() -> i32\nblock0:\n    v0 = call fn0()\n    return\n}\n",
            ":4: ",
            "%gpu_tid_x",
        ),
        (
            "signature",
            "function %f() {\n    fn0 = %gpu_tid_x() -> i64\nblock0:\n    v0 = call fn0()\n    return\n}\n",
            ":4: ",
            "() -> i32",
        ),
        (
            "shared",
            "; kernel shared=1000000\nfunction %k() {\nblock0:\n    return\n}\n",
            ":2: ",
            "shared memory",
        ),
        (
            "mark",
            "; kernel fast\nfunction %k() {\nblock0:\n    return\n}\n",
            ":1: ",
            "shared=BYTES",
        ),
    ];
    for (name, source, place, expected) in cases {
        let file = folder.file(&format!("{name}.clif"), source);
        let out = folder.path(&format!("{name}.elf"));
        let message = fail(1, &["compile", &file, "--target", "thisgpu", "-o", &out]);
        assert!(
            message.contains(&format!("{name}.clif{place}")) && message.contains(expected),
            "{name}: {message}"
        );
        let errors = message.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{name}: {message}");
        // The line of the text, and carets, or nothing more.
        let below: Vec<&str> = message.lines().skip(1).collect();
        assert!(
            matches!(below[..], [_, carets] if carets.contains('^')),
            "{name}: {message}"
        );
        assert!(!Path::new(&out).exists(), "{name} leaves a file");
    }
    let missing = fail(
        1,
        &[
            "compile",
            &folder.path("missing.clif"),
            "--target",
            "thisgpu",
        ],
    );
    assert!(missing.contains("missing.clif"), "{missing}");
}

#[test]
fn all_unsupported_items_are_reported_at_once() {
    let folder = Folder::new("unsupported");
    let one = |name: &str| {
        format!(
            "function %{name}(f128) -> f128 \
             {{\nblock0(v0: f128):\n    v1 = fmul v0, v0\n    v2 = fadd v1, v0\n    return v2\n}}\n"
        )
    };
    let file = folder.file("two.clif", one("a") + &one("b"));
    let message = fail(1, &["compile", &file, "--target", "thisgpu"]);
    for part in [
        ":3: unsupported: fmul.f128",
        ":4: unsupported: fadd.f128",
        ":9: ",
        ":10: ",
        "%a",
        "%b",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    fail(2, &["compile", "x.clif"]);
    fail(2, &["compile", "x.clif", "--target", "x86_64"]);
    fail(
        2,
        &[
            "compile",
            "x.clif",
            "--target",
            "thisgpu",
            "--dump-after",
            "nothing",
        ],
    );
    fail(2, &["launch", "x.clif", "--kernel", "k", "--grid", "1"]);
    fail(
        2,
        &[
            "launch", "x.clif", "--kernel", "k", "--grid", "1,1,1,1", "--block", "1",
        ],
    );
    fail(
        2,
        &[
            "launch", "x.clif", "--kernel", "k", "--grid", "1", "--block", "1", "--arg", "u8:1",
        ],
    );
    fail(2, &["nothing"]);
    let settings = fail(
        2,
        &[
            "compile",
            &kernel("fmix64"),
            "--target",
            "thisgpu",
            "--set",
            "regs=3",
        ],
    );
    assert!(settings.contains("24 to 254"), "{settings}");
}

#[test]
fn remarks_name_the_line_and_the_reason() {
    let folder = Folder::new("remarks");
    let source = kernel("matmul8");
    let elf = folder.path("k.elf");
    let compile = |extra: &[&str]| {
        let all = [
            "compile",
            source.as_str(),
            "--target",
            "thisgpu",
            "-o",
            &elf,
        ];
        succeed(&[&all[..], extra].concat())
    };
    assert_eq!(compile(&["--set", "regs=24"]), "");
    let remarks = compile(&["--set", "regs=24", "--remarks"]);
    let spilled = |line: &str| {
        let place = line
            .split_once(": %matmul8: spilled: more values are alive here")?
            .0;
        place.strip_prefix(&source)?.strip_prefix(':')?.parse().ok()
    };
    let line: u32 = remarks.lines().find_map(spilled).expect(&remarks);
    assert!(line > 1, "{remarks}");
    assert_eq!(
        remarks,
        compile(&["--set", "regs=24", "--remarks", "-j", "2"])
    );
}

#[test]
fn cycles_of_blocks_are_printed_beside_the_code() {
    let folder = Folder::new("cycles");
    let elf = folder.path("k.elf");
    let source = kernel("collatz");
    let report = |extra: &[&str]| {
        let common = [
            "compile",
            source.as_str(),
            "--target",
            "thisgpu",
            "-o",
            &elf,
        ];
        succeed(&[&common, extra].concat())
    };
    assert_eq!(report(&[]), "");
    let cycles = report(&["--cycles"]);
    assert!(
        cycles.starts_with("collatz: cycles of one warp alone\n  0x0000, line "),
        "{cycles}"
    );
    assert_eq!(
        cycles.matches("cycles a turn of the loop").count(),
        1,
        "{cycles}"
    );
    assert_eq!(cycles, report(&["--cycles", "-j", "2"]));
}

#[test]
fn all_outputs_of_a_compilation_are_the_same_code() {
    let folder = Folder::new("emit");
    let source = kernel("saxpy_f32");
    let compile = |extra: &[&str]| {
        succeed(&[&["compile", source.as_str(), "--target", "thisgpu"], extra].concat())
    };
    let assembly = compile(&[]);
    assert_eq!(assembly, compile(&["-j", "2"]));
    assert!(assembly.contains("FFMA"), "{assembly}");
    let hex = compile(&["--emit", "hex"]);
    let (elf, s) = (folder.path("k.elf"), folder.path("k.s"));
    let report = compile(&["-o", &elf, "--resource-usage=json"]);
    assert_eq!(compile(&["-o", &s]), "");
    assert_eq!(std::fs::read_to_string(&s).unwrap(), assembly);
    assert_eq!(succeed(&["disasm", &elf]), assembly);
    assert_eq!(succeed(&["asm", &s, "--hex"]), hex);
    let again = folder.path("again.elf");
    succeed(&["asm", &s, "-o", &again]);
    assert_eq!(
        std::fs::read(&again).unwrap(),
        std::fs::read(&elf).unwrap(),
        "the text assembles to the same object"
    );
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let report = &report.as_array().unwrap()[0];
    assert_eq!(report["name"], "saxpy_f32");
    assert_eq!(
        report["instructions"].as_u64().unwrap() as usize,
        hex.lines().count()
    );
    for key in [
        "registers",
        "predicates",
        "uniform",
        "spill_bytes",
        "local_bytes",
        "shared_bytes",
        "loops",
    ] {
        assert!(report.get(key).is_some(), "{key}: {report}");
    }
    assert!(compile(&["--emit", "vcode"]).starts_with("kernel saxpy_f32"));
}

#[test]
fn every_pass_can_be_dumped_and_timed() {
    let output = clif_util(&[
        "compile",
        &kernel("collatz"),
        "--target",
        "thisgpu",
        "--dump-after",
        "all",
        "-T",
        "-p",
        "-D",
    ]);
    assert!(output.status.success());
    let report = text(&output.stderr);
    for pass in [
        "verify", "promote", "mid-end", "lower", "allocate", "layout", "control",
    ] {
        assert!(
            report.contains(&format!("; %collatz after {pass}\n")),
            "{pass}: {report}"
        );
        assert!(
            report.contains(&format!("\n{pass:<12}")),
            "{pass} is not timed: {report}"
        );
    }
}

#[test]
fn every_pass_can_be_the_last() {
    let file = kernel("collatz");
    let last = |pass| {
        clif_util(&[
            "compile",
            &file,
            "--target",
            "thisgpu",
            "--stop-after",
            pass,
        ])
    };
    let unknown = last("nothing");
    assert_eq!(unknown.status.code(), Some(2));
    let said = text(&unknown.stderr);
    let names = said
        .split("passes are ")
        .nth(1)
        .expect("the passes are named");
    let names = names.split(['\n', ';']).next().unwrap_or_default();
    assert!(
        names.contains("by-value, ") && names.ends_with("emit"),
        "{names}"
    );
    for pass in names.split(", ") {
        let output = last(pass);
        assert!(output.status.success(), "{pass}: {}", text(&output.stderr));
        let printed = text(&output.stdout);
        assert!(
            printed.starts_with(&format!("; %collatz after {pass}\n")),
            "{printed}"
        );
        assert_eq!(printed.matches("; %collatz after ").count(), 1, "{printed}");
    }
}

#[test]
fn passes_are_left_out_where_code_stays_right() {
    let file = kernel("collatz");
    let skip = |pass| clif_util(&["compile", &file, "--target", "thisgpu", "--skip", pass]);
    for pass in ["legalize", "lower", "verify"] {
        let output = skip(pass);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        let expected = format!(
            "{pass} is required, code is wrong without it; optional are promote, mid-end, "
        );
        assert!(said.contains(&expected), "{said}");
    }
    for pass in [
        "promote",
        "mid-end",
        "loops",
        "rewrite",
        "split-addresses",
        "merge-accesses",
        "fuse",
        "order",
    ] {
        let output = skip(pass);
        assert!(output.status.success(), "{pass}: {}", text(&output.stderr));
    }
}

const RUN: &str = "\
test run
test interpret
target thisgpu

function %double(i32) -> i32 {
block0(v0: i32):
    v1 = iadd v0, v0
    return v1
}
; run: %double(3) == 6
; print: %double(5)
";

#[test]
fn run_lines_run_and_are_counted() {
    let folder = Folder::new("run");
    let good = folder.file("good.clif", RUN);
    assert_eq!(
        succeed(&["run", &good]),
        "%double(5) -> 10\n2 passed, 0 failed, 0 skipped\n"
    );
    assert_eq!(
        succeed(&["interpret", &good]),
        "%double(5) -> 10\n2 passed, 0 failed, 0 skipped\n"
    );
    let bad = folder.file("bad.clif", RUN.replace("== 6", "== 7"));
    let message = fail(1, &["run", &bad]);
    assert!(
        message.contains("bad.clif:10: ") && message.contains("6"),
        "{message}"
    );
    let totals = succeed(&["test", &good]);
    assert!(
        totals.ends_with("\n1 passed, 0 failed, 0 skipped\n"),
        "{totals}"
    );
    let output = clif_util(&["test", "--json", &good, &bad]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["passed"], &lines[0]["failed"]),
        (&2.into(), &0.into())
    );
    assert_eq!(
        (&lines[1]["passed"], &lines[1]["failed"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        lines[1]["errors"].as_array().unwrap().len(),
        2,
        "on the target and on the interpreter: {}",
        lines[1]
    );
    assert_eq!(lines[2]["files"]["failed"], 1);
}

#[test]
fn files_for_other_targets_are_skipped_or_forced() {
    let folder = Folder::new("forced");
    let other = RUN.replace("target thisgpu", "target x86_64");
    let file = folder.file("other.clif", &other);
    let skipped = succeed(&["test", &file]);
    assert!(
        skipped.contains("no `target thisgpu`")
            && skipped.ends_with("0 passed, 0 failed, 1 skipped\n"),
        "{skipped}"
    );
    assert!(
        succeed(&["test", "--force-target", "thisgpu", &file])
            .ends_with("1 passed, 0 failed, 0 skipped\n")
    );
    let f128 = "test run\ntarget x86_64\nfunction %f(f128) -> f128 {\nblock0(v0: f128):\n    return v0\n}\n; run: \
     %f(0x1.0) == 0x1.0\n";
    let file = folder.file("f128.clif", f128);
    let skipped = succeed(&["test", "--force-target", "thisgpu", &file]);
    assert!(
        skipped.contains("skipped 1: f128") && skipped.ends_with("0 passed, 0 failed, 1 skipped\n"),
        "{skipped}"
    );
}

#[test]
fn an_expectation_is_compared_and_rewritten() {
    let folder = Folder::new("bless");
    let source = "test optimize precise-output\ntarget thisgpu\n\nfunction %f(i32) -> i32 \
     {\nblock0(v0: i32):\n    v1 = iconst.i32 0\n    v2 = iadd v0, v1\n    return v2\n}\n\n;; kept\n";
    let file = folder.file("f.clif", source);
    let message = clif_util(&["test", &file]);
    assert_eq!(message.status.code(), Some(1));
    assert!(
        text(&message.stdout).contains("CRANELIFT_TEST_BLESS"),
        "{}",
        text(&message.stdout)
    );
    let bless = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(["test", &file])
        .env("CRANELIFT_TEST_BLESS", "1")
        .status()
        .unwrap();
    assert!(bless.success());
    let blessed = std::fs::read_to_string(&file).unwrap();
    assert!(
        blessed.contains("}\n; function %f(i32) -> i32") && blessed.ends_with("\n;; kept\n"),
        "{blessed}"
    );
    succeed(&["test", &file]);
}

#[test]
fn functions_print_as_text_as_graph_and_after_passes() {
    let file = kernel("collatz");
    let text = succeed(&["cat", &file]);
    assert!(
        text.starts_with("function %collatz(i32, i64, i64)"),
        "{text}"
    );
    let graph = succeed(&["print-cfg", &file]);
    assert!(
        graph.starts_with("digraph \"%collatz\"") && graph.contains("block3"),
        "{graph}"
    );
    assert!(succeed(&["pass", &file, "thisgpu", "mid-end", "lower"]).contains("kernel collatz"));
    let verbose = succeed(&["pass", "-v", "-d", &file, "thisgpu", "clif"]);
    assert!(verbose.starts_with("; %collatz after clif\n"), "{verbose}");
    let timed = clif_util(&["pass", "-T", &file, "thisgpu", "clif"]);
    assert!(common::text(&timed.stderr).contains("mid-end"));
    fail(2, &["pass", &file, "x86_64", "clif"]);
    let message = fail(1, &["bugpoint", &file, "thisgpu"]);
    assert!(message.contains("does not fail"), "{message}");
}

#[test]
fn folders_compile_as_their_files_do() {
    let folder = Folder::new("folders");
    let function = |name: &str| format!("function %{name}() {{\nblock0:\n    return\n}}\n");
    std::fs::create_dir_all(folder.path("all/deep")).unwrap();
    std::fs::create_dir_all(folder.path("empty")).unwrap();
    let files = ["all/deep/a.clif", "all/z.clif"].map(|name| folder.file(name, function("f")));
    folder.file("all/notes.txt", "no CLIF");
    let target = ["--target", "thisgpu"];
    let all = succeed(&[&["compile", &folder.path("all")], &target[..]].concat());
    assert_eq!(
        all,
        succeed(&[&["compile", &files[0], &files[1]], &target[..]].concat())
    );
    let error = fail(
        1,
        &[&["compile", &folder.path("empty")], &target[..]].concat(),
    );
    assert!(
        error.contains("empty: there is no file of the name *.clif"),
        "{error}"
    );
}
