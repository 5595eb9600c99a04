//! The real machine: core atomics, the operating system's threads, the kernel's futex.

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

pub(crate) mod wait {
    use crate::clock::Deadline;
    use crate::wait::WaitPolicy;

    /// What happens between two looks that found nothing: as the policy says.
    #[inline]
    pub(crate) fn between_looks(policy: &mut impl WaitPolicy) {
        policy.pause();
    }

    /// Whether this wait is one that will run into its deadline; the real machine finds out by waiting.
    #[inline]
    pub(crate) fn will_time_out(_deadline: Deadline) -> bool {
        false
    }

    /// Whether bounded spinning looks more than once.
    pub(crate) const SPINS: bool = true;
}
