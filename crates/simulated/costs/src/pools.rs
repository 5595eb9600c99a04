//! The operations of a thread pool: the rounds of one worker, while the others are idle.
//!
//! The rounds run on a worker of a pool, so that only the operation is timed. The counts of misses
//! and exchanges are those of all threads.

use core::time::Duration;

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{clock, thread};
use threadpool::{ThreadPoolBuilder, Worker};

use crate::operation::Rounds;

/// An operation of a pool.
pub(crate) struct PoolOperation {
    /// The name as in the docs: the type, then the function.
    pub(crate) name: &'static str,
    /// The fewest workers of the pool, which otherwise has one for each processor. If it is 1, each
    /// processor has a pool of its own.
    workers: usize,
    /// The work of one round, on a worker of the pool.
    round: fn(&Worker),
}

/// The number of untimed rounds that come first.
const UNTIMED: u64 = 4;

impl PoolOperation {
    /// Does `rounds` rounds on each pool, inside a run.
    pub(crate) fn run(&self, processors: usize, rounds: u64) -> Rounds {
        let (pools, workers) =
            if self.workers == 1 { (processors, 1) } else { (1, processors.max(self.workers)) };
        let round = self.round;
        let timed = move |worker: &Worker| {
            (0..UNTIMED).for_each(|_| round(worker));
            let begin = clock::now();
            (0..rounds).for_each(|_| round(worker));
            clock::now().nanos_since(begin)
        };
        let callers = (0..pools).map(|_| {
            thread::spawn(move || {
                let builder = ThreadPoolBuilder::new().num_threads(workers).max_threads(workers);
                let builder = builder.spare_threads(0).idle_spin(Duration::from_micros(2));
                let pool = builder.build().expect("few enough threads");
                let took = pool.install_with(timed);
                pool.shutdown();
                took
            })
        });
        let callers: Vec<_> = callers.collect();
        let took = callers.into_iter().map(|caller| caller.join().expect("no operation panics"));
        Rounds { nanos: took.sum(), count: rounds * pools as u64 }
    }
}

/// Returns all operations of pools.
pub(crate) fn all() -> Vec<PoolOperation> {
    let operation = |name, workers, round| PoolOperation { name, workers, round };
    vec![
        operation("threadpool::Worker join, unstolen", 1, join),
        operation("threadpool::Worker join, taken back", 2, join),
        operation("threadpool::Worker join, stolen", 2, join_stolen),
        operation("threadpool::spawn, run by its creator", 1, spawn_and_run),
        operation("threadpool::spawn to a sleeper, 100 us apart", 2, spawn_to_a_sleeper),
    ]
}

/// Waits until another worker has stored 1, and yields the processor to it.
fn wait_for(word: &AtomicU32) {
    // Acquire: pairs with that worker's Release store.
    while word.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
}

/// Joins two empty closures.
fn join(worker: &Worker) {
    worker.join(|_| (), |_| ());
}

/// Joins two closures. The first one waits until the second one runs on another worker.
fn join_stolen(worker: &Worker) {
    let stolen = AtomicU32::new(0);
    // Release: pairs with the Acquire of `wait_for`.
    worker.join(|_| wait_for(&stolen), |_| stolen.store(1, Ordering::Release));
}

/// Spawns a task and runs it on the same worker.
fn spawn_and_run(worker: &Worker) {
    threadpool::spawn(|| ());
    worker.yield_now();
}

/// Spawns a task after the other workers have gone to sleep. One of them runs it.
fn spawn_to_a_sleeper(_: &Worker) {
    let ran = Arc::new(AtomicU32::new(0));
    let set = ran.clone();
    thread::sleep(Duration::from_micros(100));
    // Release: pairs with the Acquire of `wait_for`.
    threadpool::spawn(move || set.store(1, Ordering::Release));
    wait_for(&ran);
}
