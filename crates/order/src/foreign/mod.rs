//! The orders of locks in other programs, in memory that is shared with them.
//!
//! A library that stands before the locks of a program, such as the shim of `stanchion record`,
//! writes each new acquisition into a [`Table`]. It allocates nothing there and takes no lock. When
//! the program has ended, [`Table::findings`] searches them for cycles, by the same search as for
//! the locks of this program.
//!
//! Locks, threads and processes are numbers of the library's choice. A number is never given to
//! another one of its process.

mod findings;
mod table;
#[cfg(test)]
mod tests;

pub use findings::{Cycle, Findings, Losses, Recursion, Step, Use};
pub use table::{Foreign, Loss, MAX_HELD, MAX_NAME, SIZE, Table, header};

use crate::mode::Mode;

/// A lock that a thread holds, or blocks for.
///
/// ```
/// use stanchion_order::{Mode, foreign::Hold};
///
/// let hold = Hold { lock: 7, mode: Mode::Exclusive, name: None, place: None };
/// assert_eq!(hold.lock, 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "libraries make it")]
pub struct Hold {
    /// The number of the lock.
    pub lock: u64,
    /// The mode.
    pub mode: Mode,
    /// The index of the lock's name in the table, if it has one.
    pub name: Option<u32>,
    /// The index of the name of the place at which it was or is taken, if that is known.
    pub place: Option<u32>,
}

/// A thread that holds locks and blocks for another one.
///
/// ```
/// use stanchion_order::{Mode, foreign::{Acquisition, Hold}};
///
/// let hold = |lock| Hold { lock, mode: Mode::Exclusive, name: None, place: None };
/// let held = [hold(1)];
/// let taken = hold(2);
/// let seen = Acquisition { process: 1, thread: 1, key: 42, held: &held, taken, path: None };
/// assert_eq!(seen.held.len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "libraries make it")]
pub struct Acquisition<'a> {
    /// The number of the process.
    pub process: u64,
    /// The number of the thread.
    pub thread: u64,
    /// A hash of the held locks, of the taken one, and of their modes.
    pub key: u64,
    /// The held locks. If one of them is the taken lock, the thread takes it again.
    pub held: &'a [Hold],
    /// The lock that the thread blocks for.
    pub taken: Hold,
    /// The index of the path of calls, if it is known.
    pub path: Option<u32>,
}
