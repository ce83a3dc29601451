//! What `--check` finds of stacks that are not the thread's to use, and of wrapped indices; stores to read-only data.
//! Each mistake has a correct twin that is not blamed.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use common::{block, compile_with, launch};
use cranelift_thisgpu::asm;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::launch::{AccessKind, FindingKind};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{FaultKind, Finding, SimConfig};

fn devices() -> [Device; 2] {
    [false, true].map(|timed| {
        Device::simulator(SimConfig {
            timed,
            check: true,
            ..SimConfig::default()
        })
    })
}

/// Findings of a kernel `k` with a buffer of zeros, at both speeds, without those that are races.
fn findings(text: &str, threads: u32) -> Vec<Finding> {
    let options = Options {
        stack_redzones: true,
        ..Options::default()
    };
    let code = compile_with(options, text);
    let [first, second] = devices().map(|device| {
        let buffer = device.upload(&[0u64; 512]).unwrap();
        let report = launch(&device, &code, "k", block(threads), &[&buffer]);
        assert_eq!(report.fault, None);
        let findings = report.findings.into_iter();
        findings
            .filter(|finding| !matches!(finding.kind, FindingKind::Race { .. }))
            .collect::<Vec<_>>()
    });
    let kinds = |all: &[Finding]| all.iter().map(|f| f.kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&first), kinds(&second));
    first
}

fn texts(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

/// A function returns the address of its slot, and its caller uses it; deeper calls lie between.
#[test]
fn frames_that_have_returned() {
    let text = |used: &str| {
        format!(
            "function %inner(i64) -> i64 {{
                ss0 = explicit_slot 24
            block0(v0: i64):
                v1 = stack_addr.i64 ss0
                store aligned v0, v1
                return v1
            }}
            function %outer(i64) -> i64 {{
                fn0 = %inner(i64) -> i64
                ss0 = explicit_slot 16
            block0(v0: i64):
                v1 = stack_addr.i64 ss0
                store aligned v0, v1
                v2 = call fn0(v0)
                v3 = load.i64 aligned v1
                return v2
            }}
            ; kernel
            function %k(i64) {{
                fn0 = %outer(i64) -> i64
                ss0 = explicit_slot 16
            block0(v0: i64):
                v1 = stack_addr.i64 ss0
                store aligned v0, v1
                v2 = call fn0(v0)
                {used}
                v4 = load.i64 aligned v1
                return
            }}"
        )
    };
    for (used, access) in [
        (
            "v3 = load.i64 aligned v2\n store aligned v3, v1",
            AccessKind::Load,
        ),
        ("store aligned v0, v2", AccessKind::Store),
        ("v3 = atomic_rmw.i64 add v2, v0", AccessKind::Atomic),
    ] {
        let found = findings(&text(used), 40);
        let dead = found.iter().find(|finding| {
            finding.kind == FindingKind::DeadStack { access, bytes: 8 }
                && finding.place.function.as_deref() == Some("k")
        });
        let other = dead.and_then(|finding| finding.other.as_ref());
        let other = other.unwrap_or_else(|| panic!("{used}: {:#?}", texts(&found)));
        assert_eq!(other.function.as_deref(), Some("inner"));
        assert!(other.instruction.contains("RET"), "{other}");
    }
    // The address alone is no access.
    let found = findings(&text("store aligned v2, v0"), 1);
    assert_eq!(texts(&found), [""; 0]);
}

