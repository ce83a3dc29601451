//! What options of the commands do that other files do not show.

mod common;

use common::{Folder, clif_util, fail, succeed, text};
use std::io::Write;
use std::process::{Command, Stdio};

const SCALE: &str = "\
test run
target thisgpu

; kernel
function %scale(i64, i64, f32x4) {
    fn0 = %gpu_tid_x() -> i32
    fn1 = %twice(f32) -> f32
block0(v0: i64, v1: i64, v2: f32x4):
    v3 = call fn0()
    v4 = uextend.i64 v3
    v5 = iconst.i64 2
    v6 = ishl v4, v5
    v7 = iadd v0, v6
    v8 = load.f32 aligned v7
    v9 = call fn1(v8)
    v10 = extractlane v2, 3
    v11 = fadd v9, v10
    v12 = iadd v1, v6
    store aligned v11, v12
    return
}
";
const TWICE: &str = "\
test run
target thisgpu

function %twice(f32) -> f32 {
block0(v0: f32):
    v1 = fadd v0, v0
    return v1
}
; run: %twice(0x1.0) == 0x1.0p1
; print: %twice(0x1.8)
";

/// Runs a command with this on standard input; its standard output.
fn with_input(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    text(&child.wait_with_output().unwrap().stdout)
}

#[test]
fn several_files_are_compiled_in_turn_and_linked_with_an_output() {
    let folder = Folder::new("several");
    let (scale, twice) = (
        folder.file("scale.clif", SCALE),
        folder.file("twice.clif", TWICE),
    );
    // The header names the target.
    let both = succeed(&["compile", &scale, &twice]);
    let [one, two] = [&scale, &twice].map(|file| {
        let text = succeed(&["compile", file, "--target", "thisgpu"]);
        format!("// {file}\n{text}")
    });
    assert_eq!(both, one + &two);
    let warned = clif_util(&["compile", &scale]);
    assert!(text(&warned.stderr).contains(":15: `twice` is not defined here"));

    let linked = folder.path("linked.elf");
    let output = clif_util(&[
        "compile",
        &scale,
        &twice,
        "-o",
        &linked,
        "--resource-usage=json",
    ]);
    assert!(output.status.success() && output.stderr.is_empty());
    let usage: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(usage.as_array().unwrap().len(), 1, "{usage}");
    let objects = [&scale, &twice].map(|file| {
        let object = file.replace(".clif", ".elf");
        succeed(&["compile", file, "--output", &object]);
        object
    });
    let other = folder.path("other.elf");
    succeed(&["link", &objects[0], &objects[1], "--output", &other]);
    assert_eq!(
        std::fs::read(&linked).unwrap(),
        std::fs::read(&other).unwrap()
    );
    let (s, again) = (folder.path("linked.s"), folder.path("again.elf"));
    succeed(&["compile", &scale, &twice, "-o", &s]);
    succeed(&["asm", &s, "-o", &again]);
    assert_eq!(succeed(&["disasm", &again]), succeed(&["disasm", &linked]));
}

#[test]
fn long_options_are_the_short_ones() {
    let folder = Folder::new("long");
    let file = folder.file("twice.clif", TWICE);
    for (short, long) in [("-D", "--disasm"), ("-p", "--print")] {
        let of = |option| {
            let output = clif_util(&["compile", &file, "--emit", "hex", option]);
            (
                output.status.code(),
                text(&output.stdout),
                text(&output.stderr),
            )
        };
        assert_eq!(of(short), of(long), "{short}");
        assert!(!of(short).2.is_empty(), "{short}");
    }
    for arguments in [
        [
            "compile",
            &file,
            "--threads",
            "2",
            "--time-passes",
            "--debug",
        ]
        .as_slice(),
        &[
            "pass",
            &file,
            "thisgpu",
            "emit",
            "--time-passes",
            "--verbose",
        ],
        &["test", &file, "--time-passes", "--verbose", "--debug"],
        &["run", &file, "--verbose", "--debug"],
    ] {
        let output = clif_util(arguments);
        assert!(output.status.success(), "{arguments:?}");
        let times = text(&output.stderr).contains("\nmid-end ");
        assert_eq!(times, arguments.contains(&"--time-passes"), "{arguments:?}");
    }
}

