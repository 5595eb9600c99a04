//! The cost of a task that no thread waits for: created by a task (the paper's null threads), and
//! from outside.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicIsize, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::thread::Thread;

use stanchion_threadpool::strategy::Strategy;

use super::made::{forte, ours, per_item, rayon, tokio};
use super::workload::{Times, Workload};

/// Chains of tasks that create each other, and the thread that waits for their end.
struct Chains {
    /// The number of tasks of each chain.
    each: usize,
    /// The number of chains that have not ended. The last task of a chain subtracts one.
    running: AtomicUsize,
    /// The thread that waits for the end.
    waiting: Thread,
}

impl Chains {
    fn new(chains: usize, items: usize) -> &'static Self {
        // Leaked: the last task may still use it after `wait` has returned.
        Box::leak(Box::new(Self {
            each: items / chains,
            running: AtomicUsize::new(chains),
            waiting: std::thread::current(),
        }))
    }

    fn end(&self) {
        if self.running.fetch_sub(1, AcqRel) == 1 {
            self.waiting.unpark();
        }
    }

    fn wait(&self) {
        while self.running.load(Relaxed) > 0 {
            std::thread::park();
        }
    }
}

/// Runs chains of tasks: each task creates the next one and ends.
fn null_on(threads: usize, items: usize, begin: impl Fn(&'static Chains)) -> Times {
    let run = |items| {
        let chains = Chains::new(threads, items);
        for _ in 0..threads {
            begin(chains);
        }
        chains.wait();
    };
    run(items / 10 + threads);
    per_item(items, || run(items))
}

fn null_ours<S: Strategy>(threads: usize, items: usize) -> Times {
    fn task(chains: &'static Chains, left: usize) {
        if left == 0 {
            chains.end();
        } else {
            stanchion_threadpool::spawn(move || task(chains, left - 1));
        }
    }
    let pool = ours::<S>(threads);
    null_on(threads, items, |chains| pool.spawn(move || task(chains, chains.each)))
}

fn null_rayon(threads: usize, items: usize) -> Times {
    fn task(chains: &'static Chains, left: usize) {
        if left == 0 {
            chains.end();
        } else {
            rayon::spawn(move || task(chains, left - 1));
        }
    }
    let pool = rayon(threads);
    null_on(threads, items, |chains| pool.spawn(move || task(chains, chains.each)))
}

fn null_tokio(threads: usize, items: usize) -> Times {
    // A future that creates another of its own type must be boxed.
    fn task(
        chains: &'static Chains,
        left: usize,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if left == 0 {
                chains.end();
            } else {
                tokio::spawn(task(chains, left - 1));
            }
        })
    }
    let runtime = tokio(threads);
    null_on(threads, items, |chains| {
        runtime.spawn(task(chains, chains.each));
    })
}

fn null_forte(threads: usize, items: usize) -> Times {
    fn task(worker: &forte::Worker, chains: &'static Chains, left: usize) {
        if left == 0 {
            chains.end();
        } else {
            worker.spawn(move |worker| task(worker, chains, left - 1));
        }
    }
    let pool = forte(threads);
    null_on(threads, items, |chains| {
        pool.spawn(move |worker| task(worker, chains, chains.each));
    })
}

/// Adds to a workload each strategy of the table, measured by a function.
macro_rules! with_ours {
    ([$workload:ident, $measure:ident] $({
        $name:ident: $strategy:ty,
        type: $type:ident,
        cost: $cost:literal,
        contest: $contest:literal,
        $($rest:tt)*
    })+) => {
        $workload$(.ours($contest, $measure::<$strategy>))+
    };
}

pub(crate) fn null() -> Workload {
    let workload = Workload::new("null tasks", 1_000_000, &[1, 2, 64]).sampled(0.2);
    stanchion_threadpool::__strategies!(with_ours [workload, null_ours])
        .peer("rayon", null_rayon)
        .peer("tokio", null_tokio)
        .peer("forte", null_forte)
}

/// Measures tasks that only count, created by one thread outside of the pool.
fn outside_on(items: usize, spawn: impl Fn(Tally)) -> Times {
    let run = |items: usize| {
        let shared = Arc::new((AtomicIsize::new(items as isize), std::thread::current()));
        for _ in 0..items {
            spawn(Tally(Arc::as_ptr(&shared)));
        }
        while shared.0.load(Relaxed) > 0 {
            std::thread::park();
        }
        // The last task may still read it.
        std::mem::forget(shared);
    };
    run(items / 10);
    per_item(items, || run(items))
}

/// The part of one task in the count.
struct Tally(*const (AtomicIsize, Thread));

// SAFETY: the target is shared and lives for ever.
unsafe impl Send for Tally {}

impl Tally {
    fn count(self) {
        // SAFETY: the target is never dropped.
        let shared = unsafe { &*self.0 };
        if shared.0.fetch_sub(1, AcqRel) == 1 {
            shared.1.unpark();
        }
    }
}

fn outside_ours<S: Strategy>(threads: usize, items: usize) -> Times {
    let pool = ours::<S>(threads);
    outside_on(items, |tally| pool.spawn(move || tally.count()))
}

pub(crate) fn outside() -> Workload {
    let workload = Workload::new("tasks from outside", 1_000_000, &[2]).sampled(0.2);
    stanchion_threadpool::__strategies!(with_ours [workload, outside_ours])
        .peer("rayon", |threads, items| {
            let pool = rayon(threads);
            outside_on(items, |tally| pool.spawn(move || tally.count()))
        })
        .peer("tokio", |threads, items| {
            let runtime = tokio(threads);
            outside_on(items, |tally| {
                runtime.spawn(async move { tally.count() });
            })
        })
        .peer("threadpool", |threads, items| {
            let pool = peer_threadpool::ThreadPool::new(threads);
            outside_on(items, |tally| pool.execute(move || tally.count()))
        })
        .peer("forte", |threads, items| {
            let pool = forte(threads);
            outside_on(items, |tally| pool.spawn(move |_| tally.count()))
        })
}
