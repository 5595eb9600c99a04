//! Gangs as the user spawns them.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope.rs` | `GangScope`: gangs that borrow; and `GangExecutor::scope` |
//! | `handle.rs` | `GangHandle`, by which a gang is joined; and `GangExecutor::spawn` |
//! | `gang.rs` | `Gang`: a closure, and the outcomes of its members |
//!
//! Imports go downward in this table.

mod gang;
mod handle;
mod scope;

pub use handle::{GangHandle, ScopedGangHandle};
pub use scope::GangScope;
