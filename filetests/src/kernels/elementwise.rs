//! Kernels whose threads work on elements of their own, without loops.

use super::{Failure, SIZES, Session, compare, compare_nearly, grid};
use half::f16;

pub(super) fn saxpy_f32(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let len = n.max(1) as usize;
        let (a, x, y) = (s.float(), s.floats(len), s.floats(len));
        let (dx, dy) = (s.device.upload(&x)?, s.device.upload(&y)?);
        s.launch(grid(n), |l| l.arg(n).arg(a).arg(&dx).arg(&dy))?;
        let mut expected = y;
        (0..n as usize).for_each(|i| expected[i] = a.mul_add(x[i], expected[i]));
        compare(
            &format!("n = {n}, a = {a}"),
            &s.device.download(&dy)?,
            &expected,
        )?;
    }
    Ok(())
}

pub(super) fn saxpy_f16x2(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let len = n.max(1) as usize * 8;
        let mut half = || f16::from_bits(s.bits32() as u16);
        let (a0, a1) = (half(), half());
        let x: Vec<f16> = (0..len).map(|_| half()).collect();
        let y: Vec<f16> = (0..len).map(|_| half()).collect();
        let (dx, dy) = (s.device.upload(&x)?, s.device.upload(&y)?);
        let a = u32::from(a0.to_bits()) | u32::from(a1.to_bits()) << 16;
        s.launch(grid(n), |l| l.arg(n).arg(a).arg(&dx).arg(&dy))?;
        let mut expected = y;
        for i in 0..n as usize * 8 {
            expected[i] = fma_f16(if i % 2 == 0 { a0 } else { a1 }, x[i], expected[i]);
        }
        compare(&format!("n = {n}"), &s.device.download(&dy)?, &expected)?;
    }
    Ok(())
}

/// The fused operation, rounded once: product and sum of halves are exact in f64 unless the addends are far apart,
/// where the smaller one only decides ties, which rounding to odd keeps.
pub(super) fn fma_f16(a: f16, b: f16, c: f16) -> f16 {
    let (product, c) = (a.to_f64() * b.to_f64(), c.to_f64());
    let sum = product + c;
    // The error of the addition (Knuth's two-sum), to round the sum to odd.
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let odd = if error != 0.0 && error.is_finite() && sum.to_bits() & 1 == 0 {
        let toward = (error > 0.0) == (sum > 0.0);
        f64::from_bits(if toward {
            sum.to_bits() + 1
        } else {
            sum.to_bits() - 1
        })
    } else {
        sum
    };
    // Through f32 to odd as well: `f16::from_f64` rounds twice on some machines.
    let single = odd as f32;
    let exact = f64::from(single) == odd || !odd.is_finite() || single.to_bits() & 1 == 1;
    f16::from_f32(match (exact, f64::from(single).abs() > odd.abs()) {
        (true, _) => single,
        (false, true) => f32::from_bits(single.to_bits() - 1),
        (false, false) => f32::from_bits(single.to_bits() + 1),
    })
}

pub(super) fn horner_f16x2(s: &mut Session) -> Result<(), Failure> {
    const COEFFICIENTS: [u16; 6] = [0x2044, 0x2955, 0x3155, 0x3800, 0x3c00, 0x3c00];
    let [first, rest @ ..] = COEFFICIENTS.map(f16::from_bits);
    for n in SIZES {
        // A NaN stays one on the way, and which is not specified: it would not compare with 0 either way.
        let numbers = (0..n.max(1) * 8).map(|_| f16::from_bits(s.bits32() as u16));
        let x: Vec<f16> = numbers
            .map(|x| if x.is_nan() { f16::ONE } else { x })
            .collect();
        let dx = s.device.upload(&x)?;
        s.launch(grid(n), |l| l.arg(n).arg(&dx))?;
        let mut expected = x;
        for x in expected.iter_mut().take(n as usize * 8) {
            let v = x.max(f16::from_f32(-2.0)).min(f16::from_f32(2.0));
            let p = rest.iter().fold(first, |p, c| fma_f16(p, v, *c));
            *x = if v < f16::ZERO {
                f16::from_f64(p.to_f64() * 0.5)
            } else {
                f16::from_f64(p.to_f64() + 1.0)
            };
        }
        compare(&format!("n = {n}"), &s.device.download(&dx)?, &expected)?;
    }
    Ok(())
}

