//! Inputs: corners, and random ones with a seed.

use cranelift_codegen::ir::{Type, types};

/// Reproducible bits (an LCG of 64 bits, its output mixed).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A number of a format as its bits.
fn encoded(ty: Type, value: f64) -> u64 {
    match ty {
        types::F32 => u64::from((value as f32).to_bits()),
        types::F64 => value.to_bits(),
        _ => u64::from(value as i32 as u32),
    }
}

/// The numbers next to one as well.
fn with_neighbours(ty: Type, bits: u64) -> [u64; 5] {
    let mask = if ty == types::F64 {
        u64::MAX
    } else {
        u64::from(u32::MAX)
    };
    [-2i64, -1, 0, 1, 2].map(|step| bits.wrapping_add_signed(step) & mask)
}

/// Zeros, subnormal numbers, infinities, NaN, powers of two, multiples of pi/2 and of ln 2, edges of domains, with
/// their neighbours.
pub fn corners(ty: Type) -> Vec<u64> {
    let mut list = Vec::new();
    if !ty.is_float() {
        let some = [
            0,
            1,
            2,
            3,
            4,
            5,
            7,
            8,
            10,
            16,
            31,
            32,
            63,
            64,
            100,
            127,
            128,
            149,
            150,
            1000,
            1023,
            1024,
            1075,
            16_777_217,
            i32::MAX,
        ];
        let signed = some.iter().flat_map(|&n: &i32| [n, -n]).chain([i32::MIN]);
        return signed.map(|n| u64::from(n as u32)).collect();
    }
    let mut bits = Vec::new();
    let (fraction, width) = if ty == types::F32 { (23, 32) } else { (52, 64) };
    let exponents = 1u64 << (width - 1 - fraction);
    for exponent in 0..exponents {
        if ty == types::F32 || exponent % 16 == 0 || (900..1150).contains(&exponent) {
            bits.push(exponent << fraction);
        }
    }
    for place in 0..fraction {
        bits.push(1 << place);
    }
    bits.push(((exponents - 1) << fraction) - 1);
    bits.push((exponents - 1) << fraction | 1 << (fraction - 1));
    let mut values: Vec<f64> = (1..60)
        .map(|n| f64::from(n) * std::f64::consts::FRAC_PI_4)
        .collect();
    values.extend((1..60).map(|n| f64::from(n) * std::f64::consts::LN_2 / 2.0));
    values.extend((1..80).map(|n| f64::from(n) / 8.0));
    values.extend((1..12).map(|n| f64::from(n) / 11.0));
    values.extend([
        88.7, 89.4, 103.9, 104.0, 127.9, 149.0, 150.0, 709.7, 710.4, 745.1, 746.0, 1024.0, 1074.0,
        38.5, 45.2, 308.2, 324.0,
    ]);
    values.extend([
        3.3, 5e3, 1e5, 102_943.7, 1e6, 1.6e6, 1e10, 1e20, 1e38, 1e100, 1e300,
    ]);
    values.extend((0..20).map(|n| 10f64.powi(n)));
    bits.extend(values.iter().map(|&value| encoded(ty, value)));
    for bits in bits {
        for near in with_neighbours(ty, bits) {
            list.extend([near, near ^ 1 << (width - 1)]);
        }
    }
    list.sort_unstable();
    list.dedup();
    list
}

/// Few corners, for pairs of arguments.
fn main_corners(ty: Type) -> Vec<u64> {
    if !ty.is_float() {
        return corners(ty);
    }
    let mut bits: Vec<u64> = [
        0.0,
        0.25,
        0.5,
        0.75,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        4.0,
        5.0,
        10.0,
        33.0,
        100.0,
        1e10,
        16_777_215.0,
        9_007_199_254_740_993.0,
        1e30,
        f64::INFINITY,
        f64::NAN,
    ]
    .iter()
    .map(|&value| encoded(ty, value))
    .collect();
    let (fraction, largest) = if ty == types::F32 {
        (23, u64::from(f32::MAX.to_bits()))
    } else {
        (52, f64::MAX.to_bits())
    };
    let one = encoded(ty, 1.0);
    bits.extend([
        1,
        2,
        3,
        (1 << fraction) - 1,
        1 << fraction,
        5 << fraction,
        largest,
        largest - 1,
        one - 1,
        one + 1,
        one - 7,
    ]);
    let sign = encoded(ty, -0.0);
    bits.iter().flat_map(|&bits| [bits, bits | sign]).collect()
}

/// All pairs of few corners.
pub fn pairs(first: Type, second: Type) -> [Vec<u64>; 2] {
    let (x, y) = (main_corners(first), main_corners(second));
    let mut lists = [Vec::new(), Vec::new()];
    for &x in &x {
        for &y in &y {
            lists[0].push(x);
            lists[1].push(y);
        }
    }
    lists
}

/// A random argument: any bits, or a number of moderate size, or one near 1.
pub fn random(ty: Type, random: &mut Random) -> u64 {
    if !ty.is_float() {
        let shift = random.bits() % 32;
        return u64::from(((random.bits() as i32) >> shift) as u32);
    }
    let mask = if ty == types::F32 {
        u64::from(u32::MAX)
    } else {
        u64::MAX
    };
    let choice = random.bits() % 8;
    let bits = random.bits();
    let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
    let value = match choice {
        0..2 => return bits & mask,
        2 => random.unit(),
        3 => random.unit() * 10.0,
        4 => random.unit() * 100.0,
        5 => 1.0 + (random.unit() - 0.5) * 2f64.powi(-((bits >> 8) as i32 & 15)),
        6 => random.unit() * 1000.0,
        _ => 2f64.powf(random.unit() * 40.0 - 25.0),
    };
    encoded(ty, sign * value)
}
