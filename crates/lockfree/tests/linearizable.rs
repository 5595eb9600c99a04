//! Checks that real threads see only possible results of each structure: recorded histories are
//! compared with a sequential model by `stanchion-linearizability`.
//!
//! | histories | threads | calls of each | number |
//! | --- | --- | --- | --- |
//! | short | 3 | 4 | as many as asked for |
//! | long: nodes come back, lists of retired ones are looked through | 3 | 64 | a hundredth |
//! | short, on bounded queues with room for 1, 2 and 3 | 3 | 4 | as many as asked for |
//!
//! Before the threads begin, up to 3 calls fill the structure a little. When they have ended, it is
//! emptied, so that a lost or doubled value shows. Each test prints how many histories there were,
//! and in how many of them calls of different threads overlapped.
//!
//! `cargo test` checks a few hundred of each structure. `STANCHION_HISTORIES` asks for more:
//!
//! ```text
//! STANCHION_HISTORIES=1000000 \
//!     cargo test --release -p stanchion-lockfree --test linearizable -- --nocapture
//! ```
//!
//! With `STANCHION_STRUCTURES=Queue,Ring` it checks only structures with one of these words in
//! their names.

use stanchion_lockfree as lockfree;

#[path = "common/slots.rs"]
mod slots;
#[path = "common/structures.rs"]
mod structures;

use std::cell::Cell;
use std::env;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockfree::counter::ShardedCounter;
use lockfree::heap::{CopiedHeap, MultiQueue};
use lockfree::queue::{LockedRing, NikolaevQueue};
use lockfree::{ConcurrentQueue, Counter, FetchAdd, Full};
use stanchion_linearizability::specification::{
    self, Count, Operation, Outcome, PriorityQueue, Queue, Stack,
};
use stanchion_linearizability::{Random, Specification, Tally, Trial};
use structures::{Family, Order, Shared, each};

/// The number of histories of each structure, unless more are asked for. They take some ten seconds
/// in all on a busy computer, without optimization.
const FEW: u64 = 300;

const THREADS: usize = 3;

fn histories() -> u64 {
    let Some(asked) = env::var_os("STANCHION_HISTORIES") else { return FEW };
    let number = asked.to_str().and_then(|asked| asked.replace('_', "").parse().ok());
    number.unwrap_or_else(|| {
        panic!("STANCHION_HISTORIES is {asked:?}: expected how many histories of each structure, such as 1000000")
    })
}

/// Returns whether the structure of this name is asked for.
fn asked_for(name: &str) -> bool {
    env::var("STANCHION_STRUCTURES")
        .map_or(true, |asked| asked.split(',').any(|word| name.contains(word)))
}

/// One test at a time: threads of two would take the processors from one another, and calls would
/// not overlap.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Chooses operations. Each value of a history is pushed once, so that long ones are checked too.
fn choices() -> impl Fn(&mut Random) -> Operation<u64> {
    let pushed = Cell::new(0_u64);
    move |random| match random.below(16) {
        0 => Operation::IsEmpty,
        1..=8 => {
            let number = pushed.replace(pushed.get() + 1);
            // In no order, so that a priority queue has something to do.
            Operation::Push(number.wrapping_mul(40_503) % (1 << 16))
        }
        _ => Operation::Pop,
    }
}

/// Performs an operation. If there are keys, a value is its own key.
fn perform<S: Shared<u64>>(structure: &S, operation: &Operation<u64>) -> Outcome<u64> {
    match operation {
        Operation::Push(value) => match structure.put(*value, *value) {
            Ok(()) => Outcome::Pushed,
            Err(back) => {
                assert_eq!(back, *value, "another value came back");
                Outcome::Full
            }
        },
        Operation::Pop => Outcome::Popped(structure.take()),
        Operation::IsEmpty => Outcome::Empty(structure.look()),
    }
}

/// Histories of one structure: short ones and some long ones. `check` checks those of a trial.
fn series<E: Display>(name: &str, check: impl Fn(Trial<Operation<u64>>) -> Result<Tally, E>) {
    if !asked_for(name) {
        return;
    }
    let few = Trial::new().threads(THREADS).before(3).last([Operation::Pop; 8]);
    let series = [
        ("short", few.clone().calls(4).histories(histories())),
        ("long", few.calls(64).histories(histories().div_ceil(100)).seed(2)),
    ];
    for (length, trial) in series {
        match check(trial) {
            Ok(tally) => println!("{name}, {length}: {tally}"),
            Err(error) => fail(name, error),
        }
    }
}

fn fail(name: &str, error: impl Display) -> ! {
    panic!("{name}: {error}")
}

