//! Forks with halves that need each other, or take long. An idle worker has to take the second
//! half, whatever was forked before, and whether or not the first half forks again. A fork that
//! cannot be taken makes these tests hang. No time is measured.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use stanchion_threadpool::strategy::{Strategy, WorkStealing};
use stanchion_threadpool::{ThreadPool, ThreadPoolBuilder, Wait, Worker, join};

const WAITS: [Wait; 4] = [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park];

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

/// Two halves that meet: the call returns only if two threads run them at the same time.
fn meet() {
    let both = Barrier::new(2);
    join(|| both.wait(), || both.wait());
}

fn meet_after_forks<S: Strategy>() {
    for threads in [2, 5] {
        let pool = pool::<S>(threads);
        for n in [0, 5, 10, 15, 18, 10] {
            pool.install(|| {
                black_box(fib(n));
                meet();
                meet();
            });
        }
        pool.shutdown();
    }
}

macro_rules! each_strategy {
    ([] $({ $name:ident: $strategy:ty, $($rest:tt)* })+) => {
        mod halves_that_meet_after_many_forks {
            $(
                #[test]
                fn $name() {
                    super::meet_after_forks::<$strategy>();
                }
            )*
        }
        mod the_first_fork_of_a_new_pool_is_taken {
            $(
                #[test]
                fn $name() {
                    for _ in 0..20 {
                        let pool = super::pool::<$strategy>(2);
                        pool.install(super::meet);
                    }
                }
            )*
        }
    };
}

stanchion_threadpool::__strategies!(each_strategy);

#[test]
fn halves_meet_in_the_midst_of_forks() {
    fn down(n: u32) -> u64 {
        if n == 0 {
            meet();
            return 0;
        }
        join(|| down(n - 1), || black_box(1)).0
    }
    for threads in [2, 4] {
        let pool = pool::<WorkStealing>(threads);
        for depth in [1, 3, 4, 5, 8, 40, 500] {
            // Each older fork of the same worker is tiny.
            assert_eq!(pool.install(|| down(depth)), 0);
        }
        pool.shutdown();
    }
}

#[test]
fn halves_meet_in_every_way_to_wait() {
    for wait in WAITS {
        let builder = ThreadPoolBuilder::new().num_threads(3).wait(wait);
        let pool = builder.build().unwrap();
        for _ in 0..50 {
            pool.install(|| {
                black_box(fib(8));
                join(meet, || black_box(1));
            });
        }
        pool.shutdown();
    }
}

#[test]
fn more_halves_than_two_meet() {
    fn all(count: usize, barrier: &Barrier) {
        if count == 1 {
            barrier.wait();
            return;
        }
        join(|| all(count / 2, barrier), || all(count - count / 2, barrier));
    }
    for threads in [2, 3, 8, 32] {
        let pool = pool::<WorkStealing>(threads);
        for _ in 0..20 {
            let barrier = Barrier::new(threads);
            pool.install(|| all(threads, &barrier));
        }
        pool.shutdown();
    }
}

/// The other worker has work when the fork is made, and none from then on.
#[test]
fn a_worker_that_becomes_idle_later_takes_the_half() {
    for _ in 0..50 {
        let pool = pool::<WorkStealing>(2);
        let (begun, has_begun) = mpsc::channel();
        let (release, is_released) = mpsc::channel::<()>();
        pool.spawn(move || {
            begun.send(()).unwrap();
            is_released.recv().unwrap();
        });
        has_begun.recv().unwrap();
        let both = Barrier::new(2);
        pool.install(|| {
            let first = || {
                // The first half forks no more.
                release.send(()).unwrap();
                both.wait();
            };
            join(first, || both.wait());
        });
        pool.shutdown();
    }
}

/// The idle workers have slept for long, or have just come in vain.
#[test]
fn halves_meet_after_pauses() {
    let pool = pool::<WorkStealing>(3);
    for round in 0..100_u32 {
        pool.install(|| {
            black_box(fib(round % 16));
            thread::sleep(Duration::from_micros(u64::from(round % 10) * 50));
            meet();
        });
    }
    pool.shutdown();
}

