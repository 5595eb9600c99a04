//! Models of whole pools: their threads from the first instruction to the last, with their
//! strategies, their sleep and their shutdown.
//!
//! A pool's threads and boxes are many states. So these models have a bound of one preemption, or
//! none. With none, a thread runs until it waits or yields. Loom explores which thread runs next
//! then, and which values its loads may see. The parts have models without a bound. Strategies
//! other than this one, under which a model's small stacks are large enough, have models of their
//! own (`strategies.rs`).
//!
//! Each line names a model, its threads, and the error that it would show.
//!
//! - `pool_is_closed_beside_a_task_bounded`: a worker, a thread that closes. The worker is
//!   signalled to stop, does not see why, and leaves the task behind.
//! - `pool_a_scope_from_outside_bounded`: a worker, a waiter. The scope is left too soon; what its
//!   tasks did is not seen.
//! - `pool_a_scope_on_a_worker_bounded`: a worker that runs its scope's tasks itself, a spare that
//!   finds their vouchers afterwards. One runs twice, or never.
//! - `pool_a_scope_with_help_bounded`: the same, and the spare comes first. The scope is left too
//!   soon; what its tasks did is not seen.
//! - `pool_a_broadcast_bounded`: a worker, a waiter. The same.
//! - `pool_becomes_smaller_bounded`: two workers, a thread that resizes and closes. A leaving
//!   worker leaves a task behind.
//! - `pool_becomes_larger_bounded`: a worker and another, a thread that resizes and closes. The
//!   same.
//! - `pool_a_fork_is_taken_back_bounded`: a worker, a spare that comes afterwards. It runs the fork
//!   again, and the frame of the fork is gone.
//! - `pool_a_fork_is_taken_bounded`: a worker, a spare that runs the fork. The result is not seen;
//!   the block is released too soon.
//! - `pool_a_fork_is_waited_for_bounded`: the same, while the worker waits. The same; it sleeps on.
//! - `pool_a_fork_is_waited_for_by_NAME_bounded`: the same, under the other ways to wait. The same;
//!   the leased spare does not come, or does not go.
//!
//! The forks are published because their first halves block, for which the pool leases the spare.
//! So no two workers have to start. Every model prints `model NAME: N executions`.

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering::Relaxed};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_threadpool_loom::strategy::SingleLock;
use stanchion_threadpool_loom::{
    ThreadPool, ThreadPoolBuilder, Wait, Worker, blocking, current_thread_index, join,
};

fn explore(name: &str, preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let model = Model::new().preemptions(preemptions).objects(200);
    println!("model {name}: {}", model.check(body));
}

fn builder(threads: usize, spares: usize) -> ThreadPoolBuilder {
    ThreadPoolBuilder::new().num_threads(threads).max_threads(threads).spare_threads(spares)
}

fn pool(threads: usize, spares: usize) -> ThreadPool<SingleLock> {
    builder(threads, spares).wait(Wait::Isolated).build_with().unwrap()
}

/// Cells that tasks write, each once, and that the thread reads which has waited for them.
struct Part(UnsafeCell<usize>);

// SAFETY: the models check it.
unsafe impl Sync for Part {}

impl Part {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn write(&self, value: usize) {
        // SAFETY: by the one task to which the part belongs.
        self.0.with_mut(|slot| unsafe { *slot = value });
    }

    fn read(&self) -> usize {
        // SAFETY: the task has ended.
        self.0.with(|slot| unsafe { *slot })
    }
}

#[test]
fn pool_is_closed_beside_a_task_bounded() {
    explore("pool_is_closed_beside_a_task_bounded", 1, || {
        let part = Arc::new(Part::new());
        let pool = pool(1, 0);
        {
            let part = part.clone();
            pool.spawn(move || part.write(7));
        }
        pool.shutdown();
        assert_eq!(part.read(), 7);
    });
}

#[test]
fn pool_a_scope_from_outside_bounded() {
    explore("pool_a_scope_from_outside_bounded", 1, || {
        let parts = [Part::new(), Part::new()];
        let pool = pool(1, 0);
        pool.in_place_scope(|scope| {
            scope.spawn(|scope| {
                parts[0].write(3);
                scope.spawn(|_| parts[1].write(4));
            });
        });
        assert_eq!(parts.each_ref().map(Part::read), [3, 4]);
        pool.shutdown();
    });
}

