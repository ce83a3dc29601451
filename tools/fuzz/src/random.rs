//! Reproducible random numbers, and values that find mistakes more often than uniform ones.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Type, types};
use cranelift_thisgpu::unstable::isa::random::Random as Sequence;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reproducible numbers: those of a seed, or first those that a fuzzing engine writes on a tape.
#[derive(Clone, Debug)]
pub struct Random {
    sequence: Sequence,
    tape: Option<Tape>,
}

/// Bytes that decide what is drawn, one after the other, whoever draws: what is forked shares them. So an engine that
/// changes a byte changes a choice.
#[derive(Clone, Debug)]
struct Tape {
    bytes: Arc<[u8]>,
    next: Arc<AtomicUsize>,
}

impl Tape {
    /// A number of the next bytes, of as many as `most` has; none at the end.
    fn number(&self, most: u64) -> Option<u64> {
        let count = (u64::BITS - most.leading_zeros()).div_ceil(8) as usize;
        let start = self.next.fetch_add(count, Ordering::Relaxed);
        let bytes = self.bytes.get(start..start.checked_add(count)?)?;
        Some(
            bytes
                .iter()
                .fold(0, |number, &byte| number << 8 | u64::from(byte)),
        )
    }
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            sequence: Sequence::new(seed),
            tape: None,
        }
    }

    /// What the bytes decide, and where they end the sequence of a seed that is made of them.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self {
            sequence: Sequence::new(hasher.finish()),
            tape: Some(Tape {
                bytes: bytes.into(),
                next: Arc::default(),
            }),
        }
    }

    /// Another sequence, which depends on `label` too.
    pub fn fork(&self, label: u64) -> Self {
        Self {
            sequence: self.sequence.fork(label),
            tape: self.tape.clone(),
        }
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        let number = self.tape.as_ref().and_then(|tape| tape.number(u64::MAX));
        number.unwrap_or_else(|| self.sequence.bits())
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = end as u64;
        let number = self.tape.as_ref().and_then(|tape| tape.number(end - 1));
        (number.unwrap_or_else(|| self.sequence.bits()) % end) as usize
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// True once in `turns`.
    pub fn once_in(&mut self, turns: usize) -> bool {
        self.below(turns) == 0
    }

    /// One of `choices`, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A value of a type.
    pub fn value(&mut self, ty: Type) -> DataValue {
        DataValue::read_from_slice_le(&self.bytes(ty), ty)
    }

    /// The bytes of a value, little-endian, first lane first, in a buffer that any value fits.
    pub fn bytes(&mut self, ty: Type) -> [u8; 16] {
        let mut bytes = [0; 16];
        let lane = ty.lane_type().bytes() as usize;
        let same = self.once_in(4).then(|| self.scalar_bits(ty.lane_type()));
        for chunk in bytes[..ty.bytes() as usize].chunks_exact_mut(lane) {
            let bits = same.unwrap_or_else(|| self.scalar_bits(ty.lane_type()));
            chunk.copy_from_slice(&bits.to_le_bytes()[..lane]);
        }
        bytes
    }

    /// The bits of a scalar.
    pub fn scalar_bits(&mut self, ty: Type) -> u128 {
        match ty {
            types::F16 => self.float_bits(10, 5),
            types::F32 => self.float_bits(23, 8),
            types::F64 => self.float_bits(52, 11),
            _ => self.integer_bits(ty.bits()),
        }
    }

    /// An integer: a corner, a short one, or any.
    fn integer_bits(&mut self, bits: u32) -> u128 {
        let mask = u128::MAX >> (128 - bits);
        let sign = 1u128 << (bits - 1);
        let wide = u128::from(self.bits()) << 64 | u128::from(self.bits());
        mask & match self.below(9) {
            0 | 1 => self.pick(&[0, 1, 2, mask, mask - 1, sign, sign - 1, sign + 1]),
            2 => wide >> self.below(127),
            3 => u128::MAX << self.below(127),
            4 => 1 << self.below(bits as usize),
            // The same in every byte, as masks are.
            5 => u128::from(wide as u8) * (u128::MAX / 255),
            6 => self.between_floats(wide, bits as usize),
            _ => wide,
        }
    }

    /// An integer of so many bits half way between two floats of some format, or beside that; either sign. In few bits
    /// floats have all integers, and it is any number.
    fn between_floats(&mut self, wide: u128, bits: usize) -> u128 {
        let digits = self.pick(&[11, 24, 53]);
        let room = bits.saturating_sub(digits);
        let below = match room {
            0 => return wide,
            _ => self.between(1, room),
        };
        let beside = self.pick(&[0, 1, u128::MAX]);
        // The highest digit is set, so that none is left above.
        let number = (wide | 1 << 127) >> (128 - digits) << below | 1 << (below - 1);
        let number = number.wrapping_add(beside);
        match self.once_in(2) {
            true => number.wrapping_neg(),
            false => number,
        }
    }

    /// A float: fields are corners as often as not.
    fn float_bits(&mut self, fraction: u32, exponent: u32) -> u128 {
        let last = (1u64 << exponent) - 1;
        let bias = last >> 1;
        let near = [0, 1, 2, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64, 127];
        let sign = (self.bits() & 1) << (fraction + exponent);
        let power = match self.below(9) {
            0 => 0,
            1 => self.pick(&[1, last - 1]),
            2 => last,
            3 | 4 => bias + self.pick(&near),
            5 => bias.saturating_sub(self.pick(&near)),
            6 => return u128::from(sign | self.beside_limit(fraction, bias)),
            _ => self.bits(),
        };
        let power = if power > last {
            self.bits() & last
        } else {
            power
        };
        let all = (1u64 << fraction) - 1;
        let digits = match self.below(8) {
            0..=2 => 0,
            3 => self.pick(&[1, all, 1 << (fraction - 1), all >> 1]),
            // Few leading digits: short products and sums are exact.
            4 => all & self.bits() << self.below(fraction as usize),
            _ => all & self.bits(),
        };
        u128::from(sign | power << fraction | digits)
    }

    /// The magnitude of a float at a limit of an integer type, or one, a half, a quarter or the least step beside it.
    fn beside_limit(&mut self, fraction: u32, bias: u64) -> u64 {
        let bits = self.pick(&[8, 16, 32, 64, 128]);
        // Those of signed and unsigned integers, and half of them.
        let power = bits - self.below(3) as u32;
        let places = power + self.pick(&[0, 1, 2, fraction]);
        let limit = float_limit(power, fraction, bias);
        match self.below(3) {
            0 => limit,
            1 => limit - (1 << (fraction + 1).saturating_sub(places)),
            _ => (limit + (1 << fraction.saturating_sub(places))).min((2 * bias + 1) << fraction),
        }
    }
}

