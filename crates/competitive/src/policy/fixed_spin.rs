//! Fixed spin: as long as blocking would cost.
//!
//! Why that long: a thread that knew the future would pay the lesser of the wait and C. This policy
//! pays at most twice that, and no fixed rule can promise less.
//!
//! Source: Karlin et al. 1991, section 2.4.

use super::{Contention, Policy, percent};

/// Spins for `PERCENT` hundredths of C, then blocks. With 100 it costs at most 2 times the off-line
/// optimum, with 50 at most 3 times: on many real locks less, because most waits are short.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::FixedSpin};
/// let whole = PolicyMutex::<_, FixedSpin>::new(1);
/// let half = PolicyMutex::<_, FixedSpin<50>>::new(1);
/// assert_eq!(*whole.lock(), *half.lock());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedSpin<const PERCENT: u32 = 100>;

constructors!(FixedSpin<PERCENT>);

impl<const PERCENT: u32> Policy for FixedSpin<PERCENT> {
    const INIT: Self = Self;

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() > 0 { 0 } else { percent::nanos(PERCENT.into(), contention.cost()) }
    }
}
