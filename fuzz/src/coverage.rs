//! Names for what libFuzzer calls by address: with them `-print_coverage=1` says which edges of which functions the
//! corpus covers (`fuzz/run TARGET --coverage`).
//!
//! The engine looks for two functions that a sanitizer would have. These read the tables of lines in the program.

use std::ffi::{CStr, c_char, c_int, c_void};

/// What stands at an address: function, file and line. Of code that was inlined, where it was inlined to.
fn place(address: *mut c_void) -> (String, String, u32) {
    let mut place = ("??".to_owned(), "??".to_owned(), 0);
    backtrace::resolve(address, |symbol| {
        let name = symbol
            .name()
            .map_or("??".to_owned(), |name| format!("{name:#}"));
        let file = symbol
            .filename()
            .map_or("??".to_owned(), |file| file.display().to_string());
        // The innermost comes first and the function itself last.
        place = (name, file, symbol.lineno().unwrap_or_default());
    });
    place
}

/// A place as a format of sanitizers has it.
fn described(format: &str, address: *mut c_void) -> String {
    let (function, file, line) = place(address);
    let parts = [
        ("%F", format!("in {function}")),
        ("%p", format!("{address:p}")),
        ("%L", format!("{file}:{line}")),
        ("%s", file),
        ("%l", line.to_string()),
    ];
    parts.iter().fold(format.to_owned(), |text, (key, value)| {
        text.replace(key, value)
    })
}

/// Copies a text with the zero at its end, as much as there is room for.
///
/// # Safety
/// `out` has room for `size` bytes.
unsafe fn copy(text: &str, out: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1) else {
        return;
    };
    let kept = &text.as_bytes()[..text.len().min(room)];
    // SAFETY: as the caller says, and what is kept and the zero are at most `size` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(kept.as_ptr(), out.cast(), kept.len());
        out.add(kept.len()).write(0);
    }
}

/// Writes what stands at an address.
///
/// # Safety
/// `format` ends with a zero, and `out` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_symbolize_pc(
    address: *mut c_void,
    format: *const c_char,
    out: *mut c_char,
    size: usize,
) {
    // SAFETY: as the engine promises.
    unsafe {
        let format = CStr::from_ptr(format).to_string_lossy();
        copy(&described(&format, address), out, size);
    }
}

/// Writes the module of an address, of which there is one.
///
/// # Safety
/// `path` has room for `size` bytes, and `offset` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_get_module_and_offset_for_pc(
    address: *mut c_void,
    path: *mut c_char,
    size: usize,
    offset: *mut *mut c_void,
) -> c_int {
    // SAFETY: as the engine promises.
    unsafe {
        copy("fuzz", path, size);
        offset.write(address);
    }
    1
}
