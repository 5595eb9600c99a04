//! The cost of one thread, by the number of runnable threads: figure 3.4.
//!
//! One processor, the first, runs the thread that creates all others. It orders each to finish. The
//! paper:
//!
//! > When there are fewer threads than processors, thread cost is taken to be the time to create
//! > and start running a new thread. [...] When there are as many or more runnable threads as
//! > processors, the cost is the sum of the time to create a thread plus the time to finish it and
//! > start a new thread. [...] Creations and completions were synchronized to avoid measuring lock
//! > contention.
//!
//! ```text
//! runnable  1 ──▶ 2 ──▶ … ──▶ processors ──▶ … ──▶ most
//!           1 ◀── 2 ◀── … ◀── processors ◀── … ◀── most
//!
//! ──▶  a creation, long after the one before
//! ◀──  a finish, of a thread chosen at random
//! ```
//!
//! With `r` runnable threads, `r` below the processors: from before the creation of one more until
//! it runs on a processor that was idle. From the processors on: the creation of one more, and from
//! the finish that makes `r` of `r + 1` until its processor runs another thread.
//!
//! # Invariants
//!
//! 1. Between two events all other processors are at rest: a thread that runs waits for its
//!    processor's own word, and idle processors look.
//! 2. A processor is running if it has started one thread more than it was ordered to finish.

use super::options::{Costs, Refused, check};
use super::processor::{Processor, Stacks};
use crate::crew::{self, Affinity, Shared};
use crate::mix::mix;
use stanchion_machine::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{WaitPolicy, delay, retry_until, wait_until};
use stanchion_threadpool::{Plan, Strategy, WorkerSlot};

/// The options of [`latency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The number of processors that take part, at least 2.
    pub processors: usize,
    /// The most threads that are runnable at a time, the creator among them.
    pub most: usize,
    /// The number of times that each number of threads is gone through.
    pub rounds: u32,
    /// Nanoseconds between two events, in which all come to rest.
    pub settle_ns: u64,
    /// The most free blocks that a processor keeps for itself; `None` for the strategy's own
    /// choice.
    pub threshold: Option<usize>,
    /// The work outside the strategy.
    pub costs: Costs,
    /// Of which thread finishes next.
    pub seed: u64,
}

/// The cost of a thread with so many runnable, in nanoseconds: means over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Runnable threads before the creation.
    pub runnable: usize,
    /// The creation alone.
    pub create: f64,
    /// From before the creation until the thread ran, where a processor was idle.
    pub until_started: f64,
    /// From before a finish until the next thread ran, where one was ready.
    pub finish_and_start: f64,
    /// The paper's cost: `until_started` while there are idle processors, then `create` and
    /// `finish_and_start` together.
    pub cost: f64,
}

/// Goes through all numbers of runnable threads under a strategy of type `S`. Returns an entry for
/// each from 1 to below [`Sweep::most`].
///
/// # Errors
///
/// [`Refused`] names the option that is no good, and what would be.
///
/// # Panics
///
/// If a thread of the system cannot be started. With the panic of the strategy, if it panics.
pub fn latency<S: Strategy, W: WaitPolicy>(sweep: &Sweep) -> Result<Vec<Latency>, Refused> {
    let Sweep { processors, most, rounds, .. } = *sweep;
    check(processors, 2, &sweep.costs)?;
    if sweep.threshold == Some(0) {
        return Err(Refused::NoThreshold);
    }
    if most < 2 || rounds == 0 {
        return Err(Refused::NothingMeasured { most, rounds });
    }
    let table = Arc::new(Table {
        sweep: *sweep,
        strategy: S::new(&Plan {
            stacks: true,
            threshold: sweep.threshold,
            ..Plan::new(processors)
        }),
        records: (0..processors).map(|_| Record::default()).collect(),
        over: AtomicBool::new(false),
    });
    let mut sums = vec![Sums::default(); most];
    let stacks: Vec<Stacks> = crew::run(
        &table,
        processors,
        Affinity::Own,
        |_| {
            let mut conductor = Conductor::new(&*table);
            conductor.conduct::<W>(&mut sums);
            table.give_up();
            conductor.creator.leave().0
        },
        |table, thread, _| follow::<S, W>(table, thread),
    );
    // Before the stacks that are in it.
    drop(table);
    drop(stacks);
    let mean = |runnable: usize| sums[runnable].mean(runnable, processors, f64::from(rounds));
    Ok((1..most).map(mean).collect())
}