/// Calls with arguments on the stack, recursion, and tail calls stay above the stack pointer.
#[test]
fn frames_of_calls_are_not_blamed() {
    let many = (0..20).map(|_| "i64").collect::<Vec<_>>().join(", ");
    let parameters = (0..20)
        .map(|n| format!("v{n}: i64"))
        .collect::<Vec<_>>()
        .join(", ");
    let given = |first: &str| {
        let rest = (1..20).map(|_| "v0").collect::<Vec<_>>().join(", ");
        format!("{first}, {rest}")
    };
    let text = format!(
        "function %sum({many}) -> i64 tail {{
            fn0 = %sum({many}) -> i64 tail
            ss0 = explicit_slot 48
        block0({parameters}):
            v20 = stack_addr.i64 ss0
            store aligned v19, v20+8
            v21 = load.i64 aligned v20+8
            v22 = iconst.i64 -1
            v23 = iadd v0, v22
            brif v0, block1, block2
        block1:
            return_call fn0(v23, {rest})
        block2:
            v24 = iadd v21, v18
            return v24
        }}
        ; kernel
        function %k(i64) {{
            fn0 = %sum({many}) -> i64 tail
            ss0 = explicit_slot 16
        block0(v0: i64):
            v1 = stack_addr.i64 ss0
            store aligned v0, v1
            v2 = iconst.i64 5
            v3 = call fn0({arguments})
            v4 = call fn0({arguments})
            store aligned v4, v1
            v5 = load.i64 aligned v1
            return
        }}",
        rest = (1..20)
            .map(|n| format!("v{n}"))
            .collect::<Vec<_>>()
            .join(", "),
        arguments = given("v2"),
    );
    assert_eq!(texts(&findings(&text, 33)), [""; 0]);
}

/// Each thread gives the address of its slot away and takes that of the thread `tid ^ OTHER`; `used` is what it does
/// with it.
fn exchange(other: u32, used: &str) -> String {
    format!(
        "; kernel
        function %k(i64) {{
            fn0 = %gpu_tid_x() -> i32
            fn1 = %gpu_bar_sync()
            ss0 = explicit_slot 32
        block0(v0: i64):
            v1 = stack_addr.i64 ss0
            v2 = iconst.i32 {other}
            v3 = call fn0()
            v4 = uextend.i64 v3
            store aligned v4, v1
            store aligned v4, v1+8
            v5 = iconst.i64 3
            v6 = ishl v4, v5
            v7 = iadd v0, v6
            store aligned v1, v7
            call fn1()
            v8 = bxor v3, v2
            v9 = uextend.i64 v8
            v10 = ishl v9, v5
            v11 = iadd v0, v10
            v12 = load.i64 aligned v11
            {used}
            v30 = load.i64 aligned v1
            return
        }}"
    )
}

#[test]
fn stacks_of_other_threads() {
    let uses = [
        (
            "v13 = load.i64 aligned v12\n store aligned v13, v1",
            AccessKind::Load,
        ),
        ("store aligned v4, v12+8", AccessKind::Store),
        ("v13 = atomic_rmw.i64 add v12, v4", AccessKind::Atomic),
        (
            "v14 = iconst.i64 1
             v15 = band v4, v14
             v16 = ishl v15, v5
             v17 = iadd v12, v16
             store aligned v12, v1+16
             v18 = load.i64 aligned v1+16
             v19 = select v15, v17, v18
             store aligned v4, v19",
            AccessKind::Store,
        ),
    ];
    for (used, access) in uses {
        for other in [1, 32] {
            let found = findings(&exchange(other, used), 64);
            let foreign = found.iter().find(
                |f| matches!(f.kind, FindingKind::ForeignStack { access: a, bytes: 8, .. } if a == access),
            );
            let Some(finding) = foreign else {
                panic!("{other}: {used}: {:#?}", texts(&found));
            };
            let owner = finding.other.as_ref().expect("the owner");
            assert_eq!(
                finding.place.thread[0] ^ other,
                owner.thread[0],
                "{finding}"
            );
            assert!(owner.instruction.contains("ST"), "{finding}");
        }
        assert_eq!(texts(&findings(&exchange(0, used), 64)), [""; 0], "its own");
    }
    // Comparing and keeping it is no access.
    let compared = "v13 = icmp eq v12, v1\n v14 = uextend.i64 v13\n store aligned v14, v1+16\n store aligned v12, v7";
    assert_eq!(texts(&findings(&exchange(1, compared), 64)), [""; 0]);
}