/// The bits of 2 to a power as a float with such a fraction and bias; of infinity if that is beyond.
pub fn float_limit(power: u32, fraction: u32, bias: u64) -> u64 {
    (bias + u64::from(power)).min(2 * bias + 1) << fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_values_and_forks_give_others() {
        let values = |mut random: Random| [(); 8].map(|()| random.bits());
        assert_eq!(values(Random::new(7)), values(Random::new(7)));
        assert_ne!(values(Random::new(7)), values(Random::new(8)));
        assert_ne!(values(Random::new(7)), values(Random::new(7).fork(1)));
    }

    #[test]
    fn a_tape_decides_byte_by_byte() {
        let mut random = Random::of_bytes(&[3, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(random.below(10), 3);
        assert_eq!(random.below(300), 1);
        // Who is forked goes on where the other one stopped.
        let mut forked = random.fork(1);
        assert_eq!(forked.below(4), 2);
        assert_eq!(random.bits(), 9);
        // Behind the end there are numbers too, others in each.
        assert_ne!(random.bits(), forked.bits());
    }

    #[test]
    fn limits_of_integers_and_what_is_beside_them_come_up() {
        let mut random = Random::new(1);
        let floats: Vec<f64> = (0..30_000)
            .map(|_| f64::from_bits(random.scalar_bits(types::F64) as u64))
            .collect();
        let two_127 = 127f64.exp2();
        for wanted in [127.5, 128.0, -128.5, 255.75, two_127, two_127.next_down()] {
            assert!(floats.contains(&wanted), "{wanted}");
        }
        let integers: Vec<u64> = (0..30_000)
            .map(|_| random.scalar_bits(types::I64) as u64)
            .collect();
        let half_way = |n: &&u64| {
            let below = 11u32.saturating_sub(n.leading_zeros());
            below != 0 && *n & ((1 << below) - 1) == 1 << (below - 1)
        };
        assert!(integers.iter().filter(half_way).count() > 100);
    }

    #[test]
    fn all_kinds_of_floats_come_up() {
        let mut random = Random::new(1);
        let floats: Vec<f32> = (0..1000)
            .map(|_| f32::from_bits(random.scalar_bits(types::F32) as u32))
            .collect();
        for kind in [
            f32::is_nan,
            f32::is_infinite,
            f32::is_subnormal,
            f32::is_normal,
            f32::is_sign_negative,
            |f: f32| f == 0.0,
        ] {
            assert!(floats.iter().filter(|f| kind(**f)).count() > 20);
        }
    }
}