/// The sums of the times with one number of runnable threads.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Of the creations.
    create: u64,
    /// From before a creation until the thread runs.
    until_started: u64,
    /// From a finish until the processor runs another thread.
    finish_and_start: u64,
}

impl Sums {
    fn mean(self, runnable: usize, processors: usize, rounds: f64) -> Latency {
        let [create, until_started, finish_and_start] =
            [self.create, self.until_started, self.finish_and_start].map(|sum| sum as f64 / rounds);
        let idle = runnable < processors;
        let cost = if idle { until_started } else { create + finish_and_start };
        Latency { runnable, create, until_started, finish_and_start, cost }
    }
}

/// The words of a processor that the others see.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Record {
    /// The number of threads that it was ordered to finish. Written by the first processor.
    orders: AtomicU32,
    /// The time when the last one finished. Written before `starts`.
    finished: AtomicU64,
    /// The time when the running one started. Written before `starts`.
    started: AtomicU64,
    /// The number of threads that it has started. Written by the processor itself.
    starts: AtomicU32,
}

/// The data that the processors share.
struct Table<S> {
    /// The options.
    sweep: Sweep,
    /// The strategy under test.
    strategy: S,
    /// The states of the processors, by number.
    records: Vec<Record>,
    /// Set when all processors must stop.
    over: AtomicBool,
}

impl<S: Strategy> Shared for Table<S> {
    /// Stops all processors, at the end and when one has panicked: none waits any more.
    fn give_up(&self) {
        // Relaxed, both: a processor that sees them stops, and looks at nothing else.
        self.over.store(true, Ordering::Relaxed);
        for record in &self.records {
            record.orders.fetch_or(OVER, Ordering::Relaxed);
        }
    }
}

/// Set in the orders of all at the end.
const OVER: u32 = 1 << 31;

/// Runs a processor that executes the threads that are created, and finishes them when ordered.
fn follow<S: Strategy, W: WaitPolicy>(table: &Table<S>, thread: usize) -> Stacks {
    // SAFETY: each has its own number.
    let place = unsafe { WorkerSlot::new(thread) };
    let mut processor = Processor::new(&table.strategy, place, table.sweep.costs);
    let record = &table.records[thread];
    let mut served = 0;
    let mut finished = clock::now();
    while let Some(started) = processor.wait::<W>(&table.over) {
        let now = clock::now();
        // Relaxed: `starts` publishes both.
        record.finished.store(finished.to_bits(), Ordering::Relaxed);
        record.started.store(now.to_bits(), Ordering::Relaxed);
        // Release: pairs with the Acquire of `Conductor::started`.
        record.starts.store(served + 1, Ordering::Release);
        // Relaxed: an order carries nothing.
        wait_until(&record.orders, Ordering::Relaxed, |orders| orders > served, &mut W::start());
        served += 1;
        finished = clock::now();
        processor.finish(started);
    }
    processor.leave().0
}

/// The first processor. Its one thread creates all others and orders which of them finishes.
struct Conductor<'a, S> {
    /// The data that all processors share.
    table: &'a Table<S>,
    /// The processor that creates.
    creator: Processor<'a, S>,
    /// For each processor, the number of threads that it was ordered to finish, and that it has
    /// started.
    counts: Vec<(u32, u32)>,
}

impl<'a, S: Strategy> Conductor<'a, S> {
    fn new(table: &'a Table<S>) -> Self {
        // SAFETY: the caller is number 0.
        let place = unsafe { WorkerSlot::new(0) };
        let creator = Processor::new(&table.strategy, place, table.sweep.costs);
        Self { table, creator, counts: vec![(0, 0); table.records.len()] }
    }