/// A scope on a worker that runs nothing else while it waits. Its body blocks after it has created
/// a task, and does `body` there. Returns the worker that ran the task.
fn scope(body: fn()) -> usize {
    let part = Arc::new(Part::new());
    let pool = pool(1, 1);
    {
        let part = part.clone();
        pool.spawn(move || {
            let inner = Part::new();
            stanchion_threadpool_loom::scope(|scope| {
                scope.spawn(|_| inner.write(1 + current_thread_index().unwrap()));
                blocking(body);
            });
            part.write(inner.read());
        });
    }
    pool.shutdown();
    part.read().checked_sub(1).expect("the task has run")
}

#[test]
fn pool_a_scope_on_a_worker_bounded() {
    explore("pool_a_scope_on_a_worker_bounded", 0, || assert_eq!(scope(|| ()), 0));
}

#[test]
fn pool_a_scope_with_help_bounded() {
    explore("pool_a_scope_with_help_bounded", 0, || assert_eq!(scope(pass), 1));
}

#[test]
fn pool_a_broadcast_bounded() {
    explore("pool_a_broadcast_bounded", 1, || {
        let part = Part::new();
        let pool = pool(1, 0);
        let body = |worker: &Worker| {
            part.write(5);
            worker.index()
        };
        assert_eq!(pool.broadcast(body), [0]);
        assert_eq!(part.read(), 5);
        pool.shutdown();
    });
}

#[test]
fn pool_becomes_smaller_bounded() {
    explore("pool_becomes_smaller_bounded", 0, || {
        let part = Arc::new(Part::new());
        let pool = pool(2, 0);
        {
            let part = part.clone();
            pool.spawn(move || part.write(6));
        }
        pool.set_num_threads(1).unwrap();
        pool.shutdown();
        assert_eq!(part.read(), 6);
    });
}

#[test]
fn pool_becomes_larger_bounded() {
    explore("pool_becomes_larger_bounded", 0, || {
        let part = Arc::new(Part::new());
        let builder = builder(1, 0).max_threads(2).wait(Wait::Isolated);
        let pool = builder.build_with::<SingleLock>().unwrap();
        {
            let part = part.clone();
            pool.spawn(move || part.write(6));
        }
        pool.set_num_threads(2).unwrap();
        pool.shutdown();
        assert_eq!(part.read(), 6);
    });
}

/// A worker forks, and does `first` in the first half, which blocks; the thread that runs the
/// second half does `second` there. Says whether that is another.
fn fork(wait: Wait, first: fn(), second: fn()) -> bool {
    let stolen = Arc::new(AtomicUsize::fresh(2));
    let pool = builder(1, 1).wait(wait).build_with::<SingleLock>().unwrap();
    {
        let stolen = stolen.clone();
        pool.spawn(move || {
            let part = Part::new();
            let a = || {
                blocking(first);
                current_thread_index()
            };
            let b = || {
                part.write(8);
                second();
                current_thread_index()
            };
            let (a, b) = join(a, b);
            assert_eq!(part.read(), 8);
            stolen.store(usize::from(a != b), Relaxed);
        });
    }
    pool.shutdown();
    let stolen = stolen.load(Relaxed);
    assert!(stolen < 2, "the task has run");
    stolen == 1
}

/// Lets the other run until it waits or yields.
fn pass() {
    thread::yield_now();
}

#[test]
fn pool_a_fork_is_taken_back_bounded() {
    explore("pool_a_fork_is_taken_back_bounded", 0, || {
        assert!(!fork(Wait::Isolated, || (), || ()));
    });
}

#[test]
fn pool_a_fork_is_taken_bounded() {
    explore("pool_a_fork_is_taken_bounded", 0, || assert!(fork(Wait::Isolated, pass, || ())));
}

#[test]
fn pool_a_fork_is_waited_for_bounded() {
    explore("pool_a_fork_is_waited_for_bounded", 0, || assert!(fork(Wait::Isolated, pass, pass)));
}

#[test]
fn pool_a_fork_is_waited_for_by_any_bounded() {
    explore("pool_a_fork_is_waited_for_by_any_bounded", 0, || {
        assert!(fork(Wait::Any, pass, pass));
    });
}

#[test]
fn pool_a_fork_is_waited_for_by_leapfrog_bounded() {
    explore("pool_a_fork_is_waited_for_by_leapfrog_bounded", 0, || {
        assert!(fork(Wait::Leapfrog, pass, pass));
    });
}

#[test]
fn pool_a_fork_is_waited_for_by_park_bounded() {
    explore("pool_a_fork_is_waited_for_by_park_bounded", 0, || {
        assert!(fork(Wait::Park, pass, pass));
    });
}
