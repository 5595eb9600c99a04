//! The description of a machine: the facts that the papers give of theirs, in numbers.

// | file | holds |
// | --- | --- |
// | `json.rs` | descriptions as text |
// | `check.rs` | the limits of machines |
// | `description.rs` | the types of a description |
//
// Imports go downward in this table.

mod check;
mod description;
mod json;
#[cfg(test)]
mod tests;

pub use check::Invalid;
pub use description::{
    Directory, Jitter, Machine, Membarrier, Memory, PROCESSORS, Processor, Scheduling, Uncached,
    Update, WriteBack, WriteThrough,
};
pub use json::Unreadable;
