//! Always block: the strategy of most systems of 1991, and of a futex without spinning.
//!
//! Source: Karlin et al. 1991, section 2.2, `P_Always_Block`.

use super::{Contention, Policy};

/// Blocks at once.
///
/// Best where sections are long, where there is one processor, or where processor time must not be
/// spent on waiting. It costs C for every wait, however short: not competitive.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::AlwaysBlock};
/// let mutex = PolicyMutex::<_, AlwaysBlock>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysBlock;

impl Policy for AlwaysBlock {
    const INIT: Self = Self;

    #[inline]
    fn threshold(&self, _contention: &Contention) -> u64 {
        0
    }
}
