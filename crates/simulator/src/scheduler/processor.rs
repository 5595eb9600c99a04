//! A processor: the thread on it, its slice, and the services that have a right to it.

use super::thread::{Stretch, ThreadId};
use crate::Time;

/// The owner of a processor that the run's own threads have: they belong to no address space.
pub(crate) const ORDINARY: usize = 0;

/// One processor, as the scheduler sees it.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    /// The thread that runs here.
    pub(crate) current: Option<ThreadId>,
    /// The thread that ran here last: putting it back on costs nothing.
    pub(super) last: Option<ThreadId>,
    /// Set until its first slice has begun.
    pub(super) first_slice: bool,
    /// The number of quanta for which the other applications have it the first time. Set with its
    /// first slice, if there are others, and taken at the end of that.
    pub(super) first_away: Option<u64>,
    /// The time when `current` may be taken off.
    pub(crate) slice_end: Time,
    /// Until when the other applications have it.
    pub(super) away_until: Time,
    /// The time since when `current` has it.
    pub(super) since: Time,
    /// The time that it had a thread of the program on it, those before `current`.
    pub(super) busy: Time,
    /// The stretch of spinning with an announced end of its slice.
    pub(super) announced: Option<Stretch>,
    /// The address space that has it, [`ORDINARY`] while the run has none; set by the allocator.
    pub(crate) owner: Option<usize>,
    /// Set by the allocator if `current` has to leave.
    pub(crate) called: bool,
    /// The slot of gangs that it is in, and the broadcast that took it there.
    pub(crate) slot: (usize, u64),
    /// The beginnings and ends of the interrupts of barriers for which no thread has paid yet, in
    /// order.
    interrupts: Vec<(Time, Time)>,
}

impl Processor {
    /// The first processor begins with the first thread on it.
    pub(super) fn new(number: usize) -> Self {
        Self {
            current: None,
            last: (number == 0).then(|| ThreadId::new(0)),
            first_slice: true,
            first_away: None,
            slice_end: Time::ZERO,
            away_until: Time::ZERO,
            since: Time::ZERO,
            busy: Time::ZERO,
            announced: None,
            owner: Some(ORDINARY),
            called: false,
            slot: (0, 0),
            interrupts: Vec::new(),
        }
    }

    /// Records that putting that thread on costs nothing.
    pub(crate) fn ran_last(&mut self, id: ThreadId) {
        self.last = Some(id);
    }

    /// Interrupts it `at`, or after the interrupts before, for `length`. Returns when that begins.
    pub(crate) fn interrupt(&mut self, at: Time, length: Time) -> Time {
        let begins = self.interrupts.last().map_or(at, |(_, end)| at.max(*end));
        self.interrupts.push((begins, begins + length));
        begins
    }

    /// Takes out the interrupts that have begun by `until`. Returns the time of all of them.
    #[inline]
    pub(crate) fn serve_interrupts(&mut self, until: Time) -> Time {
        if self.interrupts.is_empty() {
            return Time::ZERO;
        }
        let begun = self.interrupts.partition_point(|(begins, _)| *begins <= until);
        self.interrupts.drain(..begun).map(|(begins, end)| end - begins).sum()
    }

    /// Returns `at`, or the end of the interrupt that `at` falls into. Forgets the interrupts that
    /// have begun: the thread did nothing that they could delay.
    pub(crate) fn notices(&mut self, at: Time) -> Time {
        let begun = self.interrupts.partition_point(|(begins, _)| *begins <= at);
        self.interrupts.drain(..begun).next_back().map_or(at, |(_, end)| at.max(end))
    }

    /// Forgets the interrupts that are over.
    pub(crate) fn forget_interrupts(&mut self, now: Time) {
        self.interrupts.retain(|(_, end)| *end > now);
    }

    /// Returns whether it has no thread, and no other application has it.
    pub(super) fn is_idle(&self, at: Time) -> bool {
        self.current.is_none() && self.away_until <= at
    }

    /// Returns whether threads without an address space may have it.
    pub(super) fn is_ordinary(&self) -> bool {
        self.owner == Some(ORDINARY)
    }

    /// Returns the time that it had a thread of the program on it.
    pub(crate) fn busy(&self) -> Time {
        self.busy
    }
}
