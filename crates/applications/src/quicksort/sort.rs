//! The threads: each takes an interval from the pool, cuts it in two, and puts back what has more
//! than a few numbers.
//!
//! # Invariants
//!
//! 1. The intervals that are outstanding do not overlap: each was cut from one that was
//!    outstanding. So a number is touched by one thread at a time.
//! 2. An interval of more than one number is cut in two that are shorter, so a run ends.

use super::outcome::{Options, Refused, Run, Share, fault};
use super::partition::{insertion_sort, split};
use super::pool::{Interval, Pool};
use crate::crew::{self, Affinity, Around, Shared};
use crate::mix::mix;
use crate::outstanding::{Broken, Outstanding};
use crate::pace::Pace;
use core::time::Duration;
use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Ordering};
use stanchion_machine::clock;
use stanchion_machine::sync::Arc;

/// Instructions for each number of an interval that is cut in two, and for each that insertion sort
/// passes; the accesses to the array apart.
const NUMBER: u64 = 5;

/// Instructions of taking an interval in hand, and choosing the pivot.
const INTERVAL: u64 = 100;

/// The time from one call of the watcher to the next, in nanoseconds. The clock is read for that
/// only after so many intervals.
const WATCH_NS: u64 = 100_000_000;
const WATCH_INTERVALS: u64 = 64;

/// The numbers that [`run`] sorts: pseudo-random, and the same for the same seed everywhere.
///
/// ```
/// use stanchion_applications::quicksort::numbers;
/// assert_eq!(numbers(3, 1), numbers(5, 1)[..3]);
/// assert_ne!(numbers(3, 1), numbers(3, 2));
/// ```
#[must_use]
pub fn numbers(count: usize, seed: u64) -> Vec<u32> {
    (0..count as u64).map(|index| (mix(mix(seed) ^ index) >> 32) as u32).collect()
}

/// Sorts pseudo-random numbers. `pool`, which must be empty, holds the intervals.
///
/// ```
/// use stanchion_applications::quicksort::{self, InStack, Options};
/// use stanchion_lockfree::{ConcurrentStack, Progress};
///
/// /// Any structure with the trait will do.
/// struct Simple<T>(parking_lot::Mutex<Vec<T>>);
///
/// impl<T> ConcurrentStack for Simple<T> {
///     type Item = T;
///     const PROGRESS: Progress = Progress::Blocking;
///     fn push(&self, value: T) { self.0.lock().push(value) }
///     fn pop(&self) -> Option<T> { self.0.lock().pop() }
///     fn is_empty(&self) -> bool { self.0.lock().is_empty() }
/// }
///
/// let options = Options { numbers: 10_000, threads: 2, ..Options::default() };
/// let run = quicksort::run(&options, InStack(Simple(Default::default())))?;
/// assert!(run.numbers.is_sorted() && run.fault.is_none());
/// # Ok::<(), quicksort::Refused>(())
/// ```
///
/// # Errors
///
/// [`Refused`] names the option that is no good, and what would be.
///
/// # Panics
///
/// If a thread cannot be started. With the panic of a thread, if one panics, as it may if the pool
/// does. With a pool that loses an interval the run does not end.
pub fn run<P: Pool>(options: &Options, pool: P) -> Result<Run, Refused> {
    options.check()?;
    let numbers = numbers(options.numbers, options.seed);
    run_with(options, numbers, pool, &Around::default(), &mut |_| ())
}

/// Does the same as [`run`] for `numbers` of the caller, however many the options say, with
/// something [`Around`] the threads, and with a `watch`. The calling thread calls `watch` every 100
/// ms or so with the number of numbers that are at their final indices, and once at the end.
///
/// # Errors
///
/// As [`run`].
///
/// # Panics
///
/// As [`run`], and if `around` or `watch` panics.
pub fn run_with<P: Pool>(
    options: &Options,
    numbers: Vec<u32>,
    pool: P,
    around: &Around,
    watch: &mut dyn FnMut(usize),
) -> Result<Run, Refused> {
    let options = Options { numbers: numbers.len(), ..*options };
    options.check()?;
    let &Options { threads, pinned, .. } = &options;
    let all = Interval::new(0, numbers.len());
    let table = Arc::new(Table {
        options,
        around: around.clone(),
        numbers: numbers.iter().copied().map(AtomicU32::new).collect(),
        outstanding: Outstanding::new(1),
        sorted: (0..threads).map(|_| Tally(AtomicUsize::new(0))).collect(),
        // A bounded pool may have no room even for one.
        first: pool.put(all).err(),
        pool,
    });

    let began = clock::now();
    let workers = crew::run(
        &table,
        threads,
        if pinned { Affinity::RoundRobin } else { Affinity::Free },
        |processor| Worker::work(&table, 0, processor, &mut *watch),
        |table, thread, processor| Worker::work(table, thread, processor, &mut |_| ()),
    );
    let elapsed = Duration::from_nanos(clock::now().nanos_since(began));

    watch(table.sorted());
    // Relaxed: the threads have been joined.
    let found: Vec<u32> =
        table.numbers.iter().map(|number| number.load(Ordering::Relaxed)).collect();
    Ok(Run { fault: fault(&found, numbers), numbers: found, elapsed, threads: workers })
}

