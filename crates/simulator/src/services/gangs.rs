//! The slots of gangs: which thread has which entry, and when the processors go to another slot.
//!
//! The rules are in [`os::gang`](crate::os::gang). The slot that a processor is in is a field of
//! the scheduler's own `Processor`, because the scheduler asks for it.

use crate::scheduler::{Scheduler, Status, Threads, What};
use crate::{ThreadId, Time};

/// The most slots: "the real numbers in MAXI are 15 and 512".
pub const SLOTS: usize = 512;

/// The slots of a run.
#[derive(Debug, Default)]
pub(crate) struct Gangs {
    /// The threads of each slot, by processor.
    slots: Vec<Vec<Option<ThreadId>>>,
    /// The slot of the last broadcast.
    current: usize,
    /// The time that a slot has the processors, if an alarm ends it.
    quantum: Option<Time>,
    /// The number of broadcasts so far.
    broadcasts: u64,
    /// The number of the alarm that counts.
    alarm: u64,
    /// Set if the alarm is announced.
    armed: bool,
}

impl Gangs {
    /// Returns whether no thread was ever in a slot.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of broadcasts so far.
    pub(crate) fn broadcasts(&self) -> u64 {
        self.broadcasts
    }

    /// Makes room for an entry of `thread`, which must not be another thread's.
    pub(super) fn reserve(
        &mut self,
        thread: ThreadId,
        (slot, processor): (usize, usize),
        processors: usize,
    ) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, vec![None; processors]);
        }
        if let Some(other) = self.slots[slot][processor].filter(|other| *other != thread) {
            panic!(
                "processor {processor} of slot {slot} is {other}'s, and {thread} was to have it"
            );
        }
    }

    /// Puts a thread into an entry that was [reserved](Self::reserve), pinned to its processor.
    pub(super) fn enter(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        (slot, processor): (usize, usize),
    ) {
        self.slots[slot][processor] = Some(thread);
        let own = &mut threads[thread];
        (own.entry, own.pinned) = (Some((slot, processor)), Some(processor));
    }

    /// Takes `thread` out of its entry, if it has one.
    pub(crate) fn release(&mut self, scheduler: &mut Scheduler, thread: ThreadId, at: Time) {
        let own = &mut scheduler.threads[thread];
        if let Some((slot, processor)) = own.entry.take() {
            own.pinned = None;
            self.slots[slot][processor] = None;
            self.changed(scheduler, at);
        }
    }

    /// From now on an alarm ends each slot after `quantum`, or none does.
    pub(crate) fn rotate(&mut self, scheduler: &mut Scheduler, quantum: Option<Time>, at: Time) {
        self.quantum = quantum;
        self.armed = false;
        self.alarm += 1;
        self.changed(scheduler, at);
    }

    /// A thread that has an entry may run now, or may run no longer.
    pub(super) fn changed(&mut self, scheduler: &mut Scheduler, at: Time) {
        let Some(quantum) = self.quantum else { return };
        let Some(next) = self.next_slot(&scheduler.threads) else { return };
        if self.slot_is_idle(&scheduler.threads, self.current) {
            self.broadcast(scheduler, next, at);
            self.armed = false;
        }
        if !self.armed && self.next_slot(&scheduler.threads).is_some() {
            self.armed = true;
            self.alarm += 1;
            scheduler.events.announce(at + quantum, What::Alarm(self.alarm));
        }
    }

    /// The alarm of that number goes off.
    pub(super) fn alarm(&mut self, scheduler: &mut Scheduler, number: u64, at: Time) {
        if number != self.alarm {
            return;
        }
        self.armed = false;
        if let Some(next) = self.next_slot(&scheduler.threads) {
            self.broadcast(scheduler, next, at);
        }
        self.changed(scheduler, at);
    }

    /// Returns the slot after the current one that has a thread that can run, if it is another.
    fn next_slot(&self, threads: &Threads) -> Option<usize> {
        let (count, current) = (self.slots.len(), self.current);
        let mut slots = (1..count).map(|step| (current + step) % count);
        slots.find(|slot| !self.slot_is_idle(threads, *slot))
    }

    fn slot_is_idle(&self, threads: &Threads, slot: usize) -> bool {
        let can_run = |id: &ThreadId| {
            matches!(threads[*id].status, Status::Ready | Status::Running | Status::Spinning)
        };
        !self.slots.get(slot).is_some_and(|entries| entries.iter().flatten().any(can_run))
    }

    /// Has all processors go to `slot`.
    pub(crate) fn broadcast(&mut self, scheduler: &mut Scheduler, slot: usize, at: Time) {
        self.current = slot;
        self.broadcasts += 1;
        let (interrupt, skew) = (scheduler.scheduling.interrupt, scheduler.scheduling.skew);
        scheduler.interruptible = true;
        for processor in 0..scheduler.processors.len() {
            let late = Time::picos(scheduler.random.below(skew.as_picos() + 1));
            let what = What::Slot { processor, slot, number: self.broadcasts };
            scheduler.events.announce(at + interrupt + late, what);
        }
    }

    /// A broadcast reaches a processor, unless a later one has already. Returns the thread of the
    /// processor's entry, if it is ready: it is to have the processor.
    pub(super) fn show(
        &self,
        scheduler: &mut Scheduler,
        processor: usize,
        (slot, number): (usize, u64),
        at: Time,
    ) -> Option<ThreadId> {
        if scheduler.processors[processor].slot.1 > number {
            return None;
        }
        scheduler.processors[processor].slot = (slot, number);
        let entry = self.slots.get(slot).and_then(|entries| entries[processor]);
        let ready = entry.filter(|id| scheduler.threads[*id].status == Status::Ready);
        if ready.is_none() {
            // A thread that was first is so no longer: others may want its processor.
            scheduler.announce_slices(at);
        }
        ready
    }
}
