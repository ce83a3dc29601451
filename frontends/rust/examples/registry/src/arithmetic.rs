//! Numbers: random ones, wide ones, exact ones, and functions of them.

use crate::bytes::fold;
use thisgpu_gpu::*;

functions! {
    /// A random generator with 128 bits of state.
    fn oorandom(seed: u64) -> u64 {
        let mut random = oorandom::Rand64::new(u128::from(seed) << 32 | 5);
        let mut sum = random.rand_u64();
        for _ in 0..4 {
            sum ^= random.rand_range(10..1000) ^ random.rand_float().to_bits();
        }
        sum
    }

    /// The generator of the crate `rand`.
    fn rand_pcg(seed: u64) -> u64 {
        use rand_pcg::rand_core::Rng;
        let mut random = rand_pcg::Pcg64::new(u128::from(seed), 7);
        let mut bytes = [0; 24];
        random.fill_bytes(&mut bytes);
        fold(&bytes) ^ random.next_u64()
    }

    /// Functions of the mathematical library in Rust.
    fn libm(seed: u64) -> u64 {
        let x = seed as f64 / (1u64 << 60) as f64 + 0.01;
        let y = (seed >> 32) as f32 / 1e8;
        let double = libm::sin(x) + libm::exp(-x) * libm::log(x) + libm::pow(x, 1.5);
        let double = double + libm::tgamma(x) + libm::atan2(x, 2.0);
        let single = libm::sinf(y) + libm::expf(-y) + libm::cbrtf(y) + libm::fmodf(y, 0.7) + libm::erff(y);
        double.to_bits() ^ u64::from(single.to_bits())
    }

    /// Functions of mathematics for small machines.
    fn micromath(seed: u64) -> u64 {
        use micromath::F32Ext;
        let x = (seed >> 40) as f32 / 1e5;
        let [sine, root, logarithm] = [F32Ext::sin(x), F32Ext::sqrt(x), F32Ext::ln(x + 1.0)];
        let results = [sine, root, logarithm, F32Ext::atan2(x, 3.0), F32Ext::powf(x, 0.3)];
        results.iter().fold(0u64, |sum, result| sum.wrapping_mul(31) ^ u64::from(result.to_bits()))
    }

    /// Fixed-point numbers.
    fn fixed(seed: u64) -> u64 {
        use fixed::types::{I16F16, U32F32};
        let (a, b) = (I16F16::from_bits(seed as i32), I16F16::from_bits((seed >> 32) as i32 | 1));
        let product = a.wrapping_mul(b);
        let quotient = a.checked_div(b).unwrap_or(I16F16::MAX);
        let wide = U32F32::from_bits(seed).saturating_mul(U32F32::from_num(1.25)).sqrt();
        let float = u64::from(a.to_num::<f32>().to_bits());
        (product.to_bits() as u64) ^ ((quotient.to_bits() as u64) << 7) ^ wide.to_bits() ^ float
    }

    /// Integers of 256 bits.
    fn ethnum(seed: u64) -> u64 {
        use ethnum::U256;
        let a = U256::from_words(u128::from(seed) << 50, u128::from(seed).wrapping_mul(0x1234_5678_9abc_def0_1234));
        let b = U256::from(seed >> 20 | 1);
        let c = a / b + (a % b) * U256::new(3) + a.wrapping_mul(b).rotate_left(77);
        let (high, low) = c.into_words();
        (high ^ low) as u64 ^ ((high ^ low) >> 64) as u64
    }

    /// Generators of the family xoshiro.
    fn rand_xoshiro(seed: u64) -> u64 {
        use rand_xoshiro::rand_core::{Rng, SeedableRng};
        let mut wide = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut narrow = rand_xoshiro::Xoroshiro128StarStar::seed_from_u64(seed);
        wide.jump();
        wide.next_u64() ^ narrow.next_u64().rotate_left(13) ^ u64::from(wide.next_u32())
    }

    /// Complex numbers, whose functions are those of libm.
    fn num_complex(seed: u64) -> u64 {
        use num_complex::Complex;
        let a = Complex::new((seed >> 40) as f64 / 1e6 - 8.0, (seed & 0xffff) as f64 / 1e4);
        let b = (a * a.conj() + a.sqrt()) / Complex::new(1.5, -0.25);
        let c = b.exp().powi(3) + a.sin() + a.ln();
        let (r, theta) = c.to_polar();
        r.to_bits() ^ theta.to_bits().rotate_left(17) ^ c.re.to_bits()
    }

    /// Fractions.
    fn num_rational(seed: u64) -> u64 {
        use num_rational::Ratio;
        let mut sum = Ratio::new(0i64, 1);
        for index in 1..9 {
            let term = Ratio::new((seed >> (index * 6)) as i64 & 63, index * 2 + 1);
            sum = sum + term * Ratio::new(1, 2);
        }
        (*sum.numer() as u64).wrapping_mul(31) ^ *sum.denom() as u64 ^ sum.round().to_integer() as u64
    }

    /// Integers of any size: products, quotients, powers modulo, decimal digits.
    fn num_bigint(seed: u64) -> u64 {
        use num_bigint::BigUint;
        let a = BigUint::from(seed) << 70u32 | BigUint::from(!seed);
        let b = BigUint::from(seed >> 9 | 1) * BigUint::from(1_000_000_007u64);
        let power = a.modpow(&BigUint::from(seed & 0xfff), &b);
        let (quotient, rest) = (&a * &a / &b, &a % &b);
        let text = alloc::format!("{}", quotient + rest * power);
        fold(text.as_bytes())
    }

    /// Decimal numbers of 96 bits.
    fn rust_decimal(seed: u64) -> u64 {
        use rust_decimal::Decimal;
        let a = Decimal::new(seed as i64 >> 8, (seed % 20) as u32);
        let b = Decimal::new((seed >> 30) as i64 | 1, 7);
        let c = (a / b).round_dp(9) + a.checked_mul(b).unwrap_or(a);
        let mut bytes = c.serialize();
        bytes[0] ^= c.is_sign_negative() as u8;
        fold(&bytes) ^ fold(alloc::format!("{c}").as_bytes())
    }

    /// Halves.
    fn half(seed: u64) -> u64 {
        use half::{bf16, f16};
        let (a, b) = (f16::from_bits(seed as u16), f16::from_bits((seed >> 16) as u16));
        let (c, d) = (bf16::from_f32((seed >> 40) as f32 / 77.0), bf16::from_bits((seed >> 32) as u16));
        let clean = |bits: u16, nan: bool| if nan { 0x7e00 } else { u64::from(bits) };
        let (sum, product) = (a + b, c * d);
        clean(sum.to_bits(), sum.is_nan()) ^ clean(product.to_bits(), product.is_nan()) << 20
            ^ u64::from(a < b) << 40 ^ u64::from(f16::from_f64(seed as f64 / 1e15).to_bits()) << 44
    }
}
