//! Forks of two coarse halves, after other work in the same pool; forks by more threads than there
//! are processors; and forks that a thread outside of the pool asks for.
//!
//! `ns/item` is the median, `p99` the longest of fewer than 100 items.

use std::cell::RefCell;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use stanchion_formulas::Random;
use stanchion_threadpool::strategy::WorkStealing;

use super::latency::latencies;
use super::made::{ours, rayon};
use super::workload::{Times, Workload};

/// The time that a half computes.
const HALF: Duration = Duration::from_millis(8);

fn fib_ours(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = stanchion_threadpool::join(|| fib_ours(n - 1), || fib_ours(n - 2));
    a + b
}

fn fib_rayon(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = rayon::join(|| fib_rayon(n - 1), || fib_rayon(n - 2));
    a + b
}

fn half() {
    let begin = Instant::now();
    while begin.elapsed() < HALF {
        black_box(0);
    }
}

/// Drops the results of two halves.
fn drop_units(_: ((), ())) {}

fn nanos(body: impl FnOnce()) -> u64 {
    let begin = Instant::now();
    body();
    begin.elapsed().as_nanos() as u64
}

/// The work of a pool before the two halves, in the same `install`.
#[derive(Clone, Copy)]
enum Before {
    Fib(u32),
    Pause,
    /// A number of forks and a pause, which differ from item to item.
    Random,
}

thread_local! {
    static RANDOM: RefCell<Random> = RefCell::new(Random::new(1));
}

fn random(below: u64) -> u64 {
    RANDOM.with_borrow_mut(|random| random.below(below))
}

impl Before {
    fn run(self, fib: fn(u32) -> u64) {
        match self {
            Self::Fib(n) => {
                black_box(fib(n));
            }
            Self::Pause => thread::sleep(Duration::from_millis(10)),
            Self::Random => {
                black_box(fib(random(24) as u32));
                thread::sleep(Duration::from_micros(random(500)));
                black_box(fib(random(12) as u32));
            }
        }
    }
}

macro_rules! after {
    ($name:expr, $before:expr, $items:expr) => {
        Workload::new($name, $items, &[2])
            .sampled(0.1)
            .ours("join", |threads, items| {
                let pool = ours::<WorkStealing>(threads);
                latencies(items, Duration::ZERO, || {
                    pool.install(|| {
                        $before.run(fib_ours);
                        nanos(|| drop_units(stanchion_threadpool::join(half, half)))
                    })
                })
            })
            .peer("rayon", |threads, items| {
                let pool = rayon(threads);
                latencies(items, Duration::ZERO, || {
                    pool.install(|| {
                        $before.run(fib_rayon);
                        nanos(|| drop_units(rayon::join(half, half)))
                    })
                })
            })
    };
}

pub(crate) fn after() -> [Workload; 7] {
    [
        after!("halves after nothing", Before::Fib(0), 40),
        after!("halves after fib 5", Before::Fib(5), 40),
        after!("halves after fib 15", Before::Fib(15), 40),
        after!("halves after fib 18", Before::Fib(18), 40),
        after!("halves after fib 25", Before::Fib(25), 40),
        after!("halves after a pause", Before::Pause, 40),
        after!("halves after anything", Before::Random, 99),
    ]
}

/// Measures the first fork of a pool, with the pool's start.
pub(crate) fn first() -> Workload {
    Workload::new("halves first", 40, &[2])
        .sampled(0.1)
        .ours("join", |threads, items| {
            latencies(items, Duration::ZERO, || {
                let pool = ours::<WorkStealing>(threads);
                nanos(|| drop_units(pool.join(half, half)))
            })
        })
        .peer("rayon", |threads, items| {
            latencies(items, Duration::ZERO, || {
                let pool = rayon(threads);
                nanos(|| drop_units(pool.join(half, half)))
            })
        })
}

/// Measures fib(30) with many threads. Each item is one computation.
pub(crate) fn many() -> Workload {
    const PAUSE: Duration = Duration::from_millis(2);
    Workload::new("many, fib 30", 60, &[8, 16, 64])
        .sampled(0.1)
        .ours("join", |threads, items| {
            let pool = ours::<WorkStealing>(threads);
            latencies(items, PAUSE, || {
                nanos(|| {
                    black_box(pool.install(|| fib_ours(30)));
                })
            })
        })
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            latencies(items, PAUSE, || {
                nanos(|| {
                    black_box(pool.install(|| fib_rayon(30)));
                })
            })
        })
}

/// Measures forks that a thread outside of the pool asks for, one after the other. Each item is a
/// hundred forks.
pub(crate) fn outside() -> Workload {
    const FORKS: u64 = 100;
    fn figures(items: usize, join: impl Fn()) -> Times {
        latencies(items, Duration::from_millis(2), || {
            nanos(|| (0..FORKS).for_each(|_| join())) / FORKS
        })
    }
    Workload::new("outside, join", 90, &[2, 8])
        .sampled(0.1)
        .ours("join", |threads, items| {
            let pool = ours::<WorkStealing>(threads);
            figures(items, || {
                pool.join(|| black_box(1), || black_box(2));
            })
        })
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            figures(items, || {
                pool.join(|| black_box(1), || black_box(2));
            })
        })
}
