//! The time that a task waits if it finds the pool asleep.

use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::clock::now;
use stanchion_threadpool::strategy::{IdleQueue, SingleLock, WorkStealing};

use super::made::{ours, rayon, tokio};
use super::workload::{Times, Workload};
use crate::work::process_time;

/// Runs a number of items, one after the other, with `idle` between them. Each item returns the
/// time that it took.
pub(crate) fn latencies(items: usize, idle: Duration, item: impl Fn() -> u64) -> Times {
    let items = items.max(3);
    for _ in 0..3 {
        item();
        thread::sleep(idle);
    }
    let cpu = process_time();
    let mut nanos: Vec<u64> = (0..items)
        .map(|_| {
            let nanos = item();
            thread::sleep(idle);
            nanos
        })
        .collect();
    let cpu = process_time() - cpu;
    nanos.sort_unstable();
    Times {
        ns: nanos[items / 2] as f64,
        p99: nanos[items * 99 / 100] as f64,
        cpu: cpu as f64 / items as f64,
    }
}

/// Measures from the call that creates a task to its first instruction. The caller sleeps
/// meanwhile, as a caller would that waits for the task.
fn first(items: usize, idle: Duration, spawn: impl Fn(Box<dyn FnOnce() + Send>)) -> Times {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    latencies(items, idle, || {
        STARTED.store(0, Relaxed);
        let waiting = thread::current();
        let begin = now();
        spawn(Box::new(move || {
            STARTED.store(now().nanos_since(begin).max(1), Release);
            waiting.unpark();
        }));
        while STARTED.load(Acquire) == 0 {
            thread::park();
        }
        STARTED.load(Relaxed)
    })
}

/// Measures the first task of a pool that has been idle for this many microseconds.
pub(crate) fn first_after(micros: u64) -> Workload {
    macro_rules! after {
        ($idle:expr, $name:expr, $items:expr, $sample:expr) => {
            Workload::new($name, $items, &[2])
                .sampled($sample)
                .ours("work stealing", |threads, items| {
                    let pool = ours::<WorkStealing>(threads);
                    first(items, $idle, |task| pool.spawn(task))
                })
                .ours("idle queue", |threads, items| {
                    let pool = ours::<IdleQueue>(threads);
                    first(items, $idle, |task| pool.spawn(task))
                })
                .ours("single lock", |threads, items| {
                    let pool = ours::<SingleLock>(threads);
                    first(items, $idle, |task| pool.spawn(task))
                })
                .peer("rayon", |threads, items| {
                    let pool = rayon(threads);
                    first(items, $idle, |task| pool.spawn(task))
                })
                .peer("tokio", |threads, items| {
                    let runtime = tokio(threads);
                    first(items, $idle, |task| {
                        runtime.spawn(async move { task() });
                    })
                })
                .peer("threadpool", |threads, items| {
                    let pool = peer_threadpool::ThreadPool::new(threads);
                    first(items, $idle, |task| pool.execute(task))
                })
        };
    }
    match micros {
        100 => after!(Duration::from_micros(100), "first task after 100 us", 1_000, 0.25),
        _ => after!(Duration::from_millis(10), "first task after 10 ms", 100, 0.1),
    }
}

/// Starts as many tasks at once as the pool has threads. Measures from the first call until all
/// have started. Each task waits for the others, so each is on a thread of its own.
fn all_started(threads: usize, items: usize, spawn: impl Fn(Box<dyn FnOnce() + Send>)) -> Times {
    latencies(items, Duration::from_millis(1), || {
        // Leaked: the last task may still read it.
        let started: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let done: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let waiting = thread::current();
        let begin = now();
        for _ in 0..threads {
            let waiting = waiting.clone();
            spawn(Box::new(move || {
                if started.fetch_add(1, AcqRel) + 1 == threads {
                    done.store(now().nanos_since(begin).max(1), Release);
                    waiting.unpark();
                }
                let patience = Instant::now();
                while started.load(Acquire) < threads
                    && patience.elapsed() < Duration::from_secs(10)
                {
                    thread::yield_now();
                }
            }));
        }
        while done.load(Acquire) == 0 {
            thread::park();
        }
        done.load(Relaxed)
    })
}

pub(crate) fn burst() -> Workload {
    Workload::new("burst, all started", 300, &[2, 8])
        .sampled(0.1)
        .ours("work stealing", |threads, items| {
            let pool = ours::<WorkStealing>(threads);
            all_started(threads, items, |task| pool.spawn(task))
        })
        .ours("idle queue", |threads, items| {
            let pool = ours::<IdleQueue>(threads);
            all_started(threads, items, |task| pool.spawn(task))
        })
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            all_started(threads, items, |task| pool.spawn(task))
        })
        .peer("threadpool", |threads, items| {
            let pool = peer_threadpool::ThreadPool::new(threads);
            all_started(threads, items, |task| pool.execute(task))
        })
}
