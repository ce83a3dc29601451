//! Watching a launch: a bar on a terminal, and Ctrl-C.
//!
//! The launch runs in the thread that asks for it; another one looks at its [`Progress`] now and then. Nothing is drawn where standard
//! error is no terminal, and nothing for a launch that is over at once.

use cranelift_thisgpu::sim::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// What a launch may take before anything is drawn (assigned).
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks (assigned).
const INTERVAL: Duration = Duration::from_millis(100);
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
    if !std::io::stderr().is_terminal() {
        return launch(&progress);
    }
    let (done, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let seen = &progress;
        scope.spawn(move || draw(seen, &end));
        let result = launch(&progress);
        // The other thread ends with the channel.
        drop(done);
        result
    })
}

/// Draws until the other end of the channel is gone.
fn draw(progress: &Progress, end: &mpsc::Receiver<()>) {
    if end.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(progress.blocks()), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{elapsed_precise} {bar:30} {human_pos} of {human_len} blocks, {msg} warp instructions",
    );
    if let Ok(style) = style {
        bar.set_style(style);
    }
    loop {
        bar.set_length(progress.blocks());
        bar.set_position(progress.finished());
        bar.set_message(indicatif::HumanCount(progress.warp_instructions()).to_string());
        if end.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}