/// The count of numbers that a thread has brought to their final indices. Written by it, read by
/// the watcher.
#[repr(align(128))]
struct Tally(AtomicUsize);

/// The data that the threads share.
struct Table<P> {
    /// The options of the run.
    options: Options,
    /// The wrapper of each thread's work.
    around: Around,
    /// The numbers. Written by the thread that has the interval.
    numbers: Vec<AtomicU32>,
    /// The intervals that are not sorted yet.
    outstanding: Outstanding,
    /// The counts of the threads, by number.
    sorted: Vec<Tally>,
    /// For the first thread, if the pool had no room.
    first: Option<Interval>,
    /// The structure under test.
    pool: P,
}

impl<P> Table<P> {
    fn sorted(&self) -> usize {
        // Relaxed: a figure for the watcher.
        self.sorted.iter().map(|tally| tally.0.load(Ordering::Relaxed)).sum()
    }
}

impl<P: Pool> Shared for Table<P> {
    fn give_up(&self) {
        self.outstanding.give_up();
    }
}

/// The data of one thread.
struct Worker {
    /// The number of the thread.
    thread: usize,
    /// The work that it has done.
    share: Share,
    /// Intervals for which the pool had no room.
    kept: Vec<Interval>,
    /// The pace of a simulated machine.
    pace: Pace,
}

impl Worker {
    fn work<P: Pool>(
        table: &Table<P>,
        thread: usize,
        processor: Option<usize>,
        watch: &mut dyn FnMut(usize),
    ) -> Share {
        let share = Share { processor, ..Share::default() };
        let kept = if thread == 0 { Vec::from_iter(table.first) } else { Vec::new() };
        let pace = Pace::new(table.options.instruction_ns);
        let mut worker = Self { thread, share, kept, pace };
        table.around.surround(thread, || {
            // `Broken` means that another thread has panicked: the caller gets that thread's panic.
            let _ = worker.intervals(table, watch);
        });
        worker.share
    }

    fn intervals<P: Pool>(
        &mut self,
        table: &Table<P>,
        watch: &mut dyn FnMut(usize),
    ) -> Result<(), Broken> {
        let mut watched = clock::now();
        let mut in_hand = 0_u64;
        loop {
            // The kept intervals are outstanding, and only this thread can reach them. So they come
            // first.
            let interval = match self.kept.pop() {
                Some(interval) => interval,
                None => {
                    let Some(interval) = table.outstanding.next(|| table.pool.take()) else {
                        return Ok(());
                    };
                    self.share.intervals += 1;
                    interval
                }
            };
            self.sort(table, interval)?;
            in_hand += 1;
            if self.thread == 0
                && in_hand.is_multiple_of(WATCH_INTERVALS)
                && clock::now().nanos_since(watched) >= WATCH_NS
            {
                watch(table.sorted());
                watched = clock::now();
            }
        }
    }

    /// Sorts an interval that is short, or makes two of it.
    fn sort<P: Pool>(&mut self, table: &Table<P>, interval: Interval) -> Result<(), Broken> {
        let Options { cutoff, seed, .. } = table.options;
        self.pace.compute(INTERVAL);
        let indices = interval.indices();
        if indices.len() <= cutoff {
            // Only if the whole array is short.
            self.finish(table, interval);
            return table.outstanding.replace(0);
        }
        let part = &table.numbers[indices.clone()];
        self.pace.compute(NUMBER * part.len() as u64);
        let pivots = mix(seed ^ ((indices.start as u64) << 32 | part.len() as u64));
        let first = split(part, pivots);
        let halves = [
            Interval::new(indices.start, first),
            Interval::new(indices.start + first, part.len() - first),
        ];
        for half in halves {
            if half.indices().len() <= cutoff {
                self.finish(table, half);
            }
        }
        let long = halves.into_iter().filter(|half| half.indices().len() > cutoff);
        table.outstanding.replace(long.clone().count())?;
        for half in long {
            if let Err(half) = table.pool.put(half) {
                self.share.kept += 1;
                self.kept.push(half);
            }
        }
        table.outstanding.notify();
        Ok(())
    }

    /// Brings the numbers of a short interval to their final indices.
    fn finish<P: Pool>(&mut self, table: &Table<P>, interval: Interval) {
        let part = &table.numbers[interval.indices()];
        let moved = insertion_sort(part);
        self.pace.compute(NUMBER * (part.len() as u64 + moved));
        self.share.sorted += part.len() as u64;
        // Relaxed: a figure for the watcher, and no other thread writes it.
        table.sorted[self.thread].0.store(self.share.sorted as usize, Ordering::Relaxed);
    }
}
