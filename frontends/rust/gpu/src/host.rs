//! What the device's operations do on the host: halves through f32 and f64, which round to the same halves, sums of
//! products of bytes, and words that others change.

use core::cmp::Ordering;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// The value of a pattern.
pub fn widened(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        // A multiple of 2^-24, which f32 has exactly.
        0 => (fraction as f32 / 16_777_216.0).to_bits(),
        31 => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The pattern of the nearest half, ties to even.
pub fn narrowed(value: f64) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 1024 {
        return sign | if fraction == 0 { 0x7c00 } else { 0x7e00 };
    }
    if exponent < -25 {
        return sign;
    }
    // Below the least normal exponent the fraction loses a bit for each step.
    let dropped = 42 + (-14 - exponent).max(0);
    let significand = fraction | 1 << 52;
    let (kept, rest) = (
        significand >> dropped,
        significand & ((1u64 << dropped) - 1),
    );
    let half = 1u64 << (dropped - 1);
    let rounded = kept + u64::from(rest > half || rest == half && kept & 1 == 1);
    // The significand's leading bit counts into the exponent, as does a carry out of rounding.
    let biased = (exponent.max(-14) + 14) as u64;
    sign | ((biased << 10) + rounded).min(0x7c00) as u16
}

/// What an operation gives that is exact enough in f32 to be rounded a second time.
pub fn rounded(a: u16, b: u16, operation: impl Fn(f32, f32) -> f32) -> u16 {
    narrowed(operation(widened(a), widened(b)).into())
}

/// a · b + c, rounded once: f64 holds the product exactly, and the sum with bits to spare.
pub fn fused(a: u16, b: u16, c: u16) -> u16 {
    narrowed(f64::from(widened(a)) * f64::from(widened(b)) + f64::from(widened(c)))
}

/// The lesser; -0 before 0.
pub fn lesser(a: u16, b: u16) -> u16 {
    let (x, y) = (widened(a), widened(b));
    match x.partial_cmp(&y) {
        None => 0x7fff,
        Some(Ordering::Equal) => a | b,
        Some(order) => {
            if order.is_lt() {
                a
            } else {
                b
            }
        }
    }
}

/// The greater; 0 after -0.
pub fn greater(a: u16, b: u16) -> u16 {
    let (x, y) = (widened(a), widened(b));
    match x.partial_cmp(&y) {
        None => 0x7fff,
        Some(Ordering::Equal) => a & b,
        Some(order) => {
            if order.is_gt() {
                a
            } else {
                b
            }
        }
    }
}

/// An operation on each half of two pairs.
pub fn each(a: u32, b: u32, operation: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(operation(a as u16, b as u16))
        | u32::from(operation((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// 0 of what is below it; -0 and NaN stay.
pub fn not_negative(half: u16) -> u16 {
    if widened(half) < 0.0 { 0 } else { half }
}

/// Cut to [0, 1]; 0 of -0 and of NaN.
pub fn saturated(half: u16) -> u16 {
    let value = widened(half);
    if value >= 1.0 {
        0x3c00
    } else if value > 0.0 {
        half
    } else {
        0
    }
}

/// A comparison of each half, as a mask.
pub fn compared(a: u32, b: u32, holds: impl Fn(f32, f32) -> bool) -> u32 {
    each(a, b, |a, b| {
        if holds(widened(a), widened(b)) {
            0xffff
        } else {
            0
        }
    })
}

/// The sum of products of 4 bytes each, and `c`, modulo 2^32.
pub fn dot(a: [i32; 4], b: [i32; 4], c: u32) -> u32 {
    a.iter()
        .zip(b)
        .fold(c, |sum, (a, b)| sum.wrapping_add((a * b) as u32))
}

/// Changes the word at a place as one step, and gives what was there.
pub fn changed<T>(place: *mut u32, to: impl Fn(u32) -> u32, value: impl Fn(u32) -> T) -> T {
    // SAFETY: the place is that of an atomic, which lives as long as the call.
    let bits = unsafe { AtomicU32::from_ptr(place) };
    let mut old = bits.load(Relaxed);
    loop {
        match bits.compare_exchange(old, to(old), Relaxed, Relaxed) {
            Ok(old) => return value(old),
            Err(now) => old = now,
        }
    }
}
