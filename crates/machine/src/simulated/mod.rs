//! The simulated machine: a memory system charges every shared access, and time is virtual.
//!
//! The virtual threads are coroutines of one thread of the operating system, which runs them in the
//! order of their virtual time. An access is first charged, then done by the plain operation. No
//! other thread can run in between, so the results are sequentially consistent whatever the
//! orderings say. Weak orders are checked under loom.
//!
//! The files, and what each makes of the interface:
//!
//! - [`atomic`], [`cell`] and [`data`]: core's types, with each access charged to the line that the
//!   address lies in.
//! - [`instructions`]: the number that the code executes before each access, from a table.
//! - [`clock`]: virtual time, in nanoseconds of the code's clock.
//! - [`wait`]: between two looks a thread stands still until its word is written, or its policy
//!   would do something else than pause.
//! - [`park`]: the scheduler's own queue of a word.
//! - [`thread`] and [`topology`]: virtual threads and processors, known exactly.
//! - [`preemption`]: the scheduler honours requests.
//! - [`private`]: statics of one run, or of one virtual thread.
//! - [`asymmetric`]: nothing on the one side, interrupts on the other; or fences on both.
//! - [`model`]: a body, run a few times with different seeds.
//!
//! The rooms beside the seam have files for a simulation of their own: `presence/simulated.rs`,
//! `presence/watch/simulated.rs` and `stack/allocated.rs`.
//!
//! Outside a run, atomics and cells are plain memory and free of charge, so a test may read its
//! results when the run is over. Each function that waits, reads the time or starts a thread panics
//! there, and the panic names the call.

pub(crate) mod asymmetric;
pub(crate) mod atomic;
pub(crate) mod cell;
#[cfg(feature = "std")]
pub(crate) mod clock;
pub(crate) mod data;
#[cfg(feature = "std")]
#[path = "../fork_elsewhere.rs"]
pub(crate) mod fork;
pub(crate) mod instructions;
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
pub(crate) mod wait;

use stanchion_simulator::inside;

pub(crate) mod sync {
    pub use alloc::sync::Arc;
}

/// Makes a nondeterministic choice: a branch of the exploration under loom, always `false` here.
#[must_use]
#[inline]
pub fn choice() -> bool {
    false
}

/// Runs `body`, in which all atomics belong to a protocol that has models of its own, such as a
/// count of references. Under loom, other models take it as done at once.
#[inline]
pub fn apart<R>(body: impl FnOnce() -> R) -> R {
    body()
}

pub(crate) fn spin_loop() {
    inside::hint();
}

pub(crate) fn entropy() -> u64 {
    inside::entropy()
}

/// Returns how many processors the machine of this run has.
#[cfg(feature = "std")]
pub(crate) fn usable() -> usize {
    inside::processors()
}

#[cfg(feature = "std")]
pub(crate) use usable as online;
