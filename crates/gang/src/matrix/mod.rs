//! Ousterhout's matrix: which gang runs when, and on which processors.
//!
//! | file | holds |
//! | --- | --- |
//! | `migration.rs` | [`Matrix::unite`]: slots that have emptied are united |
//! | `plan.rs` | [`Matrix::row`]: the members that run while a slot is on, alternates included |
//! | `allocation.rs` | [`Matrix`]: its tables, and where a new gang goes |
//! | `number_set.rs` | [`NumberSet`]: a set of small numbers |
//!
//! Imports go downward in this table. This is the sequential part of gang scheduling: a caller with
//! several threads holds a lock.

mod allocation;
mod migration;
mod number_set;
mod plan;

pub use allocation::{
    AllocationError, GangKey, MOST_PROCESSORS, MOST_SLOTS, Matrix, Packing, Placement,
    ProcessorSet, WrongShape,
};
pub use migration::Move;
pub use number_set::NumberSet;
pub use plan::{Alternates, Assignment, AssignmentKind, Utilization};
