//! Time on the device, as the simulator's reports give it.
//!
//! A window measures the cycles of the launches in it on a device that counts them, and the instructions that warps issued on another; each stands for
//! a nanosecond (*assumed*). The host's clock says nothing about the device.

use cranelift_thisgpu::Report;
use cubecl_common::profile::{Duration, Instant, ProfileDuration, ProfileTicks};
use cubecl_environment::backtrace::BackTrace;
use cubecl_server::server::{ProfileError, ProfilingToken, ServerError};
use hashbrown::HashMap;

/// What a window knows.
enum Window {
    /// What the device had done when it was opened.
    Open(u64),
    /// Something in it failed.
    Failed(ProfileError),
}

/// Windows that are open, and what the device has done.
#[derive(Default)]
pub struct Profiler {
    done: u64,
    next: u64,
    windows: HashMap<ProfilingToken, Window>,
}

impl Profiler {
    /// Counts a launch.
    pub fn count(&mut self, report: &Report) {
        let stats = &report.stats;
        self.done += match stats.cycles {
            0 => stats.warp_instructions,
            cycles => cycles,
        };
    }

    /// Opens a window.
    pub fn start(&mut self) -> ProfilingToken {
        let token = ProfilingToken { id: self.next };
        self.next += 1;
        self.windows.insert(token, Window::Open(self.done));
        token
    }

    /// Closes a window.
    ///
    /// # Errors
    /// When it is not open, or something in it failed.
    pub fn stop(&mut self, token: ProfilingToken) -> Result<ProfileDuration, ProfileError> {
        match self.windows.remove(&token) {
            Some(Window::Open(before)) => {
                let duration = Duration::from_nanos(self.done - before);
                let start = Instant::now();
                let ticks = ProfileTicks::from_start_end(start, start + duration);
                Ok(ProfileDuration::new_device_time(async move { ticks }))
            }
            Some(Window::Failed(error)) => Err(error),
            None => Err(ProfileError::NotRegistered {
                backtrace: BackTrace::capture(),
            }),
        }
    }

    /// Forgets a window.
    pub fn abandon(&mut self, token: ProfilingToken) {
        self.windows.remove(&token);
    }

    /// Says to all open windows that work failed.
    pub fn fail(&mut self, error: &ServerError) {
        for window in self.windows.values_mut() {
            *window = Window::Failed(error.into());
        }
    }
}
