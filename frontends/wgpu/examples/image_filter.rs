//! A picture is blurred, and its edges are found, in tiles that workgroups share. Each pixel is compared with what the
//! host computes.
//!
//! `cargo run -p thisgpu-wgpu --example image_filter -- --check` looks for races as well.

mod common;

use common::{Gpu, Outcome};
use thisgpu_wgpu::wgpu;

const WIDTH: usize = 150;
const HEIGHT: usize = 101;

/// A picture to work on: discs in front of a slope.
fn picture() -> Vec<u32> {
    let mut pixels = Vec::new();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let inside = |cx: i32, cy: i32, radius: i32| {
                let (dx, dy) = (x as i32 - cx, y as i32 - cy);
                dx * dx + dy * dy < radius * radius
            };
            let color = match () {
                () if inside(50, 50, 30) => [230, 60, 40],
                () if inside(95, 40, 25) => [40, 90, 220],
                () => [x as u8, 2 * y as u8, 90],
            };
            pixels.push(u32::from_le_bytes([color[0], color[1], color[2], 255]));
        }
    }
    pixels
}

/// A pixel's color; behind the border that of the nearest.
fn color(pixels: &[u32], x: isize, y: isize) -> [f32; 3] {
    let x = x.clamp(0, WIDTH as isize - 1) as usize;
    let y = y.clamp(0, HEIGHT as isize - 1) as usize;
    let [r, g, b, _] = pixels[y * WIDTH + x].to_le_bytes();
    [r, g, b].map(|value| f32::from(value) / 255.0)
}

fn blurred(pixels: &[u32], x: isize, y: isize) -> [f32; 3] {
    const WEIGHTS: [f32; 5] = [1.0, 4.0, 6.0, 4.0, 1.0];
    let mut sum = [0.0; 3];
    for (dy, row) in (-2..).zip(WEIGHTS) {
        for (dx, column) in (-2..).zip(WEIGHTS) {
            let color = color(pixels, x + dx, y + dy);
            for (sum, value) in sum.iter_mut().zip(color) {
                *sum += row * column * value / 256.0;
            }
        }
    }
    sum
}

fn edge(pixels: &[u32], x: isize, y: isize) -> [f32; 3] {
    let brightness = |dx: isize, dy: isize| {
        let [r, g, b] = color(pixels, x + dx, y + dy);
        0.25 * r + 0.5 * g + 0.25 * b
    };
    let (mut across, mut down) = (0.0, 0.0);
    for (n, weight) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
        across += weight * (brightness(1, n) - brightness(-1, n));
        down += weight * (brightness(n, 1) - brightness(n, -1));
    }
    [f32::hypot(across, down).min(1.0); 3]
}

/// Compares a picture with what it should be; a step of the 255 is for the rounding.
fn compare(name: &str, got: &[u32], expected: impl Fn(isize, isize) -> [f32; 3]) -> Outcome {
    for (place, pixel) in got.iter().enumerate() {
        let (x, y) = (place % WIDTH, place / WIDTH);
        let wanted = expected(x as isize, y as isize);
        for (value, wanted) in pixel.to_le_bytes().into_iter().zip(wanted) {
            if (f32::from(value) - 255.0 * wanted).abs() > 0.51 {
                return Err(format!("{name}: {value} at {x}, {y}, not {}", 255.0 * wanted).into());
            }
        }
    }
    let sum: u64 = got
        .iter()
        .map(|pixel| u64::from(pixel.to_le_bytes()[1]))
        .sum();
    println!(
        "{name}: {WIDTH} by {HEIGHT}, mean green {}",
        sum / got.len() as u64
    );
    Ok(())
}

fn main() -> Outcome {
    let gpu = Gpu::new()?;
    let pixels = picture();
    let size = gpu.buffer("size", &[WIDTH as u32, HEIGHT as u32, 0, 0]);
    let source = gpu.buffer("picture", &pixels);
    let blur = gpu.buffer("blurred", &vec![0u32; pixels.len()]);
    let edges = gpu.buffer("edges", &vec![0u32; pixels.len()]);

    let module = gpu.module("image_filter.wgsl", include_str!("image_filter.wgsl"));
    let pipeline = gpu.pipeline(&module, "filters");
    let group = gpu.group(
        &pipeline,
        &[(0, &size), (1, &source), (2, &blur), (3, &edges)],
    );
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(WIDTH.div_ceil(16) as u32, HEIGHT.div_ceil(16) as u32, 1);
    drop(pass);
    gpu.queue.submit([encoder.finish()]);

    compare("blurred", &gpu.read(&blur)?, |x, y| blurred(&pixels, x, y))?;
    compare("edges", &gpu.read(&edges)?, |x, y| edge(&pixels, x, y))?;
    gpu.finish()
}
