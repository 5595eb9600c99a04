//! Policies: how long may this wait spin? A [`Policy`] answers that, and gets the length of the
//! wait afterwards.
//!
//! Nothing else varies between the mutexes of this crate: one slow path
//! ([`PolicyMutex`](crate::PolicyMutex)) waits for all of them.
//!
//! | policy | spins for | learns | size of a mutex |
//! | --- | --- | --- | --- |
//! | [`AlwaysBlock`] | nothing | nothing | 8 |
//! | [`AlwaysSpin`] | as long as it takes | nothing | 8 |
//! | [`FixedSpin`] | C, or a share of it | nothing | 8 |
//! | [`OptimalOnline`] | the threshold it was given | nothing | 12 |
//! | [`OptimalOnlineApproximation`] | the best time for this lock's waits | a histogram | 12 |
//! | [`LastThreeSamples`] | the best time for the last three waits | three waits | 12 |
//! | [`RandomWalk`] | a length that every wait moves one step | one length | 12 |
//! | [`Randomized`] | a random length up to C | nothing | 8 |
//! | [`HolderAware`] | while the holder is on a processor | as its fall-back | 12 |
//! | [`Adaptive`] | see there: the default | | 12 |
//!
//! The histogram lies beside the lock. C is the cost of blocking and being woken, see
//! [`cost`](crate::cost). The first seven are those of Karlin, Li, Manasse and Owicki (1991), under
//! their names, and stand in the order of that paper.

/// Gives a policy its plain constructor, for the default parameter, and `Default`, for any.
macro_rules! constructors {
    ($policy:ident $(<$parameter:ident>)?) => {
        impl $policy {
            /// Returns the policy of a lock that has seen no wait yet, with the default parameter
            /// if there is one. [`INIT`](Policy::INIT) is that with any parameter.
            #[must_use]
            pub const fn new() -> Self {
                Self::INIT
            }
        }

        impl$(<const $parameter: u32>)? Default for $policy$(<$parameter>)? {
            fn default() -> Self {
                Self::INIT
            }
        }
    };
}

mod adaptive;
mod always_block;
mod always_spin;
mod fixed_spin;
mod holder_aware;
mod last_three_samples;
mod optimal_online;
mod optimal_online_approximation;
mod random_walk;
mod randomized;
mod table;

pub use adaptive::Adaptive;
pub use always_block::AlwaysBlock;
pub use always_spin::AlwaysSpin;
pub use fixed_spin::FixedSpin;
pub use holder_aware::HolderAware;
pub use last_three_samples::LastThreeSamples;
pub use optimal_online::OptimalOnline;
pub use optimal_online_approximation::OptimalOnlineApproximation;
pub use random_walk::RandomWalk;
pub use randomized::Randomized;

/// Decides for one lock how long its waits may spin. Lives in the lock.
///
/// # Contract
///
/// [`adjust`](Self::adjust) is called by the thread that has just got the lock, so never by two at
/// once. Any number of waiters call [`threshold`](Self::threshold) and
/// [`keep_spinning`](Self::keep_spinning) meanwhile. Both must be short: they run while others
/// wait. If one panics, the lock is released and the panic goes on. It ends the process if it comes
/// where a guard's lock is acquired again: in `unlocked`, in `bump`, in the wait of a condition
/// variable. They must not fork, and must not lock the lock that they are asked about. A thread
/// with a policy that has taken the lock meanwhile holds it already, and panics as such.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::{Contention, Policy}};
///
/// /// Spins for a microsecond unless a thread sleeps already.
/// struct Brief;
///
/// impl Policy for Brief {
///     const INIT: Self = Self;
///     fn threshold(&self, contention: &Contention) -> u64 {
///         if contention.sleepers() > 0 { 0 } else { 1_000 }
///     }
/// }
///
/// let mutex = PolicyMutex::<_, Brief>::new(5);
/// assert_eq!(*mutex.lock(), 5);
/// ```
pub trait Policy: Send + Sync {
    /// The policy of a lock that has seen no wait yet.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self;

