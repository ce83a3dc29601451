//! Terms simplify without changing what they are: random ones are computed beside numbers.

use cranelift_thisgpu::unstable::isa::random::Random;
use hashbrown::HashMap;
use thisgpu_verify::evaluate::evaluate;
use thisgpu_verify::term::{Term, clear, mask, signed};
use thisgpu_verify::words::{count_ones, leading_zeros, reversed, variable};

/// A term with the number that it is for the inputs.
type Pair = (Term, u128);

/// One operation on random operands of those there are.
fn operation(random: &mut Random, pool: &[Pair]) -> Pair {
    let any = |random: &mut Random| pool[random.below(pool.len())];
    let (a, x) = any(random);
    let width = a.width();
    let fitting: Vec<Pair> = pool
        .iter()
        .copied()
        .filter(|(t, _)| t.width() == width)
        .collect();
    let second = |random: &mut Random| {
        if random.below(4) == 0 {
            let numbers = [
                0,
                1,
                2,
                0xff,
                0xff00,
                u128::MAX,
                1 << (width - 1),
                u128::from(random.bits()),
            ];
            let number = numbers[random.below(8)] & mask(width);
            return (Term::number(number, width), number);
        }
        fitting[random.below(fitting.len())]
    };
    let (b, y) = second(random);
    let (c, z) = second(random);
    let truth = |holds: Term| Term::choose(holds, b, c);
    let bits = |value: u128| value & mask(width);
    let fits = y < width.into();
    match random.below(20) {
        0 => (a.plus(b), bits(x.wrapping_add(y))),
        1 => (a.minus(b), bits(x.wrapping_sub(y))),
        2 => (a.times(b), bits(x.wrapping_mul(y))),
        3 => (a.and(b), x & y),
        4 => (a.or(b), x | y),
        5 => (a.xor(b), x ^ y),
        6 => (a.not(), bits(!x)),
        7 => (a.shifted_up(b), if fits { bits(x << y) } else { 0 }),
        8 => (a.shifted_down(b), if fits { x >> y } else { 0 }),
        9 => {
            let by = y.min(u128::from(width) - 1);
            (
                a.shifted_down_signed(b),
                bits((signed(x, width) >> by) as u128),
            )
        }
        10 => (truth(a.equals(b)), if x == y { y } else { z }),
        11 => (truth(a.is_below(b)), if x < y { y } else { z }),
        12 => (
            truth(a.is_less(b)),
            if signed(x, width) < signed(y, width) {
                y
            } else {
                z
            },
        ),
        13 if width <= 64 => (a.above(b), x << width | y),
        14 if width >= 16 => {
            let from = random.below(width as usize / 2) as u32;
            (a.part(from, width / 2), x >> from & mask(width / 2))
        }
        15 if width <= 64 => (
            a.sign_extended(2 * width),
            signed(x, width) as u128 & mask(2 * width),
        ),
        16 if width <= 64 => (a.zero_extended(2 * width), x),
        17 => (count_ones(a), x.count_ones().into()),
        18 => (leading_zeros(a), (x.leading_zeros() - (128 - width)).into()),
        _ => (reversed(a), x.reverse_bits() >> (128 - width)),
    }
}

#[test]
fn terms_are_what_they_say() {
    let seed = 2026;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for _ in 0..300 {
        clear();
        let mut inputs = HashMap::new();
        let mut pool: Vec<Pair> = Vec::new();
        for (index, width) in [8, 16, 32, 32, 64, 64, 128].into_iter().enumerate() {
            let term = variable(&format!("v{index}"), width);
            let value = (u128::from(random.bits()) << 64 | u128::from(random.bits())) & mask(width);
            inputs.insert(term, value);
            pool.push((term, value));
        }
        for _ in 0..40 {
            let (term, value) = operation(&mut random, &pool);
            assert_eq!(evaluate(term, &inputs), Some(value), "{:?}", term.node());
            pool.push((term, value));
        }
    }
}
