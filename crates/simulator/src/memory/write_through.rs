//! Caches that write through to memory, and invalidate one another over one bus: Sequent Symmetry
//! Model A.
//!
//! # States
//!
//! All a line has is the set of caches with a copy; memory is always up to date. Caches have no
//! bound, so a copy goes only when another processor writes.
//!
//! | access | own copy | transaction | copies of others | own copy after |
//! | --- | --- | --- | --- | --- |
//! | read | yes | none | stay | stays |
//! | read | no | miss | stay | comes |
//! | write | either | write | go | as before: a write brings no line in |
//! | exchange | either | exchange | go | comes |
//!
//! An exchange writes whether or not it succeeds, and the value does not matter: "since the lock is
//! written whether or not it is acquired, any copy of the lock in another cache is invalidated"
//! (Anderson, Lazowska and Levy 1989, section 4.2). A write updates "both memory and that
//! processor's cache" (section 5.1).
//!
//! An exchange occupies the bus for as long as its location is locked ("any requests for that
//! memory location in the interim are delayed", section 4.1), so lines have no queue of their own:
//! the bus's is theirs too.

use super::lines::Lines;
use super::processors::Processors;
use super::queue::Queue;
use super::{Access, Done, Kind, Line};
use crate::machine::WriteThrough;

/// The caches and the bus.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The times of the machine.
    times: WriteThrough,
    /// The bus.
    bus: Queue,
    /// The processors with a copy of each line.
    copies: Lines<Processors>,
}

impl Caches {
    pub(crate) fn new(times: &WriteThrough) -> Self {
        Self { times: times.clone(), bus: Queue::default(), copies: Lines::default() }
    }

    pub(crate) fn access(&mut self, Access { at, processor, line, kind }: Access) -> Done {
        let times = &self.times;
        let copies = self.copies.entry(line);
        let (takes, occupied) = match kind {
            Kind::Read if copies.contains(processor) => return Done::hit(at + times.hit),
            Kind::Read => (times.miss, times.miss_bus),
            Kind::Write => (times.write, times.write_bus),
            Kind::Exchange => (times.exchange, times.exchange_bus),
        };
        let invalidated = if kind == Kind::Read { 0 } else { copies.drop_others(processor) };
        if kind != Kind::Write {
            copies.insert(processor);
        }
        let begins = self.bus.enter(at, occupied);
        Done {
            at: begins + takes,
            reaches: begins + occupied,
            hit: false,
            transfer: false,
            invalidated,
            queued: begins - at,
            occupied,
        }
    }

    pub(crate) fn holds(&self, processor: usize, line: Line) -> bool {
        self.copies.get(line).is_some_and(|copies| copies.contains(processor))
    }
}
