//! Work of a known length, processor time, and the processors.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// A computation of a known length, if the thread is not interrupted.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The iterations of a loop that touches no memory.
    pub loops: u64,
}

impl Work {
    /// Returns a computation of that many nanoseconds. The first call measures the loop.
    #[must_use]
    pub fn of(nanos: u64) -> Self {
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

    /// Computes.
    #[inline]
    pub fn compute(self) {
        let mut word = 1_u64;
        for _ in 0..self.loops {
            word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1);
        }
    }
}

/// Returns the processor time of this process in nanoseconds.
#[must_use]
pub fn process_time() -> u64 {
    time_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the processor time of this thread in nanoseconds.
#[must_use]
pub fn thread_time() -> u64 {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the nanoseconds of that clock of the thread or the process.
fn time_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every thread and process has, and memory for its time.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(failed, 0, "there is such a clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the number of processors that the process may use.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of processors in words, such as `2 processors`.
#[must_use]
pub fn in_processors(count: usize) -> String {
    format!("{count} processor{}", if count == 1 { "" } else { "s" })
}

/// Returns the number of threads in words, such as `2 threads`.
#[must_use]
pub fn in_threads(count: usize) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}
