//! The arbiter: it divides a machine's processors among the runtimes of one user that take part.
//!
//! The kernel of the paper has an allocator. Here each runtime that takes part writes into a shared
//! file how many processors it wants, and works out its own share from the numbers of all, by the
//! same rule. So they agree without a process that decides, and a runtime that dies in the middle
//! leaves nothing locked.
//!
//! ```text
//! /dev/shm/stanchion-UID-NAME
//! +---------+-------+-----------------------+-----------------------+---
//! | version | epoch | entry 0: wanted  ..   | entry 1: wanted  ..   | ..   a cache line each
//! +---------+-------+-----------------------+-----------------------+---
//!                     lock of byte 0          lock of byte 1        ..   held by the entry's owner
//! ```
//!
//! Why locks of the file system: the kernel takes them from a process that ends, however it ends,
//! and the number of a process may be that of another one later. Why a share can be 0 and a runtime
//! goes on with one processor all the same: another runtime may wait for its ready threads.
//!
//! # Invariants
//!
//! 1. The `wanted` number of an entry is written by its owner only. It counts only while its byte
//!    is locked.
//! 2. `epoch` changes after each change of a `wanted`, or of an owner that does not die.
//!
//! # Orderings
//!
//! The change of `epoch` is a Release and the look at it an Acquire: the wanted numbers that were
//! written before. The next epoch corrects a runtime that works with older ones. The change of a
//! `wanted` is an Acquire and a Release, for two workers of its owner (`wanted.rs`).
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, section 4.1; Zahorjan and McCann 1990.

mod divide;
mod error;
// The locks are Linux's and Apple's; neither FreeBSD nor Windows has them. Loom and the simulated
// machine have no other processes.
#[cfg_attr(any(stanchion_loom, stanchion_simulated), path = "memory.rs")]
#[cfg_attr(
    all(
        not(any(stanchion_loom, stanchion_simulated)),
        any(target_os = "linux", target_os = "android", target_vendor = "apple")
    ),
    path = "file.rs"
)]
#[cfg_attr(
    not(any(
        stanchion_loom,
        stanchion_simulated,
        target_os = "linux",
        target_os = "android",
        target_vendor = "apple"
    )),
    path = "unsupported.rs"
)]
mod table;
mod wanted;

use std::path::Path;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::topology;

use divide::divide;
pub use error::ArbiterError;
use table::Table;

/// The time for which a runtime keeps a processor of the remainder.
const TURN_NS: u64 = 100_000_000;

/// A runtime's part in the division, for
/// [`RuntimeBuilder::arbiter`](crate::RuntimeBuilder::arbiter).
///
/// The runtimes of one user that have an arbiter of the same name share the processors: evenly,
/// and processors that one does not want go to the others. A runtime that has less than it wants
/// runs on fewer processors, instead of being preempted on more.
///
/// ```
/// use stanchion_activations::{Arbiter, Runtime};
///
/// let runtime = Runtime::builder().arbiter(Arbiter::join("example")?).build()?;
/// assert_eq!(runtime.run(|| 1 + 1), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Arbiter {
    table: Table,
    /// The machine's processors.
    processors: usize,
    /// The epoch of the last share; odd, and so none, at first. Written by the worker that asks.
    known_epoch: AtomicU64,
    /// The time at which the remainder goes to other runtimes, in ns; 0 if there is no remainder.
    /// Written by the worker that asks.
    turn_ends: AtomicU64,
}

impl Arbiter {
    /// Takes part in the division of this name. Nothing is wanted before a runtime has it.
    ///
    /// # Errors
    ///
    /// Returns [`ArbiterError`] for a name that cannot be part of a file name, a file that cannot
    /// be shared, or one that is full. [`ArbiterError::Unsupported`] on systems other than Linux,
    /// Android and Apple's.
    pub fn join(name: &str) -> Result<Self, ArbiterError> {
        Ok(Self::with(Table::open(name)?, topology::online()))
    }

    fn with(table: Table, processors: usize) -> Self {
        let (known_epoch, turn_ends) = (AtomicU64::fresh(1), AtomicU64::fresh(0));
        Self { table, processors, known_epoch, turn_ends }
    }

    /// Returns the path of the file through which the runtimes share: 4 KiB, which stay until the
    /// file is removed. Removing it while runtimes share through it parts them from those that join
    /// later.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.table.path()
    }

    /// Asks for so many processors in all: the downcalls "add more processors" and "this processor
    /// is idle" in one.
    pub(crate) fn request(&self, processors: usize) {
        self.table.request(processors);
    }

    /// Returns whether the share may have changed since it was last worked out.
    #[inline]
    pub(crate) fn has_news(&self, look_at_clock: bool) -> bool {
        // Relaxed, both: a worker that sees old ones works the share out once more.
        let ends = self.turn_ends.load(Ordering::Relaxed);
        let turned = ends != 0 && look_at_clock && now() >= ends;
        // Relaxed: as above.
        turned || self.table.epoch() != self.known_epoch.load(Ordering::Relaxed)
    }

    /// Works out the share. Called by one worker at a time: of two at once, the one that has looked
    /// first might answer last, and there would be no news to correct it.
    pub(crate) fn work_out(&self) -> usize {
        // Relaxed: under the caller's lock, except for `has_news`.
        self.known_epoch.store(self.table.epoch(), Ordering::Relaxed);
        let wanted = self.table.wanted();
        let turn = now() / TURN_NS;
        let (shares, uneven) = divide(&wanted, self.processors, turn as usize);
        // A runtime that has less than it wants must not wait for ever for one that has died.
        let scarce = shares.iter().zip(&wanted).any(|(share, wanted)| share < wanted);
        let ends = if uneven || scarce { (turn + 1) * TURN_NS } else { 0 };
        // Relaxed: as above.
        self.turn_ends.store(ends, Ordering::Relaxed);
        shares[self.table.entry()]
    }
}

/// Two runtimes of one process, where there are no others.
#[cfg(any(stanchion_loom, stanchion_simulated))]
impl Arbiter {
    /// Returns two that share so many processors.
    pub fn pair(processors: usize) -> [Self; 2] {
        Table::pair().map(|table| Self::with(table, processors))
    }
}

/// The part of another runtime, in the models of `crates/loom`.
#[cfg(stanchion_loom)]
impl Arbiter {
    /// Asks for so many processors.
    pub fn ask_for(&self, processors: usize) {
        self.request(processors);
    }

    /// Returns the share.
    pub fn share(&self) -> usize {
        self.work_out()
    }
}

/// Returns nanoseconds on a clock that all processes share.
fn now() -> u64 {
    stanchion_machine::clock::monotonic()
}
