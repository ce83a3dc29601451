//! The steps together.

use super::*;
use crate::analysis::testing::{Rng, random_function};
use crate::clif::source::SourceFile;
use crate::settings::OptLevel;

fn parse(text: &str) -> Function {
    let mut file = SourceFile::parse("t.clif", text).unwrap();
    file.functions.remove(0).func
}

const NOT_OPTIMIZED: Settings = Settings {
    opt_level: OptLevel::None,
    ..Settings::DEFAULT
};

fn kernel() -> Options<'static> {
    Options {
        kernel: Some(KernelOptions::default()),
        ..Options::DEVICE
    }
}

const SAXPY: &str = "\
; kernel
function %saxpy(i64, i64, f32, i32) {
    ss0 = explicit_slot 4
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_ctaid_x() -> i32
    fn2 = %gpu_ntid_x() -> i32
block0(v0: i64, v1: i64, v2: f32, v3: i32):
    v4 = call fn0()
    v5 = call fn1()
    v6 = call fn2()
    v7 = imul v5, v6
    v8 = iadd v7, v4
    v9 = stack_addr.i64 ss0
    store v8, v9
    v10 = icmp uge v8, v3
    brif v10, block2, block1
block1:
    v11 = load.i32 v9
    v12 = uextend.i64 v11
    v13 = iconst.i64 2
    v14 = ishl v12, v13
    v15 = iadd v0, v14
    v16 = load.f32 aligned v15
    v17 = iadd v1, v14
    v18 = load.f32 aligned v17
    v19 = fma v2, v16, v18
    store aligned v19, v17
    jump block2
block2:
    return
}
";

#[test]
fn a_kernel_goes_through_all_steps() {
    let mut seen = Vec::new();
    let mut preparer = Preparer::new();
    let prepared = preparer
        .prepare(parse(SAXPY), &kernel(), &mut |step, func| {
            seen.push((step, func.to_string()))
        })
        .unwrap();
    let passes = Pass::ALL.into_iter().filter(|&pass| pass <= Pass::Clif);
    assert_eq!(
        seen.iter().map(|(pass, _)| *pass).collect::<Vec<_>>(),
        passes.collect::<Vec<_>>()
    );
    for (step, text) in &seen {
        // Every dump parses again.
        cranelift_reader::parse_functions(text)
            .unwrap_or_else(|error| panic!("after {step}: {error}\n{text}"));
    }
    let after = |pass: Pass| &seen[pass as usize].1;
    assert!(after(Pass::Verify).contains("call fn0()"));
    assert!(!after(Pass::Intrinsics).contains("call fn0()"));
    assert!(after(Pass::Intrinsics).contains("stack_addr"));
    let promoted = after(Pass::Promote);
    assert!(!promoted.contains("stack_addr"), "{promoted}");
    assert!(prepared.is_kernel());
    assert_eq!(prepared.flow.reverse_postorder().len(), 3);
}

#[test]
fn a_preparer_can_be_used_again() {
    let mut preparer = Preparer::new();
    for seed in 0..200 {
        for settings in [&NOT_OPTIMIZED, &Settings::DEFAULT] {
            let func = random_function(&mut Rng::new(seed), 8);
            let options = Options {
                settings,
                ..Options::DEVICE
            };
            let prepared = preparer
                .prepare(func, &options, &mut |_, _| {})
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let returns = prepared.func.to_string().matches("return").count();
            assert!(returns <= 1, "seed {seed}: {}", prepared.func);
        }
    }
}

/// What is wrong with a function; empty if nothing is.
fn accepted_or_errors(text: &str, options: &Options) -> String {
    let prepared = Preparer::new().prepare(parse(text), options, &mut |_, _| {});
    prepared
        .err()
        .map_or_else(String::new, |errors| errors.to_string())
}

fn errors_of(text: &str, options: &Options) -> String {
    let errors = accepted_or_errors(text, options);
    assert!(!errors.is_empty(), "accepted {text}");
    errors
}

