//! The slot scheduler: decides which member runs on which virtual processor, without locks.
//!
//! | file | holds |
//! | --- | --- |
//! | `dispatch.rs` | the scheduler's tables, and the way of a member through it |
//! | `rotation.rs` | turns: when one ends, and which slot is next |
//! | `preemption.rs` | members that are taken off although they do not check |
//! | `turn.rs` | the slot that is on, in one word |

mod dispatch;
mod preemption;
mod rotation;
mod turn;

pub use dispatch::{Parker, SlotScheduler};
pub use preemption::Preemption;
pub use turn::Turn;
