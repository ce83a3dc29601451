//! Timestamps: cycles on the timed device, the host's time on the others.

mod common;

use common::Gpu;
use thisgpu_wgpu::{Options, wgpu};
use wgpu::BufferUsages as Usage;

/// A kernel whose time grows with the number that it is given.
const LOOP: &str = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
     @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) l: u32) {
         var n = o[l];
         for (var k = 0u; k < o[32]; k++) { n = n * 1664525u + 1013904223u; }
         o[l] = n;
     }";

/// The timestamps around two passes, one with few rounds and one with many, then one of the encoder, and one that
/// nothing was written to.
fn times(gpu: &Gpu) -> [u64; 6] {
    let pipeline = gpu.pipeline(LOOP);
    let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: 6,
    });
    let resolved = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 512,
        usage: Usage::QUERY_RESOLVE | Usage::COPY_SRC,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.encoder();
    for (rounds, first) in [(10, 0), (1000, 2)] {
        let mut words = [1; 33];
        words[32] = rounds;
        let o = gpu.buffer(&words);
        let group = gpu.group(&pipeline.get_bind_group_layout(0), &[&o]);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                query_set: &set,
                beginning_of_pass_write_index: Some(first),
                end_of_pass_write_index: Some(first + 1),
            }),
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.write_timestamp(&set, 4);
    encoder.resolve_query_set(&set, 0..6, &resolved, 256);
    gpu.queue.submit([encoder.finish()]);
    let words = gpu.read(&resolved);
    std::array::from_fn(|n| {
        let at = 64 + 2 * n;
        u64::from(words[at + 1]) << 32 | u64::from(words[at])
    })
}

#[test]
fn cycles_are_counted() {
    assert_eq!(Gpu::new(Options::timed()).queue.get_timestamp_period(), 1.0);
    let first = times(&Gpu::new(Options::timed()));
    let [a, b, c, d, e, unused] = first;
    let (short, long) = (b - a, d - c);
    assert!(short > 0 && long > 10 * short, "{first:?}");
    assert_eq!(
        (c, e, unused),
        (b, d, 0),
        "nothing passes between dispatches"
    );
    // They are cycles: another device counts the same.
    assert_eq!(times(&Gpu::new(Options::timed())), first);
}

#[test]
fn the_time_of_the_host_passes() {
    let [a, b, c, d, e, unused] = times(&Gpu::plain());
    assert!(0 < a && a < b && b <= c && c < d && d <= e);
    assert_eq!(unused, 0);
}

/// Devices of an instance have one time: what the first has run lies before what the second writes.
#[test]
fn devices_of_an_instance_have_the_same_time() {
    for options in [Options::plain(), Options::timed()] {
        let first = Gpu::new(options);
        let second = first.beside();
        let [.., end, _] = times(&first);
        let [start, ..] = times(&second);
        assert!(start >= end, "{start} after {end}");
    }
}

/// A program may ask for nanoseconds: a cycle is one here, so wgpu leaves out its own shader that makes them.
#[test]
fn normalised_timestamps_are_the_same() {
    let flags = wgpu::InstanceFlags::AUTOMATIC_TIMESTAMP_NORMALIZATION;
    let normalised = times(&Gpu::new(Options::timed().flags(flags)));
    assert_eq!(normalised, times(&Gpu::new(Options::timed())));
}
