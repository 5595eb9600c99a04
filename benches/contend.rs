//! One thread on a lock, and many threads for a window of time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;

use crate::lock::Lock;

/// The time for which the threads of one sample contend.
const WINDOW: Duration = Duration::from_millis(60);

/// Returns the time of `acquisitions` when `threads` threads acquire as often as they can for one
/// [`WINDOW`].
///
/// Why a window and not a share for each thread: a thread that has the lock to itself, while the
/// others wait for a processor, soon finishes its share. Then no contention is measured.
pub(crate) fn contend<L: Lock>(threads: usize, pinned: bool, acquisitions: u64) -> Duration {
    let lock = L::make();
    let (ready, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|index| {
                let (lock, ready, over) = (&lock, &ready, &over);
                let processor = processors.get(index % processors.len().max(1)).copied();
                scope.spawn(move || {
                    if let (true, Some(processor)) = (pinned, processor) {
                        core_affinity::set_for_current(processor);
                    }
                    ready.wait();
                    let mut count = 0_u64;
                    while !over.load(Relaxed) {
                        lock.with(|| ());
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        ready.wait();
        let start = Instant::now();
        thread::sleep(WINDOW);
        over.store(true, Relaxed);
        let elapsed = start.elapsed();
        let count: u64 = workers.into_iter().map(|worker| worker.join().expect("no panic")).sum();
        elapsed.mul_f64(acquisitions as f64 / count.max(1) as f64)
    })
}

/// Sets a group up for operations of one thread, which take nanoseconds.
pub(crate) fn short(group: &mut BenchmarkGroup<'_, WallTime>) {
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
}
