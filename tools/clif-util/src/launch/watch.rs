//! Watching a launch: a bar on a terminal, and Ctrl-C.
//!
//! The launch runs in the thread that asks for it; another one looks at its [`Progress`] now and then.

use crate::progress;
use cranelift_thisgpu::sim::Progress;
use indicatif::{HumanCount, ProgressBar};
use std::process;
use std::sync::Arc;

/// How the bar looks.
const BAR: &str =
    "{elapsed_precise} {bar:30} {human_pos} of {human_len} blocks, {msg} warp instructions";
/// Exit status of who ends on the second Ctrl-C, as shells have it.
const INTERRUPTED: i32 = 130;

/// Runs `launch` and shows its progress. The first Ctrl-C cancels it, the second ends the process.
pub fn watched<T>(launch: impl FnOnce(&Progress) -> T) -> T {
    let progress = Arc::new(Progress::new());
    let told = progress.clone();
    let handler = ctrlc::set_handler(move || {
        if told.is_cancelled() {
            process::exit(INTERRUPTED);
        }
        told.cancel();
    });
    if let Err(error) = handler {
        log::warn!("Ctrl-C ends the process without a report: {error}");
    }
    let look = |bar: &ProgressBar| {
        bar.set_length(progress.blocks());
        bar.set_position(progress.finished());
        bar.set_message(HumanCount(progress.warp_instructions()).to_string());
    };
    progress::drawn(BAR, look, |_| launch(&progress))
}
