//! The recorder: a policy that has another decide, and counts the waits.

use lock_api::Mutex as LockApiMutex;
use stanchion_machine::atomic::{AtomicU32, Ordering};

use super::distribution::{Distribution, Observation};
use super::table::{self, Target, UNNAMED};
use crate::mutex::RawPolicyMutex;
use crate::policy::{Contention, Policy, Wait};

/// Counts the waits of a lock under its name. `P` decides how they are waited through.
///
/// Nothing happens while the lock is found free. The thread that got the lock counts a wait that
/// has ended, in a static table: a few stores. Locks of one name are counted together in a
/// [`snapshot`](super::snapshot), also those that were dropped.
///
/// At its first wait the lock takes a slot in the table. That searches at most
/// [`NAMES`](super::NAMES) names and [`SLOTS`](super::SLOTS) slots, and touches their memory for
/// the first time. It allocates nothing, opens no file and takes no lock. The clock, which is not
/// the recorder's, is made ready by `stanchion_machine::warm_up`.
///
/// A child of a fork goes on with a copy of its parent's counts; [`restart`](super::restart) begins
/// anew there.
///
/// The lock grows by a pointer, a length and 8 bytes.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, RawPolicyMutex, policy::LastThreeSamples};
/// use stanchion_competitive::waits::{Recorder, Waits as _};
///
/// static LOG: PolicyMutex<Vec<u8>, Recorder<LastThreeSamples>> = PolicyMutex::from_raw(
///     RawPolicyMutex::with_policy(Recorder::with_policy("log", LastThreeSamples::new())),
///     Vec::new(),
/// );
/// LOG.lock().push(1);
/// assert_eq!(LOG.waits().count(), 0); // No thread had to wait.
/// ```
#[derive(Debug)]
pub struct Recorder<P = crate::policy::Adaptive> {
    /// The slot where it counts, 0 before the first wait. Written by the lock's holder.
    target: AtomicU32,
    /// The name that it counts under.
    name: &'static str,
    /// The policy.
    policy: P,
}

impl Recorder {
    /// Returns a recorder under `name` around the default policy.
    ///
    /// At most [`MAX_NAME`](super::MAX_NAME) bytes of the name are kept. An empty name means
    /// [`UNNAMED`](super::UNNAMED). For names made while the program runs see
    /// [`intern`](super::intern).
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self::with_policy(name, crate::policy::Adaptive::new())
    }
}

impl<P> Recorder<P> {
    /// Returns a recorder under `name`, as [`named`](Recorder::named) does, around `policy`.
    #[must_use]
    pub const fn with_policy(name: &'static str, policy: P) -> Self {
        Self { target: AtomicU32::new(0), name, policy }
    }

    /// The policy that decides.
    #[must_use]
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    /// Returns the counts of this lock. A lock may have had to share a slot, because the table was
    /// full or 16 others of its name had one each. Then it returns all waits of its name.
    #[must_use]
    pub fn waits(&self) -> Distribution {
        // Relaxed: the table is static, and its counts are read as they are.
        match Target::from_bits(self.target.load(Ordering::Relaxed)) {
            None => Distribution::new(table::unit()),
            Some(target) => Distribution::reconcile(table::unit(), target.counters().0.read()),
        }
    }

    #[cold]
    fn settle(&self) -> Target {
        let target = Target::own(self.name);
        self.target.store(target.to_bits(), Ordering::Relaxed);
        target
    }
}

impl<P: Policy> Default for Recorder<P> {
    /// Returns a recorder without a name.
    fn default() -> Self {
        Self::INIT
    }
}

impl<P: Policy> Policy for Recorder<P> {
    const INIT: Self = Self::with_policy(UNNAMED, P::INIT);

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        self.policy.threshold(contention)
    }

    #[inline]
    fn keep_spinning(&self, contention: &Contention) -> bool {
        self.policy.keep_spinning(contention)
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        // Relaxed: only the lock's holder is here, and the lock orders its holders.
        let target = Target::from_bits(self.target.load(Ordering::Relaxed));
        let (counters, writers) = target.unwrap_or_else(|| self.settle()).counters();
        counters.add(&Observation::from(wait), table::unit(), writers);
        self.policy.adjust(wait);
    }

    #[inline]
    fn name(&self) -> Option<&str> {
        if self.name == UNNAMED { self.policy.name() } else { Some(self.name) }
    }
}

impl<P> Drop for Recorder<P> {
    fn drop(&mut self) {
        if let Some(target) = Target::from_bits(self.target.load(Ordering::Relaxed)) {
            target.leave();
        }
    }
}

impl From<&Wait> for Observation {
    #[inline]
    fn from(wait: &Wait) -> Self {
        Self {
            length_ns: wait.length(),
            spun_ns: wait.spun(),
            blocked: wait.blocks() > 0,
            wake_latency_ns: wait.wake_latency(),
            others: wait.others(),
            holder_changes: wait.holder_changes(),
        }
    }
}

/// The waits of a recorded mutex.
pub trait Waits {
    /// Returns the counts of this lock so far.
    ///
    /// ```
    /// use stanchion_competitive::{PolicyMutex, policy::RandomWalk};
    /// use stanchion_competitive::waits::{Recorder, Waits as _};
    /// let mutex = PolicyMutex::<_, Recorder<RandomWalk>>::new(0);
    /// *mutex.lock() += 1;
    /// assert_eq!(mutex.waits().count(), 0);
    /// ```
    #[must_use]
    fn waits(&self) -> Distribution;
}

impl<P, T: ?Sized> Waits for LockApiMutex<RawPolicyMutex<Recorder<P>>, T>
where
    P: Policy,
{
    fn waits(&self) -> Distribution {
        // SAFETY: only the policy is looked at; the lock is neither taken nor released.
        unsafe { self.raw() }.policy().waits()
    }
}
