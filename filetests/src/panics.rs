//! Panics of what is under test become failures of the test.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What `run` returns.
///
/// # Errors
/// Message and place of its panic, on one line. What `run` changes must be given up then.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if CATCHING.get() {
                MESSAGE.set(info.to_string().replace('\n', " "));
            } else {
                previous(info);
            }
        }));
    });
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(outer);
    result.map_err(|payload| {
        // A panic of another thread was told by that thread.
        let told = MESSAGE.take();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        if told.is_empty() {
            text.unwrap_or_default().replace('\n', " ")
        } else {
            told
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch(|| 1), Ok(1));
        let message = catch(|| panic!("expected")).unwrap_err();
        assert!(
            message.contains("expected") && message.contains("panics.rs"),
            "{message}"
        );
        let of_a_thread = || {
            let thread = std::thread::spawn(|| std::panic::resume_unwind(Box::new("elsewhere")));
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        assert_eq!(catch(of_a_thread), Err::<(), _>("elsewhere".to_owned()));
    }
}
