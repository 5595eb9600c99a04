//! No caches for shared words: each is in the memory of one processor, which the others reach over
//! one bus: Makbilan.
//!
//! A line is at home where it was first touched: a thread's stack and its blocks lie on its own
//! board. Every access, of any kind, goes to the memory of the home, and waits there for those
//! before it. An access from elsewhere waits for the bus as well. So a word that is spun on slows
//! its home, and the bus for all, with each look.

use super::lines::Lines;
use super::queue::Queue;
use super::{Access, Done, Kind};
use crate::Time;
use crate::machine::Uncached;

/// The memories and the bus between them.
#[derive(Debug)]
pub(crate) struct Modules {
    /// The times of the machine.
    times: Uncached,
    /// The bus.
    bus: Queue,
    /// The memory of each processor.
    modules: Vec<Queue>,
    /// The processor that each line is at home on.
    homes: Lines<Option<usize>>,
}

impl Modules {
    pub(crate) fn new(times: &Uncached, processors: usize) -> Self {
        Self {
            times: times.clone(),
            bus: Queue::default(),
            modules: vec![Queue::default(); processors],
            homes: Lines::default(),
        }
    }

    /// An access to a word at home.
    pub(crate) fn local(&self) -> Time {
        self.times.local
    }

    pub(crate) fn access(&mut self, Access { at, processor, line, kind }: Access) -> Done {
        let times = &self.times;
        let beyond = if kind == Kind::Exchange { times.exchange } else { Time::ZERO };
        let home = *self.homes.entry(line).get_or_insert(processor);
        let (takes, bus) =
            if home == processor { (times.local, Time::ZERO) } else { (times.remote, times.bus) };
        let module = times.module + beyond;
        // Both queues are entered at issue, so that a busy module does not keep the bus reserved
        // for later.
        let crosses = if home == processor { at } else { self.bus.enter(at, bus) };
        let begins = self.modules[home].enter(at, module).max(crosses);
        Done {
            at: begins + takes + beyond,
            reaches: begins + module,
            hit: false,
            transfer: false,
            invalidated: 0,
            queued: begins - at,
            occupied: module + bus,
        }
    }
}
