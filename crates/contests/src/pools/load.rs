//! A pool among other threads: more threads than processors, beside two threads that compute all
//! the time. And a pool that has nothing to do.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use stanchion_threadpool::strategy::{SingleLock, Strategy, WorkStealing};

use crate::contest::{Figures, Workload};
use crate::pools::{ours, per_item, processor_time, rayon};

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

fn crowded_ours<S: Strategy>(threads: usize, items: usize) -> Figures {
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
    Workload {
        name: "crowded, beside 2 hogs",
        items: 200_000,
        threads: &[8],
        contestants: Vec::new(),
    }
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

/// Measures the processor time per millisecond of a pool that had work and has none now.
fn idle_for(items: usize, once: impl FnOnce()) -> Figures {
    once();
    thread::sleep(Duration::from_millis(50));
    let cpu = processor_time();
    thread::sleep(Duration::from_millis(items as u64));
    let cpu = (processor_time() - cpu).as_secs_f64() * 1e9 / items as f64;
    // The clock is the only measure of a pool without work.
    Figures { ns: cpu, p99: 0.0, cpu }
}

/// Measures the cost of a millisecond without work.
pub(crate) fn idle() -> Workload {
    Workload { name: "idle, ns each ms", items: 2_000, threads: &[2], contestants: Vec::new() }
        .ours("work stealing", |threads, items| {
            let pool = ours::<WorkStealing>(threads);
            idle_for(items, || {
                pool.install(|| black_box(halves_ours(1_000)));
            })
        })
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            idle_for(items, || {
                pool.install(|| black_box(halves_rayon(1_000)));
            })
        })
}