#[test]
fn bad_functions_are_errors_with_their_lines() {
    let wrong_type =
        "function %f(i32) -> i64 {\nblock0(v0: i32):\n    v1 = iadd v0, v0\n    return v1\n}\n";
    let errors = errors_of(wrong_type, &Options::DEVICE);
    assert!(errors.starts_with("line 4: invalid CLIF: "), "{errors}");
    assert!(errors.ends_with("(in function %f)"), "{errors}");

    let result = "function %k() -> i32 {\nblock0:\n    v0 = iconst.i32 1\n    return v0\n}\n";
    let errors = errors_of(result, &kernel());
    assert!(
        errors.starts_with("kernel: a kernel returns nothing"),
        "{errors}"
    );

    let many = format!(
        "function %k({}) {{\nblock0({}):\n    return\n}}\n",
        vec!["i64"; 513].join(", "),
        (0..513)
            .map(|n| format!("v{n}: i64"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    assert!(errors_of(&many, &kernel()).contains("its parameters take 4104 bytes of at most 4096"));

    let huge = Options {
        kernel: Some(KernelOptions {
            shared_bytes: 1 << 20,
            ..KernelOptions::default()
        }),
        ..Options::DEVICE
    };
    let errors = errors_of("function %k() {\nblock0:\n    return\n}\n", &huge);
    assert!(
        errors.starts_with("kernel: it asks for 1048576 bytes of shared memory"),
        "{errors}"
    );

    let unknown =
        "function %f() {\n    fn0 = %gpu_barsync()\nblock0:\n    call fn0()\n    return\n}\n";
    let errors = errors_of(unknown, &Options::DEVICE);
    assert_eq!(
        errors,
        "line 4: intrinsic %gpu_barsync: unknown; did you mean %gpu_bar_sync()? (in function %f)"
    );
}

#[test]
fn thread_values_are_merged_and_hoisted() {
    let func = parse(
        "function %f(i32) -> i32 {
            fn0 = %gpu_tid_x() -> i32
        block0(v0: i32):
            v1 = iconst.i32 0
            jump block1(v1, v0)
        block1(v2: i32, v3: i32):
            v4 = call fn0()
            v5 = call fn0()
            v6 = iadd v4, v5
            v7 = iadd v2, v6
            v8 = iconst.i32 1
            v9 = isub v3, v8
            brif v9, block1(v7, v9), block2
        block2:
            return v7
        }",
    );
    let prepared = Preparer::new()
        .prepare(func, &Options::DEVICE, &mut |_, _| {})
        .unwrap();
    let text = prepared.func.to_string();
    assert_eq!(text.matches("symbol_value").count(), 1, "{text}");
    let entry = text.split("block1(").next().unwrap();
    assert!(
        entry.contains("symbol_value"),
        "hoisted out of the loop: {text}"
    );
}

#[test]
fn optional_passes_are_left_out() {
    let whole = Options {
        skip: &[],
        ..kernel()
    };
    let texts = |options: &Options| {
        let mut texts = Vec::new();
        Preparer::new()
            .prepare(parse(SAXPY), options, &mut |_, func| {
                texts.push(func.to_string())
            })
            .unwrap_or_else(|errors| panic!("{errors}"));
        texts
    };
    let all = texts(&whole);
    for pass in Pass::ALL.into_iter().filter(|&pass| pass <= Pass::Clif) {
        let skip = [pass];
        let options = Options {
            skip: &skip,
            ..whole
        };
        let without = texts(&options);
        match pass.is_optional() {
            true => assert_eq!(without[pass as usize], without[pass as usize - 1], "{pass}"),
            false => assert_eq!(without, all, "{pass}"),
        }
    }
}

#[test]
fn preparation_stops_where_it_is_told() {
    for last in Pass::ALL.into_iter().filter(|&pass| pass < Pass::Clif) {
        let options = Options {
            stop_after: Some(last),
            ..kernel()
        };
        let mut seen = Vec::new();
        let mut observe = |pass: Pass, _: &Function| seen.push(pass);
        let prepared = Preparer::new().prepare_until(parse(SAXPY), &options, &mut observe);
        assert!(
            prepared
                .unwrap_or_else(|errors| panic!("{errors}"))
                .is_none(),
            "{last}"
        );
        assert_eq!(seen.last(), Some(&last));
    }
}

#[test]
fn a_failing_mid_end_leaves_the_function_as_it_is() {
    let func = parse(
        "function %f(i64) -> i64 {
        block0(v0: i64):
            v1 = bitcast.i16x4 little v0
            v2 = isub v1, v1
            v3 = bitcast.i64 little v2
            return v3
        }",
    );
    let prepared = Preparer::new()
        .prepare(func, &Options::DEVICE, &mut |_, _| {})
        .unwrap();
    assert!(
        prepared.func.to_string().contains("isub"),
        "{}",
        prepared.func
    );
}

#[test]
fn registers_of_other_targets_are_unsupported() {
    let text = "function %f() -> i64 {\nblock0:\n    v0 = get_pinned_reg.i64\n    return v0\n}\n";
    let errors = match Preparer::new().prepare(parse(text), &Options::DEVICE, &mut |_, _| {}) {
        Ok(_) => panic!("accepted"),
        Err(errors) => errors,
    };
    assert!(errors.only_unsupported(), "{errors}");
    assert!(
        errors
            .to_string()
            .starts_with("line 3: unsupported: get_pinned_reg.i64: "),
        "{errors}"
    );
}

#[test]
fn dynamic_vectors_are_refused() {
    let text = "function %f() {
        gv0 = dyn_scale_target_const.i32x4
        dt0 = i32x4*gv0
        block0:
            return
        }";
    let errors = match Preparer::new().prepare(parse(text), &Options::DEVICE, &mut |_, _| {}) {
        Ok(_) => panic!("accepted"),
        Err(errors) => errors,
    };
    assert!(errors.only_unsupported(), "{errors}");
}

