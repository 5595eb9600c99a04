//! The real machine: core atomics, the operating system's threads, the kernel's futex.

#[cfg(all(feature = "std", any(target_os = "linux", target_os = "android"), not(miri)))]
pub(crate) mod advice;
pub(crate) mod asymmetric;
pub(crate) mod atomic;
pub(crate) mod cell;
#[cfg(feature = "std")]
pub(crate) mod clock;
pub(crate) mod data;
#[cfg(all(feature = "std", target_os = "linux", not(miri)))]
pub(crate) mod errno;
#[cfg(all(feature = "std", unix, not(miri)))]
pub(crate) mod fork;
#[cfg(all(feature = "std", not(all(unix, not(miri)))))]
#[path = "../fork_elsewhere.rs"]
pub(crate) mod fork;
pub(crate) mod model;
#[cfg(feature = "std")]
pub(crate) mod park;
#[cfg(feature = "std")]
pub(crate) mod preemption;
pub(crate) mod private;
#[cfg(feature = "std")]
pub(crate) mod thread;
#[cfg(feature = "std")]
pub(crate) mod topology;
mod units;

#[cfg(feature = "alloc")]
pub(crate) mod sync {
    pub use alloc::sync::Arc;
}

/// A nondeterministic choice: a branch of the exploration under loom, always `false` on the real
/// machine.
///
/// An algorithm under test uses it for acts that the real machine is free to do: to wake without a
/// wake-up, to let a deadline pass.
#[must_use]
#[inline]
pub fn choice() -> bool {
    false
}

/// Runs `body`. Its atomics serve a protocol that has models of its own: a count of references,
/// say. Other models take it for done at once (loom only).
#[inline]
pub fn apart<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[inline]
pub(crate) fn spin_loop() {
    core::hint::spin_loop();
}

#[cfg(feature = "std")]
pub(crate) use topology::{online, usable};

/// Differs between threads, which is what counts: their stacks lie apart.
pub(crate) fn entropy() -> u64 {
    let here = 0_u8;
    (&raw const here).addr() as u64
}

pub(crate) mod wait {
    use crate::atomic::Word;
    use crate::clock::Deadline;
    use crate::wait::{Pauses, WaitPolicy};

    /// Between two looks it is as the policy says, whatever is looked at.
    pub(crate) struct Waiting;

    impl Waiting {
        #[inline]
        pub(crate) fn on<W: Word>(_word: &W) -> Self {
            Self
        }

        #[inline]
        pub(crate) fn on_until<W: Word>(_word: &W, _deadline: Deadline) -> Self {
            Self
        }

        #[inline]
        pub(crate) fn in_attempts() -> Self {
            Self
        }

        /// The last look found nothing.
        #[inline]
        pub(crate) fn between_looks(&mut self, policy: &mut impl WaitPolicy) {
            policy.pause();
        }

        /// The last look of a bounded wait found nothing; whether there is another one.
        #[inline]
        pub(crate) fn within(&mut self, budget: &mut Pauses) -> bool {
            budget.pause()
        }
    }

    #[inline]
    pub(crate) fn delay(nanos: u64) {
        let mut budget = Pauses::within(nanos);
        while budget.pause() {}
    }

    /// True if bounded spinning looks more than once.
    pub(crate) const SPINS: bool = true;

    pub(crate) use super::units::{call_nanos, transfer_nanos};

    /// Returns `nanos`.
    #[inline]
    pub(crate) fn as_measured(nanos: u64) -> u64 {
        nanos
    }

    /// Returns the length that a policy assumes for a pause that it did not time.
    pub(crate) fn pause_nanos() -> u64 {
        crate::wait::NOMINAL_PAUSE_NS
    }

    /// Reading the clock costs about as much as one pause.
    #[cfg(feature = "std")]
    pub(crate) const PAUSES_PER_LOOK: u32 = 4;

    /// A look costs less than reading the clock, but the policy may sleep between two looks: so the
    /// clock is read at each.
    pub(crate) struct Timeout(Deadline);

    impl Timeout {
        #[inline]
        pub(crate) fn new(deadline: Deadline) -> Self {
            Self(deadline)
        }

        /// Returns whether the deadline has passed.
        #[inline]
        pub(crate) fn is_over(&mut self) -> bool {
            self.0.passed()
        }
    }
}
