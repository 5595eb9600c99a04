//! Loom's machine: every atomic operation is a branch of an exploration that visits all
//! interleavings.
//!
//! The files, and what each adds to loom:
//!
//! - [`asymmetric`]: both sides of the barrier are fences.
//! - [`world`]: the state of one execution: the objects behind `const fn new`, the script of
//!   choices, thread labels.
//! - [`atomic`] and [`cell`]: loom's types with `const fn new`. [`watched`] makes the explorer see
//!   every load.
//! - [`memory`]: the time at which a thread got a piece of memory. An object in it was made no
//!   earlier.
//! - [`model`]: runs a body under every script of choices, and counts executions.
//! - [`clock`]: no time passes. A deadline passes by choice, once, before the wait that has it.
//! - [`topology`]: there are two processors.
//! - [`data`]: computes nothing. Guarded data is in a [`cell`].
//! - [`preemption`]: requests are not honoured, but it is checked that they are taken back.
//! - [`park`]: a futex: one table, made of loom's mutex and condition variables ([`parked`]).
//! - [`thread`]: spawns threads with a label that is the same in every interleaving.
//!
//! The rooms beside the seam have files for loom of their own: `presence/loom.rs`,
//! `presence/watch/loom.rs` and `stack/allocated.rs`.

pub(crate) mod asymmetric;
pub(crate) mod atomic;
pub(crate) mod cell;
#[cfg(feature = "std")]
pub(crate) mod clock;
pub(crate) mod data;
#[cfg(feature = "std")]
#[path = "../fork_elsewhere.rs"]
pub(crate) mod fork;
mod memory;
pub(crate) mod model;
pub(crate) mod park;
mod parked;
#[cfg(feature = "std")]
pub(crate) mod preemption;
pub(crate) mod private;
#[cfg(feature = "std")]
pub(crate) mod thread;
#[cfg(feature = "std")]
pub(crate) mod topology;
mod watched;
mod world;

use world::World;

pub(crate) mod sync {
    pub use loom::sync::Arc;
}

/// Makes a nondeterministic choice: a branch of the exploration under loom, always `false` on the
/// real machine.
///
/// An algorithm under test uses it for what the real machine may do at will, such as waking without
/// a wake-up or letting a deadline pass. Only the first few choices of a thread are explored
/// ([`Model::choices`](crate::Model::choices)); later ones are `false`.
#[must_use]
pub fn choice() -> bool {
    World::current().choice()
}

/// Runs `body`, in which all atomics belong to a protocol that has models of its own, such as a
/// count of references. The protocol's own models explore it
/// ([`Model::apart`](crate::Model::apart)). Other models take it as done at once.
///
/// What `body` orders is ordered in either case. It must not wait. On the other machines `body`
/// just runs.
pub fn apart<R>(body: impl FnOnce() -> R) -> R {
    struct Explores;
    impl Drop for Explores {
        fn drop(&mut self) {
            loom::explore();
        }
    }
    let _explores = (!World::current().explores_apart()).then(|| {
        loom::stop_exploring();
        Explores
    });
    body()
}

/// Pauses inside a bounded wait: lets the other threads run, and prunes nothing.
pub(crate) fn spin_loop() {
    loom::thread::yield_now();
}

/// Returns the number of processors that policies see. No policy runs here.
#[cfg(feature = "std")]
pub(crate) fn usable() -> usize {
    2
}

#[cfg(feature = "std")]
pub(crate) use usable as online;

/// Returns the same number always: no delay in a model takes time.
pub(crate) fn entropy() -> u64 {
    1
}

pub(crate) mod wait {
    use crate::atomic::Word;
    use crate::clock::Deadline;
    use crate::wait::{Pauses, WaitPolicy};

    /// The state of a wait, which is empty: between two looks there is nothing to explore, whatever
    /// the wait looks at.
    pub(crate) struct Waiting;

    impl Waiting {
        pub(crate) fn on<W: Word>(_word: &W) -> Self {
            Self
        }

        pub(crate) fn on_until<W: Word>(_word: &W, _deadline: Deadline) -> Self {
            Self
        }

        pub(crate) fn in_attempts() -> Self {
            Self
        }

        /// Stops exploring here and lets the other threads run: a look that found nothing leads to
        /// no new state.
        pub(crate) fn between_looks(&mut self, _policy: &mut impl WaitPolicy) {
            loom::skip_branch();
            loom::thread::yield_now();
        }

        /// Returns false: a bounded wait looks once.
        pub(crate) fn within(&mut self, _budget: &mut Pauses) -> bool {
            false
        }
    }

    /// Does nothing: no time passes.
    pub(crate) fn delay(_nanos: u64) {}

    /// Bounded spinning looks only once: a budget of 0 covers both "gave up just before" and "saw
    /// it just in time".
    pub(crate) const SPINS: bool = false;

    /// Returns the length of a transfer, which no wait of a model takes.
    pub(crate) fn transfer_nanos() -> u64 {
        crate::wait::NOMINAL_TRANSFER_NS
    }

    /// Returns the length of a call, which no wait of a model takes.
    pub(crate) fn call_nanos() -> u64 {
        crate::wait::NOMINAL_CALL_NS
    }

    /// Returns `nanos`.
    pub(crate) fn as_measured(nanos: u64) -> u64 {
        nanos
    }

    /// Returns the length of a pause that a policy has not timed.
    pub(crate) fn pause_nanos() -> u64 {
        crate::wait::NOMINAL_PAUSE_NS
    }

    /// The clock is read at each pause, of which there are none.
    pub(crate) const PAUSES_PER_LOOK: u32 = 1;

    /// A timeout that is decided in advance: a wait that times out gives up after its first look,
    /// which may come at any time.
    pub(crate) struct Timeout(bool);

    impl Timeout {
        pub(crate) fn new(deadline: Deadline) -> Self {
            Self(deadline == Deadline::PAST || (deadline != Deadline::NEVER && super::choice()))
        }

        pub(crate) fn is_over(&mut self) -> bool {
            self.0
        }
    }
}
