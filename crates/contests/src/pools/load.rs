//! A pool among other threads: more threads than processors, beside two threads that compute all
//! the time. And pools and an executor that have nothing to do.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use stanchion_gang::GangExecutor;
use stanchion_threadpool::strategy::{SingleLock, Strategy, WorkStealing};

use super::made::{ours, per_item, rayon};
use super::workload::{Times, Workload};
use crate::work::process_time;

/// Computes for about a microsecond.
fn work() -> u64 {
    let mut word = black_box(1_u64);
    for _ in 0..300 {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
    }
    word
}

/// Runs `body` beside two threads that compute.
fn beside_hogs<R>(body: impl FnOnce() -> R) -> R {
    let stop = Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..2)
        .map(|_| {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(Relaxed) {
                    black_box(work());
                }
            })
        })
        .collect();
    let result = body();
    stop.store(true, Relaxed);
    for hog in hogs {
        hog.join().expect("it only computes");
    }
    result
}

fn halves_ours(items: usize) -> u64 {
    if items <= 1 {
        return work();
    }
    let (a, b) =
        stanchion_threadpool::join(|| halves_ours(items / 2), || halves_ours(items - items / 2));
    a ^ b
}

fn halves_rayon(items: usize) -> u64 {
    if items <= 1 {
        return work();
    }
    let (a, b) = rayon::join(|| halves_rayon(items / 2), || halves_rayon(items - items / 2));
    a ^ b
}

fn crowded_ours<S: Strategy>(threads: usize, items: usize) -> Times {
    let pool = ours::<S>(threads);
    // In pieces, as in a program: each time the workers have to be woken again.
    beside_hogs(|| {
        per_item(items, || {
            for _ in 0..20 {
                pool.install(|| black_box(halves_ours(items / 20)));
            }
        })
    })
}

/// Measures the throughput of a fork-join program with eight workers and two hogs on the
/// processors.
pub(crate) fn crowded() -> Workload {
    Workload::new("crowded, beside 2 hogs", 200_000, &[8])
        .sampled(0.25)
        .ours("work stealing", crowded_ours::<WorkStealing>)
        .ours("single lock", crowded_ours::<SingleLock>)
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            beside_hogs(|| {
                per_item(items, || {
                    for _ in 0..20 {
                        pool.install(|| black_box(halves_rayon(items / 20)));
                    }
                })
            })
        })
}

/// Measures the processor time for each millisecond of a pool that had work and has none now. The
/// time of this thread's own sleep is included.
fn idle_for(items: usize, once: impl FnOnce()) -> Times {
    once();
    thread::sleep(Duration::from_millis(50));
    let cpu = process_time();
    thread::sleep(Duration::from_millis(items as u64));
    let cpu = (process_time() - cpu) as f64 / items as f64;
    // The clock is the only measure of a pool without work.
    Times { ns: cpu, p99: f64::NAN, cpu }
}

/// Measures the cost of a millisecond without work.
pub(crate) fn idle() -> Workload {
    Workload::new("idle, ns each ms", 2_000, &[2])
        .ours("work stealing", |threads, items| {
            let pool = ours::<WorkStealing>(threads);
            idle_for(items, || {
                pool.install(|| black_box(halves_ours(1_000)));
            })
        })
        .ours("gang executor", |threads, items| {
            let executor = GangExecutor::builder().processors(threads).build().expect("few seats");
            idle_for(items, || {
                let gang = executor.spawn(threads, |member| member.barrier());
                gang.expect("there is a slot").join().expect("it ended well");
            })
        })
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            idle_for(items, || {
                pool.install(|| black_box(halves_rayon(1_000)));
            })
        })
}
