//! The pools, made for one run, and the measurement of a run.

use std::num::NonZeroUsize;
use std::sync::Once;
use std::time::{Duration, Instant};

use machine::topology::{Pinned, pin, processors};
use stanchion_threadpool::strategy::Strategy;
use stanchion_threadpool::{ThreadPool, ThreadPoolBuilder};

use crate::contest::Figures;

pub(crate) fn ours<S: Strategy>(threads: usize) -> ThreadPool<S> {
    ThreadPoolBuilder::new().num_threads(threads).build_with().expect("a pool of ours")
}

pub(crate) fn rayon(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of rayon's")
}

pub(crate) fn tokio(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .expect("a runtime of tokio's")
}

/// Returns a pool of chili for runs with this many threads. The calling thread takes part, so the
/// pool has one thread less, but at least one. If it should have none, the caller is pinned, and
/// the pool's thread with it.
pub(crate) fn chili(threads: usize) -> (chili::ThreadPool, Option<Pinned>) {
    let pinned = (threads == 1).then(|| pin(processors()[0]).expect("the first processor"));
    let more = NonZeroUsize::new(threads - 1).unwrap_or(NonZeroUsize::MIN);
    let config = chili::Config { thread_count: Some(more), ..chili::Config::default() };
    (chili::ThreadPool::with_config(config), pinned)
}

/// Returns a pool of forte with this many threads of its own. These pools are static, and this
/// process needs one. A pool of forte has been seen to hang when it shrinks.
pub(crate) fn forte(threads: usize) -> &'static forte::ThreadPool {
    static POOL: forte::ThreadPool = forte::ThreadPool::new();
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        POOL.resize_to(threads);
    });
    &POOL
}

/// Returns the time and the processor time of `body`, divided by the items.
pub(crate) fn per_item(items: usize, body: impl FnOnce()) -> Figures {
    let cpu = processor_time();
    let start = Instant::now();
    body();
    let time = start.elapsed();
    let cpu = processor_time() - cpu;
    let by = |time: Duration| time.as_secs_f64() * 1e9 / items as f64;
    Figures { ns: by(time), p99: 0.0, cpu: by(cpu) }
}

/// Returns the processor time of the process so far.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: memory for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "the clock of this process");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
