//! Kernels of numerical programs: products of matrices, attention, normalisation, bodies, stencils.

use super::elementwise::fma_f16;
use super::{Failure, Session, compare, compare_nearly};
use cranelift_thisgpu::driver::Grid;
use half::f16;

/// Numbers in a row of queries, keys and values.
const HEAD: usize = 32;

pub(super) fn attention(s: &mut Session) -> Result<(), Failure> {
    for (blocks, n) in [(1u32, 32usize), (2, 96)] {
        let rows = blocks as usize * 64;
        let mut numbers =
            |count: usize| -> Vec<f32> { (0..count).map(|_| s.between(-1.0, 1.0)).collect() };
        let (q, k, v) = (numbers(rows * HEAD), numbers(n * HEAD), numbers(n * HEAD));
        let [dq, dk, dv] = [
            s.device.upload(&q)?,
            s.device.upload(&k)?,
            s.device.upload(&v)?,
        ];
        let out = s.device.allocate((rows * HEAD * 4) as u64)?;
        let scale = 0.6f32;
        let grid = Grid::new([blocks, 1, 1], [64, 1, 1]);
        s.launch(grid, |l| {
            l.arg(n as u32)
                .arg(scale)
                .arg(&dq)
                .arg(&dk)
                .arg(&dv)
                .arg(&out)
        })?;
        let dot = |q: &[f32], k: &[f32]| -> f64 {
            q.iter()
                .zip(k)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum()
        };
        let mut expected: Vec<f64> = Vec::new();
        for q in q.chunks_exact(HEAD) {
            let weights = k
                .chunks_exact(HEAD)
                .map(|k| (dot(q, k) * f64::from(scale)).exp());
            let weights: Vec<f64> = weights.collect();
            let sum: f64 = weights.iter().sum();
            expected.extend((0..HEAD).map(|column| {
                let parts = weights.iter().enumerate();
                let parts = parts.map(|(j, weight)| weight * f64::from(v[j * HEAD + column]));
                parts.sum::<f64>() / sum
            }));
        }
        compare_nearly(
            &format!("n = {n}"),
            &s.device.download(&out)?,
            &expected,
            1e-5,
        )?;
    }
    Ok(())
}

pub(super) fn hgemm64(s: &mut Session) -> Result<(), Failure> {
    for (n, m, k) in [(64usize, 64usize, 0usize), (128, 64, 8), (64, 128, 24)] {
        let mut numbers = |count: usize| -> Vec<f16> {
            (0..count.max(1))
                .map(|_| f16::from_f32(s.between(-2.0, 2.0)))
                .collect()
        };
        let (a, b) = (numbers(m * k), numbers(k * n));
        let (da, db) = (s.device.upload(&a)?, s.device.upload(&b)?);
        let dc = s.device.allocate((m * n * 2) as u64)?;
        let grid = Grid::new([(n / 64) as u32, (m / 64) as u32, 1], [64, 1, 1]);
        s.launch(grid, |l| {
            l.arg(n as u32).arg(k as u32).arg(&da).arg(&db).arg(&dc)
        })?;
        let element = |place: usize| {
            let (row, column) = (place / n, place % n);
            (0..k).fold(f16::ZERO, |sum, i| {
                fma_f16(a[row * k + i], b[i * n + column], sum)
            })
        };
        let expected: Vec<f16> = (0..m * n).map(element).collect();
        compare(
            &format!("{m} x {n}, k = {k}"),
            &s.device.download(&dc)?,
            &expected,
        )?;
    }
    Ok(())
}

pub(super) fn layernorm(s: &mut Session) -> Result<(), Failure> {
    for (rows, quads) in [(1u32, 1usize), (3, 33), (5, 200)] {
        let len = quads * 4;
        let mut numbers =
            |count: usize| -> Vec<f32> { (0..count).map(|_| s.between(-2.0, 3.0)).collect() };
        let (x, gain, bias) = (numbers(rows as usize * len), numbers(len), numbers(len));
        let [dx, dg, db] = [
            s.device.upload(&x)?,
            s.device.upload(&gain)?,
            s.device.upload(&bias)?,
        ];
        let out = s.device.allocate((x.len() * 4) as u64)?;
        let eps = 1e-3f32;
        s.launch(Grid::new([rows.div_ceil(2), 1, 1], [64, 1, 1]), |l| {
            let l = l.arg(rows).arg(quads as u32).arg(eps);
            l.arg(&dx).arg(&dg).arg(&db).arg(&out)
        })?;
        let mut expected: Vec<f64> = Vec::new();
        for row in x.chunks_exact(len) {
            let numbers = || row.iter().map(|x| f64::from(*x));
            let mean = numbers().sum::<f64>() / len as f64;
            let square = numbers().map(|x| (x - mean) * (x - mean)).sum::<f64>() / len as f64;
            let factor = 1.0 / (square + f64::from(eps)).sqrt();
            let scaled = numbers().zip(gain.iter().zip(&bias));
            expected.extend(scaled.map(|(x, (gain, bias))| {
                (x - mean) * factor * f64::from(*gain) + f64::from(*bias)
            }));
        }
        let case = format!("{rows} rows of {len}");
        compare_nearly(&case, &s.device.download(&out)?, &expected, 1e-4)?;
    }
    Ok(())
}