pub(super) fn gather64(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let (records, stride) = (64, 20 + 4 * s.random.below(9));
        let base = s.floats((records * stride + 8) / 4);
        let rec = s.floats((records * 256 + 32) / 4);
        let idx: Vec<i32> = (0..n.max(1))
            .map(|_| s.random.below(records) as i32)
            .collect();
        let (db, dr) = (s.device.upload(&base)?, s.device.upload(&rec)?);
        let di = s.device.upload(&idx)?;
        let out = s.device.allocate_zeroed(u64::from(n.max(1)) * 4)?;
        s.launch(grid(n), |l| {
            l.arg(n)
                .arg(stride as u64)
                .arg(&db)
                .arg(&di)
                .arg(&dr)
                .arg(&out)
        })?;
        let mut expected = vec![0.0; n.max(1) as usize];
        for (sum, j) in expected.iter_mut().zip(&idx).take(n as usize) {
            let j = *j as usize;
            *sum = base[(j * stride + 4) / 4] + rec[(j * 24 + 8) / 4] + rec[(j * 256 + 16) / 4];
        }
        let case = format!("n = {n}, stride = {stride}");
        compare(&case, &s.device.download(&out)?, &expected)?;
    }
    Ok(())
}

pub(super) fn fmix64(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let mut x = s.doubles(n.max(1) as usize);
        x[0] = if n == 1 { 0 } else { u64::MAX };
        let dx = s.device.upload(&x)?;
        s.launch(grid(n), |l| l.arg(n).arg(&dx))?;
        x.iter_mut().take(n as usize).for_each(|h| {
            *h ^= *h >> 33;
            *h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
            *h ^= *h >> 33;
            *h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            *h ^= *h >> 33;
        });
        compare(&format!("n = {n}"), &s.device.download(&dx)?, &x)?;
    }
    Ok(())
}

/// A kernel that changes four words per thread in place.
fn four_words(s: &mut Session, reference: fn([u32; 4]) -> [u32; 4]) -> Result<(), Failure> {
    for n in SIZES {
        let mut x = s.words(n.max(1) as usize * 4);
        let dx = s.device.upload(&x)?;
        s.launch(grid(n), |l| l.arg(n).arg(&dx))?;
        for words in x.chunks_exact_mut(4).take(n as usize) {
            words.copy_from_slice(&reference([words[0], words[1], words[2], words[3]]));
        }
        compare(&format!("n = {n}"), &s.device.download(&dx)?, &x)?;
    }
    Ok(())
}

pub(super) fn chacha_qr(s: &mut Session) -> Result<(), Failure> {
    four_words(s, |mut x| {
        for _ in 0..2 {
            for (a, b, d, r) in [(0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7)] {
                x[a] = x[a].wrapping_add(x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(r);
            }
        }
        x
    })
}

pub(super) fn lop3_chain(s: &mut Session) -> Result<(), Failure> {
    four_words(s, |[a, b, c, d]| {
        let ch = (a & b) ^ (!a & c);
        let maj = (a & b) ^ (a & c) ^ (b & c);
        let t1 = (ch | maj) & !(a ^ b ^ c);
        let t2 = (d ^ t1) | (a & !b);
        let t3 = !(t2 ^ ch) & (maj | d);
        let t4 = (t3 & a) | (!t3 & b);
        [
            ch ^ t1,
            maj ^ t2,
            t2 ^ t3 ^ t4,
            (t2 & t3) | (t4 & (t2 | t3)),
        ]
    })
}

pub(super) fn i64_chain(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let mut x = s.doubles(n.max(1) as usize * 4);
        // Carries out of the low words, and equal operands.
        x[1] = 0u64.wrapping_sub(x[0]);
        x[3] = x[2];
        let dx = s.device.upload(&x)?;
        let dy = s.device.upload(&vec![0u64; x.len()])?;
        s.launch(grid(n), |l| l.arg(n).arg(&dx).arg(&dy))?;
        let mut expected = vec![0; x.len()];
        let elements = x.chunks_exact(4).zip(expected.chunks_exact_mut(4));
        for (x, y) in elements.take(n as usize) {
            let [a, b, c, d] = [x[0], x[1], x[2], x[3]];
            let (sum, t) = (a.wrapping_add(b), c.wrapping_sub(d));
            let u = (sum as i64).min(t as i64) as u64;
            let v = sum.max(t);
            let w = sum.wrapping_sub(v).wrapping_add(0x1234_5678_9abc_def0);
            let (lo, carry) = a.overflowing_add(c);
            let hi = b.wrapping_add(d).wrapping_add(u64::from(carry));
            let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
            let difference = wide(b, a).wrapping_sub(wide(d, c));
            let negative = (t as i64) < 0;
            let magnitude = (t as i64).unsigned_abs();
            let g = (a as u32 as i32 as u64).wrapping_add(u64::from(b as u32));
            y[0] = u ^ difference as u64 ^ (difference >> 64) as u64;
            y[1] = v.wrapping_add(magnitude);
            y[2] = w ^ lo;
            y[3] = if u == w || negative { hi } else { g };
        }
        compare(&format!("n = {n}"), &s.device.download(&dy)?, &expected)?;
    }
    Ok(())
}

