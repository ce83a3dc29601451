//! What is read, and what is said of what cannot be.

use super::*;
use crate::error::line_of;
use cranelift_codegen::isa::CallConv;

const TWO: &str = "\
test run
test compile precise-output ; kept
set opt_level=speed
target thisgpu fancy=1

; a remark
; kernel shared=256
function %k(i64) {
block0(v0: i64):
    ; not a mark: kernel
    return ; kernel
}
; run: %k(1)

function %f(i32) -> i32 {
; kernel inside is not a mark of the next
block0(v0: i32):
    v1 = iadd v0, v0
    return v1
}
; run: %f(2) == 4
; print: %f(3)
; kernel
function %g() {
block0:
    return
}
";

#[test]
fn a_file_is_read_with_its_lines() {
    let file = SourceFile::parse("two.clif", TWO).unwrap();
    assert_eq!(
        file.header.tests[1],
        HeaderLine {
            line: 2,
            words: vec!["compile".into(), "precise-output".into()]
        }
    );
    assert_eq!(file.header.settings[0].words, ["opt_level=speed"]);
    assert_eq!(
        file.header.targets[0],
        HeaderLine {
            line: 4,
            words: vec!["thisgpu".into(), "fancy=1".into()]
        }
    );
    let [k, f, g] = &file.functions[..] else {
        panic!("three functions")
    };
    assert_eq!(
        (k.name(), k.line, k.kernel),
        (
            "k".into(),
            8,
            Some(KernelOptions {
                shared_bytes: 256,
                ..KernelOptions::default()
            })
        )
    );
    assert_eq!((f.name(), f.line, f.kernel), ("f".into(), 15, None));
    assert_eq!((g.line, g.kernel), (24, Some(KernelOptions::default())));
    let insts: Vec<Inst> = f
        .func
        .layout
        .blocks()
        .flat_map(|b| f.func.layout.block_insts(b))
        .collect();
    assert_eq!(
        insts.iter().map(|i| f.inst_lines[*i]).collect::<Vec<_>>(),
        [18, 19]
    );
    assert_eq!(line_of(f.func.srcloc(insts[0])), Some(18));
    let lines = f.run_lines(&file.name).unwrap();
    assert_eq!(lines.iter().map(|l| l.line).collect::<Vec<_>>(), [21, 22]);
    assert!(matches!(lines[0].command, RunCommand::Run(..)));
    assert!(matches!(lines[1].command, RunCommand::Print(..)));
    assert_eq!(f.func.signature.call_conv, CallConv::SystemV);
}

#[test]
fn a_comment_in_front_of_the_first_block_marks_no_other_function() {
    let text = "function %f() {\n; kernel\nblock0:\n    return\n}\nfunction %g() {\nblock0:\n    return\n}\n";
    let file = SourceFile::parse("x", text).unwrap();
    assert!(file.functions.iter().all(|f| f.kernel.is_none()));
}

#[test]
fn kernels_are_marked_by_name() {
    let mut file = SourceFile::parse("two.clif", TWO).unwrap();
    file.mark_kernels(&["%f", "k"]).unwrap();
    assert_eq!(file.functions[1].kernel, Some(KernelOptions::default()));
    assert_eq!(
        file.functions[0].kernel,
        Some(KernelOptions {
            shared_bytes: 256,
            ..KernelOptions::default()
        }),
        "options stay"
    );
    let errors = file.mark_kernels(&["h"]).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "two.clif: kernel: there is no function %h; the file has %k, %f, %g"
    );
}

#[test]
fn bad_text_is_an_error_with_its_line() {
    for (text, expected) in [
        (
            "function %f() {\nblock0:\n    v0 = iadd v1, v2\n    return\n}\n",
            "x.clif:3: ",
        ),
        (
            "function %f() {\nblock0:\n    v0 = bogus.i32 1\n    return\n}\n",
            "x.clif:3: ",
        ),
        ("test compile\nfunction %f(\n", "x.clif:2: "),
        (
            "; kernel shared=lots\nfunction %f() {\nblock0:\n    return\n}\n",
            "x.clif:1: 'lots' is no number of bytes",
        ),
        (
            "; kernel min_blocks=-1\nfunction %f() {\nblock0:\n    return\n}\n",
            "x.clif:1: '-1' is no number in '; kernel min_blocks=N'",
        ),
        (
            "; kernel fast\nfunction %f() {\nblock0:\n    return\n}\n",
            "x.clif:1: unknown kernel option 'fast'",
        ),
        (
            "function %f() {\nblock0:\n    v4000000000 = iconst.i32 1\n    return\n}\n",
            "x.clif:3: v4000000000",
        ),
        (
            "function %f() {\nblock99999999:\n    return\n}\n",
            "x.clif:2: block99999999",
        ),
    ] {
        let errors = SourceFile::parse("x.clif", text).unwrap_err().to_string();
        assert!(errors.starts_with(expected), "{text}gives {errors}");
    }
}

#[test]
fn a_run_line_that_does_not_fit_is_an_error() {
    let text = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n; run: %f(1, 2) == 1\n; run\n";
    let file = SourceFile::parse("x.clif", text).unwrap();
    let errors = file.functions[0]
        .run_lines(&file.name)
        .unwrap_err()
        .to_string();
    assert_eq!(errors.lines().count(), 2, "{errors}");
    assert!(
        errors.starts_with("x.clif:5: ") && errors.contains("\nx.clif:6: "),
        "{errors}"
    );
}

#[test]
fn source_locations_of_the_text_are_kept() {
    let text = "function %f() {\nblock0:\n    @0123 return\n}\n";
    let file = SourceFile::parse("x.clif", text).unwrap();
    let func = &file.functions[0].func;
    let inst = func
        .layout
        .last_inst(func.layout.entry_block().unwrap())
        .unwrap();
    assert_eq!(line_of(func.srcloc(inst)), Some(0x123));
    assert_eq!(file.functions[0].inst_lines[inst], 3);
}

#[test]
fn near_misses_of_the_kernel_mark_warn() {
    let read = |comment: &str| {
        let text = format!("{comment}\nfunction %f() {{\nblock0:\n    return\n}}\n");
        SourceFile::parse("x.clif", &text).unwrap()
    };
    for (comment, kernel) in [
        (";kernel", true),
        ("; Kernel", false),
        ("; kernels", false),
        ("; kernel: x", false),
        ("; kernal shared=8", false),
    ] {
        let file = read(comment);
        assert_eq!(file.functions[0].kernel.is_some(), kernel, "{comment}");
        let warnings: Vec<String> = file.warnings.iter().map(Warning::to_string).collect();
        assert!(
            matches!(&warnings[..], [w] if w.starts_with("x.clif:1: ") && w.contains("`; kernel`")),
            "{comment}: {warnings:?}"
        );
    }
    for comment in ["; kernel\n; adds", "; kernel shared=8\n\n;; adds\n; all"] {
        let file = read(comment);
        assert_eq!(file.functions[0].kernel, None);
        let warnings: Vec<String> = file.warnings.iter().map(Warning::to_string).collect();
        assert!(
            matches!(&warnings[..], [w] if w.starts_with("x.clif:1: ") && w.contains("as the last one")),
            "{comment}: {warnings:?}"
        );
    }
    for comment in [
        "; kernel",
        "; kernel calls\n; kernel",
        "; kernel shared=8",
        "; internal",
        "; adds; kernel",
        "",
    ] {
        assert_eq!(read(comment).warnings, [], "{comment}");
    }
}
