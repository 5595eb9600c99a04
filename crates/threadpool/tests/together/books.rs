//! Books of every task: each task that goes in comes out, runs at most once, and is dropped exactly
//! once, in whatever way tasks panic and the pool ends.
//!
//! The last tests check what the types promise the compiler.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use stanchion_threadpool::strategy::{
    IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, SingleLock, Strategy, WorkStealing,
};
use stanchion_threadpool::{
    BuildError, Metrics, ResizeError, Scope, ThreadPool, ThreadPoolBuilder, Wait, Worker, join,
    scope, spawn, spawn_fifo,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(ThreadPool: Send, Sync);
assert_impl_all!(ThreadPool<SingleLock>: Send, Sync);
assert_impl_all!(ThreadPoolBuilder: Send);
assert_impl_all!(Scope<'static>: Send, Sync);
assert_impl_all!(BuildError: Send, Sync, std::error::Error);
assert_impl_all!(ResizeError: Send, Sync, std::error::Error);
assert_impl_all!(Metrics: Send, Sync, Clone);
assert_not_impl_any!(Worker: Send, Sync, Clone);
assert_not_impl_any!(ThreadPool: Clone);

/// The books of all tasks.
#[derive(Default)]
struct Books {
    /// The number of runs of each task.
    runs: Mutex<BTreeMap<u32, u32>>,
    made: AtomicU32,
    dropped: AtomicUsize,
}

/// The slip that a task captures.
struct Slip {
    books: Arc<Books>,
    number: u32,
}

impl Books {
    fn slip(self: &Arc<Self>) -> Slip {
        Slip { books: self.clone(), number: self.made.fetch_add(1, Relaxed) }
    }

    fn close(&self, all_run: bool) {
        let (made, runs) = (self.made.load(Relaxed), self.runs.lock().unwrap());
        assert!(runs.values().all(|&runs| runs == 1), "a task has run twice: {runs:?}");
        if all_run {
            assert!(runs.keys().copied().eq(0..made), "{} of {made} have run", runs.len());
        }
        assert_eq!(self.dropped.load(Relaxed), made as usize, "captures dropped");
    }
}

impl Slip {
    fn run(&self) {
        *self.books.runs.lock().unwrap().entry(self.number).or_default() += 1;
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        self.books.dropped.fetch_add(1, Relaxed);
    }
}

/// Creates tasks of all kinds from a worker: small and large, from scopes and forks, some of which
/// panic.
fn breed(books: &Arc<Books>, levels: u32) {
    let (small, large, first, second, inside) =
        (books.slip(), books.slip(), books.slip(), books.slip(), books.slip());
    let padding = [levels; 40];
    spawn(move || small.run());
    spawn_fifo(move || {
        large.run();
        assert_eq!(padding[39], levels);
        panic_any("a large one");
    });
    let forks = catch_unwind(AssertUnwindSafe(|| {
        join(
            move || first.run(),
            move || {
                second.run();
                if levels.is_multiple_of(2) {
                    panic_any("a second half");
                }
            },
        )
    }));
    assert_eq!(forks.is_err(), levels.is_multiple_of(2));
    let scoped = catch_unwind(AssertUnwindSafe(|| {
        scope(|s| {
            s.spawn(|_| {
                inside.run();
                if levels.is_multiple_of(3) {
                    panic_any("a task of a scope");
                }
            });
            if levels > 0 {
                for _ in 0..2 {
                    let books = books.clone();
                    s.spawn(move |_| breed(&books, levels - 1));
                }
            }
        })
    }));
    // Those below panic as well.
    assert!(scoped.is_err() || !levels.is_multiple_of(3));
}

fn balance<S: Strategy>() {
    for wait in [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park] {
        for now in [false, true] {
            let books = Arc::new(Books::default());
            let pool =
                ThreadPoolBuilder::new().num_threads(3).wait(wait).build_with::<S>().unwrap();
            for _ in 0..4 {
                let mine = books.clone();
                pool.spawn(move || breed(&mine, 3));
                for _ in 0..50 {
                    let slip = books.slip();
                    pool.spawn(move || slip.run());
                }
            }
            if now {
                pool.shutdown_now();
            } else {
                pool.shutdown();
            }
            books.close(!now);
        }
    }
}

macro_rules! under_each {
    ($($test:ident: $name:ty),*) => { $(
        #[test]
        fn $test() { balance::<$name>(); }
    )* };
}

under_each!(
    books_balance_with_a_single_lock: SingleLock,
    books_balance_with_multiple_locks: MultipleLocks,
    books_balance_with_local_free_lists: LocalFreeList,
    books_balance_with_an_idle_queue: IdleQueue,
    books_balance_with_local_ready_queues: LocalReadyQueue,
    books_balance_with_work_stealing: WorkStealing
);

/// The first half stays on its thread, and the body of a scope that is begun in place.
#[test]
fn what_stays_on_its_thread_need_not_be_send() {
    let pool = ThreadPool::new(2).unwrap();
    let rc = Rc::new(Cell::new(0));
    pool.in_place_scope(|s| {
        s.spawn(|_| ());
        rc.set(rc.get() + 1);
    });
    let of_the_worker = pool.install_with(|worker| {
        let rc = Rc::new(Cell::new(0));
        let (_, two) = worker.join(|_| rc.set(1), |_| 2);
        rc.get() + two
    });
    assert_eq!((rc.get(), of_the_worker), (1, 3));
    pool.shutdown();
}
