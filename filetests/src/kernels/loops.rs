//! Kernels whose threads loop by themselves.

use super::{Failure, SIZES, Session, compare, compare_nearly, grid};
use cranelift_thisgpu::driver::Grid;

pub(super) fn collatz(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let mut x: Vec<u32> = (0..n.max(1)).map(|_| 1 + s.bits32() % 5000).collect();
        x[0] = 1;
        let dx = s.device.upload(&x)?;
        let out = s.device.allocate_zeroed(u64::from(n.max(1)) * 4)?;
        s.launch(grid(n), |l| l.arg(n).arg(&dx).arg(&out))?;
        let steps = |mut v: u32| {
            let mut steps = 0u32;
            while v != 1 {
                v = if v % 2 == 1 {
                    v.wrapping_mul(3).wrapping_add(1)
                } else {
                    v / 2
                };
                steps += 1;
            }
            steps
        };
        let mut expected = vec![0; x.len()];
        (0..n as usize).for_each(|i| expected[i] = steps(x[i]));
        compare(&format!("n = {n}"), &s.device.download(&out)?, &expected)?;
    }
    Ok(())
}

pub(super) fn dp4a_dot(s: &mut Session) -> Result<(), Failure> {
    let rows = 96usize;
    for k4 in [0usize, 1, 3, 4, 64] {
        let a = s.words((rows * k4).max(1));
        let b = s.words(k4.max(1));
        let (da, db) = (s.device.upload(&a)?, s.device.upload(&b)?);
        let out = s.device.allocate(rows as u64 * 4)?;
        let grid = Grid::new([3, 1, 1], [32, 1, 1]);
        s.launch(grid, |l| l.arg(k4 as u32).arg(&da).arg(&db).arg(&out))?;
        let dot = |a: u32, b: u32| -> i32 {
            let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
            bytes
                .map(|(a, b)| i32::from(a as i8) * i32::from(b as i8))
                .sum()
        };
        let row =
            |r: usize| (0..k4).fold(0i32, |sum, k| sum.wrapping_add(dot(a[r * k4 + k], b[k])));
        let expected: Vec<i32> = (0..rows).map(row).collect();
        compare(&format!("k4 = {k4}"), &s.device.download(&out)?, &expected)?;
    }
    Ok(())
}

pub(super) fn i64_loop(s: &mut Session) -> Result<(), Failure> {
    for n in [1usize, 5, 32] {
        let (a, x) = (s.doubles(n * 256), s.random.bits());
        let da = s.device.upload(&a)?;
        let out = s.device.allocate(256 * 8)?;
        let grid = Grid::new([1, 1, 1], [256, 1, 1]);
        s.launch(grid, |l| l.arg(n as u32).arg(&da).arg(&out).arg(x))?;
        let column = |t: usize| {
            (0..n).fold(0u64, |sum, k| {
                sum.wrapping_mul(x).wrapping_add(a[k * 256 + t])
            })
        };
        let expected: Vec<u64> = (0..256).map(column).collect();
        compare(&format!("n = {n}"), &s.device.download(&out)?, &expected)?;
    }
    Ok(())
}

pub(super) fn softmax(s: &mut Session) -> Result<(), Failure> {
    let rows = 64usize;
    for n in [1usize, 9, 32] {
        let a: Vec<f32> = (0..rows * n).map(|_| s.between(-2.0, 2.0)).collect();
        let da = s.device.upload(&a)?;
        let out = s.device.allocate((rows * n * 4) as u64)?;
        let grid = Grid::new([1, 1, 1], [rows as u32, 1, 1]);
        s.launch(grid, |l| l.arg(n as u32).arg(&da).arg(&out))?;
        let mut expected = Vec::with_capacity(a.len());
        for row in a.chunks(n) {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let power = |v: &f32| f64::from(v - most).exp2();
            let sum: f64 = row.iter().map(power).sum();
            expected.extend(row.iter().map(|v| power(v) / sum));
        }
        // 2^x is approximate to about two units in the last place.
        compare_nearly(
            &format!("n = {n}"),
            &s.device.download(&out)?,
            &expected,
            1e-6,
        )?;
    }
    Ok(())
}
