//! Time, processor time, and work of a known length.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What a run came to, for each operation in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) ns: f64,
    /// Processor time of the whole process.
    pub(crate) cpu: f64,
}

/// Calls `operations` over and over until the time is up; each call does so many.
pub(crate) fn repeat(lasting: Duration, each: u64, mut operations: impl FnMut()) -> Figures {
    operations();
    let (mut calls, cpu, begun) = (0, process_time(), Instant::now());
    // The clock is not asked for each: what is measured may be shorter than a look.
    let mut batch = 1;
    while begun.elapsed() < lasting {
        for _ in 0..batch {
            operations();
        }
        calls += batch;
        batch = (batch * 2).min(64);
    }
    by(begun, cpu, calls * each)
}

/// Since then, by so many operations.
pub(crate) fn by(begun: Instant, cpu: u64, operations: u64) -> Figures {
    let ns = begun.elapsed().as_nanos() as f64;
    let cpu = (process_time() - cpu) as f64;
    let operations = operations.max(1) as f64;
    Figures { ns: ns / operations, cpu: cpu / operations }
}

/// A computation of a known length, if nothing comes between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    loops: u64,
}

impl Work {
    pub(crate) fn of(nanos: u64) -> Self {
        static LOOPS_A_MICROSECOND: OnceLock<f64> = OnceLock::new();
        let speed = LOOPS_A_MICROSECOND.get_or_init(|| {
            const LOOPS: u64 = 20_000;
            let fastest = (0..200).map(|_| {
                let begun = Instant::now();
                Self { loops: LOOPS }.compute();
                begun.elapsed()
            });
            LOOPS as f64 * 1e3 / fastest.min().expect("some").as_nanos() as f64
        });
        Self { loops: (nanos as f64 * speed / 1e3) as u64 }
    }

    #[inline]
    pub(crate) fn compute(self) {
        let mut word = 1_u64;
        for _ in 0..self.loops {
            word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1);
        }
    }
}

/// Nanoseconds of processor time that this process has had.
pub(crate) fn process_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every process has, and a place for its time.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "there is such a clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processors that the process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(crate) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The figures that these shares of all are no greater than.
pub(crate) fn percentiles<const N: usize>(figures: &mut [f64], shares: [f64; N]) -> [f64; N] {
    figures.sort_by(f64::total_cmp);
    shares.map(|share| figures[((figures.len() - 1) as f64 * share).round() as usize])
}
