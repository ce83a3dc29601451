//! Output of kernels, formatted: the records of `thisgpu_gpu::println!`, in the order in which they were written.

use crate::error::Error;
use crate::format::{Value, formatted};
use cranelift_thisgpu::driver::Module;
use std::fmt::Write;

/// The data object that the library calls so.
const BUFFER: &str = "__thisgpu_print_buffer";
/// Bytes in front of the records: words asked for, records lost.
const HEADER: u64 = 8;

/// Takes what was written, and leaves the buffer empty.
pub fn take(module: &Module, formats: &[(u32, String)]) -> Result<String, Error> {
    let text = read(module, formats)?;
    if let Some(buffer) = module.data(BUFFER).filter(|_| !text.is_empty()) {
        let asked: Vec<u8> = buffer.read_range(0..4)?;
        let asked = asked
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let end = (HEADER + 4 * u64::from(asked)).min(buffer.bytes());
        buffer.slice(0..end)?.clear()?;
    }
    Ok(text)
}

/// What was written.
pub fn read(module: &Module, formats: &[(u32, String)]) -> Result<String, Error> {
    let Some(buffer) = module.data(BUFFER) else {
        return Ok(String::new());
    };
    let header: Vec<u8> = buffer.read_range(0..HEADER)?;
    let word = |bytes: &[u8], index: usize| {
        u32::from_le_bytes(
            [0, 1, 2, 3].map(|byte| bytes.get(4 * index + byte).copied().unwrap_or(0)),
        )
    };
    let (asked, lost) = (u64::from(word(&header, 0)), word(&header, 1));
    if asked == 0 {
        return Ok(String::new());
    }
    let end = (HEADER + 4 * asked).min(buffer.bytes());
    let bytes = buffer.read_range(HEADER..end)?;
    let words: Vec<u32> = (0..bytes.len() / 4)
        .map(|index| word(&bytes, index))
        .collect();
    let mut text = String::new();
    let mut rest = words.as_slice();
    // A record of no words is the room that the first one without room has left.
    while let Some((&length, _)) = rest.split_first().filter(|first| *first.0 >= 2) {
        let (record, behind) = rest.split_at((length as usize).min(rest.len()));
        let mut words = record.get(2..).unwrap_or(&[]);
        let arguments: Vec<Value> = std::iter::from_fn(|| Value::read(&mut words)).collect();
        let number = record.get(1).copied().unwrap_or(0);
        match formats.iter().find(|format| format.0 == number) {
            Some((_, format)) => text.push_str(&formatted(format, &arguments)),
            None => {
                let _ = writeln!(text, "(output of an unknown format {number:08x})");
            }
        }
        rest = behind;
    }
    if lost > 0 {
        let _ = writeln!(text, "({lost} more outputs found no room)");
    }
    Ok(text)
}
