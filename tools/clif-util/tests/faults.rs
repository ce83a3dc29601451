//! What `launch` tells of a fault, and what it leaves behind.

mod common;

use common::{Folder, clif_util, text};
use serde_json::Value;

/// Stores the thread's number in element 0, then beyond the end.
const BEYOND: &str = "; kernel
function %beyond(i64, i64) {
block0(v0: i64, v1: i64):
    v2 = iconst.i32 7
    store aligned v2, v0
    v3 = iadd v0, v1
    store aligned v2, v3 ; beyond
    return
}
";

const FOREVER: &str = "; kernel
function %forever(i64) {
block0(v0: i64):
    jump block1
block1:
    v1 = load.i32 aligned v0
    brif v1, block2, block1
block2:
    return
}
";

#[test]
fn a_fault_is_told_with_its_source_registers_and_memory() {
    let folder = Folder::new("faults");
    let file = folder.file("beyond.clif", BEYOND);
    let out = folder.path("out");
    let launch = |more: &[&str]| {
        let line = [
            "launch", &file, "--kernel", "beyond", "--grid", "1", "--block", "1",
        ];
        clif_util(
            &[
                &line[..],
                &["--set", "merge_accesses=false", "--set", "reorder=false"],
                more,
            ]
            .concat(),
        )
    };
    let arguments = ["--arg", "zero:16", "--arg", "i64:20", "--stats"];
    let output = launch(&[&arguments[..], &["--out", &out, "--print", "0:i32"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let (message, printed) = (text(&output.stderr), text(&output.stdout));
    for part in [
        "error: kernel beyond, block (0,0,0), thread (0,0,0)",
        "store of 4 bytes",
        "nearest: 16 bytes at 0x",
        "argument 0 (zero); the access begins 4 bytes behind its end",
        " 7 |     store aligned v2, v3 ; beyond\n",
        "   |     ^^^^^^^^^^^^^^^^^^^^\n",
        " = 0x7",
        "registers are 0; ",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // What was stored before is there.
    assert!(printed.contains("arg0[0]: 7 0 0 0"), "{printed}");
    assert!(printed.contains(", 0 hazards, 1 fault\n"), "{printed}");
    let bytes = std::fs::read(folder.path("out/arg0.bin")).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

    let output = launch(&["--arg", "zero:16", "--arg", "i64:20", "--stats=json"]);
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts["faults"], 1);
    let fault = &counts["fault"];
    assert_eq!(fault["kind"]["OutOfBounds"]["bytes"], 4);
    assert_eq!(fault["place"]["location"]["line"], 7);
    assert_eq!(fault["near"]["offset"], 20);
    assert_eq!(fault["near"]["allocation"]["bytes"], 16);
    assert!(
        fault["message"].as_str().unwrap().contains("out of bounds"),
        "{fault}"
    );
    let fine = launch(&["--arg", "zero:16", "--arg", "i64:8", "--stats=json"]);
    let counts: Value = serde_json::from_slice(&fine.stdout).unwrap();
    assert_eq!(
        (&counts["faults"], &counts["fault"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn an_exhausted_budget_begins_with_the_loop() {
    let folder = Folder::new("budget");
    let file = folder.file("forever.clif", FOREVER);
    let message = |threads: &str| {
        let line = [
            "launch", "--kernel", "forever", "--grid", "1", "--arg", "zero:4", "--budget", "1000",
        ];
        let output = clif_util(&[&line[..], &[&file, "--block", threads]].concat());
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let several = message("64");
    let line = several.lines().next().unwrap();
    assert!(
        line.starts_with("error: kernel forever, block (0,0,0), warp 0, in the loop of line")
            && line.contains("instruction budget of a warp exhausted: it issued 1000 instructions"),
        "{several}"
    );
    assert!(
        several.contains("  32 threads of 1 block run; the first of them: "),
        "{several}"
    );
    let one = message("1");
    assert!(
        one.contains("  1 thread of 1 block runs: kernel forever"),
        "{one}"
    );
}
