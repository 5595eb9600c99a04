//! Common parts of the examples: the locks that each can have, the arguments that choose one, the
//! lines of a report that are alike, and the table of waits.
//!
//! An example is a [`Program`]: generic in its lock, it has a method that runs with a maker of
//! locks. [`Choice`] has the arguments `--lock` and `--policy`, and runs a program with the lock
//! that they name. So a lock is added to all examples by a line in [`locks`], and a policy by a
//! line in [`policies`].
//!
//! The parts of each example are modules here too. So they are compiled once, for the example and
//! for its tests.

#[path = "../galaxy/mod.rs"]
pub mod galaxy;
#[path = "../hanoi/mod.rs"]
pub mod hanoi;
#[path = "../hasher/mod.rs"]
pub mod hasher;
#[path = "../heat/mod.rs"]
pub mod heat;
#[path = "../nbody/mod.rs"]
pub mod nbody;
#[path = "../quicksort/mod.rs"]
pub mod quicksort;
#[path = "../regsim/mod.rs"]
pub mod regsim;
#[path = "../tsp/mod.rs"]
pub mod tsp;
#[path = "../wordcount/mod.rs"]
pub mod wordcount;

mod arguments;
mod bar;
mod choice;
pub mod frames;
pub mod level;
pub mod locks;
mod memory;
pub mod picture;
pub mod policies;
mod progress;
pub mod report;
mod std_lock;
pub mod strategies;
pub mod table;

pub use arguments::{at_least_one, parse};
pub use bar::bar;
pub use choice::{Choice, Locks, Refused};
pub use level::Level;
pub use memory::Memory;
pub use progress::Progress;
pub use std_lock::Std;

use lock_api::RawMutex;

/// Something to do with locks of any type.
pub trait Program {
    /// The type of its result.
    type Outcome;

    /// Does it with locks from `make`, which wants to know the name of each.
    fn run<L: RawMutex + Send + Sync + 'static>(self, make: &dyn Fn(&str) -> L) -> Self::Outcome;
}

/// The workspace's own README, so that its examples are compiled and run. A published crate could
/// not name it: the file lies outside of every package.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
