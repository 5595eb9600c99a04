//! Barriers: no member goes on before all have arrived.
//!
//! | file | barrier | how members wait |
//! | --- | --- | --- |
//! | `central.rs` | [`Central`] | spin on one word, then sleep |
//! | `bit_mask.rs` | [`BitMask`] | spin on the phase word, then sleep |
//! | `tree.rs` | [`Tree`] | spin on the children's flags, then on the phase word, then sleep |
//! | `dissemination.rs` | [`Dissemination`] | spin on another member in each round, then sleep |
//! | `blocking.rs` | [`Blocking`] | sleep |
//! | `two_phase.rs` | [`TwoPhase`] | spin on one word for a time, then sleep |
//! | `yielding.rs` | [`Yielding`] | yield, and count how often |
//! | `co_resident.rs` | [`CoResident`] | spin while the missing members run, else yield or sleep |
//!
//! `table.rs` registers each of them, for all that tests or measures barriers.
//!
//! These share, in the order of their imports:
//!
//! | file | holds |
//! | --- | --- |
//! | `anonymous.rs` | the methods of barriers with anonymous members |
//! | `adaptive_policy.rs` | `AdaptivePolicy`: yield or sleep, by what it has cost |
//! | `member_table.rs` | `MemberTable`: which members are missing, and whether they run |
//! | `arrivals.rs` | `ArrivalWord`: the word of the barriers that count arrivals |
//! | `phase_word.rs` | `PhaseWord`: the word that decides a phase of the others |
//! | `spin_then_sleep.rs` | a wait that spins first |
//! | `waiter.rs` | [`Waiter`]: a member, which breaks the barrier if it is dropped |
//! | `interface.rs` | [`Barrier`], [`Crossing`], [`Broken`] |
//!
//! # Invariants
//!
//! 1. A phase is crossed by all or broken for all. One write to one word decides which.
//! 2. A member that took part in a phase that was crossed gets [`Crossing`], whatever happens to
//!    the barrier afterwards.
//! 3. A broken barrier stays broken.

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
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod two_phase;
mod waiter;
mod yielding;

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
