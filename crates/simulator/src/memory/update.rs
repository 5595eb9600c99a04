//! Caches that are updated by the writes of others, over one bus: the DEC Firefly.
//!
//! # States
//!
//! A line has the set of caches with a copy, and all copies have the same value, always. Nothing is
//! ever invalidated. So a processor that has read a word once reads it in its own cache for ever,
//! whichever processor writes it. Caches have no bound.
//!
//! | access | own copy | other copies | transactions |
//! | --- | --- | --- | --- |
//! | read | yes | | none |
//! | read | no | | miss |
//! | write, exchange | yes | no | none |
//! | write, exchange | yes | yes | write, which updates them and memory |
//! | write, exchange | no | no | miss |
//! | write, exchange | no | yes | miss, then write |
//!
//! A line of the bus tells a writer whether others have a copy (Archibald and Baer 1986,
//! "Firefly").

use super::lines::Lines;
use super::processors::Processors;
use super::queue::Queue;
use super::{Access, Done, Kind, Line};
use crate::Time;
use crate::machine::Update;

/// The caches and the bus.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The times of the machine.
    times: Update,
    /// The bus.
    bus: Queue,
    /// The processors with a copy of each line.
    copies: Lines<Processors>,
}

impl Caches {
    pub(crate) fn new(times: &Update) -> Self {
        Self { times: times.clone(), bus: Queue::default(), copies: Lines::default() }
    }

    pub(crate) fn access(&mut self, Access { at, processor, line, kind }: Access) -> Done {
        let times = &self.times;
        let copies = self.copies.entry(line);
        let beyond = if kind == Kind::Exchange { times.exchange } else { Time::ZERO };
        let (present, shared) = (copies.contains(processor), copies.others(processor) > 0);
        let updates = shared && kind != Kind::Read;
        let (takes, occupied) = match (present, updates) {
            (true, false) => return Done::hit(at + times.hit + beyond),
            (true, true) => (times.write, times.write_bus),
            (false, false) => (times.miss, times.miss_bus),
            (false, true) => (times.miss + times.write, times.miss_bus + times.write_bus),
        };
        copies.insert(processor);
        let begins = self.bus.enter(at, occupied);
        Done {
            at: begins + takes + beyond,
            reaches: begins + occupied,
            hit: false,
            transfer: shared && !present,
            invalidated: 0,
            queued: begins - at,
            occupied,
        }
    }

    pub(crate) fn holds(&self, processor: usize, line: Line) -> bool {
        self.copies.get(line).is_some_and(|copies| copies.contains(processor))
    }
}
