//! What a launch costs the host: an empty kernel, launched many times, by itself and with a wait behind each.
//!
//! `cargo run --release -p cubecl-thisgpu --example launches`

use cubecl_core as cubecl;
use cubecl_core::prelude::*;
use cubecl_thisgpu::{Runtime, ThisgpuDevice, ThisgpuRuntime};
use std::time::{Duration, Instant};

/// Launches of a measurement.
const LAUNCHES: u32 = 2000;

#[cube(launch)]
fn nothing(_buffer: &mut [u32]) {}

fn main() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::default());
    let buffer = client.create_from_slice(u32::as_bytes(&[0; 64]));
    let launch = || {
        // SAFETY: the buffer has so many elements.
        let argument = unsafe { BufferArg::from_raw_parts(buffer.clone(), 64) };
        let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(32));
        nothing::launch(&client, count, size, argument);
    };
    let wait = || {
        let bytes = client.read_one(buffer.clone());
        bytes.expect("the kernel does nothing wrong");
    };
    launch();
    wait();
    let together = time(|| {
        (0..LAUNCHES).for_each(|_| launch());
        wait();
    });
    let apart = time(|| {
        for _ in 0..LAUNCHES {
            launch();
            wait();
        }
    });
    println!(
        "{} a launch, {} with a read behind it",
        micros(together),
        micros(apart)
    );
}

/// The shortest of five times.
fn time(measured: impl Fn()) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        measured();
        start.elapsed()
    });
    times.min().expect("there are five") / LAUNCHES
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}
