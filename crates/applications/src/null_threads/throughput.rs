//! As many null threads as possible: figures 3.1 to 3.3.

use super::options::{Options, Refused, Run};
use super::processor::{Processor, Stacks};
use crate::crew::{self, Affinity, Shared};
use crate::mix::mix;
use core::time::Duration;
use stanchion_machine::atomic::{AtomicBool, AtomicUsize, Ordering};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{WaitPolicy, wait_until};
use stanchion_threadpool::{Plan, Strategy, WorkerSlot};

/// Executes null threads under a strategy of type `S`. Processors wait for one another by policy
/// `W`, and `S`'s locks by their own.
///
/// ```
/// use stanchion_machine::wait::Patient;
/// use stanchion_applications::null_threads::{Options, run};
/// use stanchion_threadpool::strategy::SingleLock;
///
/// let options = Options { processors: 2, each: 100, ..Options::default() };
/// let found = run::<SingleLock, Patient>(&options)?;
/// assert_eq!((found.threads, found.left), (200, 2));
/// # Ok::<(), stanchion_applications::null_threads::Refused>(())
/// ```
///
/// # Errors
///
/// [`Refused`] names the option that is no good, and what would be.
///
/// # Panics
///
/// If a thread of the system cannot be started. With the panic of the strategy, if it panics.
pub fn run<S: Strategy, W: WaitPolicy>(options: &Options) -> Result<Run, Refused> {
    options.check()?;
    let processors = options.processors;
    let (strategies, places) = if options.copies { (processors, 1) } else { (1, processors) };
    let Options { threshold, queues, .. } = *options;
    let plan = Plan { stacks: true, threshold, queues, ..Plan::new(places) };
    let table = Arc::new(Table {
        options: *options,
        strategies: (0..strategies).map(|_| S::new(&plan)).collect(),
        arrived: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    });
    let parts: Vec<Part> = crew::run(
        &table,
        processors,
        Affinity::Own,
        |_| work::<S, W>(&table, 0),
        |table, thread, _| work::<S, W>(table, thread),
    );
    let began = parts.iter().map(|part| part.began).min();
    let ended = parts.iter().map(|part| part.ended).max();
    let elapsed = ended.zip(began).map_or(0, |(ended, began)| ended.nanos_since(began));
    let left = table.drain();
    let run = Run {
        elapsed: Duration::from_nanos(elapsed),
        threads: options.each * processors as u64,
        idled: parts.iter().map(|part| part.idled).sum(),
        left,
        blocks: table.strategies.iter().map(Strategy::blocks).sum(),
        stacks: parts.iter().map(|part| part.stacks.len()).sum(),
    };
    // Before the stacks that are in it.
    drop(table);
    drop(parts);
    Ok(run)
}

/// The data that the processors share.
struct Table<S> {
    /// The options.
    options: Options,
    /// The strategy under test, or one for each processor.
    strategies: Vec<S>,
    /// Processors that are ready to begin.
    arrived: AtomicUsize,
    /// One has panicked.
    broken: AtomicBool,
}

impl<S: Strategy> Shared for Table<S> {
    fn give_up(&self) {
        // Relaxed, both: a processor that sees it stops, and looks at nothing else.
        self.broken.store(true, Ordering::Relaxed);
        self.arrived.store(usize::MAX / 2, Ordering::Relaxed);
    }
}

impl<S: Strategy> Table<S> {
    /// Returns the strategy of processor `thread`, and its place there.
    ///
    /// # Safety
    ///
    /// The caller is that processor, or all have ended.
    unsafe fn place(&self, thread: usize) -> (&S, WorkerSlot) {
        let (strategy, index) = if self.options.copies { (thread, 0) } else { (0, thread) };
        // SAFETY: each processor has a place of its own. The crew's end happened before the caller
        // goes on after it.
        (&self.strategies[strategy], unsafe { WorkerSlot::new(index) })
    }

    /// Takes out the threads that are left, and counts them.
    fn drain(&self) -> usize {
        let mut left = 0;
        for thread in 0..self.options.processors {
            // SAFETY: all have ended.
            let (strategy, place) = unsafe { self.place(thread) };
            let mut stack = None;
            while let Some(task) = strategy.next(&place, None, &mut stack) {
                strategy.release(Some(&place), task);
                left += 1;
            }
        }
        left
    }
}

/// The result of one processor.
struct Part {
    /// The time when it began.
    began: Ticks,
    /// The time when it ended.
    ended: Ticks,
    /// The number of times that it found no thread.
    idled: u64,
    /// The stacks that it has made.
    stacks: Stacks,
}

