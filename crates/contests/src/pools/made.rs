//! The pools, made for one run, and the measurement of a run.

use std::num::NonZeroUsize;
use std::sync::Once;
use std::time::Instant;

use stanchion_machine::topology::{Pinned, pin, processors};
use stanchion_threadpool::strategy::Strategy;
use stanchion_threadpool::{ThreadPool, ThreadPoolBuilder};

use super::workload::Times;
use crate::work::process_time;

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
pub(crate) fn per_item(items: usize, body: impl FnOnce()) -> Times {
    let (cpu, start) = (process_time(), Instant::now());
    body();
    let (time, cpu) = (start.elapsed().as_nanos(), process_time() - cpu);
    Times { ns: time as f64 / items as f64, p99: f64::NAN, cpu: cpu as f64 / items as f64 }
}
