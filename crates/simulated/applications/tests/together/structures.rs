//! Quicksort and the travelling salesman on the simulated machines, over structures with locks and
//! without: the right result, in the same virtual time every time.

use stanchion_applications_simulated::quicksort::{self, InQueue, InStack, Interval, Pool};
use stanchion_applications_simulated::tsp::{self, Instance, Structures, Tour};
use stanchion_lockfree::counter::{FetchAddCounter, LinkedCounter, LockedCounter};
use stanchion_lockfree::heap::{HerlihyHeap, LockedHeap};
use stanchion_lockfree::memory::{Counted, Hazard};
use stanchion_lockfree::queue::{LockedQueue, MichaelScottQueue};
use stanchion_lockfree::stack::{LockedStack, TreiberStack};
use stanchion_lockfree::{ConcurrentStack, Counter, PriorityQueue};
use stanchion_simulator::{Simulation, Statistics, machines};
use stanchion_spin::TestAndSet;

const THREADS: usize = 4;

/// The paper's machine with as many processors as threads and with half as many, alone and shared
/// by two applications, and one of today.
fn on_machines(body: impl Fn() + Clone + 'static) {
    let mut shared = machines::challenge();
    shared.scheduling.applications = 2;
    for (processors, mut machine) in [
        (THREADS, machines::challenge()),
        (THREADS / 2, machines::challenge()),
        (THREADS, shared),
        (THREADS, machines::modern(THREADS)),
    ] {
        machine.processors = processors;
        let run = || -> Statistics {
            let simulation = Simulation::new(machine.clone()).stack_size(256 << 10);
            let run = simulation.run(body.clone());
            run.unwrap_or_else(|failure| panic!("{}: {failure}", machine.name)).statistics
        };
        let first = run();
        assert_eq!(first, run(), "the same run twice");
        // The body is the first of the threads.
        assert_eq!(first.threads.len(), THREADS);
        assert!(first.accesses.transfers > 0, "the threads have met");
    }
}

fn sorts<P: Pool>(pool: fn() -> P) {
    on_machines(move || {
        let options = quicksort::Options { numbers: 2_000, threads: THREADS, ..Default::default() };
        let run = quicksort::run(&options, pool()).unwrap();
        assert_eq!((run.fault, run.numbers.is_sorted()), (None, true));
        assert!(run.threads.iter().filter(|share| share.intervals > 0).count() > 1);
    });
}

#[test]
fn quicksort_over_a_stack_with_a_lock() {
    sorts(|| InStack(LockedStack::<Interval, TestAndSet>::default()));
}

#[test]
fn quicksort_over_treiber_s_stack() {
    sorts(|| InStack(TreiberStack::with_memory(Counted)));
    sorts(|| InStack(TreiberStack::with_memory(Hazard)));
}

#[test]
fn quicksort_over_a_queue_with_a_lock() {
    sorts(|| InQueue(LockedQueue::<Interval, TestAndSet>::default()));
}

#[test]
fn quicksort_over_michael_and_scott_s_queue() {
    sorts(|| InQueue(MichaelScottQueue::with_memory(Counted)));
    sorts(|| InQueue(MichaelScottQueue::with_memory(Hazard)));
}

/// Nine cities on a clock of 101 hours, in no order.
fn clock() -> Instance {
    let hour = |city: usize| city * city * 37 % 101;
    Instance::new("clock", 9, |a, b| {
        let apart = hour(a).abs_diff(hour(b));
        apart.min(101 - apart) as u32
    })
}

fn finds_the_shortest<H, S, C>(structures: fn() -> Structures<H, S, C>)
where
    H: PriorityQueue<Key = u64, Value = Tour> + Send + Sync + 'static,
    S: ConcurrentStack<Item = Tour> + Send + Sync + 'static,
    C: Counter + Send + Sync + 'static,
{
    on_machines(move || {
        let options =
            tsp::Options { threads: THREADS, head_start: false, leaf: 3, ..Default::default() };
        let run = tsp::run(&clock(), structures(), &options).unwrap();
        // Round the clock: the largest gap is less than half of it.
        assert_eq!((run.length, run.fault), (101, None));
    });
}

#[test]
fn the_salesman_over_structures_with_locks() {
    finds_the_shortest(|| Structures {
        heap: LockedHeap::<u64, Tour, TestAndSet>::default(),
        stack: LockedStack::<Tour, TestAndSet>::default(),
        made: LockedCounter::<TestAndSet>::default(),
        done: LockedCounter::<TestAndSet>::default(),
    });
}

#[test]
fn the_salesman_over_structures_without_locks() {
    finds_the_shortest(|| Structures {
        heap: HerlihyHeap::<u64, Tour>::new(),
        stack: TreiberStack::with_memory(Counted),
        made: LinkedCounter::default(),
        done: LinkedCounter::default(),
    });
    finds_the_shortest(|| Structures {
        heap: HerlihyHeap::<u64, Tour>::new(),
        stack: TreiberStack::with_memory(Hazard),
        made: FetchAddCounter::default(),
        done: FetchAddCounter::default(),
    });
}
