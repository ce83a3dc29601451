//! One element a thread.

use thisgpu_gpu::*;

/// y = a · x + y.
#[kernel]
pub fn saxpy_f32(a: f32, x: &[f32], mut y: DisjointMut<f32>) {
    if let Some((x, y)) = thread::own((x, &mut y)) {
        *y = a.mul_add(*x, *y);
    }
}

/// Eight halves.
#[derive(Clone, Copy, Element)]
#[repr(C, align(16))]
pub struct Halves([F16x2; 4]);

/// y = a · x + y on eight halves a thread.
#[kernel]
pub fn saxpy_f16x2(a: F16x2, x: &[Halves], mut y: DisjointMut<Halves>) {
    if let Some((x, y)) = thread::own((x, &mut y)) {
        y.0 = core::array::from_fn(|i| a.mul_add(x.0[i], y.0[i]));
    }
}

/// A polynomial of eight halves a thread, each between -2 and 2: halved where they are negative, plus 1 elsewhere.
#[kernel]
pub fn horner_f16x2(mut x: DisjointMut<Halves>) {
    const fn both(bits: u16) -> F16x2 {
        F16x2::splat(F16::from_bits(bits))
    }
    const COEFFICIENTS: [u16; 6] = [0x2044, 0x2955, 0x3155, 0x3800, 0x3c00, 0x3c00];
    let Some(x) = x.thread_mut() else { return };
    x.0 = x.0.map(|x| {
        let v = x.clamp(both(0xc000), both(0x4000));
        let [first, rest @ ..] = COEFFICIENTS;
        let p = rest.iter().fold(both(first), |p, c| p.mul_add(v, both(*c)));
        v.lanes_lt(F16x2::default())
            .select(p * both(0x3800), p + both(0x3c00))
    });
}

/// Four words.
#[derive(Clone, Copy, Element)]
#[repr(C, align(16))]
pub struct Words([u32; 4]);

/// Two quarter rounds of ChaCha in place.
#[kernel]
pub fn chacha_qr(mut x: DisjointMut<Words>) {
    fn round([mut a, mut b, mut c, mut d]: [u32; 4]) -> [u32; 4] {
        for (left, right) in [(16, 12), (8, 7)] {
            a = a.wrapping_add(b);
            d = (d ^ a).rotate_left(left);
            c = c.wrapping_add(d);
            b = (b ^ c).rotate_left(right);
        }
        [a, b, c, d]
    }
    if let Some(x) = x.thread_mut() {
        x.0 = round(round(x.0));
    }
}

/// Bitwise operations in a chain.
#[kernel]
pub fn lop3_chain(mut x: DisjointMut<Words>) {
    let Some(x) = x.thread_mut() else { return };
    let [a, b, c, d] = x.0;
    let ch = (a & b) ^ (!a & c);
    let maj = (a & b) ^ (a & c) ^ (b & c);
    let t1 = (ch | maj) & !(a ^ b ^ c);
    let t2 = (d ^ t1) | (a & !b);
    let t3 = !(t2 ^ ch) & (maj | d);
    let t4 = (t3 & a) | (!t3 & b);
    x.0 = [
        ch ^ t1,
        maj ^ t2,
        t2 ^ t3 ^ t4,
        (t2 & t3) | (t4 & (t2 | t3)),
    ];
}

/// The finaliser of murmur3, of 64 bits.
#[kernel]
pub fn fmix64(mut x: DisjointMut<u64>) {
    if let Some(h) = x.thread_mut() {
        *h ^= *h >> 33;
        *h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
        *h ^= *h >> 33;
        *h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        *h ^= *h >> 33;
    }
}

/// Four numbers of 64 bits.
#[derive(Clone, Copy, Element)]
#[repr(C, align(16))]
pub struct Longs([u64; 4]);

/// Sums, differences, minima, selections and carries of 128 bits.
#[kernel]
pub fn i64_chain(x: &[Longs], mut y: DisjointMut<Longs>) {
    let Some((x, y)) = thread::own((x, &mut y)) else {
        return;
    };
    let [a, b, c, d] = x.0;
    let (sum, difference) = (a.wrapping_add(b), c.wrapping_sub(d));
    let least = (sum as i64).min(difference as i64) as u64;
    let most = sum.max(difference);
    let offset = sum.wrapping_sub(most).wrapping_add(0x1234_5678_9abc_def0);
    // Of 128 bits, the high words with the carry of the low ones.
    let ((low_sum, carry), (low_rest, borrow)) = (a.overflowing_add(c), a.overflowing_sub(c));
    let high_sum = b.wrapping_add(d).wrapping_add(u64::from(carry));
    let high_rest = b.wrapping_sub(d).wrapping_sub(u64::from(borrow));
    let is_negative = (difference as i64) < 0;
    let chosen = if least == offset || is_negative {
        high_sum
    } else {
        (a as i32 as u64).wrapping_add(u64::from(b as u32))
    };
    y.0 = [
        least ^ low_rest ^ high_rest,
        most.wrapping_add((difference as i64).unsigned_abs()),
        offset ^ low_sum,
        chosen,
    ];
}

/// From each record three numbers: one at a stride that the launch says, one where records have 24 bytes, one where
/// they have 256.
#[kernel]
pub fn gather64(
    stride: u64,
    base: &[f32],
    indices: &[u32],
    records: &[[f32; 64]],
    mut out: DisjointMut<f32>,
) {
    let Some((index, out)) = thread::own((indices, &mut out)) else {
        return;
    };
    let index = *index as usize;
    let first = index.wrapping_mul(stride as usize).wrapping_add(1);
    // One branch on both checks.
    if (first < base.len()) & (index < records.len()) {
        *out = base[first] + records.as_flattened()[6 * index + 2] + records[index][4];
    }
}

/// Prices of European options.
#[kernel]
#[allow(clippy::too_many_arguments, reason = "as many as there are arrays")]
pub fn black_scholes(
    rate: f32,
    volatility: f32,
    prices: &[f32],
    strikes: &[f32],
    times: &[f32],
    mut calls: DisjointMut<f32>,
    mut puts: DisjointMut<f32>,
) {
    let Some((price, strike, time, call, put)) =
        thread::own((prices, strikes, times, &mut calls, &mut puts))
    else {
        return;
    };
    let root = fast::sqrt(*time);
    let logarithm = fast::log2(price * fast::recip(*strike)) * core::f32::consts::LN_2;
    let drift = (volatility * 0.5).mul_add(volatility, rate);
    let spread = volatility * root;
    let d1 = drift.mul_add(*time, logarithm) * fast::recip(spread);
    let (c1, c2) = (cumulative(d1), cumulative(d1 - spread));
    let discounted = fast::exp2(rate * time * -core::f32::consts::LOG2_E) * strike;
    *call = price.mul_add(c1, -(discounted * c2));
    *put = discounted.mul_add(1.0 - c2, -(price * (1.0 - c1)));
}

/// The normal distribution by the polynomial of Abramowitz and Stegun.
fn cumulative(d: f32) -> f32 {
    let k = fast::recip(d.abs().mul_add(0.231_641_89, 1.0));
    let coefficients = [-1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_53];
    let polynomial = coefficients
        .iter()
        .fold(1.330_274_429f32, |sum, c| sum.mul_add(k, *c))
        * k;
    let tail = fast::exp2(d * d * (-0.5 * core::f32::consts::LOG2_E)) * 0.398_942_28 * polynomial;
    if d > 0.0 { 1.0 - tail } else { tail }
}
