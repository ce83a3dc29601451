//! Input at the limits: too much of something, odd encodings of text, outputs that fail.

mod common;

use common::{Folder, clif_util, fail, succeed, text};
use std::process::{Command, Stdio};

const COPY: &str = "\
; kernel
function %copy(i32, i64) {
block0(v0: i32, v1: i64):
    store v0, v1
    return
}
";

/// What `compile` says of a text that it must refuse.
fn refused(folder: &Folder, name: &str, source: &str) -> String {
    let file = folder.file(&format!("{name}.clif"), source);
    let out = folder.path(&format!("{name}.elf"));
    let message = fail(1, &["compile", &file, "--target", "thisgpu", "-o", &out]);
    assert!(!std::path::Path::new(&out).exists(), "{name} leaves a file");
    assert!(!message.contains("panicked"), "{name}: {message}");
    message
}

#[test]
fn texts_of_other_systems_are_read() {
    let folder = Folder::new("encodings");
    let plain = folder.file("plain.clif", COPY);
    let expected = succeed(&["compile", &plain, "--target", "thisgpu"]);
    for (name, contents) in [
        ("crlf.clif", COPY.replace('\n', "\r\n")),
        ("mark.clif", format!("\u{feff}{COPY}")),
        (
            "header.clif",
            format!("\u{feff}test compile\ntarget thisgpu\n{COPY}"),
        ),
    ] {
        let file = folder.file(name, contents);
        let code = succeed(&["compile", &file, "--target", "thisgpu", "--emit", "hex"]);
        let plain = succeed(&["compile", &plain, "--target", "thisgpu", "--emit", "hex"]);
        assert_eq!(code, plain, "{name}");
    }
    let assembly = folder.file("mark.s", format!("\u{feff}{expected}"));
    succeed(&["asm", &assembly]);
}

#[test]
fn files_without_functions_are_refused() {
    let folder = Folder::new("nothing");
    for (name, source) in [
        ("empty", ""),
        ("comment", "; kernel\n"),
        ("header", "test compile\ntarget thisgpu\n"),
        (
            "returns",
            "; kernel\rfunction %f() {\rblock0:\r    return\r}\r",
        ),
    ] {
        let message = refused(&folder, name, source);
        assert!(message.contains("there is no function"), "{message}");
    }
    let mut zeros = folder.file("zeros.clif", [0; 100]);
    assert!(fail(1, &["compile", &zeros, "--target", "thisgpu"]).contains("zeros.clif:1: "));
    zeros = folder.file("latin.clif", b"; \xe4\n");
    assert!(fail(1, &["compile", &zeros, "--target", "thisgpu"]).contains("is no text"));
}

#[test]
fn a_second_definition_is_named_with_its_line() {
    let folder = Folder::new("twice");
    let message = refused(&folder, "twice", &format!("{COPY}{COPY}"));
    assert!(
        message.contains("twice.clif:8: %copy is defined twice, first in line 2"),
        "{message}"
    );
}

#[test]
fn kernels_are_not_called() {
    let folder = Folder::new("calls");
    let itself = "; kernel\nfunction %k(i32) {\n    fn0 = %k(i32)\nblock0(v0: i32):\n    call fn0(v0)\n    return\n}\n";
    let message = refused(&folder, "itself", itself);
    assert!(
        message.contains("itself.clif:5: kernel: %k is a kernel, which only a launch can start"),
        "{message}"
    );
    let address = "; kernel\nfunction %k() {\nblock0:\n    return\n}\n\
        function %f() -> i64 {\n    fn0 = %k()\nblock0:\n    v0 = func_addr.i64 fn0\n    return v0\n}\n";
    let message = refused(&folder, "address", address);
    assert!(message.contains("address.clif:9: kernel: %k"), "{message}");
}

/// A kernel that uses a stack slot of a size in earnest.
fn with_slot(slot: &str) -> String {
    format!(
        "; kernel\nfunction %k(i64) {{\n    ss0 = explicit_slot {slot}\nblock0(v0: i64):\n    v1 = stack_addr.i64 \
         ss0\n    \
         store v0, v1\n    store v1, v0\n    return\n}}\n"
    )
}

