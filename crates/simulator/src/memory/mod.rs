//! Memory systems: they tell when an access is done, and what it took.
//!
//! A memory system is a plain state machine. The run hands it the accesses of all processors in the
//! order in which they are *issued* (their `at` never decreases). An access takes effect in that
//! order: a copy that it invalidates is invalid for every access issued later. Its time may lie far
//! in the future, if it had to queue for the bus or its line. So contention is nowhere put in: it
//! results from queueing.
//!
//! Each protocol is a file with a table of the actions of every access in every state.
//!
//! | file | holds |
//! | --- | --- |
//! | `system.rs` | `System`: the memory system of a machine, one of those below |
//! | `directory.rs`, `write_back.rs` | protocols: caches that own the lines that they write |
//! | `write_through.rs`, `update.rs`, `uncached.rs` | the other protocols |
//! | `mesi.rs` | the states of a line in caches that own it |
//! | `processors.rs`, `lines.rs`, `queue.rs` | a set of processors; an entry for each line; a bus |
//! | `counts.rs` | the counts of accesses |
//! | `access.rs` | an access, and its result |
//!
//! Imports go downward in this table.

mod access;
mod counts;
mod directory;
mod lines;
mod mesi;
mod processors;
mod queue;
mod system;
mod uncached;
mod update;
mod write_back;
mod write_through;

#[cfg(test)]
mod contention;
#[cfg(test)]
mod tests;

pub use access::Kind;
pub(crate) use access::{Access, Done, Line};
pub use counts::{Accesses, Rates};
pub(crate) use system::System;
