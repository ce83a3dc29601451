//! Mapping, copies, clears.

mod common;

use common::Gpu;
use thisgpu_wgpu::{Bounds, wgpu};
use wgpu::BufferUsages as Usage;

fn buffer(gpu: &Gpu, words: u64, usage: Usage, mapped_at_creation: bool) -> wgpu::Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("a buffer"),
        size: words * 4,
        usage,
        mapped_at_creation,
    })
}

/// Writes words at a byte offset of a mapped buffer.
fn write(buffer: &wgpu::Buffer, offset: u64, words: &[u32]) {
    let range = offset..offset + 4 * words.len() as u64;
    let mut view = buffer.get_mapped_range_mut(range).expect("it is mapped");
    view.copy_from_slice(bytemuck::cast_slice(words));
}

fn map(gpu: &Gpu, buffer: &wgpu::Buffer, mode: wgpu::MapMode, range: std::ops::Range<u64>) {
    buffer.map_async(mode, range, |outcome| outcome.expect("it can be mapped"));
    let polled = gpu.device.poll(wgpu::PollType::wait_indefinitely());
    polled.expect("the device is not lost");
}

#[test]
fn mapped_memory_is_written_and_read_at_offsets() {
    let gpu = Gpu::plain();
    let source = buffer(&gpu, 64, Usage::MAP_WRITE | Usage::COPY_SRC, true);
    write(&source, 0, &(0..64).collect::<Vec<_>>());
    source.unmap();
    map(&gpu, &source, wgpu::MapMode::Write, 64..128);
    write(&source, 72, &[700, 701]);
    source.unmap();
    let target = buffer(&gpu, 64, Usage::MAP_READ | Usage::COPY_DST, false);
    let mut encoder = gpu.encoder();
    encoder.copy_buffer_to_buffer(&source, 8, &target, 32, 128);
    gpu.queue.submit([encoder.finish()]);
    let mut expected = vec![0; 64];
    (8..40).for_each(|n| expected[n] = n as u32 - 6);
    (expected[24], expected[25]) = (700, 701);
    assert_eq!(gpu.mapped(&target, 0..256), expected);
    // A part, which begins elsewhere.
    assert_eq!(gpu.mapped(&target, 96..112), expected[24..28]);
}

#[test]
fn buffers_of_the_device_are_mapped_when_they_are_made() {
    let gpu = Gpu::plain();
    let made = buffer(&gpu, 8, Usage::STORAGE | Usage::COPY_SRC, true);
    write(&made, 8, &[5, 6]);
    made.unmap();
    assert_eq!(gpu.read(&made), [0, 0, 5, 6, 0, 0, 0, 0]);
}

/// Between the host's memory and the device's, and inside each.
#[test]
fn copies_have_offsets() {
    let gpu = Gpu::plain();
    let uses = [
        (
            Usage::COPY_SRC | Usage::COPY_DST,
            Usage::COPY_SRC | Usage::COPY_DST,
        ),
        (
            Usage::COPY_SRC | Usage::COPY_DST,
            Usage::MAP_READ | Usage::COPY_DST,
        ),
        (
            Usage::MAP_WRITE | Usage::COPY_SRC,
            Usage::COPY_SRC | Usage::COPY_DST,
        ),
        (
            Usage::MAP_WRITE | Usage::COPY_SRC,
            Usage::MAP_READ | Usage::COPY_DST,
        ),
    ];
    for (from, to) in uses {
        let source = buffer(&gpu, 16, from, true);
        write(&source, 0, &(100..116).collect::<Vec<_>>());
        source.unmap();
        let target = buffer(&gpu, 16, to, false);
        let mut encoder = gpu.encoder();
        encoder.copy_buffer_to_buffer(&source, 4, &target, 12, 20);
        encoder.copy_buffer_to_buffer(&source, 60, &target, 0, 4);
        gpu.queue.submit([encoder.finish()]);
        let words = match to.contains(Usage::MAP_READ) {
            true => gpu.mapped(&target, 0..64),
            false => gpu.read(&target),
        };
        let expected = [115, 0, 0, 101, 102, 103, 104, 105, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(words, expected, "{from:?} to {to:?}");
    }
}

#[test]
fn writes_of_the_queue_have_offsets() {
    let gpu = Gpu::plain();
    let target = gpu.buffer(&[1; 8]);
    gpu.queue
        .write_buffer(&target, 12, bytemuck::cast_slice(&[7, 8]));
    assert_eq!(gpu.read(&target), [1, 1, 1, 7, 8, 1, 1, 1]);
}

#[test]
fn clears_keep_to_their_range() {
    let gpu = Gpu::plain();
    let target = gpu.buffer(&[9; 8]);
    let mut encoder = gpu.encoder();
    encoder.clear_buffer(&target, 8, Some(12));
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read(&target), [9, 9, 0, 0, 0, 9, 9, 9]);
    let mut encoder = gpu.encoder();
    encoder.clear_buffer(&target, 24, None);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read(&target), [9, 9, 0, 0, 0, 9, 0, 0]);
}

