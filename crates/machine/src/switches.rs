//! The kernel's record of when a thread left and took a processor.
//!
//! Linux keeps, for whoever asks about a thread of his own process, a ring of 16-byte records: one for each time the thread is switched out,
//! saying whether it was preempted or blocked, and one for each time it is switched in; each with the time. No privilege is needed while
//! `kernel.perf_event_paranoid` is at most 2. Recording costs about a microsecond a switch (example `costs`), a reading of the clock among it; reading is a load.
//!
//! [`presence`](crate::presence) is the ready-made use: where is that thread now? This module is for those who must see every switch, such as a
//! pool that hands a blocked worker's queue to another.
//!
//! ```text
//! page 0, written by the kernel      page 1, the records, oldest overwritten
//! +---------------------------+      +-----+-----+-----+-----+---
//! | ... data_head = 16 x count|      | out | in  | out | in  | ...     even count: on a processor
//! +---------------------------+      +-----+-----+-----+-----+---      odd count: off, the last record says why
//! ```
//!
//! The ring is mapped read-only, which tells the kernel to overwrite the oldest records rather than to stop at the oldest unread one.
//! Therefore the count never stands still and its parity is always right.
//!
//! # Invariants
//!
//! 1. The ring is made by the thread that it watches, which runs while it is made: the count starts even.
//! 2. Records are written before the count that covers them. A reader loads the count, then (after an acquire fence, which
//!    pairs with the kernel's write barrier) the record, then the count again: if that has moved on by a whole ring, the record may be torn.
//! 3. A child process has no ring of its parent's (the kernel does not copy such mappings): it must not touch their addresses. A word that
//!    is wiped by a fork tells.

use crate::backend::switches::Mapped;
use crate::presence::Presence;

pub use crate::refused::Refused;

/// One switch of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Taken off its processor although it could run on: its time was up, something more urgent came, or it yielded.
    Preempted,
    /// Left its processor to wait for something.
    Blocked,
    /// Was given a processor.
    In,
}

/// The switches of the thread that made it, for as long as it lives; readable from every thread.
///
/// Takes two pages of locked memory (see [`Refused::MemoryLimit`]). After a fork the child's copy counts no switches.
///
/// ```
/// use stanchion_machine::switches::{Ring, Switch};
///
/// match Ring::of_this_thread() {
///     Ok(ring) => {
///         let before = ring.count();
///         std::thread::sleep(std::time::Duration::from_millis(1));
///         let since: Vec<Switch> = (before..ring.count()).filter_map(|number| ring.switch(number)).collect();
///         assert!(since.contains(&Switch::Blocked), "{since:?}");
///     }
///     Err(refused) => eprintln!("{refused}"),
/// }
/// ```
#[derive(Debug)]
pub struct Ring(Mapped);

impl Ring {
    /// Starts recording the calling thread's switches. About 20 µs.
    ///
    /// # Errors
    ///
    /// [`Refused`], with what would mend it.
    pub fn of_this_thread() -> Result<Self, Refused> {
        Mapped::of_this_thread().map(Self)
    }

    /// Switches so far. Even while the thread is on a processor, odd while it is off.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.view().map_or(0, |view| view.count())
    }

    /// Switch number `number`, counted from 0; `None` if it has not happened yet or if its record has been overwritten. The last few
    /// hundred are kept.
    #[inline]
    #[must_use]
    pub fn switch(&self, number: u64) -> Option<Switch> {
        self.0.view()?.switch(number)
    }

    /// When switch number `number` was, in nanoseconds of [`clock::monotonic`](crate::clock::monotonic); `None` where [`switch`](Self::switch) has none.
    #[must_use]
    pub fn time(&self, number: u64) -> Option<u64> {
        self.0.view()?.time(number)
    }

    /// Where the thread is.
    #[inline]
    #[must_use]
    pub fn presence(&self) -> Presence {
        self.0.view().map_or(Presence::Unknown, |view| view.presence())
    }
}

#[cfg(test)]
mod tests {
    // Others read it, and the last to go unmaps it.
    static_assertions::assert_impl_all!(super::Ring: Send, Sync);
}
