//! Plausible mistakes, and that the inputs of the other tests would find each of them.

use super::oracle::{self, Operation, corners, random_number};
use crate::sim::semantics::round_to_odd::{Bfloat16, Half};
use crate::sim::semantics::softfloat::{BF16, F32, F64, Rounding};
use crate::testing::Random;

const NEAREST: Rounding = Rounding::NearestEven;

/// How many of `cases` inputs give a wrong result.
fn wrong(cases: u32, mut is_wrong: impl FnMut() -> bool) -> usize {
    (0..cases).filter(|_| is_wrong()).count()
}

#[test]
fn rounding_twice_is_found() {
    let mut random = Random::for_test("half");
    // bf16 through a double that was rounded to nearest.
    let found = wrong(200_000, || {
        let inputs = [0; 3].map(|_| random_number(&mut random, BF16));
        let [a, b, c] = inputs.map(|x| Bfloat16::widen(x as u16));
        u64::from(Bfloat16::narrow(a * b + c))
            != oracle::compute(BF16, Operation::Fused, inputs, NEAREST)
    });
    assert!(found > 0);
    // f32 multiplied, rounded, then added.
    let found = wrong(10_000, || {
        let inputs = [0; 3].map(|_| random_number(&mut random, F32));
        let [a, b, c] = inputs.map(|x| f32::from_bits(x as u32));
        let d = u64::from((a * b + c).to_bits());
        !F32.is_nan(d) && d != oracle::compute(F32, Operation::Fused, inputs, NEAREST)
    });
    assert!(found > 100);
}

#[test]
fn wrong_direction_and_wrong_zero_are_found() {
    let mut random = Random::for_test("dadd");
    let corners = corners(F64);
    // A sum that always cancels to +0.
    let found = wrong(10_000, || {
        let (a, b) = (random.pick(&corners), random.pick(&corners));
        let sum = oracle::compute(F64, Operation::Add, [a, b, 0], NEAREST);
        sum != oracle::compute(F64, Operation::Add, [a, b, 0], Rounding::Down)
            && sum & !F64.sign() == 0
    });
    assert!(found > 10);
    // To nearest instead of toward zero.
    let found = wrong(10_000, || {
        let inputs = [0; 3].map(|_| random_number(&mut random, F64));
        let by = |rounding| oracle::compute(F64, Operation::Fused, inputs, rounding);
        by(NEAREST) != by(Rounding::TowardZero)
    });
    assert!(found > 1_000);
}

#[test]
fn a_carry_that_misses_the_exact_power_is_found() {
    let mut random = Random::for_test("iadd");
    let found = wrong(100_000, || {
        let (a, b) = (random.word(), random.word());
        let _ = random.flip();
        u64::from(a) + u64::from(b) == 1 << 32 || a == b
    });
    assert!(
        found > 10,
        "sums of exactly 2^32, and a - b with nothing to borrow"
    );
}
