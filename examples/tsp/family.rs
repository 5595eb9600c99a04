//! The paper's four choices of heap, stack and counters.

use crate::Memory;
use clap::ValueEnum;
use lock_api::RawMutex;
use stanchion_applications::Around;
use stanchion_applications::tsp::{
    Instance, Options, Refused, Run, Scene, Structures, Tour, run_with,
};
use stanchion_lockfree::counter::{LinkedCounter, LockedCounter};
use stanchion_lockfree::heap::{HerlihyHeap, LockedHeap};
use stanchion_lockfree::memory::{self, Counted, Hazard};
use stanchion_lockfree::stack::{LockedStack, TreiberStack};
use stanchion_lockfree::{ConcurrentStack, Counter, PriorityQueue};
use stanchion_spin::{PreemptionSafe, TestAndSet};

/// The values of `--structure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// Skew heap, stack and counters under test-and-set locks.
    Ordinary,
    /// The same locks with holders that ask not to be preempted.
    PreemptionSafe,
    /// Herlihy's heap, Treiber's stack, LL/SC counters.
    NonBlocking,
    /// Treiber's stack, LL/SC counters, and the heap under the preemption-safe lock.
    Hybrid,
}

impl Family {
    /// As on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns whether `--memory` matters.
    pub(crate) fn has_nodes(self) -> bool {
        matches!(self, Self::NonBlocking | Self::Hybrid)
    }
}

type Heap<L> = LockedHeap<u64, Tour, L>;

/// A search to be made over some structures.
pub(crate) struct Search<'a> {
    /// The cities.
    pub(crate) instance: &'a Instance,
    /// The options of the search.
    pub(crate) options: &'a Options,
    /// The wrapper of each thread's work.
    pub(crate) around: &'a Around,
    /// Called with the state of the search.
    pub(crate) watch: &'a mut dyn FnMut(Scene),
}

impl Search<'_> {
    pub(crate) fn run(self, family: Family, memory: Memory) -> Result<Run, Refused> {
        match (family, memory) {
            (Family::Ordinary, _) => self.locked::<TestAndSet>(),
            (Family::PreemptionSafe, _) => self.locked::<PreemptionSafe>(),
            (Family::NonBlocking, Memory::Counted) => self.linked::<_, Counted>(HerlihyHeap::new()),
            (Family::NonBlocking, Memory::Hazard) => self.linked::<_, Hazard>(HerlihyHeap::new()),
            (Family::Hybrid, Memory::Counted) => {
                self.linked::<_, Counted>(Heap::<PreemptionSafe>::default())
            }
            (Family::Hybrid, Memory::Hazard) => {
                self.linked::<_, Hazard>(Heap::<PreemptionSafe>::default())
            }
        }
    }

    fn locked<L: RawMutex + Send + Sync + 'static>(self) -> Result<Run, Refused> {
        let counter = LockedCounter::<L>::default;
        self.over(Heap::<L>::default(), LockedStack::<Tour, L>::default(), counter(), counter())
    }

    fn linked<H, M: memory::Memory>(self, heap: H) -> Result<Run, Refused>
    where
        H: PriorityQueue<Key = u64, Value = Tour> + Send + Sync + 'static,
        TreiberStack<Tour, M>: ConcurrentStack<Item = Tour> + Send + Sync + 'static,
    {
        let counter = LinkedCounter::default;
        self.over(heap, TreiberStack::<Tour, M>::default(), counter(), counter())
    }

    fn over<H, S, C>(self, heap: H, stack: S, made: C, done: C) -> Result<Run, Refused>
    where
        H: PriorityQueue<Key = u64, Value = Tour> + Send + Sync + 'static,
        S: ConcurrentStack<Item = Tour> + Send + Sync + 'static,
        C: Counter + Send + Sync + 'static,
    {
        let Self { instance, options, around, watch } = self;
        run_with(instance, Structures { heap, stack, made, done }, options, around, watch)
    }
}
