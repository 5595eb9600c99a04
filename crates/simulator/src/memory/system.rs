//! The memory system of a machine: one of the protocols, with the counts of all accesses.

use super::access::{Access, Done, Line};
use super::counts::Accesses;
use super::lines::Lines;
use super::{directory, mesi, uncached, update, write_back, write_through};
use crate::{Machine, Time, machine};

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

    /// Returns when a fence of `processor` is done: its stores before have their lines. Where
    /// accesses are in order, that is at once.
    pub(crate) fn fence(&self, processor: usize, at: Time) -> Time {
        match &self.protocol {
            Protocol::Directory(caches) => caches.fence(processor, at),
            Protocol::WriteThrough(_)
            | Protocol::WriteBack(_)
            | Protocol::Update(_)
            | Protocol::Uncached(_) => at,
        }
    }

    /// Returns the time from one look of a spinner to the next, if it has no cache in which it can
    /// look unnoticed; `None` if it has one.
    pub(crate) fn poll(&self) -> Option<Time> {
        match &self.protocol {
            Protocol::Uncached(modules) => Some(modules.local()),
            _ => None,
        }
    }

    /// Returns whether a read at `at` needs no line from elsewhere: it would be a hit, or there are
    /// no caches. A line that another processor has asked for stays readable until the request
    /// arrives.
    pub(crate) fn readable(&self, at: Time, processor: usize, line: Line) -> bool {
        match &self.protocol {
            Protocol::WriteBack(caches) => caches.readable(at, processor, line),
            Protocol::Directory(caches) => caches.readable(at, processor, line),
            Protocol::Uncached(_) => true,
            _ => self.holds(processor, line),
        }
    }

    /// Returns whether a cache has a copy of the line, which no other processor has asked for.
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

    /// Looks at the invariants of all lines: those of [`mesi`](super::mesi). The other protocols
    /// have none that their types do not have.
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

    fn owned(&self) -> Option<&Lines<mesi::Entry>> {
        match &self.protocol {
            Protocol::WriteBack(caches) => Some(&caches.lines),
            Protocol::Directory(caches) => Some(&caches.lines),
            Protocol::WriteThrough(_) | Protocol::Update(_) | Protocol::Uncached(_) => None,
        }
    }
}