pub(super) fn black_scholes(s: &mut Session) -> Result<(), Failure> {
    for n in SIZES {
        let len = n.max(1) as usize;
        let (rate, volatility) = (0.02f32, 0.3f32);
        let mut row =
            |least, most| -> Vec<f32> { (0..len).map(|_| s.between(least, most)).collect() };
        let (price, strike, time) = (row(5.0, 30.0), row(1.0, 100.0), row(0.25, 10.0));
        let [dp, ds, dt] = [&price, &strike, &time].map(|v| s.device.upload(v));
        let (dp, ds, dt) = (dp?, ds?, dt?);
        let bytes = len as u64 * 4;
        let (call, put) = (
            s.device.allocate_zeroed(bytes)?,
            s.device.allocate_zeroed(bytes)?,
        );
        s.launch(grid(n), |l| {
            let l = l
                .arg(n)
                .arg(rate)
                .arg(volatility)
                .arg(&dp)
                .arg(&ds)
                .arg(&dt);
            l.arg(&call).arg(&put)
        })?;
        let (mut calls, mut puts) = (vec![0.0; len], vec![0.0; len]);
        for i in 0..n as usize {
            let [s, x, t] = [price[i], strike[i], time[i]].map(f64::from);
            (calls[i], puts[i]) = option_prices(f64::from(rate), f64::from(volatility), s, x, t);
        }
        // The approximate functions err by about 2^-22, and the prices are differences of numbers up to 100.
        compare_nearly(
            &format!("n = {n}, call"),
            &s.device.download(&call)?,
            &calls,
            1e-4,
        )?;
        compare_nearly(
            &format!("n = {n}, put"),
            &s.device.download(&put)?,
            &puts,
            1e-4,
        )?;
    }
    Ok(())
}

/// Black and Scholes, with the polynomial of Abramowitz and Stegun 26.2.17 for the normal distribution.
fn option_prices(rate: f64, volatility: f64, price: f64, strike: f64, time: f64) -> (f64, f64) {
    let normal = |d: f64| {
        let k = 1.0 / (1.0 + 0.2316419 * d.abs());
        let polynomial = [
            1.330274429,
            -1.821255978,
            1.781477937,
            -0.356563782,
            0.319381530,
        ];
        let p = polynomial.iter().fold(0.0, |sum, a| sum * k + a) * k;
        let tail = 0.398942280401 * (-0.5 * d * d).exp() * p;
        if d > 0.0 { 1.0 - tail } else { tail }
    };
    let spread = volatility * time.sqrt();
    let d1 = ((price / strike).ln() + (rate + 0.5 * volatility * volatility) * time) / spread;
    let (c1, c2) = (normal(d1), normal(d1 - spread));
    let discounted = strike * (-rate * time).exp();
    let call = price * c1 - discounted * c2;
    (call, discounted * (1.0 - c2) - price * (1.0 - c1))
}
