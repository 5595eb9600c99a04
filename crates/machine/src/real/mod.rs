//! The real machine: core atomics, the operating system's threads, the kernel's futex.

pub(crate) mod asymmetric;
pub(crate) mod atomic;
pub(crate) mod cell;
#[cfg(feature = "std")]
pub(crate) mod clock;
#[cfg(feature = "std")]
pub(crate) mod kernel;
pub(crate) mod model;
#[cfg(feature = "std")]
pub(crate) mod park;
#[cfg(feature = "std")]
pub(crate) mod presence;
pub(crate) mod private;
#[cfg(feature = "std")]
pub(crate) mod switches;
#[cfg(feature = "std")]
pub(crate) mod thread;
#[cfg(feature = "std")]
pub(crate) mod topology;

pub(crate) mod sync {
    pub use alloc::sync::Arc;
}

/// A nondeterministic choice: a branch of the exploration under loom, always `false` on the real machine.
///
/// An algorithm under test uses it for what the real machine may do at will: wake without a wake-up, let a deadline pass.
#[must_use]
#[inline]
pub fn choice() -> bool {
    false
}

#[inline]
pub(crate) fn spin_loop() {
    core::hint::spin_loop();
}

/// How many processors there are, looked up once: a waiter asks often.
///
/// Of the whole machine, not of the caller: threads pinned to one processor each would otherwise all take theirs for the only one.
#[cfg(feature = "std")]
#[inline]
pub(crate) fn processors() -> usize {
    use core::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    #[cold]
    fn count() -> usize {
        #[cfg(unix)]
        // SAFETY: `sysconf` reads no memory of ours.
        let online = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) });
        #[cfg(not(unix))]
        let online = std::thread::available_parallelism().map(core::num::NonZero::get);
        online.unwrap_or(1).max(1)
    }

    // Relaxed: a number that everyone computes alike.
    match COUNT.load(Ordering::Relaxed) {
        0 => {
            let count = count();
            COUNT.store(count, Ordering::Relaxed);
            count
        }
        count => count,
    }
}

pub(crate) mod wait {
    use crate::clock::Deadline;
    use crate::wait::WaitPolicy;

    /// What happens between two looks that found nothing: as the policy says.
    #[inline]
    pub(crate) fn between_looks(policy: &mut impl WaitPolicy) {
        policy.pause();
    }

    /// Whether bounded spinning looks more than once.
    pub(crate) const SPINS: bool = true;

    /// A look costs less than reading the clock, but the policy may sleep between two looks: so the clock is read at each.
    pub(crate) struct Timeout(Deadline);

    impl Timeout {
        #[inline]
        pub(crate) fn new(deadline: Deadline) -> Self {
            Self(deadline)
        }

        /// Whether the deadline has passed.
        #[inline]
        pub(crate) fn is_over(&mut self) -> bool {
            self.0.passed()
        }
    }
}