#[test]
fn local_memory_has_its_limits() {
    let folder = Folder::new("slots");
    for size in ["4194305", "2000000000", "4294967295"] {
        let message = refused(&folder, "large", &with_slot(size));
        assert!(
            message.contains("large.clif:2: the stack slots take")
                && message.contains("at most 4194304"),
            "{message}"
        );
    }
    let aligned = refused(&folder, "aligned", &with_slot("64, align = 64"));
    assert!(
        aligned.contains("unsupported: ss0 aligned to 2^6 bytes"),
        "{aligned}"
    );
    let callee = with_slot("3000000")
        .replace("; kernel\n", "")
        .replace("%k", "%f");
    let caller = with_slot("3000000").replace(
        "block0(v0: i64):\n",
        "    fn0 = %f(i64)\nblock0(v0: i64):\n    call fn0(v0)\n",
    );
    let message = refused(&folder, "both", &format!("{callee}{caller}"));
    assert!(
        message.contains("kernel: with what it calls it takes 60"),
        "{message}"
    );

    let most = folder.file("most.clif", with_slot("4194304"));
    succeed(&[
        "launch", &most, "--kernel", "k", "--grid", "1", "--block", "32", "--arg", "zero:8",
    ]);
    let wild = folder.file("wild.s", ".kernel k\n.local 4294967295\n    EXIT ;\n");
    let message = fail(
        1,
        &[
            "launch", &wild, "--kernel", "k", "--grid", "1", "--block", "1",
        ],
    );
    assert!(
        message.contains("bytes of local memory asked for"),
        "{message}"
    );
}

#[test]
fn launches_that_are_too_large_are_refused() {
    let folder = Folder::new("shapes");
    let file = folder.file("copy.clif", COPY);
    let launch = |grid: &str, block: &str, buffer: &str| {
        fail(
            1,
            &[
                "launch", &file, "--kernel", "copy", "--grid", grid, "--block", block, "--arg",
                "i32:1", "--arg", buffer,
            ],
        )
    };
    for grid in ["0", "1,0", "2147483648", "1,65536", "1,1,65536"] {
        assert!(
            launch(grid, "1", "zero:4").contains("blocks: each extent"),
            "{grid}"
        );
    }
    for block in ["0", "1025", "33,32", "4294967295,4294967295,4294967295"] {
        assert!(
            launch("1", block, "zero:4").contains("threads: each extent"),
            "{block}"
        );
    }
    for bytes in ["zero:99999999999999", "zero:18446744073709551615"] {
        assert!(
            launch("1", "1", bytes).contains("out of device memory"),
            "{bytes}"
        );
    }
}

/// An endless loop in many warps ends by the budget of the launch, and says how to raise it; memory that nobody wrote
/// is found.
#[test]
fn budgets_and_buffers_of_a_launch() {
    let folder = Folder::new("budgets");
    let endless = folder.file(
        "endless.clif",
        "; kernel\nfunction %k(i64) {\nblock0(v0: i64):\n    jump block1\nblock1:\n    jump block1\n}\n",
    );
    let launch = |arguments: &[&str]| {
        let fixed = [
            "launch", &endless, "--kernel", "k", "--grid", "9", "--block", "1024", "--arg",
            "uninit:4",
        ];
        fail(1, &[&fixed, arguments].concat())
    };
    let message = launch(&["--launch-budget", "100000"]);
    assert!(
        message.contains("1 of 9 blocks have issued 100000 instructions together"),
        "{message}"
    );
    assert!(message.contains("raise `--launch-budget`"), "{message}");
    let message = launch(&["--budget", "1000"]);
    assert!(message.contains("raise `--budget`"), "{message}");

    let copy = folder.file(
        "sum.clif",
        "; kernel\nfunction %k(i64) {\nblock0(v0: i64):\n    v1 = load.i32 aligned v0\n    v2 = iadd v1, v1\n    store v2, v0\n    return\n}\n",
    );
    let launch = |buffer: &'static str| {
        [
            "launch",
            copy.as_str(),
            "--kernel",
            "k",
            "--grid",
            "1",
            "--block",
            "1",
            "--check",
            "--arg",
            buffer,
        ]
        .map(str::to_owned)
    };
    let arguments = launch("uninit:4");
    let message = fail(1, &arguments.each_ref().map(String::as_str));
    assert!(
        message.contains("4 bytes of global memory at offset 0x0 are used before"),
        "{message}"
    );
    assert!(message.contains("(line 4 of "), "{message}");
    let arguments = launch("zero:4");
    succeed(&arguments.each_ref().map(String::as_str));
}

/// Ctrl-C ends a launch with what was counted until then.
#[cfg(unix)]
#[test]
fn an_interrupted_launch_says_how_far_it_came() {
    let folder = Folder::new("interrupt");
    let endless = folder.file(
        "endless.s",
        ".kernel k\n    S2R R0, SR_CTAID_X &wr=0 ;\n    ISETP.LT.AND P0, R0, 3, PT &req={0} ?13 ;\n@P0 EXIT \
         ;\nagain:\n    BRA again ;\n",
    );
    // A process that is interrupted before it expects that is killed: then it gets more time.
    for wait in [200, 1000, 5000, 20_000] {
        let child = Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(["launch", &endless, "--kernel", "k", "--grid", "7"])
            .args(["--block", "32", "--budget", "18446744073709551615"])
            .args(["--launch-budget", "18446744073709551615"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        let number = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &number])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        let (message, counts) = (text(&output.stderr), text(&output.stdout));
        if output.status.code().is_some() && message.contains("cancelled: 3 of 7 blocks") {
            assert_eq!(output.status.code(), Some(1), "{message}");
            assert!(counts.contains("warp instructions"), "{counts}");
            return;
        }
    }
    panic!("it never said how far it came");
}

