//! Adaptive: the default.

use super::{Contention, Policy, RandomWalk, Wait};

/// The default policy.
#[derive(Debug)]
pub struct Adaptive {
    walk: RandomWalk,
}

impl Policy for Adaptive {
    const INIT: Self = Self { walk: RandomWalk::INIT };

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        self.walk.threshold(contention)
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        self.walk.adjust(wait);
    }
}
