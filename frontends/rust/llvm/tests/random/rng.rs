//! Random numbers by a seed (splitmix64).

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A number of which corner cases are frequent.
    pub fn number(&mut self) -> u64 {
        let corners = [
            0,
            1,
            2,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            i64::MAX as u64,
            1 << 63,
            u64::MAX,
            f64::to_bits(1.0),
            f64::to_bits(-0.0),
            f64::to_bits(f64::INFINITY),
            f64::to_bits(f64::NAN),
            f64::to_bits(1e10),
            f32::to_bits(2.5) as u64,
            f32::to_bits(f32::NEG_INFINITY) as u64,
            f32::to_bits(-3e9) as u64,
        ];
        match self.below(4) {
            0 => self.pick(&corners),
            1 => self.next() >> self.below(64),
            2 => (self.next() as i64 >> self.below(64)) as u64,
            _ => self.next(),
        }
    }
}