    /// True if [`adjust`](Self::adjust) receives all waits. If false, a wait that ends within its
    /// first looks is not timed and not reported. So it neither looks later nor holds the lock
    /// longer because of the policy.
    const TIMES_ALL_WAITS: bool = true;

    /// For how many nanoseconds this wait may spin before it blocks; `u64::MAX` for as long as it
    /// takes, without [`keep_spinning`](Self::keep_spinning) being asked. Asked when the wait
    /// begins, and again when a thread that has blocked was woken but did not get the lock.
    fn threshold(&self, contention: &Contention) -> u64;

    /// Returns whether a wait goes on spinning. It is asked again and again while the lock is held
    /// and the threshold is not reached, with at most C between two questions. It is not asked
    /// during the first looks if the policy does not [time all waits](Self::TIMES_ALL_WAITS).
    #[inline]
    fn keep_spinning(&self, contention: &Contention) -> bool {
        let _ = contention;
        true
    }

    /// Receives the length of a wait that has ended with the lock.
    #[inline]
    fn adjust(&self, wait: &Wait) {
        let _ = wait;
    }

    /// Returns the name of this lock in messages, if it has one.
    #[inline]
    fn name(&self) -> Option<&str> {
        None
    }
}

/// The state of a lock, as a waiter sees it.
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// The number of the holder, if it is known.
    pub(crate) holder: Option<usize>,
    /// The number of other waiters that spin.
    pub(crate) spinners: u32,
    /// The number of other waiters that sleep.
    pub(crate) sleepers: u32,
    /// The number of times that this wait has blocked.
    pub(crate) blocks: u32,
    /// C, in nanoseconds.
    pub(crate) cost: u64,
}

impl Contention {
    /// Returns the state for a waiter that has just come and knows of no others. It is for a lock
    /// outside this crate that asks a policy. A `cost` of 0 is taken for 1.
    ///
    /// ```
    /// use stanchion_competitive::policy::{Contention, FixedSpin, Policy};
    /// let alone = Contention::new(None, 700);
    /// assert_eq!((alone.cost(), alone.spinners()), (700, 0));
    /// assert!(<FixedSpin>::INIT.threshold(&alone) > 0);
    /// ```
    #[must_use]
    pub const fn new(holder: Option<usize>, cost: u64) -> Self {
        let cost = if cost == 0 { 1 } else { cost };
        Self { holder, spinners: 0, sleepers: 0, blocks: 0, cost }
    }

    /// The same with so many others that spin and sleep.
    #[must_use]
    pub const fn with_others(mut self, spinners: u32, sleepers: u32) -> Self {
        self.spinners = spinners;
        self.sleepers = sleepers;
        self
    }

    /// The same after so many wake-ups in vain.
    #[must_use]
    pub const fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks;
        self
    }

    /// The holder's [`thread::index`](stanchion_machine::thread::index), when the waiter last
    /// looked; `None` if the lock was free or its holder has none.
    #[inline]
    #[must_use]
    pub fn holder(&self) -> Option<usize> {
        self.holder
    }

    /// Returns how many other threads were spinning for this lock: those that have done so for more
    /// than half of C. A hint.
    #[inline]
    #[must_use]
    pub fn spinners(&self) -> u32 {
        self.spinners
    }

    /// Returns how many other threads were asleep for it. A hint.
    #[inline]
    #[must_use]
    pub fn sleepers(&self) -> u32 {
        self.sleepers
    }

    /// Returns how often this wait has blocked already, and was woken in vain.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns C, the cost of blocking, in nanoseconds. Never 0.
    #[inline]
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }
}

/// A wait that ended with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The time that the lock was not to be had, in nanoseconds.
    pub(crate) length: u64,
    /// The part of it that was spun.
    pub(crate) spun: u64,
    /// The number of times that the wait blocked.
    pub(crate) blocks: u32,
    /// The time from the last release to running again, in nanoseconds, if it blocked.
    pub(crate) wake_latency: Option<u64>,
    /// The number of other waiters when it began.
    pub(crate) others: u32,
    /// The number of times that the holder was seen to change.
    pub(crate) holder_changes: u32,
    /// C, in nanoseconds.
    pub(crate) cost: u64,
}

