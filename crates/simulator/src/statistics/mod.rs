//! The counts of a run.
//!
//! | file | holds |
//! | --- | --- |
//! | `table.rs` | statistics as text |
//! | `counts.rs` | [`Statistics`]: the counts of a run and of its threads |
//! | `words.rs` | the accesses to single words, and the words that share a line |
//! | `activity.rs` | [`Activity`], and the time spent on each |
//!
//! Imports go downward in this table.

mod activity;
mod counts;
mod table;
mod words;

pub use activity::{Activity, Times};
pub use counts::{Statistics, ThreadStatistics};
pub use words::WordStatistics;
pub(crate) use words::Words;
