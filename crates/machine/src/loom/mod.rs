//! Loom's machine: every atomic operation is a branch of an exploration that visits all interleavings.
//!
//! | file | what it adds to loom |
//! | --- | --- |
//! | [`asymmetric`] | both sides of the barrier are fences |
//! | [`world`] | what one execution owns: the objects behind `const fn new`, the script of choices, thread labels |
//! | [`atomic`], [`cell`] | loom's types with `const fn new` |
//! | [`memory`] | when a thread got a piece of memory: an object in it was made no earlier |
//! | [`model`] | runs a body under every script of choices, counts executions |
//! | [`clock`] | no time passes; a deadline passes by choice, once, before the wait that has it |
//! | [`presence`], [`topology`] | threads are seen, or not, by choice; there are two processors |
//! | [`data`] | nothing is computed; guarded data is in a [`cell`] |
//! | [`preemption`] | requests are not honoured; whether they are taken back is checked |
//! | [`park`] | a futex: one table, made of loom's mutex and condition variables |
//! | [`watch`] | a switch is seen by choice; the sleeper's word is explored |
//! | [`thread`] | spawn with a label that is the same in every interleaving |

pub(crate) mod asymmetric;
pub(crate) mod atomic;
pub(crate) mod cell;
#[cfg(feature = "std")]
pub(crate) mod clock;
#[cfg(feature = "std")]
#[path = "../control_elsewhere.rs"]
pub(crate) mod control;
pub(crate) mod data;
#[cfg(feature = "std")]
#[path = "../fork_elsewhere.rs"]
pub(crate) mod fork;
mod memory;
pub(crate) mod model;
pub(crate) mod park;
#[cfg(feature = "std")]
pub(crate) mod preemption;
#[cfg(feature = "std")]
pub(crate) mod presence;
pub(crate) mod private;
#[cfg(feature = "std")]
#[path = "../stack_allocated.rs"]
pub(crate) mod stack;
#[cfg(feature = "std")]
pub(crate) mod thread;
#[cfg(feature = "std")]
pub(crate) mod topology;
#[cfg(feature = "std")]
pub(crate) mod watch;
mod world;

use world::World;

pub(crate) mod sync {
    pub use loom::sync::Arc;
}

/// A nondeterministic choice: a branch of the exploration under loom, always `false` on the real machine.
///
/// An algorithm under test uses it for what the real machine may do at will: wake without a wake-up, let a deadline pass.
/// Only the first few choices of a thread are explored ([`Model::choices`](crate::Model::choices)); later ones are `false`.
#[must_use]
pub fn choice() -> bool {
    World::current().choice()
}

/// Runs `body`, whose atomics serve a protocol that has models of its own: a count of references, say. Other models take it for done at once;
/// those explore it ([`Model::apart`](crate::Model::apart)).
///
/// What `body` orders is ordered in either case. It must not wait. On the other machines it just runs.
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

/// A pause inside a bounded wait: lets the others run, prunes nothing.
pub(crate) fn spin_loop() {
    loom::thread::yield_now();
}

/// Two, as far as a policy can tell; no policy runs here.
#[cfg(feature = "std")]
pub(crate) fn usable() -> usize {
    2
}

#[cfg(feature = "std")]
pub(crate) use usable as online;

/// The same for all: no delay in a model takes time.
pub(crate) fn entropy() -> u64 {
    1
}

pub(crate) mod wait {
    use crate::atomic::Word;
    use crate::clock::Deadline;
    use crate::wait::{Pauses, WaitPolicy};

    /// Between two looks there is nothing to explore, whatever is looked at.
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

        /// A look that found nothing leads nowhere new: stop exploring here, let the others run.
        pub(crate) fn between_looks(&mut self, _policy: &mut impl WaitPolicy) {
            loom::skip_branch();
            loom::thread::yield_now();
        }

        /// A bounded wait looks once.
        pub(crate) fn within(&mut self, _budget: &mut Pauses) -> bool {
            false
        }
    }

    /// No time passes.
    pub(crate) fn delay(_nanos: u64) {}

    /// Whether bounded spinning looks more than once: no, a budget of 0 covers "gave up just before" and "saw it just in time".
    pub(crate) const SPINS: bool = false;

    /// How long a policy takes a pause to last that it did not time.
    pub(crate) fn pause_nanos() -> u64 {
        crate::wait::NOMINAL_PAUSE_NS
    }

    /// Time is asked at each pause, of which there are none.
    pub(crate) const PAUSES_PER_LOOK: u32 = 1;

    /// Decided in advance: a wait that times out gives up after its first look, which may come at any time.
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
