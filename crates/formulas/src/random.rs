//! A small seeded source of randomness for the Monte-Carlo checks.
//!
//! Why not a crate: a study must print the same number for the same seed on every machine and in
//! every later release, and this one has nothing to upgrade. xoshiro256** (Blackman and Vigna,
//! "Scrambled linear pseudorandom number generators", ACM TOMS 2021), its state filled by
//! SplitMix64 as its authors advise. Not for secrets.

/// xoshiro256**, seeded with one word; the same seed gives the same sequence everywhere.
///
/// ```
/// use stanchion_formulas::Random;
/// let mut a = Random::new(7);
/// let mut b = Random::new(7);
/// assert_eq!(a.next_u64(), b.next_u64());
/// assert!(a.below(6) < 6);
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    /// The state of xoshiro256.
    state: [u64; 4],
}

impl Random {
    /// A source that starts from `seed`; every seed, 0 included, is a good one.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut filler = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut filler)) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let out = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        out
    }

    /// A number from 0 up to, never reaching, 1: 53 random bits as a fraction, so each multiple of
    /// 2⁻⁵³ is equally likely.
    ///
    /// ```
    /// let unit = stanchion_formulas::Random::new(7).unit();
    /// assert!((0.0..1.0).contains(&unit));
    /// ```
    pub fn unit(&mut self) -> f64 {
        const FRACTION: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * FRACTION
    }

    /// A number below `bound`, each equally likely (Lemire's multiplication with rejection, so
    /// there is no modulo bias).
    ///
    /// # Panics
    ///
    /// If `bound` is 0: there is no such number.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "Random::below(0): no number lies below 0; pass a bound of at least 1");
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= unfair {
                return (wide >> 64) as u64;
            }
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of the authors' C code, its state filled by their SplitMix64 from seed 0.
    #[test]
    fn agrees_with_the_published_generator() {
        let mut filler = 0;
        assert_eq!(split_mix(&mut filler), 0xe220_a839_7b1d_cdaf);
        assert_eq!(split_mix(&mut filler), 0x6e78_9e6a_a1b9_65f4);
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!(random.next_u64(), 11520);
        assert_eq!(random.next_u64(), 0);
        assert_eq!(random.next_u64(), 1_509_978_240);
    }

    #[test]
    fn below_reaches_every_value_about_equally_often() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[random.below(7) as usize] += 1;
        }
        // Standard deviation of each count is 93; five of them either way.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 465), "{seen:?}");
    }

    #[test]
    fn unit_is_spread_evenly_over_its_range() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 8];
        for _ in 0..80_000 {
            seen[(random.unit() * 8.0) as usize] += 1;
        }
        // Standard deviation of each count is 94; five of them either way.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 470), "{seen:?}");
    }

    #[test]
    #[should_panic(expected = "pass a bound of at least 1")]
    fn below_nothing_is_refused() {
        Random::new(0).below(0);
    }
}