/// With `MAPPABLE_PRIMARY_BUFFERS` what is bound can be mapped: the host's writes reach kernels and theirs the host.
#[test]
fn bound_buffers_can_be_mapped() {
    let gpu = Gpu::plain();
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) l: u32) { o[l] = o[l] * 2u; }",
    );
    let uses = Usage::STORAGE | Usage::MAP_READ | Usage::MAP_WRITE;
    let both = buffer(&gpu, 4, uses, true);
    write(&both, 0, &[1, 2, 3, 4]);
    both.unmap();
    gpu.run(&pipeline, &[&both], 1);
    assert_eq!(gpu.mapped(&both, 0..16), [2, 4, 6, 8]);
    map(&gpu, &both, wgpu::MapMode::Write, 8..16);
    write(&both, 8, &[50, 60]);
    both.unmap();
    gpu.run(&pipeline, &[&both], 1);
    assert_eq!(gpu.mapped(&both, 0..16), [4, 8, 100, 120]);
}

#[test]
fn too_large_a_buffer_is_an_error_and_no_loss() {
    let small = cranelift_thisgpu::SimConfig {
        memory_bytes: 1 << 20,
        ..cranelift_thisgpu::SimConfig::default()
    };
    let gpu = Gpu::new(small.into());
    let error = gpu.error(|| buffer(&gpu, 1 << 20, Usage::STORAGE, false));
    assert!(
        matches!(error, Some(wgpu::Error::OutOfMemory { .. })),
        "{error:?}"
    );
    let kept = gpu.buffer(&[4, 5]);
    assert_eq!(gpu.read(&kept), [4, 5]);
}

/// A dispatch needs no memory of its own: also where there is none left, immediates have a place.
#[test]
fn dispatches_need_no_memory() {
    let small = cranelift_thisgpu::SimConfig {
        memory_bytes: 1 << 20,
        ..cranelift_thisgpu::SimConfig::default()
    };
    let gpu = Gpu::new(small.into());
    let text = "var<immediate> given: u32;
         @group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(1) fn main() { o[0] = given; }";
    let pipeline = gpu.pipeline(text);
    let o = gpu.buffer(&[0]);
    let group = gpu.group(&pipeline.get_bind_group_layout(0), &[&o]);
    let mut kept = Vec::new();
    for words in [1 << 16, 1 << 12, 1 << 8, 1 << 4, 1] {
        let mut is_full = false;
        while !is_full {
            let more = || kept.push(buffer(&gpu, words, Usage::STORAGE, false));
            is_full = gpu.error(more).is_some();
        }
    }
    gpu.pass(|pass| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.set_immediates(0, bytemuck::bytes_of(&7u32));
        pass.dispatch_workgroups(1, 1, 1);
    });
    assert_eq!(gpu.read(&o), [7]);
    // A pipeline is an error, and no loss.
    assert!(gpu.error(|| gpu.pipeline(text)).is_some());
    assert_eq!(gpu.read(&o), [7]);
}

/// What a program gives back is free again: destroyed and dropped buffers, also those of passes that end with an error,
/// and those of a lost device.
#[test]
fn memory_is_given_back() {
    let simulator = cranelift_thisgpu::Device::simulator(cranelift_thisgpu::SimConfig::default());
    let live = || simulator.live_allocations().len();
    let gpu = Gpu::new(thisgpu_wgpu::Options::from(simulator.clone()).bounds(Some(Bounds::Fault)));
    let settle = || {
        gpu.queue.submit([]);
        let polled = gpu.device.poll(wgpu::PollType::wait_indefinitely());
        polled.expect("all has ended");
    };
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(1) fn main() { o[o[0]] = 1u; }",
    );
    settle();
    let at_first = live();
    let destroyed = gpu.buffer(&[0; 4]);
    gpu.run(&pipeline, &[&destroyed], 1);
    let group = gpu.group(&pipeline.get_bind_group_layout(0), &[&destroyed]);
    destroyed.destroy();
    settle();
    assert_eq!(live(), at_first, "the bind group keeps nothing");
    drop(group);
    for _ in 0..3 {
        let error = gpu.error(|| gpu.run(&pipeline, &[&gpu.buffer(&[0; 4])], 70_000));
        assert!(error.is_some(), "there are not so many workgroups");
    }
    settle();
    assert_eq!(live(), at_first, "what a discarded pass has is dropped");
    let kept = gpu.buffer(&[100; 4]);
    gpu.run(&pipeline, &[&kept], 1);
    assert!(gpu.reports.messages()[0].is_fatal());
    let polled = gpu.device.poll(wgpu::PollType::wait_indefinitely());
    polled.expect("nothing is waited for");
    drop((destroyed, kept, pipeline, gpu));
    assert_eq!(live(), 0);
}