#[test]
fn halves_meet_after_random_histories() {
    let mut random = 0x9E37_79B9_u32;
    let mut next = |below: u32| {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        random % below
    };
    for threads in [2, 3, 5] {
        let pool = pool::<WorkStealing>(threads);
        for _ in 0..100 {
            let steps: Vec<(u32, u32)> = (0..next(5)).map(|_| (next(4), next(14))).collect();
            pool.install(|| {
                for (kind, size) in steps {
                    match kind {
                        0 => drop(black_box(fib(size))),
                        1 => meet(),
                        2 => thread::sleep(Duration::from_micros(u64::from(size) * 10)),
                        _ => {
                            for _ in 0..size {
                                stanchion_threadpool::spawn(|| ());
                            }
                        }
                    }
                }
                meet();
            });
        }
        pool.shutdown();
    }
}

/// The stack of forks grows while thieves take the oldest.
#[test]
fn many_forks_inside_each_other() {
    fn down(worker: &Worker, n: u32) -> u32 {
        if n == 0 {
            return 0;
        }
        let (a, b) = worker.join(|worker| down(worker, n - 1), |_| 1);
        a + b
    }
    for threads in [1, 3] {
        let pool = pool::<WorkStealing>(threads);
        for depth in [1, 7, 8, 9, 100, 2_000] {
            assert_eq!(pool.install_with(|worker| down(worker, depth)), depth);
        }
        pool.shutdown();
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        resume_unwind(Box::new("dropped"));
    }
}

#[test]
fn the_second_half_runs_when_the_first_panics() {
    for threads in [1, 2] {
        let pool = pool::<WorkStealing>(threads);
        for _ in 0..100 {
            let ran = AtomicBool::new(false);
            let joined = catch_unwind(AssertUnwindSafe(|| {
                pool.join(|| resume_unwind(Box::new("first")), || ran.store(true, SeqCst))
            }));
            assert_eq!(joined.unwrap_err().downcast_ref(), Some(&"first"));
            assert!(ran.load(SeqCst));
        }
    }
}

#[test]
fn what_the_second_half_leaves_may_panic_beside_the_first_ones_panic() {
    for threads in [1, 2] {
        let pool = pool::<WorkStealing>(threads);
        let first = || resume_unwind(Box::new("first"));
        let is_first = |joined: thread::Result<((), ())>| {
            assert_eq!(joined.unwrap_err().downcast_ref(), Some(&"first"));
        };
        for _ in 0..100 {
            let captured = PanicsWhenDropped;
            is_first(catch_unwind(AssertUnwindSafe(|| pool.join(first, move || drop(captured)))));
            let captured = PanicsWhenDropped;
            let second = move || {
                let _captured = &captured;
            };
            is_first(catch_unwind(AssertUnwindSafe(|| pool.join(first, second))));
            let joined =
                catch_unwind(AssertUnwindSafe(|| pool.join(first, || PanicsWhenDropped).0));
            assert_eq!(joined.unwrap_err().downcast_ref(), Some(&"first"));
            let second = || resume_unwind(Box::new(PanicsWhenDropped));
            is_first(catch_unwind(AssertUnwindSafe(|| pool.join(first, second))));
        }
    }
}

#[test]
fn the_first_halfs_panic_waits_for_a_second_half_that_was_taken() {
    let pool = pool::<WorkStealing>(2);
    for _ in 0..100 {
        let both = Barrier::new(2);
        let ended = AtomicUsize::new(0);
        let joined = catch_unwind(AssertUnwindSafe(|| {
            pool.join(
                || {
                    both.wait();
                    resume_unwind(Box::new("first"))
                },
                || {
                    both.wait();
                    thread::yield_now();
                    ended.fetch_add(1, SeqCst);
                },
            )
        }));
        assert_eq!(joined.unwrap_err().downcast_ref(), Some(&"first"));
        assert_eq!(ended.load(SeqCst), 1);
    }
}

/// The first half waits for something that only the second half brings about, in a pool that has no
/// other worker: the worker that waits runs the half itself.
#[test]
fn a_worker_that_waits_runs_its_own_older_half() {
    let pool = pool::<WorkStealing>(1);
    let (send, receive) = mpsc::channel();
    let first = move || {
        while receive.try_recv().is_err() {
            stanchion_threadpool::yield_now();
        }
    };
    pool.install(|| join(first, move || send.send(()).unwrap()));
    pool.shutdown();
}
