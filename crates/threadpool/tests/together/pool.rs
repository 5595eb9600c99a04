//! The promises of a pool, under every strategy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stanchion_threadpool::strategy::Strategy;
use stanchion_threadpool::{
    ThreadPool, ThreadPoolBuilder, Wait, Worker, blocking, current_thread_index, join, scope, spawn,
};

fn pool<S: Strategy>(threads: usize) -> ThreadPool<S> {
    ThreadPoolBuilder::new().num_threads(threads).build_with().unwrap()
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn forks_and_joins<S: Strategy>() {
    for threads in [1, 2, 5] {
        let pool = pool::<S>(threads);
        assert_eq!(pool.install(|| fib(20)), 6_765);
        pool.shutdown();
    }
}

fn runs_every_task_once<S: Strategy>() {
    let pool = pool::<S>(3);
    let runs: Vec<AtomicUsize> = (0..2_000).map(|_| AtomicUsize::new(0)).collect();
    pool.scope(|s| {
        for chunk in runs.chunks(100) {
            s.spawn(move |s| {
                for run in chunk {
                    s.spawn(move |_| {
                        run.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert!(runs.iter().all(|run| run.load(Ordering::Relaxed) == 1));
    pool.shutdown();
}

fn shutdown_drains<S: Strategy>() {
    static DONE: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let pool = pool::<S>(2);
    for _ in 0..500 {
        pool.spawn(|| spawn(|| DONE.lock().unwrap().push(S::NAME)));
    }
    pool.shutdown();
    let done = DONE.lock().unwrap().iter().filter(|&&name| name == S::NAME).count();
    assert_eq!(done, 500);
}

fn panics_come_back<S: Strategy>() {
    let pool = pool::<S>(2);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|s| {
            for n in 0..20 {
                s.spawn(move |_| assert!(n != 7, "seven"));
            }
        });
    }));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"seven"));
    assert_eq!(pool.install(|| fib(10)), 55);
    pool.shutdown();
}

fn broadcasts<S: Strategy>() {
    let pool = pool::<S>(4);
    assert_eq!(pool.broadcast(Worker::index), [0, 1, 2, 3]);
    let nested = pool.install_with(|worker| (worker.index(), pool.broadcast(Worker::index)));
    assert_eq!(nested.1, [0, 1, 2, 3]);
    pool.shutdown();
}

fn resizes<S: Strategy>() {
    let pool = ThreadPoolBuilder::new().num_threads(1).max_threads(6).build_with::<S>().unwrap();
    for round in 0..30 {
        pool.set_num_threads(1 + round * 5 % 6).unwrap();
        assert_eq!(pool.install(|| fib(8)), 21);
    }
    pool.shutdown();
}

fn lends<S: Strategy>() {
    let pool = pool::<S>(1);
    let (send, receive) = std::sync::mpsc::channel();
    pool.scope(|s| {
        s.spawn(move |_| {
            assert_eq!(blocking(|| receive.recv_timeout(Duration::from_secs(60))), Ok(7))
        });
        s.spawn(move |_| send.send(7).unwrap());
    });
    pool.shutdown();
}

fn waits<S: Strategy>() {
    for wait in [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park] {
        let pool = ThreadPoolBuilder::new().num_threads(3).wait(wait).build_with::<S>().unwrap();
        let total = AtomicUsize::new(0);
        pool.install(|| {
            scope(|s| {
                for _ in 0..20 {
                    s.spawn(|_| {
                        let (a, b) = join(
                            || fib(12),
                            || {
                                let mut sum = 0;
                                scope(|s| {
                                    s.spawn(|_| sum = 1);
                                });
                                sum
                            },
                        );
                        total.fetch_add(a as usize + b, Ordering::Relaxed);
                    });
                }
            });
        });
        assert_eq!(total.into_inner(), 20 * 145, "{wait:?}");
        pool.shutdown();
    }
}

macro_rules! under_each {
    ([] $({ $strategy:ident: $name:ty, $($rest:tt)* })+) => { $(
        mod $strategy {
            #[test]
            fn forks_and_joins() { super::forks_and_joins::<$name>(); }
            #[test]
            fn runs_every_task_once() { super::runs_every_task_once::<$name>(); }
            #[test]
            fn shutdown_drains() { super::shutdown_drains::<$name>(); }
            #[test]
            fn panics_come_back() { super::panics_come_back::<$name>(); }
            #[test]
            fn broadcasts() { super::broadcasts::<$name>(); }
            #[test]
            fn resizes() { super::resizes::<$name>(); }
            #[test]
            fn lends() { super::lends::<$name>(); }
            #[test]
            fn waits() { super::waits::<$name>(); }
        }
    )+ };
}

stanchion_threadpool::__strategies!(under_each);

#[test]
fn outside_of_a_pool_there_is_no_index() {
    assert_eq!(current_thread_index(), None);
}
