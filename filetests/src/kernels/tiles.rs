//! Kernels whose blocks work together through shared memory.

use super::{Failure, Session, compare};
use cranelift_thisgpu::driver::Grid;

pub(super) fn prefix_sum(s: &mut Session) -> Result<(), Failure> {
    for blocks in [1u32, 3] {
        let x = s.words(blocks as usize * 256);
        let dx = s.device.upload(&x)?;
        let out = s.device.allocate(u64::from(blocks) * 1024)?;
        let grid = Grid::new([blocks, 1, 1], [256, 1, 1]);
        s.launch(grid, |l| l.arg(&dx).arg(&out))?;
        let mut expected = Vec::new();
        for block in x.chunks_exact(256) {
            expected.extend(block.iter().scan(0u32, |sum, v| {
                *sum = sum.wrapping_add(*v);
                Some(*sum)
            }));
        }
        compare(
            &format!("{blocks} blocks"),
            &s.device.download(&out)?,
            &expected,
        )?;
    }
    Ok(())
}

pub(super) fn matmul8(s: &mut Session) -> Result<(), Failure> {
    matmul(s, 8, &[8, 24])
}

pub(super) fn matmul_rt8x8(s: &mut Session) -> Result<(), Failure> {
    matmul(s, 64, &[64, 128])
}

/// Square matrices of these sizes, in blocks of 8 x 8 threads for tiles of this size.
fn matmul(s: &mut Session, tile: usize, sizes: &[usize]) -> Result<(), Failure> {
    for &n in sizes {
        let (a, b) = (s.floats(n * n), s.floats(n * n));
        let (da, db) = (s.device.upload(&a)?, s.device.upload(&b)?);
        let dc = s.device.allocate((n * n * 4) as u64)?;
        let blocks = (n / tile) as u32;
        let grid = Grid::new([blocks, blocks, 1], [8, 8, 1]);
        s.launch(grid, |l| l.arg(n as u32).arg(&da).arg(&db).arg(&dc))?;
        let element = |i: usize| {
            (0..n).fold(0.0f32, |sum, k| {
                a[i / n * n + k].mul_add(b[k * n + i % n], sum)
            })
        };
        let expected: Vec<f32> = (0..n * n).map(element).collect();
        compare(&format!("n = {n}"), &s.device.download(&dc)?, &expected)?;
    }
    Ok(())
}
