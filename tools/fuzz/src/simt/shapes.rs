//! What a graph of blocks is like, for counts.

use super::kernel::{End, Kernel, Stmt};
use super::meeting;

/// What a kernel has of what makes control difficult.
pub fn shapes(kernel: &Kernel) -> Vec<&'static str> {
    let ends = || {
        kernel
            .functions
            .iter()
            .flat_map(|f| &f.blocks)
            .map(|b| &b.end)
    };
    let calls = |of: fn(&Vec<usize>, usize) -> bool| {
        kernel.functions.iter().enumerate().any(|(index, f)| {
            f.blocks.iter().any(|b| {
                let tail = matches!(&b.end, End::TailCall { callees, .. } if of(callees, index));
                let call = |s: &Stmt| matches!(s, Stmt::Call { callees, .. } if of(callees, index));
                tail || b.stmts.iter().any(call)
            })
        })
    };
    let all = [
        (
            "br_table",
            ends().any(|end| matches!(end, End::Table { .. })),
        ),
        (
            "early return of a kernel",
            kernel.functions[0]
                .blocks
                .iter()
                .filter(|b| b.end.targets().is_empty())
                .count()
                > 1,
        ),
        (
            "several returns of a function",
            kernel.functions[1..].iter().any(|f| {
                f.blocks
                    .iter()
                    .filter(|b| b.end.targets().is_empty())
                    .count()
                    > 1
            }),
        ),
        (
            "irreducible",
            kernel.functions.iter().any(meeting::is_irreducible),
        ),
        ("recursion", calls(|callees, own| callees.contains(&own))),
        (
            "tail call",
            ends().any(|end| matches!(end, End::TailCall { .. })),
        ),
        (
            "call of one of several",
            calls(|callees, _| callees.len() > 1),
        ),
        ("phases in shared memory", !kernel.spine.is_empty()),
        ("locks", !kernel.locks.is_empty()),
        (
            "counters of their own",
            kernel
                .stmts()
                .any(|stmt| matches!(stmt, Stmt::Count { .. })),
        ),
        (
            "probes",
            kernel.stmts().any(|stmt| matches!(stmt, Stmt::Probe)),
        ),
    ];
    all.iter()
        .filter(|shape| shape.1)
        .map(|shape| shape.0)
        .collect()
}