impl Wait {
    /// A wait of so many nanoseconds spun and blocked, until the release each time, for a lock
    /// outside this crate. Nothing is known of other waiters.
    ///
    /// ```
    /// use stanchion_competitive::policy::Wait;
    /// let wait = Wait::new(300, 900, 1, 700);
    /// assert_eq!((wait.length(), wait.spun(), wait.blocked()), (1_200, 300, 900));
    /// ```
    #[must_use]
    pub const fn new(spun: u64, blocked: u64, blocks: u32, cost: u64) -> Self {
        let cost = if cost == 0 { 1 } else { cost };
        let length = spun.saturating_add(blocked);
        Self { length, spun, blocks, wake_latency: None, others: 0, holder_changes: 0, cost }
    }

    /// Returns the time that the lock was not to be had, in nanoseconds: spinning, and blocked
    /// *until the release* that woke the thread. The time between that release and the thread's
    /// running again is not part of it.
    ///
    /// This is the paper's `spinsWaited` (section 2.5), in time.
    #[inline]
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the part of it that was spun, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn spun(&self) -> u64 {
        self.spun
    }

    /// Returns the part of it that passed asleep, each time until the release, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.length - self.spun
    }

    /// Returns the number of times that it blocked.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// From the last release that woke the thread to its running again, in nanoseconds: what
    /// blocking cost this time.
    #[inline]
    #[must_use]
    pub fn wake_latency(&self) -> Option<u64> {
        self.wake_latency
    }

    /// Returns how many other threads waited when it began: slept, or had been spinning for more
    /// than half of C.
    #[inline]
    #[must_use]
    pub fn others(&self) -> u32 {
        self.others
    }

    /// Returns how often the waiter saw the lock change hands without getting it.
    #[inline]
    #[must_use]
    pub fn holder_changes(&self) -> u32 {
        self.holder_changes
    }

    /// C, as it was taken to be during this wait, in nanoseconds. Never 0.
    #[inline]
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }
}

/// A length in hundredths of C. Policies keep their state in this unit: C itself is measured while
/// the program runs.
///
/// The paper counts in spins, 200 of which are C: half a hundredth each.
pub(crate) mod percent {
    /// Observations longer than this are taken to be this long: the paper's 1008 spins.
    pub(crate) const CAP: u64 = 504;

    /// `length` in hundredths of `cost`, rounded up to a multiple of `step`, at most [`CAP`].
    #[inline]
    pub(crate) fn of(length: u64, cost: u64, step: u64) -> u64 {
        let step = step.max(1);
        let hundredths = (u128::from(length) * 100).div_ceil(cost.max(1).into());
        u64::try_from(hundredths).unwrap_or(CAP).min(CAP).next_multiple_of(step)
    }

    /// The nanoseconds of so many hundredths of `cost`.
    #[inline]
    pub(crate) fn nanos(hundredths: u64, cost: u64) -> u64 {
        cost.saturating_mul(hundredths) / 100
    }
}

#[cfg(test)]
impl Contention {
    /// Returns the state with no other waiter, a holder without a number, and that C.
    pub(crate) fn of_cost(cost: u64) -> Self {
        Self { holder: None, spinners: 0, sleepers: 0, blocks: 0, cost }
    }
}

#[cfg(test)]
impl Wait {
    /// A wait of that length, spun through, with that C.
    pub(crate) fn of(length: u64, cost: u64) -> Self {
        Self {
            length,
            spun: length,
            blocks: 0,
            wake_latency: None,
            others: 0,
            holder_changes: 0,
            cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn hundredths_round_up_and_end() {
        assert_eq!(percent::of(0, 10_000, 8), 0);
        assert_eq!(percent::of(1, 10_000, 8), 8);
        assert_eq!(percent::of(10_000, 10_000, 8), 104);
        assert_eq!(percent::of(u64::MAX, 10_000, 8), 504);
        assert_eq!(percent::of(u64::MAX, u64::MAX, 32), 128);
        assert_eq!(percent::of(u64::MAX, 0, 32), 512);
        assert_eq!(percent::of(5, 0, 0), 500);
        assert_eq!(percent::nanos(504, u64::MAX), u64::MAX / 100);
    }
}
