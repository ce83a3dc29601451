//! Bars on a terminal for work that takes long.
//!
//! Nothing is drawn where standard error is no terminal, and nothing for work that is over at once. A thread of its own
//! draws, so that a bar moves on while one part of the work takes long.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// What work may take before anything is drawn (assigned).
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks (assigned).
const INTERVAL: Duration = Duration::from_millis(100);

/// How the bar of work on many files looks.
pub const FILES: &str = "{elapsed_precise} {bar:30} {human_pos} of {human_len} files";

/// Does `work` and shows how far it is: `template` is the bar's, `look` brings it up to date. The work may move the bar
/// itself, and prints inside of [`ProgressBar::suspend`].
pub fn drawn<T>(
    template: &str,
    look: impl Fn(&ProgressBar) + Sync,
    work: impl FnOnce(&ProgressBar) -> T,
) -> T {
    let bar = ProgressBar::hidden();
    if !std::io::stderr().is_terminal() {
        return work(&bar);
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let (done, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| draw(&bar, &look, end));
        let result = work(&bar);
        // The other thread ends with the channel.
        drop(done);
        result
    })
}

/// Draws until the other end of the channel is gone.
fn draw(bar: &ProgressBar, look: &impl Fn(&ProgressBar), end: mpsc::Receiver<()>) {
    if end.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    bar.set_draw_target(ProgressDrawTarget::stderr());
    loop {
        look(bar);
        bar.tick();
        if end.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}
