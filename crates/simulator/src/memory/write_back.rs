//! Caches that own the lines that they write (MESI), over one bus: Sequent Symmetry Model B, SGI
//! Challenge.
//!
//! The states are those of [`mesi`](super::mesi). An access that needs the bus takes it in the
//! order of issue. Then it waits for its line, if that is still on its way to another processor: a
//! modified line is in one cache at a time, and each processor that wants it gets it after the one
//! before.
//!
//! | access | line | transaction |
//! | --- | --- | --- |
//! | read | own copy | none |
//! | write, exchange | own copy, the only one | none |
//! | write, exchange | own copy, others too | upgrade |
//! | any | modified by another | transfer |
//! | any | otherwise | miss |
//!
//! A miss to read takes a copy from memory and moves nothing, so such misses follow one another as
//! fast as the bus lets them. Source: Archibald and Baer 1986, the Illinois protocol, except that
//! clean lines come from memory here.

use super::lines::Lines;
use super::mesi::{Entry, State};
use super::queue::Queue;
use super::{Access, Done, Kind, Line};
use crate::Time;
use crate::machine::WriteBack;

/// The caches and the bus.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The times of the machine.
    times: WriteBack,
    /// The bus.
    bus: Queue,
    /// The states of the lines.
    pub(crate) lines: Lines<Entry>,
}

impl Caches {
    pub(crate) fn new(times: &WriteBack) -> Self {
        Self { times: times.clone(), bus: Queue::default(), lines: Lines::default() }
    }

    pub(crate) fn access(&mut self, Access { at, processor, line, kind }: Access) -> Done {
        let times = &self.times;
        let entry = self.lines.entry(line);
        let beyond = if kind == Kind::Exchange { times.exchange } else { Time::ZERO };
        if entry.hit(at, processor, kind) {
            return Done::hit(at + times.hit + beyond);
        }
        let owner = entry.owner();
        let transfer = entry.state == State::Modified;
        let (takes, occupied) = match (transfer, entry.copies.contains(processor)) {
            (true, _) => (times.transfer, times.transfer_bus),
            (false, true) => (times.upgrade, times.upgrade_bus),
            (false, false) => (times.miss, times.miss_bus),
        };
        let moves = transfer || kind != Kind::Read;
        let invalidated = entry.moved(processor, kind);
        let turn = self.bus.enter(at, occupied);
        let (reached, begins) = (turn + occupied, turn.max(entry.free));
        if moves {
            entry.free = begins + takes;
        }
        if let Some(owner) = owner
            && kind != Kind::Write
        {
            entry.leaves(at, owner, reached.max(begins));
        }
        Done {
            at: begins + takes + beyond,
            // Other caches see the request on the bus, and then wait for the line.
            reaches: reached,
            hit: false,
            transfer,
            invalidated,
            queued: begins - at,
            occupied,
        }
    }

    pub(crate) fn holds(&self, processor: usize, line: Line) -> bool {
        self.lines.get(line).is_some_and(|entry| entry.copies.contains(processor))
    }

    pub(crate) fn readable(&self, at: Time, processor: usize, line: Line) -> bool {
        self.lines.get(line).is_some_and(|entry| entry.readable(at, processor))
    }
}
