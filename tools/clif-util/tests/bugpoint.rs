//! `bugpoint --kernel`: launches that go wrong become small ones that go wrong in the same way.

mod common;

use common::{Folder, clif_util, succeed, text};

/// Thread 37 of a block stores behind the end of its buffer, behind a loop and beside much that does not matter.
const FAULTY: &str = "target thisgpu

function %k(i64, i32) {
    fn0 = %gpu_tid_x() -> i32
    fn1 = %helper(i32) -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = iconst.i32 0
    v17 = iconst.i32 1
    v18 = iconst.i32 5
    v19 = iconst.i32 37
    v20 = iconst.i32 2
    jump block1(v3, v2)
block1(v4: i32, v5: i32):
    v6 = call fn1(v5)
    v7 = iadd v4, v17
    v8 = icmp ult v7, v18
    brif v8, block1(v7, v6), block2(v6)
block2(v9: i32):
    v10 = icmp eq v2, v19
    brif v10, block3, block4
block3:
    v11 = iconst.i64 4096
    v12 = iadd v0, v11
    store v9, v12
    jump block4
block4:
    v13 = uextend.i64 v2
    v14 = ishl v13, v20
    v15 = iadd v0, v14
    v16 = imul v9, v1
    store v16, v15
    return
}

function %helper(i32) -> i32 {
block0(v0: i32):
    v1 = imul v0, v0
    return v1
}
";

/// The smallest launch that `bugpoint` finds.
fn reduced(folder: &Folder, clif: &str, launch: &[&str]) -> String {
    let file = folder.file("whole.clif", clif);
    succeed(&[&["bugpoint", &file, "thisgpu"], launch].concat())
}

/// Instructions of a text of CLIF, without constants.
fn instructions(text: &str) -> usize {
    let lines = text.lines().filter(|line| line.starts_with("    "));
    let others = ["fn", "sig", "region"];
    lines
        .filter(|line| !others.iter().any(|start| line.trim().starts_with(start)))
        .filter(|line| !line.contains("iconst"))
        .count()
}

#[test]
fn a_fault_is_left_with_what_it_needs() {
    let folder = Folder::new("bugpoint-fault");
    let launch = [
        "--kernel", "k", "--grid", "4", "--block", "64", "--arg", "zero:256", "--arg", "i32:7",
    ];
    let small = reduced(&folder, FAULTY, &launch);
    assert!(!small.contains("function %helper"), "{small}");
    // A store, and how blocks end.
    assert!(instructions(FAULTY) > 15);
    assert!(instructions(&small) <= 7, "{small}");
    assert!(small.contains("--grid 1,1,1 --block 1,1,1"), "{small}");
    // The command in the text does what it says.
    let file = folder.file("small.clif", &small);
    let line = small
        .lines()
        .nth(1)
        .unwrap()
        .strip_prefix(";; clif-util ")
        .unwrap();
    let words: Vec<&str> = line
        .split(' ')
        .map(|word| if word == "FILE" { file.as_str() } else { word })
        .collect();
    let output = clif_util(&words);
    assert_eq!(output.status.code(), Some(1), "{line}");
    let fault = small.lines().next().unwrap().strip_prefix(";; ").unwrap();
    let fault = fault.replace("FILE", &file);
    assert!(
        text(&output.stderr).contains(&fault),
        "{small}\n{}",
        text(&output.stderr)
    );
}

#[test]
fn threads_that_race_are_left_as_two() {
    let folder = Folder::new("bugpoint-race");
    let clif = "target thisgpu
function %k(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = load.i32 v0
    v3 = iadd v2, v1
    store v3, v0
    return
}
";
    let launch = [
        "--kernel", "k", "--grid", "1", "--block", "48", "--arg", "zero:4", "--check",
    ];
    let small = reduced(&folder, clif, &launch);
    assert!(small.contains("--block 2,1,1"), "{small}");
    assert!(small.contains("store"), "{small}");
}

/// An address of code is another one with other settings, which stands for code that is wrong with some.
#[test]
fn a_difference_between_settings_is_left() {
    let folder = Folder::new("bugpoint-against");
    // Constants that only the mid-end computes: the function is as long as that is on.
    let products: String = (1..40)
        .map(|n| format!("    v{n} = imul v{}, v0\n", n - 1))
        .collect();
    let clif = format!(
        "set opt_level=speed
set sched=full
target thisgpu
; kernel shared=0
function %k(i64, i64) {{
    fn0 = %far() -> i32
block0(v0: i64, v1: i64):
    v2 = func_addr.i64 fn0
    v3 = iadd v2, v1
    v4 = imul v1, v1
    store v4, v0+8
    store v3, v0
    return
}}
function %near() -> i32 {{
block0:
    v0 = iconst.i32 3
{products}    return v39
}}
function %far() -> i32 {{
block0:
    v0 = iconst.i32 1
    return v0
}}
"
    );
    let launch = [
        "--kernel", "k", "--grid", "2", "--block", "32", "--arg", "zero:16", "--arg", "i64:5",
    ];
    let small = reduced(
        &folder,
        &clif,
        &[&launch[..], &["--against", "opt_level=none"]].concat(),
    );
    assert!(small.contains("func_addr"), "{small}");
    assert_eq!(small.matches("store").count(), 1, "{small}");
    assert!(!small.contains("set sched"), "{small}");
    assert!(small.contains("--grid 1,1,1 --block 1,1,1"), "{small}");
    assert!(small.contains("of argument 0 is"), "{small}");
}

#[test]
fn a_launch_that_is_right_is_none() {
    let folder = Folder::new("bugpoint-right");
    let file = folder.file(
        "k.clif",
        "target thisgpu\nfunction %k() {\nblock0:\n    return\n}\n",
    );
    let launch = ["--kernel", "k", "--grid", "1", "--block", "1"];
    let output = clif_util(&[&["bugpoint", &file, "thisgpu"], &launch[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("nothing is wrong"),
        "{}",
        text(&output.stderr)
    );
}