/// One thread gives its address to all: the compiler may keep it in uniform registers.
#[test]
fn the_stack_of_one_thread() {
    let text = |used: &str| {
        format!(
            "; kernel
            function %k(i64) {{
                fn0 = %gpu_tid_x() -> i32
                fn1 = %gpu_bar_sync()
                ss0 = explicit_slot 32
            block0(v0: i64):
                v1 = stack_addr.i64 ss0
                v2 = call fn0()
                v3 = uextend.i64 v2
                store aligned v3, v1
                brif v2, block2, block1
            block1:
                store aligned v1, v0
                jump block2
            block2:
                call fn1()
                v4 = load.i64 aligned v0
                {used}
                return
            }}"
        )
    };
    let found = findings(&text("v5 = load.i64 aligned v4\n store aligned v5, v1"), 64);
    let foreign = found
        .iter()
        .find(|f| matches!(f.kind, FindingKind::ForeignStack { .. }));
    let finding = foreign.unwrap_or_else(|| panic!("{:#?}", texts(&found)));
    assert_ne!(finding.place.thread, [0; 3]);
    assert_eq!(
        finding.other.as_ref().map(|place| place.thread),
        Some([0; 3])
    );
    let own = text(
        "brif v2, block4, block3
        block3:
            v5 = load.i64 aligned v4
            store aligned v5, v1
            jump block4
        block4:",
    );
    assert_eq!(texts(&findings(&own, 64)), [""; 0], "thread 0 uses its own");
}

/// An index of 32 bits that wraps: whatever the size of the elements, it hits no other buffer.
#[test]
fn wrapped_indices_are_out_of_bounds() {
    for size in [
        1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 100, 128, 200, 256, 512, 1000,
    ] {
        let text = format!(
            "; kernel
            function %k(i64, i32) {{
            block0(v0: i64, v1: i32):
                v2 = iconst.i32 -1
                v3 = iadd v1, v2
                v4 = uextend.i64 v3
                v5 = iconst.i64 {size}
                v6 = imul v4, v5
                v7 = iadd v0, v6
                v8 = iconst.i8 77
                store v8, v7+{size}
                return
            }}"
        );
        let code = compile_with(Options::default(), &text);
        let device = Device::simulator(SimConfig::default());
        let buffers: Vec<_> = (0..200)
            .map(|_| device.upload(&[0u8; 4096]).unwrap())
            .collect();
        for buffer in buffers.iter().step_by(7) {
            let report = launch(&device, &code, "k", block(1), &[buffer, &0i32]);
            let fault = report.fault.expect("out of bounds");
            assert!(
                matches!(fault.kind, FaultKind::OutOfBounds { .. }),
                "{fault}"
            );
        }
        let all = buffers.iter().flat_map(|buffer| buffer.to_vec().unwrap());
        assert_eq!(
            all.filter(|byte| *byte != 0).count(),
            0,
            "elements of {size} bytes"
        );
    }
}

/// `.data NAME readonly` is read by kernels alone; without the word they may write.
#[test]
fn data_that_is_read_only() {
    for (readonly, is_fault) in [("readonly", true), ("", false)] {
        let text = format!(
            ".kernel k
                MOV R2, lo(table) ?1 ;
                MOV R3, hi(table) ?4 ;
                LDG R4, [R[2:3]] &wr=0 ;
                STG [R[2:3]+4], R4 &req={{0}} ;
                EXIT ;
            .data table {readonly} align 8
                .word 1, 2"
        );
        let object = asm::assemble("table.s", &text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let object = object.object;
        for check in [false, true] {
            let device = Device::simulator(SimConfig {
                check,
                ..SimConfig::default()
            });
            let report = launch(&device, &object, "k", block(32), &[]);
            let fault = report.fault.map(|fault| fault.kind);
            let is_found = matches!(
                fault,
                Some(FaultKind::ReadOnly {
                    access: AccessKind::Store,
                    bytes: 4,
                    ..
                })
            );
            assert_eq!(is_found, is_fault, "{fault:?}");
        }
    }
}