#[test]
fn tests_come_from_standard_input_and_say_where_there_are_none() {
    let good = with_input(&["test", "-", "-v"], TWICE);
    assert!(
        good.contains("<stdin> ... ok") && good.ends_with("1 passed, 0 failed, 0 skipped\n"),
        "{good}"
    );
    let folder = Folder::new("hollow");
    let hollow = folder.path("hollow");
    std::fs::create_dir(&hollow).unwrap();
    let output = clif_util(&["test", &hollow]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).ends_with("\n0 passed, 0 failed, 0 skipped\n"));
    assert!(text(&output.stderr).contains("*.clif"));
    let file = folder.file("none.clif", SCALE.replace("%twice", "%gpu_ex2_f32"));
    let skipped = succeed(&["test", &file]);
    assert!(
        skipped.contains("skipped 1: no run lines")
            && skipped.ends_with("0 passed, 0 failed, 1 skipped\n"),
        "{skipped}"
    );
    for command in ["run", "interpret"] {
        let output = clif_util(&[command, &file]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("none.clif: no run lines"));
        assert_eq!(text(&output.stdout), "0 passed, 0 failed, 0 skipped\n");
    }
}

#[test]
fn a_run_says_what_ran_and_what_did_not() {
    let folder = Folder::new("ran");
    let twice = folder.file("twice.clif", TWICE);
    let wrong = folder.file("wrong.clif", TWICE.replace("0x1.0p1", "0x1.0"));
    let more = TWICE.to_owned() + "function %spare() {\nblock0:\n    return\n}\n";
    let more = folder.file("more.clif", more);
    let verbose = succeed(&["run", "-v", &more]);
    for part in [
        "9: run: %twice(0x1.000000p0) == 0x1.000000p1 ... ok",
        "11: %spare ... not run",
        "2 passed, 0 failed, 0 skipped",
    ] {
        assert!(verbose.contains(part), "{part}: {verbose}");
    }
    let output = clif_util(&["run", &folder.path("nowhere.clif"), &wrong, &twice]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        message.contains("nowhere.clif") && message.contains("wrong.clif:9: "),
        "{message}"
    );
    assert!(
        text(&output.stdout).ends_with("\n3 passed, 1 failed, 0 skipped\n"),
        "the other files run all the same: {}",
        text(&output.stdout)
    );
}

#[cfg(unix)]
#[test]
fn a_folder_that_links_lead_to_again_is_looked_into_once() {
    let folder = Folder::new("links");
    folder.file("twice.clif", TWICE);
    for name in ["a", "b"] {
        std::os::unix::fs::symlink(".", folder.path(name)).unwrap();
    }
    let counts = succeed(&["test", &folder.path("")]);
    assert!(
        counts.ends_with("\n1 passed, 0 failed, 0 skipped\n"),
        "{counts}"
    );

    let object = folder.path("k.elf");
    let link = folder.path("link.elf");
    std::os::unix::fs::symlink("k.elf", &link).unwrap();
    succeed(&["compile", &folder.path("twice.clif"), "-o", &object]);
    std::fs::write(&object, "old").unwrap();
    succeed(&["compile", &folder.path("twice.clif"), "-o", &link]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_ne!(std::fs::read(&object).unwrap(), b"old");
}

/// Nobody can read what goes there; the exit status tells all the same.
#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_is_full_or_closed_is_no_panic() {
    let folder = Folder::new("full");
    let file = folder.file("bad.s", "FOO ;\n");
    let wrong = folder.file("wrong.clif", TWICE.replace("0x1.0p1", "0x1.0"));
    for (arguments, status) in [
        (["asm", &file].as_slice(), 1),
        (&["disasm", &file], 1),
        (&["exec", &file], 1),
        (&["compile", &file, "--target", "thisgpu"], 1),
        (&["compile", &file], 2),
        (&["run", &wrong], 1),
        (&["test", &wrong], 1),
        (&["fly"], 2),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        command.args(arguments).stdout(Stdio::null());
        let into_full = command.stderr(full.unwrap()).status().unwrap();
        assert_eq!(into_full.code(), Some(status), "{arguments:?}");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(status), "{arguments:?}");
    }
}

