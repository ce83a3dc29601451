//! Time on the device, as the simulator's reports give it.
//!
//! A window measures the launches in it. On a device that counts cycles, a cycle is a nanosecond (*assumed*). On others
//! an instruction of a warp takes [`INSTRUCTION`]. Every launch takes [`LAUNCH`] besides. The host's clock has no part
//! in it, so the same work takes the same time. Both numbers are near what the simulator takes: a window of 20 ms, as
//! CubeCL's autotune wants it to measure a launch, is full after some thousands.

use cranelift_thisgpu::Report;
use cubecl_common::profile::{Duration, Instant, ProfileDuration, ProfileTicks};
use cubecl_environment::backtrace::BackTrace;
use cubecl_environment::stream::StreamId;
use cubecl_server::server::{ProfileError, ProfilingToken, ServerError};
use hashbrown::HashMap;

/// What a launch takes beside its kernel, in nanoseconds (*assumed*).
const LAUNCH: u64 = 5_000;

/// What an instruction of a warp takes where no cycles are counted, in nanoseconds (*assumed*): one for each lane.
const INSTRUCTION: u64 = 32;

/// A window: the stream that it is of, and what it knows.
struct Window {
    stream: StreamId,
    state: State,
}

/// What a window knows.
enum State {
    /// What the device had done when it was opened, and how many launches that were.
    Open { done: u64, launches: u64 },
    /// Something in it failed.
    Failed(ProfileError),
}

/// Windows that are open, and what the device has done.
#[derive(Default)]
pub struct Profiler {
    done: u64,
    launches: u64,
    next: u64,
    windows: HashMap<ProfilingToken, Window>,
}

impl Profiler {
    /// Counts a launch.
    pub fn count(&mut self, report: &Report) {
        let stats = &report.stats;
        self.launches += 1;
        self.done += LAUNCH;
        self.done += match stats.cycles {
            0 => INSTRUCTION * stats.warp_instructions,
            cycles => cycles,
        };
    }

    /// Opens a window.
    pub fn start(&mut self, stream: StreamId) -> ProfilingToken {
        let token = ProfilingToken { id: self.next };
        self.next += 1;
        let state = State::Open {
            done: self.done,
            launches: self.launches,
        };
        self.windows.insert(token, Window { stream, state });
        token
    }

    /// Closes a window. One without a launch has no time: none is not the same as little.
    ///
    /// # Errors
    /// When it is not open, or something in it failed.
    pub fn stop(&mut self, token: ProfilingToken) -> Result<ProfileDuration, ProfileError> {
        match self.windows.remove(&token).map(|window| window.state) {
            Some(State::Open { done, launches }) => {
                let duration = Duration::from_nanos(self.done - done);
                let start = Instant::now();
                let ticks = (self.launches > launches)
                    .then(|| ProfileTicks::from_start_end(start, start + duration));
                Ok(ProfileDuration::new_device_time_maybe(async move { ticks }))
            }
            Some(State::Failed(error)) => Err(error),
            None => Err(ProfileError::NotRegistered {
                backtrace: BackTrace::capture(),
            }),
        }
    }

    /// Forgets a window.
    pub fn abandon(&mut self, token: ProfilingToken) {
        self.windows.remove(&token);
    }

    /// Says to the open windows of a stream that work on it failed. What failed first is why the rest did.
    pub fn fail(&mut self, stream: StreamId, error: &ServerError) {
        let windows = self.windows.values_mut();
        for window in windows.filter(|window| window.stream == stream) {
            if let State::Open { .. } = window.state {
                window.state = State::Failed(error.into());
            }
        }
    }
}