pub(super) fn nbody(s: &mut Session) -> Result<(), Failure> {
    for n in [128usize, 256] {
        let mut numbers = || -> Vec<f32> { (0..n * 4).map(|_| s.between(-1.0, 1.0)).collect() };
        let (places, speeds) = (numbers(), numbers());
        let (dp, dv) = (s.device.upload(&places)?, s.device.upload(&speeds)?);
        let (eps, dt) = (0.01f32, 0.125f32);
        let grid = Grid::new([n as u32 / 128, 1, 1], [128, 1, 1]);
        s.launch(grid, |l| l.arg(n as u32).arg(eps).arg(dt).arg(&dp).arg(&dv))?;
        let mut expected: Vec<f64> = speeds.iter().map(|x| f64::from(*x)).collect();
        for (p, v) in places.chunks_exact(4).zip(expected.chunks_exact_mut(4)) {
            for q in places.chunks_exact(4) {
                let way: Vec<f64> = (0..3).map(|i| f64::from(q[i]) - f64::from(p[i])).collect();
                let square = way.iter().map(|d| d * d).sum::<f64>() + f64::from(eps);
                let pull = f64::from(q[3]) * f64::from(dt) / (square * square.sqrt());
                (0..3).for_each(|i| v[i] += way[i] * pull);
            }
        }
        compare_nearly(
            &format!("n = {n}"),
            &s.device.download(&dv)?,
            &expected,
            1e-4,
        )?;
    }
    Ok(())
}

pub(super) fn spmv(s: &mut Session) -> Result<(), Failure> {
    for (rows, most) in [(1u32, 3u32), (5, 90), (9, 200)] {
        let columns = 50u32;
        let mut start = vec![0u32];
        for _ in 0..rows {
            start.push(start[start.len() - 1] + s.bits32() % (most + 1));
        }
        let count = (start[rows as usize] as usize).max(1);
        let column: Vec<u32> = (0..count).map(|_| s.bits32() % columns).collect();
        let mut numbers = |count: usize| -> Vec<f64> {
            (0..count)
                .map(|_| f64::from(s.between(-3.0, 3.0)) / 3.0)
                .collect()
        };
        let (value, x) = (numbers(count), numbers(columns as usize));
        let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let [ds, dc] = [s.device.upload(&start)?, s.device.upload(&column)?];
        let [dv, dx] = [s.device.upload(&bits(&value))?, s.device.upload(&bits(&x))?];
        let out = s.device.allocate(u64::from(rows) * 8)?;
        s.launch(Grid::new([rows.div_ceil(2), 1, 1], [64, 1, 1]), |l| {
            l.arg(rows).arg(&ds).arg(&dc).arg(&dv).arg(&dx).arg(&out)
        })?;
        let row = |ends: &[u32]| {
            let mut lanes = [0.0f64; 32];
            for (index, place) in (ends[0] as usize..ends[1] as usize).enumerate() {
                let lane = &mut lanes[index % 32];
                *lane = value[place].mul_add(x[column[place] as usize], *lane);
            }
            for distance in [16, 8, 4, 2, 1] {
                (0..distance).for_each(|lane| lanes[lane] += lanes[lane + distance]);
            }
            lanes[0].to_bits()
        };
        let expected: Vec<u64> = start.windows(2).map(row).collect();
        compare(
            &format!("{rows} rows"),
            &s.device.download(&out)?,
            &expected,
        )?;
    }
    Ok(())
}

pub(super) fn stencil3d(s: &mut Session) -> Result<(), Failure> {
    for (nx, ny, nz) in [(16usize, 16usize, 3usize), (32, 16, 7)] {
        let plane = nx * ny;
        let input: Vec<f32> = (0..plane * nz).map(|_| s.between(-1.0, 1.0)).collect();
        let di = s.device.upload(&input)?;
        let out = s.device.upload(&input)?;
        let (c0, c1) = (0.3f32, 0.11f32);
        let grid = Grid::new([(nx / 16) as u32, (ny / 16) as u32, 1], [16, 16, 1]);
        s.launch(grid, |l| {
            let l = l.arg(nx as u32).arg(ny as u32).arg(nz as u32);
            l.arg(c0).arg(c1).arg(&di).arg(&out)
        })?;
        let mut expected = input.clone();
        for place in plane..plane * (nz - 1) {
            let (x, y) = (place % nx, place / nx % ny);
            let at = |is_inside: bool, place: usize| if is_inside { input[place] } else { 0.0 };
            let sides = [
                at(x > 0, place - 1),
                at(x < nx - 1, place + 1),
                at(y > 0, place - nx),
                at(y < ny - 1, place + nx),
                input[place - plane],
                input[place + plane],
            ];
            let sum = sides[1..].iter().fold(sides[0], |sum, side| sum + side);
            expected[place] = input[place].mul_add(c0, sum * c1);
        }
        compare(
            &format!("{nx} x {ny} x {nz}"),
            &s.device.download(&out)?,
            &expected,
        )?;
    }
    Ok(())
}
