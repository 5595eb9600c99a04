//! Random numbers that are the same on every run with the same seed.

/// A small generator (splitmix64): for choosing operations and delays, not for secrets.
///
/// ```
/// use stanchion_linearizability::Random;
///
/// let mut random = Random::new(7);
/// let dice: Vec<_> = (0..100).map(|_| random.below(6)).collect();
/// assert!(dice.iter().all(|number| *number < 6));
/// assert_eq!(Random::new(7).below(6), dice[0]);
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, each about as often; 0 if `limit` is 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.number() as u128 * limit as u128) >> 64) as u64
    }

    /// Returns `true` once in `times` calls, at random.
    pub const fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