    /// Goes through all rounds; ends early if another has panicked.
    fn conduct<W: WaitPolicy>(&mut self, sums: &mut [Sums]) {
        let Sweep { processors, rounds, settle_ns, seed, .. } = self.table.sweep;
        let mut random = seed;
        for _ in 0..rounds {
            for (runnable, sum) in sums.iter_mut().enumerate().skip(1) {
                delay(settle_ns);
                let began = clock::now();
                self.creator.create(runnable);
                sum.create += clock::now().nanos_since(began);
                if runnable < processors {
                    let Some(record) = self.started::<W>() else { return };
                    sum.until_started += moment(&record.started).nanos_since(began);
                }
            }
            for (runnable, sum) in sums.iter_mut().enumerate().skip(1).rev() {
                delay(settle_ns);
                random = mix(random);
                self.finish(random);
                if runnable >= processors {
                    let Some(record) = self.started::<W>() else { return };
                    let finished = moment(&record.finished);
                    sum.finish_and_start += moment(&record.started).nanos_since(finished);
                }
            }
        }
    }

    /// The record of the processor that has started one thread more, when one has; `None` if
    /// another has panicked.
    fn started<W: WaitPolicy>(&mut self) -> Option<&'a Record> {
        // Not to disturb a processor that looks for the thread (Invariant 1).
        delay(self.table.sweep.settle_ns);
        let Self { table, counts, .. } = self;
        let more = || {
            // Relaxed: the thread that joins sees everything that a panic left behind.
            if table.over.load(Ordering::Relaxed) {
                return Some(None);
            }
            let records = table.records.iter().zip(counts.iter()).enumerate();
            // Acquire: pairs with the Release of `follow`, which wrote the moments before.
            let mut records = records.filter(|(_, (record, (_, starts)))| {
                record.starts.load(Ordering::Acquire) > *starts
            });
            records.next().map(|(index, _)| Some(index))
        };
        let index = retry_until(more, &mut W::start())?;
        counts[index].1 += 1;
        Some(&table.records[index])
    }

    /// Orders one of the running threads to finish.
    fn finish(&mut self, random: u64) {
        // Invariant 2.
        let running = self
            .counts
            .iter_mut()
            .zip(&self.table.records)
            .filter(|((orders, starts), _)| starts > orders);
        let mut running: Vec<_> = running.collect();
        let chosen = random as usize % running.len();
        let ((orders, _), record) = &mut running[chosen];
        *orders += 1;
        // Relaxed: an order carries nothing.
        record.orders.fetch_add(1, Ordering::Relaxed);
    }
}

fn moment(word: &AtomicU64) -> Ticks {
    // Relaxed: read after `starts`, which published it.
    Ticks::from_bits(word.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_machine::wait::Patient;
    use stanchion_threadpool::strategy::{
        IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, SingleLock, WorkStealing,
    };

    const SWEEP: Sweep = Sweep {
        processors: 3,
        most: 8,
        rounds: 5,
        settle_ns: 20_000,
        threshold: None,
        costs: NO_COSTS,
        seed: 1,
    };
    const NO_COSTS: Costs = {
        let nothing = crate::null_threads::Path { nanos: 0, writes: 0 };
        Costs { create: nothing, start: nothing, finish: nothing, look_ns: 0 }
    };

    #[test]
    fn every_number_has_its_cost() {
        for program in [
            latency::<SingleLock, Patient>,
            latency::<MultipleLocks, Patient>,
            latency::<LocalFreeList, Patient>,
            latency::<IdleQueue, Patient>,
            latency::<LocalReadyQueue, Patient>,
            latency::<WorkStealing, Patient>,
        ] {
            let found = program(&SWEEP).unwrap();
            assert_eq!(found.len(), 7);
            for (number, point) in (1..).zip(&found) {
                assert_eq!(point.runnable, number);
                assert!(point.create > 0.0);
                let (idle, cost) = (number < 3, point.cost);
                assert_eq!(point.until_started > 0.0, idle, "{point:?}");
                let parts =
                    if idle { point.until_started } else { point.create + point.finish_and_start };
                assert_eq!(cost, parts);
            }
        }
    }

    #[test]
    fn what_measures_nothing_is_refused() {
        let refused =
            |sweep: Sweep| latency::<SingleLock, Patient>(&sweep).unwrap_err().to_string();
        assert_eq!(refused(Sweep { processors: 1, ..SWEEP }), "processors = 1: give 2 to 64");
        assert!(refused(Sweep { most: 1, ..SWEEP }).contains("give at least 2 runnable"));
        assert!(refused(Sweep { threshold: Some(0), ..SWEEP }).contains("give 1 or more"));
        assert!(refused(Sweep { rounds: 0, ..SWEEP }).contains("1 round"));
    }
}
