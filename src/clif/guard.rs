//! Calls into code that is known to panic on some valid inputs.
//!
//! Cranelift's mid-end cannot build constants of integer vectors that are not 128 bits wide (`isub v1, v1` on i16x4 is
//! enough), and its text reader asserts what some malformed texts break. Neither may end the process, nor print
//! anything: the panic is caught and becomes a value.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What `call` returns, or `None` if it panics. Whatever `call` changes must be given up then.
pub(super) fn catch<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(outer);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_none_and_leaves_no_trace() {
        assert_eq!(catch(|| 1), Some(1));
        assert_eq!(catch(|| -> i32 { panic!("expected") }), None);
        assert!(!GUARDED.get());
    }
}
