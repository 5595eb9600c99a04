//! Spin locks, ours and their peers: `cargo bench -p benches --bench spin`.
//!
//! | group | measures |
//! | --- | --- |
//! | `uncontended` | one acquisition and release by one thread |
//! | `two threads` | the same by two threads on processors of their own, per acquisition, empty section |
//! | `8 threads`, `32 threads` | the same by as many threads, on all processors of this process |
//!
//! An elapsed time says nothing of fairness, tails or burnt processor time: `cargo study all89` measures those together.

mod lock;

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{
    BenchmarkGroup, Criterion, SamplingMode, criterion_group, criterion_main, measurement::WallTime,
};
use lock::{Lock, McslockThreadLocal};

/// Calls `run::<L>(arguments)` for every lock: each of ours, then the peer it answers.
macro_rules! for_every_lock {
    ($run:ident $arguments:tt) => {
        $run::<stanchion_spin::TestAndSet> $arguments;
        $run::<peer_spin::mutex::SpinMutex<()>> $arguments;
        $run::<stanchion_spin::Ticket> $arguments;
        $run::<peer_spin::mutex::TicketMutex<()>> $arguments;
        $run::<stanchion_spin::Anderson<16>> $arguments;
        $run::<stanchion_spin::Mcs> $arguments;
        $run::<McslockThreadLocal> $arguments;
        $run::<stanchion_spin::TimePublishedMcs> $arguments;
        $run::<stanchion_spin::Clh> $arguments;
        $run::<clhlock::raw::spins::Mutex<()>> $arguments;
        $run::<std::sync::Mutex<()>> $arguments;
        $run::<parking_lot::Mutex<()>> $arguments;
        $run::<parking_lot::FairMutex<()>> $arguments;
    };
}

fn uncontended(criterion: &mut Criterion) {
    fn run<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>) {
        group.bench_function(L::NAME, |bencher| {
            let lock = L::make();
            bencher.iter(|| black_box(&lock).with(|| ()));
        });
    }
    let mut group = criterion.benchmark_group("uncontended");
    for_every_lock!(run(&mut group));
    group.finish();
}

/// How long the threads of one sample contend.
const WINDOW: Duration = Duration::from_millis(60);

/// The time for each of `acquisitions` when `threads` threads acquire as often as they can for one [`WINDOW`].
///
/// A window and not a share for each thread: a share is soon done by a thread that has the lock to itself while the others wait
/// for a processor, and then contention is not what is measured.
fn contend<L: Lock>(threads: usize, pinned: bool, acquisitions: u64) -> Duration {
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

fn contended(criterion: &mut Criterion) {
    fn run<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>, threads: usize, pinned: bool) {
        group.bench_function(L::NAME, |bencher| {
            bencher.iter_custom(|acquisitions| contend::<L>(threads, pinned, acquisitions));
        });
    }
    for (name, threads, pinned) in
        [("two threads", 2, true), ("8 threads", 8, false), ("32 threads", 32, false)]
    {
        let mut group = criterion.benchmark_group(name);
        // Every sample takes a window, whatever it is asked for.
        group.sample_size(10).sampling_mode(SamplingMode::Flat);
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(600));
        for_every_lock!(run(&mut group, threads, pinned));
        group.finish();
    }
}

criterion_group!(benches, uncontended, contended);
criterion_main!(benches);