fn of_family<F: Family>() {
    fn with<F: Family, P>(initial: P)
    where
        P: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>,
    {
        let make = F::make::<u64>;
        series(F::NAME, |trial| trial.run(&initial, make, choices(), perform));
    }
    let make = F::make::<u64>;
    match (F::ORDER, make().room()) {
        (Order::LastIn, _) => with::<F, _>(Stack::new()),
        (Order::FirstIn, Some(room)) if F::PROGRESS.is_non_blocking() => {
            let judge = |history: &_| slots::judge(room, history);
            series(F::NAME, |trial| trial.run_with(make, choices(), perform, judge));
        }
        (Order::FirstIn, room) => with::<F, _>(Queue::bounded(room.unwrap_or(usize::MAX))),
        (Order::SmallestKey, _) => with::<F, _>(PriorityQueue::new()),
    }
}

#[test]
fn structures_are_linearizable() {
    let _alone = alone();
    each!(of_family);
}

/// Checks queues that are full after the first few pushes. `check` gets the number of slots. It
/// differs from queue to queue, so the test names them.
fn bounded<Q: ConcurrentQueue<Item = u64> + Sync, E: Display>(
    name: &str,
    make: fn(usize) -> Q,
    check: impl Fn(usize, Trial<Operation<u64>>, &dyn Fn() -> Q) -> Result<Tally, E>,
) {
    if !asked_for(name) {
        return;
    }
    for room in 1..=3 {
        let trial = Trial::new().threads(THREADS).calls(4).before(3).last([Operation::Pop; 4]);
        let trial = trial.histories(histories()).seed(room as u64);
        match check(room, trial, &|| make(room)) {
            Ok(tally) => println!("{name}, room for {room}: {tally}"),
            Err(error) => fail(name, error),
        }
    }
}

/// Checks histories of a queue in which threads hold slots while they push and pop.
fn by_slots<Q: ConcurrentQueue<Item = u64> + Sync>(
    room: usize,
    trial: Trial<Operation<u64>>,
    make: &dyn Fn() -> Q,
) -> Result<Tally, String> {
    trial.run_with(make, choices(), ask, |history| slots::judge(room, history))
}

fn ask<Q: ConcurrentQueue<Item = u64>>(queue: &Q, operation: &Operation<u64>) -> Outcome<u64> {
    match operation {
        Operation::Push(value) => match queue.try_push(*value) {
            Ok(()) => Outcome::Pushed,
            Err(_) => Outcome::Full,
        },
        Operation::Pop => Outcome::Popped(queue.pop()),
        Operation::IsEmpty => Outcome::Empty(queue.is_empty()),
    }
}

#[test]
fn bounded_queues_are_linearizable() {
    let _alone = alone();
    bounded("NikolaevQueue", NikolaevQueue::with_capacity, by_slots);
    bounded("LockedRing", LockedRing::<u64>::with_capacity, |room, trial, make| {
        trial.run(&Queue::bounded(room), make, choices(), ask)
    });
}

/// A queue that refuses pushes although a slot is free that no thread holds.
struct Refusing {
    /// The queue that holds the values.
    queue: LockedRing<u64>,
    /// The number of slots that it does not use.
    unused: usize,
}

impl ConcurrentQueue for Refusing {
    type Item = u64;

    const PROGRESS: lockfree::Progress = lockfree::Progress::Blocking;

    fn try_push(&self, value: u64) -> Result<(), Full<u64>> {
        if self.unused == self.queue.capacity() {
            Err(Full(value))
        } else {
            self.queue.try_push(value)
        }
    }

