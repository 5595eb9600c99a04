//! Adaptive: the default, a random walk with longer legs, one spinner at a time.
//!
//! Its parts, and the reasons (`cargo study regret` shows the result):
//!
//! - It spins for up to [`LIMIT`](Adaptive) times C. C is the time of a wake-up at best. To the
//!   throughput of two threads that meet often, blocking costs several times that, since the lock
//!   stands idle meanwhile.
//! - One thread spins at a time. A second one slows the holder down and cannot have the lock before
//!   the first.
//! - It spins again after having been woken in vain: the lock has just been released once, so it is
//!   a busy one.
//! - It steps down only if the lock was *held* for long while the thread slept. A wait that was
//!   long because other threads overtook is no evidence against spinning.
//! - It does not spin if the process may use one processor only: the holder could not run
//!   meanwhile.
//! - It spins for C at most where processor time is known to be rationed: a quota is spent by
//!   spinning as by work. The quota is written in files, which a wait does not open. It is known
//!   once the program has called [`stanchion_machine::warm_up`], [`topology::quota`] or
//!   [`topology::parallelism`], as the pools of this project do.
//!
//! Other limits, of 4, 8, 32 and 64 times C, take part in `cargo study regret --sweep`.
//! [`HolderAware`](super::HolderAware), which asks whether the holder runs, always takes part, and
//! is level.
//!
//! Some variants were tried while it was made, and left out. They are not in the repository, so
//! there are no figures:
//!
//! - No spinning while another thread sleeps: it lost in sections of 10 µs.
//! - No second spin after a wake-up, and several spinners: their mean regret was higher.
//! - Spinning on while the kernel counts no more runnable threads than processors, the paper's
//!   condition (a): it reads a file at each wait, and lost where the holder sleeps.
//!
//! # Orderings
//!
//! All are Relaxed: the words are numbers by themselves. A waiter that reads an old one spins for
//! an old threshold.
//!
//! Source: the walk is Karlin et al. 1991, section 2.5. One spinner at a time is Go's runtime
//! (2024). Not counting overtakings is HotSpot's rule, which does not punish a spin that ended
//! because the owner changed.

use super::{Contention, Policy, Wait};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::topology;

/// The default policy: spins for a learnt time of at most `LIMIT` times C, one thread at a time.
///
/// It does not spin if the process may use one processor only. Under a quota of processor time it
/// spins for C at most, once the quota is known: a wait does not read it,
/// [`stanchion_machine::warm_up`] does.
///
/// ```
/// use stanchion_competitive::{Mutex, PolicyMutex, policy::Adaptive};
/// let by_default: Mutex<i32> = Mutex::new(1);
/// let by_name = PolicyMutex::<_, Adaptive>::new(1);
/// assert_eq!(*by_default.lock(), *by_name.lock());
/// ```
#[derive(Debug)]
pub struct Adaptive<const LIMIT: u32 = 16> {
    /// In hundredths of the limit.
    threshold: AtomicU32,
}

constructors!(Adaptive<LIMIT>);

/// In hundredths of the limit.
const STEP: u32 = 8;

/// The processors of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Processors {
    /// One at a time.
    One,
    /// Several, with less of their time than there could be.
    Rationed,
    Several,
}

impl Processors {
    /// Two loads: neither question opens a file.
    #[inline]
    fn here() -> Self {
        Self::of(topology::usable(), topology::known_quota())
    }

    #[inline]
    fn of(count: usize, quota: Option<usize>) -> Self {
        match quota {
            _ if count <= 1 => Self::One,
            Some(0 | 1) => Self::One,
            Some(quota) if quota < count => Self::Rationed,
            _ => Self::Several,
        }
    }
}

impl<const LIMIT: u32> Policy for Adaptive<LIMIT> {
    const INIT: Self = Self { threshold: AtomicU32::new(100) };
    const TIMES_ALL_WAITS: bool = false;

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        let limit = match Processors::here() {
            Processors::One => return 0,
            Processors::Rationed => contention.cost(),
            Processors::Several => contention.cost() * u64::from(LIMIT),
        };
        if contention.spinners() > 0 {
            return 0;
        }
        limit * u64::from(self.threshold.load(Ordering::Relaxed)) / 100
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        let threshold = self.threshold.load(Ordering::Relaxed);
        // From going to sleep to the release that ended it.
        let held = wait.blocked().checked_div(wait.blocks().into());
        let too_long = held.is_some_and(|held| held > wait.cost() * u64::from(LIMIT) / 2);
        let threshold =
            if too_long { threshold.saturating_sub(STEP) } else { (threshold + STEP).min(100) };
        self.threshold.store(threshold, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_processors_there_are() {
        use Processors::{One, Rationed, Several};
        assert_eq!(Processors::of(1, None), One);
        assert_eq!(Processors::of(8, Some(1)), One);
        assert_eq!(Processors::of(8, Some(2)), Rationed);
        assert_eq!(Processors::of(2, Some(2)), Several);
        assert_eq!(Processors::of(2, None), Several);
    }

    #[test]
    fn a_lock_that_is_held_for_long_is_not_spun_for() {
        let policy = Adaptive::<16>::INIT;
        let slept = |held| Wait { length: held, spun: 0, blocks: 1, ..Wait::of(0, 1_000) };
        for _ in 0..13 {
            policy.adjust(&slept(8_001));
        }
        assert_eq!(policy.threshold.load(Ordering::Relaxed), 0);
        // Overtaken for a long time, by short sections.
        policy.adjust(&Wait { length: 80_000, spun: 0, blocks: 10, ..Wait::of(0, 1_000) });
        assert_eq!(policy.threshold.load(Ordering::Relaxed), 8);
        for _ in 0..20 {
            policy.adjust(&Wait::of(1_000_000, 1_000));
        }
        assert_eq!(policy.threshold.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn one_spins_at_a_time() {
        let policy = Adaptive::<16>::INIT;
        let alone = Contention::of_cost(1_000);
        let second = Contention { spinners: 1, ..alone };
        assert_eq!(policy.threshold(&second), 0);
        if Processors::here() == Processors::Several {
            assert_eq!(policy.threshold(&alone), 16_000);
        }
    }
}
