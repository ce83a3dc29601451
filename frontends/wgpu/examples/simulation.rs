//! Two substances that spread and react, from a few drops to a pattern: many steps from one buffer to another and back,
//! then a picture, which is written as PNG.
//!
//! `cargo run -p thisgpu-wgpu --example simulation -- --plain pattern.png 2000`: the file and the steps. Without them
//! it makes a few steps and compares them with the host's.

mod common;

use common::{Gpu, Outcome};
use std::io::BufWriter;
use thisgpu_wgpu::wgpu;

/// Cells along an edge.
const SIDE: usize = 128;
const FEED: f32 = 0.037;
const KILL: f32 = 0.06;
const STEP: f32 = 1.0;

/// Drops of the second substance in the first.
fn drops() -> Vec<[f32; 2]> {
    let mut cells = vec![[1.0, 0.0]; SIDE * SIDE];
    for (x, y) in [(40, 40), (80, 60), (50, 90), (100, 100)] {
        for place in (0..36).map(|n| (y + n / 6) * SIDE + x + n % 6) {
            cells[place] = [0.5, 0.25];
        }
    }
    cells
}

/// A step as the host computes it.
fn advanced(cells: &[[f32; 2]]) -> Vec<[f32; 2]> {
    let cell = |x: usize, y: usize| cells[(y % SIDE) * SIDE + x % SIDE];
    let mut new = Vec::new();
    for (x, y) in (0..SIDE * SIDE).map(|place| (place % SIDE + SIDE, place / SIDE + SIDE)) {
        let here = cell(x, y);
        let spread = |n: usize, rate: f32| {
            let near =
                cell(x - 1, y)[n] + cell(x + 1, y)[n] + cell(x, y - 1)[n] + cell(x, y + 1)[n];
            rate * (near - 4.0 * here[n])
        };
        let reacts = here[0] * here[1] * here[1];
        let first = spread(0, 0.16) + (FEED * (1.0 - here[0]) - reacts);
        let second = spread(1, 0.08) + (reacts - (FEED + KILL) * here[1]);
        new.push([here[0] + STEP * first, here[1] + STEP * second]);
    }
    new
}

fn main() -> Outcome {
    let gpu = Gpu::new()?;
    let file = std::env::args().nth(2);
    let steps = std::env::args()
        .nth(3)
        .map_or(Ok(20), |steps| steps.parse::<usize>())?;

    let parameters = [SIDE as u32, FEED.to_bits(), KILL.to_bits(), STEP.to_bits()];
    let parameters = gpu.buffer("parameters", &parameters);
    let start = drops();
    let grids = [gpu.buffer("grid", &start), gpu.buffer("other grid", &start)];
    let picture = gpu.buffer("picture", &vec![0u32; SIDE * SIDE]);

    let module = gpu.module("simulation.wgsl", include_str!("simulation.wgsl"));
    let advance = gpu.pipeline(&module, "advance");
    let paint = gpu.pipeline(&module, "paint");
    let groups = [(0, 1), (1, 0)].map(|(old, new)| {
        gpu.group(
            &advance,
            &[(0, &parameters), (1, &grids[old]), (2, &grids[new])],
        )
    });
    let last = &grids[steps % 2];
    let painted = gpu.group(&paint, &[(0, &parameters), (1, last), (3, &picture)]);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    let blocks = SIDE.div_ceil(8) as u32;
    pass.set_pipeline(&advance);
    for step in 0..steps {
        pass.set_bind_group(0, &groups[step % 2], &[]);
        pass.dispatch_workgroups(blocks, blocks, 1);
    }
    pass.set_pipeline(&paint);
    pass.set_bind_group(0, &painted, &[]);
    pass.dispatch_workgroups(blocks, blocks, 1);
    drop(pass);
    gpu.queue.submit([encoder.finish()]);

    let cells = gpu.read::<[f32; 2]>(last)?;
    if file.is_none() {
        let expected = (0..steps).fold(start, |cells, _| advanced(&cells));
        let furthest = cells.as_flattened().iter().zip(expected.as_flattened());
        let furthest = furthest
            .map(|(got, wanted)| (got - wanted).abs())
            .fold(0.0, f32::max);
        if furthest > 1e-5 {
            return Err(format!("a cell is {furthest} away from the host's").into());
        }
    }
    let sum: f32 = cells.iter().map(|cell| cell[1]).sum();
    println!(
        "{steps} steps, {:.4} of the second substance",
        sum / cells.len() as f32
    );
    if let Some(file) = file {
        write(&file, &gpu.read::<[u8; 4]>(&picture)?)?;
        println!("{file}");
    }
    gpu.finish()
}

/// Writes a picture as PNG.
fn write(file: &str, pixels: &[[u8; 4]]) -> Outcome {
    let output = BufWriter::new(std::fs::File::create(file)?);
    let mut encoder = png::Encoder::new(output, SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder
        .write_header()?
        .write_image_data(pixels.as_flattened())?;
    Ok(())
}