#[test]
fn a_reader_that_goes_away_and_a_full_disk_are_no_panics() {
    let folder = Folder::new("outputs");
    let file = folder.file("copy.clif", format!("test run\ntarget thisgpu\n{COPY}"));
    let run = folder.file(
        "run.clif",
        "test run\nfunction %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n; print: %f(1)\n",
    );
    let wrong = folder.file(
        "wrong.clif",
        "test run\ntarget thisgpu\nfunction %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n; run: %f(1) == 2\n",
    );
    let commands: [&[&str]; 8] = [
        &["compile", &file, "--target", "thisgpu"],
        &["test", &file],
        // What fails with a reader fails without.
        &["test", &wrong],
        &["run", &wrong],
        &["run", &run],
        &["interpret", &run],
        &["isa"],
        &[
            "launch", &file, "--kernel", "copy", "--grid", "1", "--block", "1", "--arg", "i32:1",
            "--arg", "zero:4", "--stats",
        ],
    ];
    for arguments in commands {
        let mut child = Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let message = text(&output.stderr);
        let expected = i32::from(arguments.contains(&wrong.as_str()));
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{arguments:?}: {message}"
        );
        assert!(!message.contains("panicked"), "{arguments:?}: {message}");
        let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
            continue;
        };
        let output = Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(arguments)
            .stdout(full)
            .output()
            .unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(
            message.contains("No space left"),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn a_comparison_that_compares_nothing_is_a_warning() {
    let folder = Folder::new("advice");
    let file = folder.file(
        "iset.s",
        "    ISET.LE.U32 R0, R4, R6 ;\n    ISET.LE.U32 R0, R4, R6, PT ;\n",
    );
    let output = clif_util(&["asm", &file]);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout).lines().count(), 2);
    let message = text(&output.stderr);
    assert!(
        message.contains("iset.s:1:5: warning: the result is always false")
            && message.contains("^^^^")
            && message.contains("write `, PT`"),
        "{message}"
    );
    assert_eq!(message.matches("warning").count(), 1, "{message}");
}

#[test]
fn an_error_in_an_endless_line_shows_a_part_of_it() {
    let folder = Folder::new("lines");
    let file = folder.file("long.s", format!("    {}\n", "D".repeat(100_000)));
    let message = fail(1, &["asm", &file]);
    assert!(message.len() < 1000 && message.contains("long.s:1:5: error:"));
}

#[test]
fn what_is_wrong_with_a_run_is_said_with_its_place() {
    let folder = Folder::new("places");
    let wrong = "function %f(i32, i64) -> i32 {\nblock0(v0: i32, v1: i64):\n    v2 = iadd v0, v1\n    return v2\n}\n; \
     run: %f(1, 1) == 2\n";
    let message = fail(1, &["run", &folder.file("wrong.clif", wrong)]);
    assert!(message.contains("wrong.clif:3: invalid CLIF"), "{message}");
    let unsupported = "function %f(f128) -> f128 \
     {\nblock0(v0: f128):\n    v1 = fadd v0, v0\n    v2 = fmul v1, v1\n    return v2\n}\n; run: %f(0x1.0) == 0x1.0\n";
    let file = folder.file("unsupported.clif", unsupported);
    for command in [
        ["run", &file].as_slice(),
        &["pass", &file, "thisgpu", "emit"],
    ] {
        let message = fail(1, command);
        let fadd = message.find("unsupported.clif:3: unsupported: fadd.f128");
        let fmul = message.find("unsupported.clif:4: unsupported: fmul.f128");
        assert!(fadd.is_some() && fadd < fmul, "{message}");
    }
}

#[test]
fn a_call_of_what_is_not_there_is_named_with_its_line() {
    let folder = Folder::new("undefined");
    let source = "; kernel\nfunction %k(i32) \
     {\n    fn0 = %missing(i32)\nblock0(v0: i32):\n    call fn0(v0)\n    return\n}\n";
    let file = folder.file("k.clif", source);
    let launch = [
        "launch", &file, "--kernel", "k", "--grid", "1", "--block", "1", "--arg", "i32:1",
    ];
    let message = fail(1, &launch);
    assert!(
        message.contains("k.clif: cannot link: k+0x")
            && message.contains("(line 5): undefined symbol `missing`"),
        "{message}"
    );
    // An object may leave it to another one.
    let object = folder.path("k.elf");
    succeed(&["compile", &file, "--target", "thisgpu", "-o", &object]);
    assert!(
        fail(
            1,
            &["compile", &file, "--target", "thisgpu", "--emit", "hex"]
        )
        .contains("`missing`")
    );
}
