//! The events to come, in the order of virtual time.
//!
//! Events of the same moment happen in the order in which they were announced, so a run has one
//! order only.

use super::thread::{Stretch, ThreadId};
use crate::Time;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A thread goes on, if it is still the same stretch of its life.
    Run(ThreadId, Stretch),
    /// The time is up for which a thread wanted to sleep, park or spin.
    TimeOut(ThreadId, Stretch),
    /// A woken thread can run.
    Ready(ThreadId, Stretch),
    /// The slice of a thread that spins is over.
    Slice(ThreadId, Stretch),
    /// A slot's time is over, if it is still the alarm of that number.
    Alarm(u64),
    /// A broadcast takes a processor to a slot.
    Slot { processor: usize, slot: usize, number: u64 },
    /// The processors that could not be divided evenly go to the next address spaces.
    Turn,
    /// The other applications give a processor back.
    Back(usize),
}

/// The events to come.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The events, the next one first. The number keeps those of one moment in order.
    heap: BinaryHeap<Reverse<(Time, u64, What)>>,
    /// The number of events announced so far.
    announced: u64,
    /// The moment of the last event that was taken out.
    now: Time,
}

impl Events {
    /// Announces that `what` is to happen at `at`.
    pub(crate) fn announce(&mut self, at: Time, what: What) {
        self.announced += 1;
        self.heap.push(Reverse((at, self.announced, what)));
    }

    /// Returns the time of the next one, or [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    /// Returns the moment of the event that was taken out last.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Takes out the next event: its moment is [`now`](Self::now) then.
    pub(crate) fn pop(&mut self) -> Option<(Time, What)> {
        let Reverse((at, _, what)) = self.heap.pop()?;
        self.now = at;
        Some((at, what))
    }
}
