//! Kernel marks: `; kernel KEY=VALUE…` above a function.

use super::syntax;
use crate::error::Error;
use crate::properties::DeviceProperties;
use crate::text::closest;

/// The word of a kernel mark.
const KERNEL: &str = "kernel";

/// Options of a `; kernel` mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// Bytes of static shared memory (`shared=BYTES`).
    pub shared_bytes: u32,
    /// Threads of a block, at most (`max_threads=N`): a launch of more is refused, and registers are given out so that
    /// a block of so many fits.
    pub max_threads: Option<u32>,
    /// Blocks that are to be resident together in a multiprocessor (`min_blocks=N`): registers are given out so that
    /// they fit.
    pub min_blocks: Option<u32>,
}

impl KernelOptions {
    /// With so many bytes of static shared memory.
    #[must_use]
    pub fn with_shared(self, shared_bytes: u32) -> Self {
        Self {
            shared_bytes,
            ..self
        }
    }

    /// The registers that a thread may have by the bounds; none without bounds.
    ///
    /// # Errors
    /// Why the bounds cannot be kept.
    pub fn register_limit(&self) -> Result<Option<u32>, String> {
        if self.max_threads.is_none() && self.min_blocks.is_none() {
            return Ok(None);
        }
        let device = DeviceProperties::ASSIGNED;
        let threads = self.max_threads.unwrap_or(device.block_threads);
        let blocks = self.min_blocks.unwrap_or(1);
        if threads == 0 || threads > device.block_threads {
            let most = device.block_threads;
            return Err(format!("max_threads={threads} is not from 1 to {most}"));
        }
        if blocks == 0 || blocks > device.blocks {
            let most = device.blocks;
            return Err(format!("min_blocks={blocks} is not from 1 to {most}"));
        }
        let shared = device.shared_bytes;
        if u64::from(self.shared_bytes) * u64::from(blocks) > u64::from(shared) {
            return Err(format!(
                "{blocks} blocks with {} bytes of shared memory each do not fit into the {shared} bytes of a \
                 multiprocessor",
                self.shared_bytes
            ));
        }
        match device.registers_for(threads, blocks) {
            Some(registers) => Ok(Some(registers)),
            None => Err(format!(
                "{blocks} blocks of {threads} threads are more than the {} warps of a multiprocessor",
                device.warps
            )),
        }
    }
}

/// What is odd about a comment before a function that looks like a kernel mark.
pub(super) fn near_mark(text: &str) -> Option<String> {
    let comment = text.trim_start_matches(';');
    let first = comment.split_whitespace().next()?;
    if first == KERNEL {
        let exact = text.starts_with("; ");
        return (!exact).then(|| format!("this is read as a kernel mark; write `; {KERNEL}`"));
    }
    let word = first.trim_end_matches(|c: char| c.is_ascii_punctuation());
    let near = word.eq_ignore_ascii_case("kernels") || closest(word, [KERNEL]).is_some();
    near.then(|| {
        format!(
            "`; {first}` is no kernel mark, so this is a device function; a kernel is marked by `; {KERNEL}`"
        )
    })
}

/// What is odd about a comment before a function that is not the last one there, if it would be a kernel mark.
pub(super) fn lost_mark(text: &str) -> Option<String> {
    let mark = kernel_mark(text, 0).ok().flatten();
    mark.map(|_| {
        format!(
            "`; {KERNEL}` does not count here, because another comment stands between it and the function; write it as \
             the last one"
        )
    })
}

/// Reads `; kernel KEY=VALUE…`; `None` if the comment is no kernel mark.
pub(super) fn kernel_mark(text: &str, line: u32) -> Result<Option<KernelOptions>, Error> {
    let mut words = text.trim_start_matches(';').split_whitespace();
    if words.next() != Some(KERNEL) {
        return Ok(None);
    }
    let mut options = KernelOptions::default();
    for word in words {
        match word.split_once('=') {
            Some(("shared", bytes)) => {
                options.shared_bytes = bytes.parse().map_err(|_| {
                    syntax(
                        format!("'{bytes}' is no number of bytes in '; kernel shared=BYTES'"),
                        line,
                    )
                })?;
            }
            Some((key @ ("max_threads" | "min_blocks"), number)) => {
                let number = number.parse().map_err(|_| {
                    let message = format!("'{number}' is no number in '; kernel {key}=N'");
                    syntax(message, line)
                })?;
                if key == "max_threads" {
                    options.max_threads = Some(number);
                } else {
                    options.min_blocks = Some(number);
                }
            }
            _ => {
                let message = format!(
                    "unknown kernel option '{word}'; there are shared=BYTES, max_threads=N and min_blocks=N"
                );
                return Err(syntax(message, line));
            }
        }
    }
    Ok(Some(options))
}
