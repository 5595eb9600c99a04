//! Always spin: busy waiting.
//!
//! Source: Karlin et al. 1991, section 2.2, `P_Always_Spin`.

use super::{Contention, Policy};

/// Spins for as long as it takes.
///
/// Best where every thread has a processor of its own and nothing else wants it. With more threads
/// than processors its waiters burn the time slices that the holder needs, and under a
/// strict-priority scheduler it may stop the program: not competitive.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::AlwaysSpin};
/// let mutex = PolicyMutex::<_, AlwaysSpin>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysSpin;

impl Policy for AlwaysSpin {
    const INIT: Self = Self;

    #[inline]
    fn threshold(&self, _contention: &Contention) -> u64 {
        u64::MAX
    }
}
