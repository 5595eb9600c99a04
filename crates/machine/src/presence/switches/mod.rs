//! The kernel's record of when a thread left and took a processor.
//!
//! Linux keeps a ring of 16-byte records for a process that asks about one of its own threads.
//! There is one record for each time the thread is switched out, saying whether it was preempted or
//! blocked, and one for each time it is switched in. Each has the time. No privilege is needed
//! while `kernel.perf_event_paranoid` is at most 2. Recording costs about a microsecond a switch,
//! including a reading of the clock (example `costs`). Reading a record costs a load.
//!
//! [`presence`](crate::presence) uses these records to tell where a thread is now. This module is
//! for programs that must see every switch, such as a pool that hands a blocked worker's queue to
//! another worker.
//!
//! ```text
//! page 0, written by the kernel    page 1, the records, oldest overwritten
//! +---------------------------+    +-----+-----+-----+-----+---
//! | ... data_head = 16 x count|    | out | in  | out | in  | ...   even count: on a processor
//! +---------------------------+    +-----+-----+-----+-----+---    odd count: off, see last record
//! ```
//!
//! The ring is mapped read-only, which tells the kernel to overwrite the oldest records rather than
//! to stop at the oldest unread one. Therefore the count never stands still and its parity is
//! always right.
//!
//! # Invariants
//!
//! 1. The thread that the ring watches makes the ring itself, and so runs meanwhile: the count
//!    starts even.
//! 2. Records are written before the count that covers them. A reader loads the count. Then, after
//!    an acquire fence that pairs with the kernel's write barrier, it loads the record, and then
//!    the count again. If the count has moved on by a whole ring, the record may be torn.
//! 3. A child process does not have its parent's rings, because the kernel does not copy such
//!    mappings. The child must not touch their addresses. A word that a fork wipes tells it that it
//!    is a child.

pub(super) mod real;
mod switch;

use self::real::Mapped;
use crate::presence::Presence;

pub use self::switch::Switch;
pub use crate::presence::Refused;

/// A record of the switches of the thread that made it, for as long as the value lives. Every
/// thread can read it.
///
/// Takes two pages of locked memory (see [`Refused::MemoryLimit`]). After a fork the child's copy
/// counts no switches.
///
/// ```
/// use stanchion_machine::presence::switches::{Ring, Switch};
///
/// match Ring::of_this_thread() {
///     Ok(ring) => {
///         let before = ring.count();
///         std::thread::sleep(std::time::Duration::from_millis(20));
///         let since: Vec<Switch> =
///             (before..ring.count()).filter_map(|number| ring.switch(number)).collect();
///         assert!(since.contains(&Switch::Blocked), "{since:?}");
///     }
///     Err(refused) => eprintln!("{refused}"),
/// }
/// ```
#[derive(Debug)]
pub struct Ring(Mapped);

impl Ring {
    /// Starts recording the calling thread's switches. Costs about 20 µs.
    ///
    /// # Errors
    ///
    /// [`Refused`], with what would mend it.
    pub fn of_this_thread() -> Result<Self, Refused> {
        Mapped::of_this_thread().map(Self)
    }

    /// Starts recording the calling thread's switches, in code that runs inside of another program:
    /// it allocates nothing, reads no file, takes no lock, and is no place where a thread is
    /// cancelled. The same holds when the ring is dropped. Costs about 20 µs.
    ///
    /// It needs a descriptor for a moment. That has to be below `descriptors`, so that a program
    /// that has nearly all of its descriptors in use keeps the others for itself.
    ///
    /// # Errors
    ///
    /// The system's error number. [`of_this_thread`](Self::of_this_thread) says what would mend it.
    ///
    /// ```
    /// use stanchion_machine::presence::switches::Ring;
    ///
    /// if let Ok(ring) = Ring::bare(1_000) {
    ///     assert!(ring.count().is_multiple_of(2), "this thread runs");
    /// }
    /// assert!(Ring::bare(0).is_err());
    /// ```
    pub fn bare(descriptors: u32) -> Result<Self, i32> {
        Mapped::bare(descriptors).map(Self)
    }

    /// Returns how many switches there have been. The number is even while the thread is on a
    /// processor, odd while it is off.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.view().map_or(0, |view| view.count())
    }

    /// Returns switch number `number`, counted from 0. Returns `None` if it has not happened yet,
    /// or if its record has been overwritten. The last few hundred are kept.
    #[inline]
    #[must_use]
    pub fn switch(&self, number: u64) -> Option<Switch> {
        self.0.view()?.switch(number)
    }

    /// Returns the time of switch number `number`, in nanoseconds of
    /// [`clock::monotonic`](crate::clock::monotonic). Returns `None` where [`switch`](Self::switch)
    /// does.
    #[must_use]
    pub fn time(&self, number: u64) -> Option<u64> {
        self.0.view()?.time(number)
    }

    /// Returns where the thread is.
    #[inline]
    #[must_use]
    pub fn presence(&self) -> Presence {
        self.0.view().map_or(Presence::Unknown, |view| view.presence())
    }
}

#[cfg(test)]
mod tests {
    // Other threads read it, and the last owner unmaps it.
    static_assertions::assert_impl_all!(super::Ring: Send, Sync);
}
