//! Functions that take and give back locks, as texts of CLIF.

use super::kernel::{Kernel, LockKind};
use std::collections::BTreeSet;

/// The device functions that take and give back locks, one for each kind that needs them.
pub fn functions(kernel: &Kernel) -> String {
    let by_function = kernel.locks.iter().filter(|lock| lock.by_function);
    let kinds: BTreeSet<&str> = by_function.map(|lock| name(lock.kind)).collect();
    let bodies = kinds.into_iter().map(|kind| {
        let (take, give) = match kind {
            "swap" => (
                "block1:\n    v3 = atomic_cas.i32 aligned v0, v1, v2\n    brif v3, block1, block2\n",
                "    v3 = atomic_rmw.i32 aligned xchg v0, v1\n",
            ),
            "swap_store" => (
                "block1:\n    v3 = atomic_cas.i32 aligned v0, v1, v2\n    brif v3, block1, block2\n",
                "    atomic_store.i32 aligned v1, v0\n",
            ),
            "watch" => (
                "block1:\n    v3 = atomic_load.i32 aligned v0\n    brif v3, block1, block3\nblock3:\n    v4 = \
                 atomic_rmw.i32 aligned xchg v0, v2\n    brif v4, block1, block2\n",
                "    atomic_store.i32 aligned v1, v0\n",
            ),
            _ => (
                "block1:\n    v3 = atomic_rmw.i32 aligned add v0, v2\n    v4 = iconst.i64 4\n    v5 = iadd v0, \
                 v4\n    jump block3\nblock3:\n    v6 = atomic_load.i32 aligned v5\n    v7 = icmp eq v6, v3\n    brif \
                v7, block2, block3\n",
                "    v4 = iconst.i64 4\n    v5 = iadd v0, v4\n    v6 = atomic_rmw.i32 aligned add v5, v2\n",
            ),
        };
        let head = "block0(v0: i64):\n    v1 = iconst.i32 0\n    v2 = iconst.i32 1\n";
        format!(
            "\nfunction %lock_{kind}(i64) fast {{\n{head}    jump block1\n{take}block2:\n    return\n}}\n\nfunction \
             %unlock_{kind}(i64) fast {{\n{head}{give}    return\n}}\n"
        )
    });
    bodies.collect()
}

/// The name of a kind, in names of functions.
pub fn name(kind: LockKind) -> &'static str {
    match kind {
        LockKind::Swap => "swap",
        LockKind::SwapStore => "swap_store",
        LockKind::Watch => "watch",
        LockKind::Ticket => "ticket",
    }
}
