//! The functions that the device has, by the symbols that kernels declare them with.
//!
//! `__thisgpu_NAME` is the backend's intrinsic `%gpu_NAME`, whose row in its table says signature, effect and
//! convergence. `__thisgpu_clif_OPERATION_TYPE` is an operation of CLIF on a type that Rust lacks. Halves cross as the
//! integers of their bits.

use cranelift_thisgpu::intrinsics::{self, Effect, Intrinsic};

/// What the symbols of the backend's intrinsics begin with.
pub const INTRINSIC: &str = "__thisgpu_";
/// What those of single operations of CLIF begin with.
pub const OPERATION: &str = "__thisgpu_clif_";

/// A function that rustc calls in front of every allocation so that linkers keep the allocator; it does nothing.
pub const ALLOCATION_MARKER: &str = "__rust_no_alloc_shim_is_unstable_v2";

/// Operations on halves and pairs of halves; those of the second list on single halves alone.
const OPERATIONS: [&[&str]; 2] = [
    &[
        "fadd", "fsub", "fmul", "fmin", "fmax", "fneg", "fabs", "fma", "fcmp_lt", "fcmp_le",
        "fcmp_eq", "fcmp_ne",
    ],
    &["fpromote", "fdemote"],
];

/// The row of an intrinsic by its symbol.
pub fn intrinsic(symbol: &str) -> Option<&'static Intrinsic> {
    intrinsics::lookup(symbol.strip_prefix(INTRINSIC)?)
}

/// Whether a symbol is that of a function which depends on the threads that call it together: barriers, shuffles,
/// votes.
pub fn is_convergent(symbol: &str) -> bool {
    intrinsic(symbol).is_some_and(|row| row.effect == Effect::Convergent)
}

/// The symbols of all functions of the device that give the same for the same operands in the same thread: LLVM may
/// merge, move and duplicate their calls.
pub fn pure_intrinsics() -> impl Iterator<Item = String> {
    let rows = intrinsics::TABLE.iter();
    let intrinsics = rows.filter(|row| row.effect == Effect::Pure);
    let intrinsics = intrinsics.map(|row| format!("{INTRINSIC}{}", row.name));
    let pairs = OPERATIONS[0].iter().map(|name| (name, "f16x2"));
    let single = OPERATIONS.into_iter().flatten().map(|name| (name, "f16"));
    let operations = pairs.chain(single);
    intrinsics.chain(operations.map(|(name, ty)| format!("{OPERATION}{name}_{ty}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_other_threads_is_not_pure() {
        let pure: Vec<String> = pure_intrinsics().collect();
        for symbol in [
            "__thisgpu_bar_sync",
            "__thisgpu_shfl_idx",
            "__thisgpu_ballot",
        ] {
            assert!(is_convergent(symbol), "{symbol}");
            assert!(!pure.iter().any(|of| of == symbol), "{symbol}");
        }
        for symbol in [
            "__thisgpu_tid_x",
            "__thisgpu_lop3",
            "__thisgpu_clif_fma_f16x2",
        ] {
            assert!(
                pure.iter().any(|of| of == symbol) && !is_convergent(symbol),
                "{symbol}"
            );
        }
        let atomic = "__thisgpu_atomic_add_f32";
        assert!(intrinsic(atomic).is_some() && !is_convergent(atomic));
        assert!(!pure.iter().any(|of| of == atomic));
    }
}
