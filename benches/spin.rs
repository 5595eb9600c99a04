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
use std::thread;
use std::time::{Duration, Instant};

use criterion::{
    BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime,
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

/// The time that `threads` threads take for `acquisitions` together, from the moment all are ready.
fn contend<L: Lock>(threads: usize, pinned: bool, acquisitions: u64) -> Duration {
    let lock = L::make();
    let share = acquisitions.div_ceil(threads as u64);
    let ready = Barrier::new(threads + 1);
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|index| {
                let (lock, ready) = (&lock, &ready);
                let processor = processors.get(index % processors.len().max(1)).copied();
                scope.spawn(move || {
                    if let (true, Some(processor)) = (pinned, processor) {
                        core_affinity::set_for_current(processor);
                    }
                    ready.wait();
                    let start = Instant::now();
                    for _ in 0..share {
                        lock.with(|| ());
                    }
                    (start, Instant::now())
                })
            })
            .collect();
        ready.wait();
        let spans: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        let start = spans.iter().map(|span| span.0).min().expect("a thread");
        let end = spans.iter().map(|span| span.1).max().expect("a thread");
        // Per acquisition asked for: the shares are rounded up.
        (end - start).mul_f64(acquisitions as f64 / (share * threads as u64) as f64)
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
        group.sample_size(10).warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(2));
        for_every_lock!(run(&mut group, threads, pinned));
        group.finish();
    }
}

criterion_group!(benches, uncontended, contended);
criterion_main!(benches);