fn work<S: Strategy, W: WaitPolicy>(table: &Table<S>, thread: usize) -> Part {
    let Options { each, user_ns, costs, seed, processors, .. } = table.options;
    // SAFETY: the caller is processor `thread`.
    let (strategy, place) = unsafe { table.place(thread) };
    let mut processor = Processor::new(strategy, place, costs);
    processor.create(thread);
    // Relaxed, both: only when to begin.
    table.arrived.fetch_add(1, Ordering::Relaxed);
    let all = |arrived| arrived >= processors;
    wait_until(&table.arrived, Ordering::Relaxed, all, &mut W::start());
    let began = clock::now();
    for count in 0..each {
        let Some(started) = processor.wait::<W>(&table.broken) else { break };
        processor.create(started.argument);
        if user_ns > 0 {
            stanchion_machine::burn(user_work(user_ns, seed ^ (thread as u64) << 48, count));
        }
        processor.finish(started);
    }
    let ended = clock::now();
    let (stacks, idled) = processor.leave();
    Part { began, ended, idled, stacks }
}

/// Returns the time that thread number `count` of a processor computes, in nanoseconds. It is
/// uniform from 0 to twice the mean. Two threads that follow each other together take twice the
/// mean, so that processors have equally much to do. `seed` is the processor's own.
///
/// ```
/// use stanchion_applications::null_threads::user_work;
///
/// assert_eq!(user_work(300, 7, 0) + user_work(300, 7, 1), 600);
/// ```
#[must_use]
pub fn user_work(mean: u64, seed: u64, count: u64) -> u64 {
    let random = u128::from(mix(seed ^ (count / 2)));
    let first = ((random * (2 * u128::from(mean) + 1)) >> 64) as u64;
    if count.is_multiple_of(2) { first } else { 2 * mean - first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null_threads::{Costs, Path};
    use stanchion_machine::wait::Patient;
    use stanchion_threadpool::strategy::{
        Fifo, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, Random, SingleLock,
        TwoChoices, WorkStealing,
    };

    type Program = fn(&Options) -> Result<Run, Refused>;

    const ALL: [Program; 8] = [
        run::<SingleLock, Patient>,
        run::<MultipleLocks, Patient>,
        run::<LocalFreeList, Patient>,
        run::<IdleQueue, Patient>,
        run::<LocalReadyQueue, Patient>,
        run::<LocalReadyQueue<parking_lot::RawMutex, Fifo, Random>, Patient>,
        run::<LocalReadyQueue<parking_lot::RawMutex, Fifo, TwoChoices>, Patient>,
        run::<WorkStealing, Patient>,
    ];

    #[test]
    fn none_is_lost_or_executed_twice() {
        for program in ALL {
            for (processors, user_ns, copies) in
                [(1, 0, false), (3, 0, false), (3, 500, false), (3, 0, true)]
            {
                let options =
                    Options { processors, each: 2_000, user_ns, copies, ..Options::default() };
                let found = program(&options).unwrap();
                assert_eq!(found.threads, 2_000 * processors as u64);
                // Each thread that ran has created one, and each processor the first: were one
                // lost, there would be fewer.
                assert_eq!(found.left, processors);
                assert!(found.elapsed > Duration::ZERO);
                // As many blocks as live at a time, and as many as local lists and slabs may keep.
                assert!(found.blocks >= processors && found.blocks <= 512, "{}", found.blocks);
                assert!((processors..=2 * processors).contains(&found.stacks));
            }
        }
    }

    #[test]
    fn user_work_is_uniform_and_its_mean_exact() {
        let work: Vec<u64> = (0..1_000).map(|count| user_work(300, 7, count)).collect();
        assert_eq!(work.iter().sum::<u64>(), 300 * 1_000);
        for low in [0, 150, 300, 450] {
            let within = work.iter().filter(|work| (low..low + 150).contains(*work)).count();
            assert!((200..300).contains(&within), "{within} from {low} on");
        }
        assert_eq!(user_work(0, 7, 1), 0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused =
            |options: Options| run::<SingleLock, Patient>(&options).unwrap_err().to_string();
        let default = Options::default();
        assert_eq!(refused(Options { processors: 0, ..default }), "processors = 0: give 1 to 64");
        assert!(refused(Options { processors: 65, ..default }).contains("give 1 to 64"));
        assert!(refused(Options { each: 0, ..default }).contains("give 1 or more"));
        assert!(refused(Options { threshold: Some(0), ..default }).contains("give 1 or more"));
        assert_eq!(
            refused(Options { queues: Some(3), processors: 2, ..default }),
            "queues = 3: give 1 to 2, or None"
        );
        let start = Path { nanos: 1, writes: 17 };
        let costs = Costs { start, ..Costs::default() };
        assert_eq!(
            refused(Options { costs, ..default }),
            "the path start has 17 writes: give at most 16"
        );
    }
}
