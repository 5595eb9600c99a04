//! Small seeded random numbers: xorshift64*, which is enough to spread stalls and attempts.

/// A generator. The same seed yields the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator for the `stream`th user of `seed`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        // Two rounds of splitmix64, so that neighbouring streams have nothing in common. The state
        // must not be 0.
        Self(mix(mix(seed) ^ stream) | 1)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`.
    ///
    /// # Panics
    ///
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.number() >> 16) % end
    }
}

/// Mixes the bits of `value` (the finalizer of splitmix64).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let of = |stream| {
            let mut random = Random::new(7, stream);
            [random.number(), random.number(), random.number()]
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn below_covers_its_range_and_no_more() {
        let mut random = Random::new(1, 1);
        let mut seen = [false; 5];
        for _ in 0..1_000 {
            seen[random.below(5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