#[test]
fn a_function_without_blocks_is_an_error() {
    for enable_verifier in [true, false] {
        let settings = Settings {
            enable_verifier,
            ..Settings::DEFAULT
        };
        let options = Options {
            settings: &settings,
            ..Options::DEVICE
        };
        let errors = errors_of("function %f(i32) -> i32 {\n}\n", &options);
        let start = "invalid CLIF: the function has no blocks";
        assert!(errors.starts_with(start), "{errors}");
        assert!(errors.ends_with("(in function %f)"), "{errors}");
    }
}

#[test]
fn foreign_signatures_are_refused() {
    let call = |own: &str, callee: &str| {
        let text = format!(
            "function %f(i64){own} {{\n    fn0 = {callee}\nblock0(v0: i64):\n    call fn0(v0)\n    return\n}}\n"
        );
        accepted_or_errors(&text, &Options::DEVICE)
    };
    for own in ["", " fast", " tail", " system_v"] {
        assert_eq!(call(own, "%g(i64 vmctx) system_v"), "", "{own}");
    }
    for foreign in [
        "windows_fastcall",
        "apple_aarch64",
        "probestack",
        "winch",
        "preserve_all",
    ] {
        let expected = format!("unsupported: the calling convention {foreign}: ");
        let errors = call(&format!(" {foreign}"), "%g(i64)");
        assert!(errors.starts_with(&expected), "{errors}");
        let errors = call("", &format!("%g(i64) {foreign}"));
        assert!(
            errors.starts_with(&format!("line 4: {expected}")),
            "{errors}"
        );
    }
    let errors = call("", "colocated patchable %g(i64)");
    assert!(
        errors.starts_with("line 4: unsupported: a patchable call: "),
        "{errors}"
    );
    let errors = call("", "%g(i64 sarg(4194305))");
    assert!(
        errors.starts_with("line 4: unsupported: a structure of 4194305 bytes passed by value: "),
        "{errors}"
    );
}

#[test]
fn structures_that_cannot_be_copied_are_refused() {
    let shared = "function %f(i32) {\n    fn0 = %g(i32 sarg(8))\nblock0(v0: i32):\n    call fn0(v0)\n    return\n}\n";
    let errors = errors_of(shared, &Options::DEVICE);
    let start = "line 4: unsupported: a structure behind a pointer of type i32: ";
    assert!(errors.starts_with(start), "{errors}");
    let tail = "function %f(i64) tail \
     {\n    fn0 = %g(i64 sarg(8)) tail\nblock0(v0: i64):\n    return_call fn0(v0)\n}\n";
    let errors = errors_of(tail, &Options::DEVICE);
    let start = "line 4: unsupported: a tail call with structures passed by value: ";
    assert!(errors.starts_with(start), "{errors}");
    let param = "function %f(i64 sarg(8)) {\nblock0(v0: i64):\n    return\n}\n";
    let errors = errors_of(param, &kernel());
    let start = "unsupported: a kernel with structures passed by value: ";
    assert!(errors.starts_with(start), "{errors}");
    let result = "function %f(i64) -> i64 sret {\nblock0(v0: i64):\n    return v0\n}\n";
    let errors = errors_of(result, &Options::DEVICE);
    assert!(
        errors.starts_with("unsupported: a result sret: "),
        "{errors}"
    );
}

#[test]
fn hints_stand_where_loops_begin() {
    let text = |header: &str, body: &str, times: &str| {
        format!(
            "function %f(i32) {{
    fn0 = %gpu_unroll(i32)
block0(v0: i32):
    v9 = iconst.i32 {times}
    jump block1(v0)
block1(v1: i32):
    {header}
    jump block2
block2:
    {body}
    v3 = iadd v1, v9
    brif v3, block1(v3), block3
block3:
    return
}}
"
        )
    };
    let call = "call fn0(v9)";
    assert_eq!(
        accepted_or_errors(&text(call, "nop", "7"), &Options::DEVICE),
        ""
    );
    let unoptimized = Options {
        settings: &NOT_OPTIMIZED,
        ..Options::DEVICE
    };
    let prepared =
        Preparer::new().prepare(parse(&text(call, "nop", "7")), &unoptimized, &mut |_, _| {});
    let func = prepared
        .unwrap_or_else(|errors| panic!("{errors}"))
        .func
        .to_string();
    assert!(!func.contains("call"), "{func}");
    for (header, body, times, expected) in [
        (
            "nop",
            call,
            "7",
            "line 10: intrinsic %gpu_unroll: block2 is not where a loop begins",
        ),
        (
            call,
            "nop",
            "256",
            "line 7: intrinsic %gpu_unroll: operand 1 is 256; it must be one from 0 to 255",
        ),
        ("call fn0(v0)", "nop", "1", "operand 1 must be an iconst"),
        (
            "call fn0(v9)\n    call fn0(v9)",
            "nop",
            "1",
            "block1 has a second call",
        ),
    ] {
        let errors = errors_of(&text(header, body, times), &Options::DEVICE);
        assert!(errors.contains(expected), "{errors}");
    }
}
