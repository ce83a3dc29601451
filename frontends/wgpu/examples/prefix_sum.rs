//! Sums of all numbers before each of a list: three kernels in one pass, with subgroups and workgroup memory.
//!
//! `cargo run -p thisgpu-wgpu --example prefix_sum -- --check` looks for races as well.

mod common;

use common::{Gpu, Outcome};
use thisgpu_wgpu::wgpu;

/// Numbers of a block.
const BLOCK: usize = 256;

fn main() -> Outcome {
    let gpu = Gpu::new()?;
    let numbers: Vec<u32> = (0..100_003u32)
        .map(|n| n.wrapping_mul(2_654_435_761) >> 20)
        .collect();
    let blocks = numbers.len().div_ceil(BLOCK);
    let values = gpu.buffer("values", &numbers);
    let totals = gpu.buffer("totals", &vec![0u32; blocks]);

    let module = gpu.module("prefix_sum.wgsl", include_str!("prefix_sum.wgsl"));
    let both = [(0, &values), (1, &totals)];
    let steps = [
        ("blocks", &both[..], blocks as u32),
        ("over_totals", &both[1..], 1),
        ("together", &both[..], blocks as u32),
    ];
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    for (entry, buffers, groups) in steps {
        let pipeline = gpu.pipeline(&module, entry);
        pass.set_bind_group(0, &gpu.group(&pipeline, buffers), &[]);
        pass.set_pipeline(&pipeline);
        pass.dispatch_workgroups(groups, 1, 1);
    }
    drop(pass);
    gpu.queue.submit([encoder.finish()]);

    let sums = gpu.read::<u32>(&values)?;
    let mut sum = 0u32;
    for (place, (number, got)) in numbers.iter().zip(&sums).enumerate() {
        sum = sum.wrapping_add(*number);
        if *got != sum {
            return Err(format!("the sum of {place} is {sum}, not {got}").into());
        }
    }
    println!("{} numbers, the last sum is {sum}", numbers.len());
    gpu.finish()
}
