//! Memory systems: they tell when an access is done, and what it took.
//!
//! A memory system is a plain state machine. The run hands it the accesses of all processors in the
//! order in which they are *issued* (their `at` never decreases). An access takes effect in that
//! order: a copy that it invalidates is invalid for every access issued later. Its time may lie far
//! in the future, if it had to queue for the bus or its line. So contention is nowhere put in: it
//! results from queueing.
//!
//! Each protocol is a file with a table of the actions of every access in every state.

mod counts;
mod directory;
mod lines;
mod mesi;
mod processors;
mod queue;
mod uncached;
mod update;
mod write_back;
mod write_through;

#[cfg(test)]
mod contention;
#[cfg(test)]
mod tests;

pub use counts::{Accesses, Rates};

use crate::{Machine, Time, machine};

/// A line of memory: a number that is the same on every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) u64);

/// The effect of an access on its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write, also one that fails.
    Exchange,
}

/// One access of a processor to a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The time when it is issued.
    pub(crate) at: Time,
    /// The processor that makes it.
    pub(crate) processor: usize,
    /// The line of its word.
    pub(crate) line: Line,
    /// Its effect on the word.
    pub(crate) kind: Kind,
}

/// The result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// The time when the processor goes on.
    pub(crate) at: Time,
    /// The time when other caches see the write, so that a thread that spins there looks again:
    /// often before the writer goes on.
    pub(crate) reaches: Time,
    /// Set if the processor's own cache satisfied it, without a transaction.
    pub(crate) hit: bool,
    /// Set if the line came from another processor's cache.
    pub(crate) transfer: bool,
    /// The number of copies in other caches that were invalidated.
    pub(crate) invalidated: u32,
    /// The time that it waited for the bus, its line or its memory.
    pub(crate) queued: Time,
    /// The time that it occupied the bus, link or module.
    pub(crate) occupied: Time,
}

impl Done {
    fn hit(at: Time) -> Self {
        Self {
            at,
            reaches: at,
            hit: true,
            transfer: false,
            invalidated: 0,
            queued: Time::ZERO,
            occupied: Time::ZERO,
        }
    }
}

/// The memory system of a machine.
#[derive(Debug)]
pub(crate) struct System {
    /// The protocol, with its state.
    protocol: Protocol,
    /// The logarithm of the bytes of a line.
    shift: u32,
    /// The counts of all accesses.
    totals: Accesses,
}

#[derive(Debug)]
enum Protocol {
    WriteThrough(write_through::Caches),
    WriteBack(write_back::Caches),
    Update(update::Caches),
    Uncached(uncached::Modules),
    Directory(directory::Caches),
}

impl System {
    /// An idle one with empty caches. The description has passed [`Machine::check`].
    pub(crate) fn new(machine: &Machine) -> Self {
        let processors = machine.processors;
        let protocol = match &machine.memory {
            machine::Memory::WriteThrough(times) => {
                Protocol::WriteThrough(write_through::Caches::new(times))
            }
            machine::Memory::WriteBack(times) => {
                Protocol::WriteBack(write_back::Caches::new(times))
            }
            machine::Memory::Update(times) => Protocol::Update(update::Caches::new(times)),
            machine::Memory::Uncached(times) => {
                Protocol::Uncached(uncached::Modules::new(times, processors))
            }
            machine::Memory::Directory(times) => {
                Protocol::Directory(directory::Caches::new(times, processors))
            }
        };
        let shift = machine.memory.line().trailing_zeros();
        Self { protocol, shift, totals: Accesses::default() }
    }

    /// Issues an access, no earlier than the one before. Some ten nanoseconds if it is a hit.
    pub(crate) fn access(&mut self, access: Access) -> Done {
        let done = match &mut self.protocol {
            Protocol::WriteThrough(caches) => caches.access(access),
            Protocol::WriteBack(caches) => caches.access(access),
            Protocol::Update(caches) => caches.access(access),
            Protocol::Uncached(modules) => modules.access(access),
            Protocol::Directory(caches) => caches.access(access),
        };
        self.totals.add(access.kind, &done);
        if cfg!(debug_assertions) {
            self.check_line(access.line);
        }
        done
    }

    /// Returns the time from one look of a spinner to the next, if it has no cache in which it can
    /// look unnoticed; `None` if it has one.
    pub(crate) fn poll(&self) -> Option<Time> {
        match &self.protocol {
            Protocol::Uncached(modules) => Some(modules.local()),
            _ => None,
        }
    }

    /// Returns whether a read would be a hit.
    pub(crate) fn holds(&self, processor: usize, line: Line) -> bool {
        match &self.protocol {
            Protocol::WriteThrough(caches) => caches.holds(processor, line),
            Protocol::WriteBack(caches) => caches.holds(processor, line),
            Protocol::Update(caches) => caches.holds(processor, line),
            Protocol::Uncached(_) => false,
            Protocol::Directory(caches) => caches.holds(processor, line),
        }
    }

    /// The line of the byte at an offset.
    pub(crate) fn line_of(&self, offset: u64) -> Line {
        Line(offset >> self.shift)
    }

    /// Sums over all accesses so far.
    pub(crate) fn totals(&self) -> &Accesses {
        &self.totals
    }

    /// Looks at the invariants of all lines (those of [`mesi`]; the other protocols have none that
    /// their types do not have).
    ///
    /// # Panics
    ///
    /// If one is broken.
    pub(crate) fn check(&self) {
        if let Some(lines) = self.owned() {
            lines.all().for_each(|(line, entry)| entry.check(line));
        }
    }

    fn check_line(&self, line: Line) {
        if let Some(entry) = self.owned().and_then(|lines| lines.get(line)) {
            entry.check(line);
        }
    }

    fn owned(&self) -> Option<&lines::Lines<mesi::Entry>> {
        match &self.protocol {
            Protocol::WriteBack(caches) => Some(&caches.lines),
            Protocol::Directory(caches) => Some(&caches.lines),
            Protocol::WriteThrough(_) | Protocol::Update(_) | Protocol::Uncached(_) => None,
        }
    }
}