    fn pop(&self) -> Option<u64> {
        self.queue.pop()
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// The specification of `NikolaevQueue` refuses a queue that always says that it is full. It also
/// refuses a queue that has a slot less than it should, however few there are.
#[test]
fn queues_that_are_full_too_early_are_found() {
    let _alone = alone();
    for (room, unused) in [(1, 1), (2, 2), (2, 1), (3, 3), (3, 1)] {
        let make = move || Refusing {
            queue: LockedRing::with_capacity(if unused == room { room } else { room - unused }),
            unused: if unused == room { room } else { 0 },
        };
        let trial = Trial::new().threads(THREADS).calls(4).before(3).last([Operation::Pop; 4]);
        let error =
            by_slots(room, trial.histories(1_000), &make).expect_err("it is full too early");
        assert!(error.contains("not linearizable"), "{room}, {unused}: {error}");
    }
}

/// A heap that is not in `all_structures!`, because it asks more of its values or promises less of
/// their order. Each has a model of its own, so the test names them.
fn heap<H>(name: &str, initial: &PriorityQueue<u64>, make: fn() -> H)
where
    H: lockfree::PriorityQueue<Key = u64, Value = u64> + Sync,
{
    if !asked_for(name) {
        return;
    }
    let trial = Trial::new().threads(THREADS).calls(4).before(3).last([Operation::Pop; 8]);
    let perform = |heap: &H, operation: &Operation<u64>| match operation {
        Operation::Push(key) => {
            heap.push(*key, *key);
            Outcome::Pushed
        }
        Operation::Pop => Outcome::Popped(heap.pop_min().map(|(_, value)| value)),
        Operation::IsEmpty => Outcome::Empty(heap.is_empty()),
    };
    match trial.histories(histories()).run(initial, make, choices(), perform) {
        Ok(tally) => println!("{name}: {tally}"),
        Err(error) => fail(name, error),
    }
}

#[test]
fn other_heaps_are_linearizable() {
    let _alone = alone();
    heap("CopiedHeap", &PriorityQueue::new(), CopiedHeap::<u64, u64>::new);
    // Any entry may come out, but none twice, and it is empty only if it is.
    heap("MultiQueue", &PriorityQueue::relaxed(usize::MAX), || {
        MultiQueue::<u64, u64>::with_heaps(4)
    });
}

/// Checks counters. Their width goes into the model.
fn count<C: FetchAdd + Default + Sync>(name: &str) {
    if !asked_for(name) {
        return;
    }
    let trial = Trial::new().threads(THREADS).calls(4).histories(histories()).last([Count::Get]);
    let choose = |random: &mut Random| match random.below(4) {
        0 => Count::Get,
        1 => Count::Add(random.below(9)),
        _ => Count::FetchAdd(random.below(9)),
    };
    let verdict = trial.run(&specification::Counter::new(0), C::default, choose, call::<C>);
    match verdict {
        Ok(tally) => println!("{name}: {tally}"),
        Err(error) => fail(name, error),
    }
}

fn call<C: FetchAdd>(counter: &C, operation: &Count) -> Option<u64> {
    match operation {
        Count::Add(amount) => {
            counter.add(*amount);
            None
        }
        Count::FetchAdd(amount) => Some(counter.fetch_add(*amount)),
        Count::Get => Some(counter.get()),
    }
}

#[test]
fn counters_are_linearizable() {
    let _alone = alone();
    macro_rules! counters {
        ([] $({ $row:ident: $counter:ty, name: $name:literal, $($rest:tt)* })+) => {
            $(count::<$counter>($name);)+
        };
    }
    lockfree::__structures!(counter: counters);
}

/// The sharded counter is not linearizable, and its docs say so. But when all is quiet its sum is
/// exact, and it never goes down for a thread that asks twice.
#[test]
fn a_sharded_counter_is_right_in_the_end() {
    /// The promise of the sharded counter: a sum lies between the past additions and all additions.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Sums {
        /// The sum of the additions so far.
        added: u64,
        /// Set after the last call, which comes when all is quiet.
        last: bool,
    }
    impl Specification for Sums {
        type Operation = (Count, bool);
        type Outcome = Option<u64>;
        fn step(
            &self,
            (count, last): &(Count, bool),
            outcome: Option<&Option<u64>>,
            after: &mut Vec<Self>,
        ) {
            let added = match count {
                Count::Add(amount) => self.added + amount,
                Count::FetchAdd(_) | Count::Get => self.added,
            };
            let seen = outcome.copied().flatten();
            // Ordered by where the call could have been, a sum may lack additions made meanwhile.
            // The last sum lacks nothing.
            if seen.is_none_or(|seen| if *last { seen == added } else { seen <= ALL }) {
                after.push(Self { added, last: *last });
            }
        }
    }
    const ALL: u64 = 3 * 4 * 8;
    let _alone = alone();
    if !asked_for("ShardedCounter") {
        return;
    }
    let trial =
        Trial::new().threads(THREADS).calls(4).histories(histories()).last([(Count::Get, true)]);
    let choose = |random: &mut Random| {
        (if random.once_in(3) { Count::Get } else { Count::Add(random.below(9)) }, false)
    };
    let perform = |counter: &ShardedCounter, (operation, _): &(Count, bool)| match operation {
        Count::Add(amount) => {
            counter.add(*amount);
            None
        }
        Count::FetchAdd(_) | Count::Get => Some(counter.get()),
    };
    let initial = Sums { added: 0, last: false };
    match trial.run(&initial, ShardedCounter::default, choose, perform) {
        Ok(tally) => println!("ShardedCounter, in the end: {tally}"),
        Err(error) => fail("ShardedCounter", error),
    }
}
