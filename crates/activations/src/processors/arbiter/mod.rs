//! Dividing a machine's processors among the runtimes of one user that have agreed to it.
//!
//! The kernel of the paper has an allocator. Here every runtime that takes part writes into a runtime file how many processors it wants, and each works
//! out its own share from what all have written, by the same rule: so they agree without anybody who decides, and one that dies in the middle leaves
//! nothing locked.
//!
//! ```text
//! /dev/shm/stanchion-UID-NAME
//! +---------+-------+-----------------------+-----------------------+---
//! | version | epoch | slot 0: wanted  ..    | slot 1: wanted  ..    | ..      a line each
//! +---------+-------+-----------------------+-----------------------+---
//!                     byte 0 of the locks     byte 1                         a slot is whose runtime has its byte locked
//! ```
//!
//! Why locks of the file system: the kernel takes them from a process that ends, however it does, and a number of a process may be another's later.
//! Why a share can be 0 and a runtime goes on with one processor all the same: what is ready in it may be what another one waits for.
//!
//! # Invariants
//!
//! 1. A slot's `wanted` is written by its owner only, and counts only while its byte is locked.
//! 2. `epoch` changes after each change of a `wanted`, or of an owner that does not die.
//!
//! # Orderings
//!
//! The change of `epoch` is a Release and the look at it an Acquire: the wanted numbers of before. A runtime that works with older ones is told by the
//! next epoch.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, section 4.1; Zahorjan and McCann 1990.

mod divide;
mod error;
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod file;
// The locks are Linux's and Apple's; neither FreeBSD nor Windows has them.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod unsupported;

use std::path::Path;

use machine::atomic::{AtomicU64, AtomicUsize, Fresh, Ordering};
use machine::topology;

pub(crate) use divide::divide;
pub use error::ArbiterError;
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
use file::Table;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
use unsupported::Table;

/// How long one that gets a processor of the rest keeps it.
const TURN_NS: u64 = 100_000_000;

/// A runtime's part in the division; it goes to [`RuntimeBuilder::arbiter`](crate::RuntimeBuilder::arbiter).
///
/// Runtimes of the same user that have one of the same name share the processors: evenly, and what one does not want goes to the others. A runtime that
/// has less than it wants runs on fewer processors, instead of being preempted on more.
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
    processors: usize,
    /// The epoch of the share that was worked out last; odd, and so none, at first.
    known: AtomicU64,
    share: AtomicUsize,
    /// When the rest is another's, in ns; 0 if there is no rest.
    turn_ends: AtomicU64,
}

impl Arbiter {
    /// Takes part in the division of that name. Nothing is wanted before a runtime has it.
    ///
    /// # Errors
    ///
    /// [`ArbiterError`]: a name that is no file name, a file that cannot be runtime, or one that is full.
    /// [`ArbiterError::Unsupported`] on systems other than Linux, Android and Apple's.
    pub fn join(name: &str) -> Result<Self, ArbiterError> {
        Ok(Self {
            table: Table::open(name)?,
            processors: topology::online(),
            known: AtomicU64::fresh(1),
            share: AtomicUsize::fresh(usize::MAX),
            turn_ends: AtomicU64::fresh(0),
        })
    }

    /// The file through which they share: 4 KiB, which stay until somebody removes them. While runtimes share through it, removing it parts them from
    /// those that join later.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.table.path()
    }

    /// Asks for so many processors in all: the downcalls "add more processors" and "this processor is idle" in one.
    pub(crate) fn want(&self, processors: usize) {
        self.table.want(processors);
    }

    /// The share, if it may have changed since this was asked last.
    #[inline]
    pub(crate) fn poll(&self, look_at_clock: bool) -> Option<usize> {
        let epoch = self.table.epoch();
        // Relaxed: whoever works the share out twice gets the same.
        let ends = self.turn_ends.load(Ordering::Relaxed);
        let turned = ends != 0 && look_at_clock && now() >= ends;
        if epoch == self.known.load(Ordering::Relaxed) && !turned {
            return None;
        }
        self.known.store(epoch, Ordering::Relaxed);
        Some(self.work_out())
    }

    #[cold]
    fn work_out(&self) -> usize {
        let wanted = self.table.wanted();
        let turn = now() / TURN_NS;
        let (shares, uneven) = divide(&wanted, self.processors, turn as usize);
        let mine = shares[self.table.slot()];
        // Somebody has less than he wants: he must not wait for ever for one that has died.
        let scarce = shares.iter().zip(&wanted).any(|(share, wanted)| share < wanted);
        let ends = if uneven || scarce { (turn + 1) * TURN_NS } else { 0 };
        self.turn_ends.store(ends, Ordering::Relaxed);
        self.share.store(mine, Ordering::Relaxed);
        mine
    }
}

/// Nanoseconds on a clock that all processes share.
fn now() -> u64 {
    machine::clock::monotonic()
}