#[test]
fn a_launch_reads_and_prints_numbers() {
    let folder = Folder::new("numbers");
    let (scale, twice) = (
        folder.file("scale.clif", SCALE),
        folder.file("twice.clif", TWICE),
    );
    let numbers = folder.file("numbers.txt", "1, 2,3\n-0.5 inf 1e30\n\n7 8 9");
    let input = format!("in:{numbers}:f32");
    let launch = |arguments: &[&str]| {
        let fixed = [
            "launch", &scale, &twice, "--kernel", "scale", "--grid", "1", "--block", "9",
        ];
        let fixed = [
            &fixed[..],
            &["--arg", &input, "--arg", "zero:36", "--arg", "f32:0,0,0,1"],
        ];
        succeed(&[&fixed.concat(), arguments].concat())
    };
    assert_eq!(
        launch(&["--print", "1:f32"]),
        "arg1[0]: 3.0 5.0 7.0 0.0 inf 2e30 15.0 17.0\narg1[8]: 19.0\n"
    );
    // Numbers of a text are printed as what they are, others as bytes.
    let both = launch(&["--print", "0", "--print", "1"]);
    assert!(
        both.starts_with("arg0[0]: 1.0 2.0 3.0 -0.5 inf 1e30 7.0 8.0\n"),
        "{both}"
    );
    assert!(both.contains("\narg1[16]: 00 00 80 7f "), "{both}");
    assert!(launch(&["--print", "1:u16"]).starts_with("arg1[0]: 0 16448 0 16544 "));
    // A fault leaves nothing to print.
    let short = [
        "launch",
        &scale,
        &twice,
        "--kernel",
        "scale",
        "--grid",
        "1",
        "--block",
        "9",
        "--arg",
        "zero:36",
        "--arg",
        "zero:4",
        "--arg",
        "f32:0,0,0,1",
        "--print",
        "1:f32",
    ];
    let output = clif_util(&short);
    // What was stored before the fault is printed.
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "arg1[0]: 1.0\n");
}

#[test]
fn the_assembler_stops_and_the_disassembler_does_not() {
    let folder = Folder::new("many");
    let file = folder.file("many.s", "FOO ;\n".repeat(50));
    for (arguments, shown) in [
        (&[][..], 20),
        (&["--max-errors", "49"], 49),
        (&["--max-errors", "60"], 50),
    ] {
        let message = fail(1, &[&["asm", &file], arguments].concat());
        assert_eq!(message.matches(": error: ").count(), shown, "{message}");
        let rest = match 50 - shown {
            0 => "more error".to_owned(),
            1 => ": 1 more error;".to_owned(),
            rest => format!(": {rest} more errors;"),
        };
        assert_eq!(message.contains(&rest), shown < 50, "{message}");
    }
    let words = folder.file("many.hex", ("f".repeat(32) + "\n").repeat(500));
    assert_eq!(fail(1, &["disasm", &words]).lines().count(), 500);
    let unsupported: String = (0..60)
        .map(|n| {
            format!(
                "function %f{n}(f128) -> f128 \
         {{\nblock0(v0: f128):\n    v1 = fadd v0, v0\n    return v1\n}}\n"
            )
        })
        .collect();
    let file = folder.file("many.clif", unsupported);
    let message = fail(1, &["compile", &file, "--target", "thisgpu"]);
    assert_eq!(message.matches("unsupported: fadd.f128").count(), 60);
}
