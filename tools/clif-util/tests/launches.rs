//! `launch` from outside: what is launched, faults, arguments.

mod common;

use common::{Folder, clif_util, fail, kernel, succeed, text};
use std::path::Path;

/// The bytes of numbers.
fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn a_launch_runs_clif_text_and_objects_alike() {
    let folder = Folder::new("launch");
    let source = kernel("saxpy_f32");
    let (elf, s) = (folder.path("k.elf"), folder.path("k.s"));
    succeed(&["compile", &source, "--target", "thisgpu", "-o", &elf]);
    succeed(&["compile", &source, "--target", "thisgpu", "-o", &s]);
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..100).map(|i| 0.5 * i as f32).collect();
    let (x_file, y_file) = (
        folder.file("x.bin", bytes(&x)),
        folder.file("y.bin", bytes(&y)),
    );
    let (x_arg, y_arg) = (format!("in:{x_file}"), format!("inout:{y_file}"));
    let expected: Vec<f32> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| 2.0f32.mul_add(*x, *y))
        .collect();
    for (index, file) in [&source, &s, &elf].into_iter().enumerate() {
        let out = folder.path(&format!("out{index}"));
        let stats = succeed(&[
            "launch",
            file,
            "--kernel",
            "saxpy_f32",
            "--grid",
            "4",
            "--block",
            "32",
            "--arg",
            "i32:100",
            "--arg",
            "f32:2",
            "--arg",
            &x_arg,
            "--arg",
            &y_arg,
            "--out",
            &out,
            "--stats=json",
            "--timed",
            "--check",
        ]);
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        assert!(stats["cycles"].as_u64().unwrap() > 0, "{stats}");
        assert_eq!(
            (&stats["hazards"], &stats["faults"]),
            (&0.into(), &0.into())
        );
        assert!(stats["thread_instructions"].as_u64() > stats["warp_instructions"].as_u64());
        assert_eq!(
            std::fs::read(Path::new(&out).join("arg3.bin")).unwrap(),
            bytes(&expected)
        );
        assert!(
            !Path::new(&out).join("arg2.bin").exists(),
            "`in` buffers are not written"
        );
    }
}

const FAULTS: &str = "\
; kernel
function %outside(i64) {
block0(v0: i64):
    v1 = load.i32 aligned v0+4096
    store aligned v1, v0
    return
}

; kernel
function %forever(i64) {
block0(v0: i64):
    jump block1
block1:
    jump block1
}

; kernel
function %traps(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 37
    v3 = icmp eq v1, v2
    trapnz v3, user7
    return
}

; kernel
function %divergent(i64) {
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_bar_sync()
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 5
    v3 = icmp ult v1, v2
    brif v3, block1, block2
block1:
    call fn1()
    jump block2
block2:
    store aligned v1, v0
    return
}
";

#[test]
fn a_fault_names_kernel_block_thread_instruction_and_line() {
    let folder = Folder::new("faults");
    let file = folder.file("faults.clif", FAULTS);
    let cases: [(&str, u32, &str, &[&str]); 4] = [
        ("outside", 4, "(0,0,0)", &["LDG", "out of bounds"]),
        ("forever", 14, "(0,0,0)", &["BRA", "budget"]),
        ("traps", 24, "(37,0,0)", &["TRAP", "user7"]),
        ("divergent", 38, "(0,0,0)", &["BAR", "barrier divergence"]),
    ];
    for (kernel, line, thread, expected) in cases {
        let out = folder.path(kernel);
        let arguments = [
            "launch",
            &file,
            "--kernel",
            kernel,
            "--grid",
            "1",
            "--block",
            "64",
            "--arg",
            "zero:64",
            "--budget",
            "10000",
            "--stats=json",
            "--out",
            &out,
        ];
        let output = clif_util(&arguments);
        let (stats, message) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{kernel}: {message}");
        for part in [
            format!("kernel {kernel}"),
            "block (0,0,0)".into(),
            format!("thread {thread}"),
            format!("line {line}"),
        ] {
            assert!(message.contains(&part), "{kernel}: {part}: {message}");
        }
        assert!(
            expected.iter().all(|part| message.contains(part)),
            "{kernel}: {message}"
        );
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["faults"], 1, "{kernel}");
        assert!(
            Path::new(&out).join("arg0.bin").exists(),
            "{kernel}: what was stored before the fault"
        );
    }
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let file = kernel("fmix64");
    let launch = |arguments: &[&str]| {
        fail(
            1,
            &[
                &[
                    "launch", &file, "--kernel", "fmix64", "--grid", "1", "--block", "32",
                ],
                arguments,
            ]
            .concat(),
        )
    };
    let few = launch(&["--arg", "i32:1"]);
    assert!(few.contains("takes 2 arguments, 1 was given"), "{few}");
    let wrong = launch(&["--arg", "i64:1", "--arg", "zero:8"]);
    assert!(wrong.contains("argument 0"), "{wrong}");
    let missing = launch(&["--arg", "i32:1", "--arg", "in:nowhere.bin"]);
    assert!(missing.contains("nowhere.bin"), "{missing}");
    let unknown = fail(
        1,
        &[
            "launch", &file, "--kernel", "nope", "--grid", "1", "--block", "1",
        ],
    );
    assert!(unknown.contains("%fmix64"), "{unknown}");
}
