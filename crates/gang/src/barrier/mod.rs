//! Barriers: nobody goes on before all have come.
//!
//! | file | barrier | members wait by |
//! | --- | --- | --- |
//! | `central.rs` | [`Central`] | watching one word, in the end sleeping |
//! | `bit_mask.rs` | [`BitMask`] | watching a verdict, while a mask tells which members are missing; in the end sleeping |
//! | `co_resident.rs` | [`CoResident`] | watching one word while those who are missing run, else yielding or sleeping |
//! | `tree.rs` | [`Tree`] | watching their children, then a verdict, in the end sleeping |
//! | `dissemination.rs` | [`Dissemination`] | watching another member in each round, in the end sleeping |
//! | `blocking.rs` | [`Blocking`] | sleeping |
//! | `two_phase.rs` | [`TwoPhase`] | watching one word for a time, then sleeping |
//! | `yielding.rs` | [`Yielding`] | giving the processor away, and counting how often |
//!
//! What they share is here: the trait, who waits ([`Waiter`]), and how a barrier ends before its
//! time ([`Broken`]).
//!
//! # Invariants
//!
//! 1. A phase is crossed by all or broken for all. Which of the two is decided by one write to one
//!    word.
//! 2. Who was in a phase that has been crossed gets [`Crossing`], whatever happens to the barrier
//!    afterwards.
//! 3. Broken is for good.

mod adaptive_policy;
mod anonymous;
mod arrivals;
mod bit_mask;
mod blocking;
mod central;
mod co_resident;
mod dissemination;
mod interface;
mod member_table;
mod phase_word;
mod spin_then_sleep;
mod tree;
mod two_phase;
mod waiter;
mod yielding;

#[cfg(test)]
mod tests;

pub use bit_mask::{BitMask, BitMaskState};
pub use blocking::Blocking;
pub use central::Central;
pub use co_resident::{CoResident, CoResidentState};
pub use dissemination::{Dissemination, DisseminationState};
pub use interface::{Barrier, Broken, Crossing, MOST_MEMBERS, WrongSize};
pub use tree::{Tree, TreeState};
pub use two_phase::TwoPhase;
pub use waiter::Waiter;
pub use yielding::Yielding;
