//! The pools, made for one run, and what a run costs.

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

/// Chili's calling thread takes part: it has one thread less of its own, but at least one. Where
/// there should be none, the caller is pinned, and with it that one.
pub(crate) fn chili(threads: usize) -> (chili::ThreadPool, Option<Pinned>) {
    let pinned = (threads == 1).then(|| pin(processors()[0]).expect("the first processor"));
    let more = NonZeroUsize::new(threads - 1).unwrap_or(NonZeroUsize::MIN);
    let config = chili::Config { thread_count: Some(more), ..chili::Config::default() };
    (chili::ThreadPool::with_config(config), pinned)
}

/// A pool of forte's with so many threads of its own. They are static, and this process needs one;
/// to shrink one has been seen to hang.
pub(crate) fn forte(threads: usize) -> &'static forte::ThreadPool {
    static POOL: forte::ThreadPool = forte::ThreadPool::new();
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        POOL.resize_to(threads);
    });
    &POOL
}

/// Time and processor time of `body`, by the items.
pub(crate) fn per_item(items: usize, body: impl FnOnce()) -> Figures {
    let cpu = processor_time();
    let start = Instant::now();
    body();
    let time = start.elapsed();
    let cpu = processor_time() - cpu;
    let by = |time: Duration| time.as_secs_f64() * 1e9 / items as f64;
    Figures { ns: by(time), p99: 0.0, cpu: by(cpu) }
}

/// What the process has used so far.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "the clock of this process");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
