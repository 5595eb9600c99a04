//! The paper's programs over the structures of its figures 5 to 7, and the result that each must
//! have with any structure.
//!
//! | figure | program | checked |
//! | --- | --- | --- |
//! | 5, 6 | quicksort of 500,000 numbers, insertion sort from 20 down | the sorted numbers |
//! | 7 | the salesman on 17 cities | 2938, the length of the shortest tour, and every count |
//!
//! The paper does not say which 17 cities it had, or by what bound its tours are compared. Here
//! they are compared by the bound that is easy to compute, which leaves many tours to the
//! structures.

use std::time::Duration;

use super::linked::{LinkedQueue, LinkedStack};
use super::rows::{Ordinary, Safe};
use super::separate::SeparateCounter;
use super::skew::SkewHeap;
use super::tagged::{TaggedQueue, TaggedStack};
use stanchion_applications::Around;
use stanchion_applications::quicksort::{self, InQueue, InStack, Interval, Pool};
use stanchion_applications::tsp::{self, Bound, Instance, STANCHION17, Structures, Tour};
use stanchion_lockfree::counter::LinkedCounter;
use stanchion_lockfree::heap::HerlihyHeap;
use stanchion_lockfree::{ConcurrentStack, Counter, PriorityQueue};

use stanchion_study::settings::structures::Kind;

/// The settings of a run.
#[derive(Clone)]
pub struct Setup {
    /// The number of elements that quicksort sorts.
    pub numbers: usize,
    /// The number of threads, one a processor, pinned.
    pub threads: usize,
    /// The seed of the numbers.
    pub seed: u64,
    /// Nanoseconds of an instruction on a simulated machine.
    pub instruction_ns: u64,
    /// A wrapper around each thread's work, for the other applications beside the program.
    pub around: Around,
}

/// A line of a figure.
pub struct Program {
    /// The name of the structures, in the report.
    pub name: &'static str,
    /// The way in which they keep their threads apart.
    pub kind: Kind,
    /// Runs the program once. Returns its duration by the machine's clock, or a description of the
    /// fault.
    pub run: fn(&Setup) -> Result<Duration, String>,
}

fn sort<P: Pool>(setup: &Setup, pool: P) -> Result<Duration, String> {
    let &Setup { numbers, threads, seed, instruction_ns, .. } = setup;
    let options = quicksort::Options {
        numbers,
        threads,
        seed,
        instruction_ns,
        pinned: true,
        ..Default::default()
    };
    let numbers = quicksort::numbers(numbers, seed);
    let run = quicksort::run_with(&options, numbers, pool, &setup.around, &mut |_| ())
        .map_err(|refused| refused.to_string())?;
    run.fault.map_or(Ok(run.elapsed), |fault| Err(fault.to_string()))
}

fn travel<H, S, C>(setup: &Setup, heap: H, stack: S) -> Result<Duration, String>
where
    H: PriorityQueue<Key = u64, Value = Tour> + Send + Sync + 'static,
    S: ConcurrentStack<Item = Tour> + Send + Sync + 'static,
    C: Counter + Default + Send + Sync + 'static,
{
    let instance = Instance::parse(STANCHION17.as_bytes()).map_err(|error| error.to_string())?;
    let &Setup { threads, instruction_ns, .. } = setup;
    let options = tsp::Options {
        threads,
        instruction_ns,
        bound: Bound::Tree,
        pinned: true,
        ..Default::default()
    };
    let structures = Structures { heap, stack, made: C::default(), done: C::default() };
    let run = tsp::run_with(&instance, structures, &options, &setup.around, &mut |_| ())
        .map_err(|refused| refused.to_string())?;
    match run.fault {
        Some(fault) => Err(fault.to_string()),
        None if run.length != 2_938 => Err(format!("a tour of {}, not 2938", run.length)),
        None => Ok(run.elapsed),
    }
}

/// The nodes of a structure without locks: more intervals and tours than there are at a time.
const NODES: u32 = 65_536;

type Heap<L> = SkewHeap<u64, Tour, L>;
type Stack<L> = LinkedStack<Tour, L>;

/// The rows of figure 5.
pub static OVER_QUEUES: &[Program] = &[
    Program {
        name: "ordinary lock",
        kind: Kind::Ordinary,
        run: |setup| sort(setup, InQueue(LinkedQueue::<Interval, Ordinary>::default())),
    },
    Program {
        name: "preemption-safe lock",
        kind: Kind::Safe,
        run: |setup| sort(setup, InQueue(LinkedQueue::<Interval, Safe>::default())),
    },
    Program {
        name: "Michael-Scott",
        kind: Kind::NonBlocking,
        run: |setup| sort(setup, InQueue(TaggedQueue::with_nodes(NODES))),
    },
];

/// The rows of figure 6.
pub static OVER_STACKS: &[Program] = &[
    Program {
        name: "ordinary lock",
        kind: Kind::Ordinary,
        run: |setup| sort(setup, InStack(LinkedStack::<Interval, Ordinary>::default())),
    },
    Program {
        name: "preemption-safe lock",
        kind: Kind::Safe,
        run: |setup| sort(setup, InStack(LinkedStack::<Interval, Safe>::default())),
    },
    Program {
        name: "Treiber",
        kind: Kind::NonBlocking,
        run: |setup| sort(setup, InStack(TaggedStack::with_nodes(NODES))),
    },
];

/// The rows of figure 7.
pub static SALESMEN: &[Program] = &[
    Program {
        name: "ordinary lock",
        kind: Kind::Ordinary,
        run: |setup| {
            let (heap, stack) = (Heap::<Ordinary>::default(), Stack::<Ordinary>::default());
            travel::<_, _, SeparateCounter<Ordinary>>(setup, heap, stack)
        },
    },
    Program {
        name: "preemption-safe lock",
        kind: Kind::Safe,
        run: |setup| {
            let (heap, stack) = (Heap::<Safe>::default(), Stack::<Safe>::default());
            travel::<_, _, SeparateCounter<Safe>>(setup, heap, stack)
        },
    },
    Program {
        name: "non-blocking",
        kind: Kind::NonBlocking,
        run: |setup| {
            let (heap, stack) = (HerlihyHeap::new(), TaggedStack::with_nodes(NODES));
            travel::<_, _, LinkedCounter>(setup, heap, stack)
        },
    },
    Program {
        name: "hybrid",
        kind: Kind::Safe,
        run: |setup| {
            let (heap, stack) = (Heap::<Safe>::default(), TaggedStack::with_nodes(NODES));
            travel::<_, _, LinkedCounter>(setup, heap, stack)
        },
    },
];
