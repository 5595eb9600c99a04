//! The slot scheduler: decides which member runs on which virtual processor, without locks.
//!
//! | file | holds |
//! | --- | --- |
//! | `dispatch.rs` | [`SlotScheduler`]: its tables, and how a member gets its processor |
//! | `rotation.rs` | when a turn ends, and which slot is next |
//! | `enforcement.rs` | how members leave that do not check the turn |
//! | `preemption.rs` | the means of enforcement |
//! | `turn.rs` | the current turn, in one word |
//! | `parker.rs` | a word to sleep on |
//! | `counters.rs` | statistics |
//!
//! Imports go downward in this table. Nothing here knows the executor: it calls in with the numbers
//! of entities and processors.

mod counters;
mod dispatch;
mod enforcement;
mod parker;
mod preemption;
mod rotation;
mod turn;

pub use dispatch::SlotScheduler;
pub use parker::Parker;
pub use preemption::Preemption;
pub use turn::Turn;
