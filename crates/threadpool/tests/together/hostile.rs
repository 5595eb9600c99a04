//! Unusual uses of a pool, and errors of other pools. Each test names the error that it would show.
//!
//! | about | file |
//! | --- | --- |
//! | building, resizing, dropping and shutting down a pool; panics | here |
//! | workers that wait for each other: locks, stack depth, two pools | `waiting.rs` |
//! | the promises to every task, under every strategy | `pool.rs` |
//! | limits of the system, processors, processor time | `limits.rs` |

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::time::Duration;

use stanchion_threadpool::strategy::{IdleQueue, SingleLock, Strategy, WorkStealing};
use stanchion_threadpool::{
    BuildError, ResizeError, ThreadPool, ThreadPoolBuilder, Wait, blocking, join, scope, spawn,
};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).unwrap()
}

fn text(payload: Box<dyn std::any::Any + Send>) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("another payload")
}

/// Counts its drops, and panics in the one that was asked for.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Panics when it is dropped, unless that would end the process.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic_any("a bomb was dropped");
        }
    }
}

#[test]
fn no_threads_means_one_a_processor() {
    let pool = pool(0);
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(pool.current_num_threads(), processors);
    pool.shutdown();
}

#[test]
fn ten_thousand_threads_are_refused_with_the_number_that_would_do() {
    let error = ThreadPool::new(10_000).unwrap_err();
    assert!(matches!(error, BuildError::TooManyThreads { asked, most: 4_095 } if asked >= 10_000));
    let said = error.to_string();
    assert!(said.contains("4095") && said.contains("ask for fewer"), "{said}");
    assert!(ThreadPool::new(usize::MAX).is_err());
}

#[test]
fn a_resize_to_none_or_too_many_is_refused_and_changes_nothing() {
    let pool = ThreadPoolBuilder::new().num_threads(2).max_threads(3).build().unwrap();
    assert!(matches!(pool.set_num_threads(0), Err(ResizeError::NoThreads)));
    let refused = pool.set_num_threads(4);
    assert!(matches!(refused, Err(ResizeError::TooManyThreads { asked: 4, most: 3 })));
    assert_eq!(pool.broadcast(|_| ()).len(), 2);
    pool.shutdown();
}

/// If the names of a pool panic half-way, each of its threads ends again.
#[test]
fn names_that_panic_leave_no_thread() {
    let (send, receive) = mpsc::channel::<()>();
    let built = ThreadPoolBuilder::new()
        .num_threads(4)
        .exit_handler(move |_| drop(send.clone()))
        .thread_name(|index| if index < 2 { String::new() } else { panic_any("no name") })
        .build();
    let error = built.unwrap_err();
    assert!(matches!(error, BuildError::Spawn { started: 2, asked: 4, .. }), "{error}");
    assert!(error.to_string().contains("`thread_name` panicked for thread 2 (no name)"), "{error}");
    // Disconnected when the last thread has dropped the handler.
    assert!(receive.recv().is_err());
}

#[test]
fn names_with_a_zero_byte_are_an_error() {
    let build = |name: &'static str| {
        ThreadPoolBuilder::new()
            .num_threads(1)
            .max_threads(2)
            .thread_name(move |index| if index == 0 { "a".into() } else { name.into() })
            .build()
            .unwrap()
    };
    let pool = build("a\0b");
    let said = pool.set_num_threads(2).unwrap_err().to_string();
    assert!(said.contains("zero byte") && said.contains("thread 1"), "{said}");
    assert_eq!(pool.current_num_threads(), 1);
    pool.shutdown();
    let pool = build("b");
    pool.set_num_threads(2).unwrap();
    pool.shutdown();
}

/// A spare has an index of its own, for which a table of names may have no entry. The scope must
/// not be left while its task runs, and there is no spare.
#[test]
fn names_that_panic_for_a_spare_do_not_unwind_a_wait() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    let names = ["a", "b"];
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .max_threads(2)
        .wait(Wait::Park)
        .thread_name(move |index| names[index].into())
        .build()
        .unwrap();
    let (release, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    pool.install(|| {
        scope(|s| {
            s.spawn(|_| {
                RUNS.store(true, SeqCst);
                wait.lock().unwrap().recv().unwrap();
                RUNS.store(false, SeqCst);
            });
            while !RUNS.load(SeqCst) {
                std::thread::yield_now();
            }
            // Some time after this thread has begun to wait.
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                release.send(()).unwrap();
            });
        });
        assert!(!RUNS.load(SeqCst), "the scope was left before its task had ended");
        assert_eq!(blocking(|| 7), 7);
    });
    pool.shutdown();
}

#[test]
fn a_pool_dropped_by_its_own_worker_runs_what_it_has() {
    let pool = Arc::new(pool(2));
    let (send, receive) = mpsc::channel();
    let mine = pool.clone();
    pool.spawn(move || {
        for n in 0..100 {
            let send = send.clone();
            mine.spawn(move || send.send(n).unwrap());
        }
        drop(mine);
    });
    drop(pool);
    let mut all: Vec<i32> = receive.iter().collect();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_pool_shut_down_by_its_own_worker_runs_what_it_has() {
    for threads in [1, 3] {
        let (send, receive) = mpsc::channel();
        let home = Arc::new(Mutex::new(None));
        let taken = home.clone();
        let pool = pool(threads);
        let (go, gone) = mpsc::channel::<()>();
        pool.spawn(move || {
            gone.recv().unwrap();
            let pool: ThreadPool = taken.lock().unwrap().take().unwrap();
            for n in 0..100 {
                let send = send.clone();
                pool.spawn(move || send.send(n).unwrap());
            }
            pool.shutdown();
            send.send(1_000).unwrap();
        });
        *home.lock().unwrap() = Some(pool);
        go.send(()).unwrap();
        let mut all: Vec<i32> = receive.iter().collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).chain([1_000]).collect::<Vec<_>>());
    }
}

/// Only the task that waits can declare the pool done: the only other thread sleeps until it is
/// needed again, or the pool is done.
#[test]
fn a_pool_shut_down_by_its_own_worker_lets_idle_spares_go() {
    let home = Arc::new(Mutex::new(None));
    let (taken, (go, gone)) = (home.clone(), mpsc::channel::<()>());
    let pool = pool(1);
    // From here on it has a spare.
    pool.install(|| blocking(|| ()));
    let (send, receive) = mpsc::channel();
    pool.spawn(move || {
        gone.recv().unwrap();
        let pool: ThreadPool = taken.lock().unwrap().take().unwrap();
        pool.shutdown();
        send.send(()).unwrap();
    });
    *home.lock().unwrap() = Some(pool);
    go.send(()).unwrap();
    assert_eq!(receive.recv(), Ok(()));
}

#[test]
fn a_pool_dropped_with_work_queued_runs_it() {
    let (send, receive) = mpsc::channel();
    let pool = pool(1);
    for n in 0..1_000 {
        let send = send.clone();
        pool.spawn(move || send.send(n).unwrap());
    }
    drop((pool, send));
    assert_eq!(receive.iter().count(), 1_000);
}

#[test]
fn a_pool_dropped_while_a_scope_unwinds_runs_the_scopes_tasks() {
    let done = AtomicUsize::new(0);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let pool = pool(2);
        pool.in_place_scope(|s| {
            for _ in 0..50 {
                s.spawn(|_| {
                    done.fetch_add(1, SeqCst);
                });
            }
            panic_any("out of the scope");
        })
    }));
    assert_eq!(text(unwound.unwrap_err()), "out of the scope");
    assert_eq!(done.into_inner(), 50);
}

fn shutdown_now_drops_what_has_not_begun<S: Strategy>() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPoolBuilder::new().num_threads(1).build_with::<S>().unwrap();
    let (release, wait) = mpsc::channel::<()>();
    let (started, first) = mpsc::channel();
    pool.spawn(move || {
        started.send(()).unwrap();
        wait.recv().unwrap();
    });
    first.recv().unwrap();
    for _ in 0..100 {
        let (counted, begun) = (Counted(dropped.clone()), begun.clone());
        pool.spawn(move || {
            begun.fetch_add(1, SeqCst);
            drop(counted);
        });
    }
    let ends = std::thread::spawn(move || pool.shutdown_now());
    // The other thread says `discard` before it can have begun to wait. Nothing says when: so some
    // tasks may run, and none is lost.
    release.send(()).unwrap();
    ends.join().unwrap();
    assert_eq!(dropped.load(SeqCst), 100);
    assert!(begun.load(SeqCst) <= 100);
}

#[test]
fn shutdown_now_drops_each_capture_once() {
    shutdown_now_drops_what_has_not_begun::<WorkStealing>();
    shutdown_now_drops_what_has_not_begun::<SingleLock>();
    shutdown_now_drops_what_has_not_begun::<IdleQueue>();
}

/// `shutdown` waits for a task however long it takes; another thread can see which pool it is, and
/// nothing else is held up.
#[test]
fn a_task_that_does_not_end_holds_up_its_own_pool_only() {
    let pool = pool(2);
    let (release, wait) = mpsc::channel::<()>();
    let (started, first) = mpsc::channel();
    pool.spawn(move || {
        started.send(()).unwrap();
        wait.recv().unwrap();
    });
    first.recv().unwrap();
    let (send, ended) = mpsc::channel();
    let ends = std::thread::spawn(move || {
        pool.shutdown();
        send.send(()).unwrap();
    });
    let other = self::pool(2);
    assert_eq!(other.join(|| 1, || 2), (1, 2));
    other.shutdown();
    assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Empty));
    release.send(()).unwrap();
    ended.recv().unwrap();
    ends.join().unwrap();
}

/// A worker waits, without saying so, for a task in its own queue. The others must take it before
/// they end.
#[test]
fn shutdown_does_not_strand_a_task_behind_a_worker_that_blocks() {
    for _ in 0..50 {
        let pool = pool(2);
        pool.spawn(|| {
            let (send, receive) = mpsc::channel();
            spawn(move || send.send(()).unwrap());
            receive.recv().unwrap();
        });
        pool.shutdown();
    }
}

/// tokio#6596: a task that a worker has created just before it blocks lies in a place that others
/// do not look at.
#[test]
fn tokio_6596_a_task_is_not_stranded_when_its_worker_blocks() {
    for _ in 0..200 {
        let pool = pool(2);
        pool.install(|| {
            let (send, receive) = mpsc::channel();
            spawn(move || send.send(()).unwrap());
            receive.recv().unwrap();
        });
    }
}

#[test]
fn what_an_exit_handler_creates_runs() {
    let (send, receive) = mpsc::channel();
    let pool = ThreadPoolBuilder::new()
        .num_threads(3)
        .exit_handler(move |_| {
            let send = send.clone();
            spawn(move || send.send(()).unwrap());
        })
        .build()
        .unwrap();
    pool.shutdown();
    assert_eq!(receive.iter().count(), 3);
}

#[test]
fn thread_local_destructors_can_create_tasks() {
    struct Last(Arc<ThreadPool>, mpsc::Sender<()>);
    impl Drop for Last {
        fn drop(&mut self) {
            let send = self.1.clone();
            self.0.spawn(move || send.send(()).unwrap());
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let other = Arc::new(pool(2));
    let (send, receive) = mpsc::channel();
    let dying = pool(3);
    let last = Mutex::new((other.clone(), send));
    dying.broadcast(|_| {
        let (other, send) = last.lock().unwrap().clone();
        LAST.with(|last| *last.borrow_mut() = Some(Last(other, send)));
    });
    dying.shutdown();
    drop(last);
    assert_eq!(receive.iter().count(), 3);
    drop(other);
}

#[test]
fn panics_of_tasks_and_handlers_are_counted_and_kill_no_worker() {
    let caught = Arc::new(Mutex::new(Vec::new()));
    let kept = caught.clone();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|_| panic_any("start"))
        .exit_handler(|_| panic_any("exit"))
        .panic_handler(move |payload| {
            kept.lock().unwrap().push(text(payload));
            panic_any("the handler of panics");
        })
        .build()
        .unwrap();
    pool.scope(|s| s.spawn(|_| spawn(|| panic_any("task"))));
    pool.broadcast(|_| ());
    pool.shutdown();
    let mut caught = caught.lock().unwrap().clone();
    caught.sort_unstable();
    assert_eq!(caught, ["exit", "exit", "start", "start", "task"]);
}

#[test]
fn panics_in_drop_are_panics_of_the_task() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            // A payload that panics when it is dropped in turn.
            panic_any(Bomb);
        }
    }
    let pool = pool(2);
    // Of a task's captures, of a payload, of what was never begun.
    for _ in 0..10 {
        let bomb = Bomb;
        pool.spawn(move || drop(bomb));
        pool.spawn(|| panic_any(Bomb));
        pool.spawn(|| drop(Loud));
    }
    let bomb = Bomb;
    let caught = catch_unwind(AssertUnwindSafe(|| pool.scope(|s| s.spawn(move |_| drop(bomb)))));
    assert_eq!(text(caught.unwrap_err()), "a bomb was dropped");
    // Of a result, which its caller drops.
    drop(catch_unwind(AssertUnwindSafe(|| drop(pool.install(|| Bomb)))));
    assert_eq!(pool.join(|| 1, || 2), (1, 2));
    let metrics = pool.metrics();
    assert!(metrics.panics <= 60, "{metrics:?}");
    pool.shutdown();
}

#[test]
fn a_panic_in_the_first_half_drops_the_second_or_its_result_once() {
    let pool = pool(2);
    let drops = Arc::new(AtomicUsize::new(0));
    for round in 0..200 {
        let second = Counted(drops.clone());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| {
                join(
                    || {
                        if round % 2 == 0 {
                            std::thread::yield_now();
                        }
                        panic_any("first")
                    },
                    move || second,
                )
            })
        }));
        assert_eq!(text(panicked.map(drop).unwrap_err()), "first");
    }
    pool.shutdown();
    assert_eq!(drops.load(SeqCst), 200);
}

#[test]
fn resize_storms_lose_nothing() {
    let pool = ThreadPoolBuilder::new().num_threads(1).max_threads(8).build().unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for seed in 0..3_usize {
            let pool = &pool;
            threads.spawn(move || {
                for round in 0..100 {
                    pool.set_num_threads(1 + (round * 5 + seed * 3) % 8).unwrap();
                }
            });
        }
        pool.scope(|s| {
            for _ in 0..500 {
                s.spawn(|_| {
                    scope(|s| {
                        s.spawn(|_| {
                            done.fetch_add(1, SeqCst);
                        })
                    });
                });
            }
        });
    });
    assert_eq!(done.into_inner(), 500);
    pool.shutdown();
}

/// A worker that is told to go resizes the pool itself, so that it is to stay.
#[test]
fn a_worker_resizes_its_own_pool() {
    let pool = ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    for _ in 0..50 {
        let indices = pool.broadcast(|worker| worker.index());
        assert_eq!(indices, [0, 1, 2, 3]);
        pool.install(|| {
            pool.set_num_threads(1).unwrap();
            pool.set_num_threads(4).unwrap();
        });
    }
    pool.shutdown();
}

/// rayon, pull request 992: a broadcast sent while a worker goes to sleep must be seen by its last
/// look.
#[test]
fn rayon_992_a_broadcast_reaches_a_worker_that_falls_asleep() {
    let pool = ThreadPoolBuilder::new()
        .num_threads(3)
        .idle_spin(std::time::Duration::ZERO)
        .build()
        .unwrap();
    for round in 0..2_000_usize {
        let seen = AtomicUsize::new(0);
        pool.broadcast(|worker| seen.fetch_add(worker.index() + round, SeqCst));
        assert_eq!(seen.into_inner(), 3 + 3 * round);
    }
    pool.shutdown();
}

/// A thread that leaves asks its pool for something in its exit handler, while the pool grows over
/// its slot.
#[test]
fn an_exit_handler_uses_its_pool_while_that_grows() {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    static LEAVING: AtomicUsize = AtomicUsize::new(0);
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .max_threads(2)
        .exit_handler(|_| {
            let metrics = || POOL.get().map(|pool| pool.metrics());
            if LEAVING.fetch_add(1, SeqCst) == 0 {
                // Until the other thread has asked for this one again.
                while POOL.get().is_none_or(|pool| pool.current_num_threads() == 1) {
                    std::thread::yield_now();
                }
            }
            blocking(|| drop(metrics()));
        })
        .build()
        .unwrap();
    let pool = POOL.get_or_init(|| pool);
    pool.set_num_threads(1).unwrap();
    while LEAVING.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    pool.set_num_threads(2).unwrap();
    assert_eq!(pool.broadcast(|worker| worker.index()), [0, 1]);
}

/// A broadcast is sent to a thread that has just been told to go.
#[test]
fn broadcasts_beside_resizes_reach_all_members() {
    let pool = ThreadPoolBuilder::new().num_threads(2).max_threads(4).build().unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..1_000 {
                pool.set_num_threads(2 + round % 3).unwrap();
                pool.set_num_threads(1).unwrap();
            }
            ended.store(true, SeqCst);
        });
        while !ended.load(SeqCst) {
            let indices = pool.broadcast(|worker| worker.index());
            assert_eq!(indices, (0..indices.len()).collect::<Vec<_>>());
        }
    });
    pool.shutdown();
}

/// A thread that has left, and was asked for again, takes part in a pool that is closed before it
/// has come back: two tasks wait for each other.
#[test]
fn a_thread_that_was_asked_for_again_serves_a_closed_pool() {
    for _ in 0..300 {
        let pool = ThreadPoolBuilder::new().num_threads(2).max_threads(2).build().unwrap();
        pool.set_num_threads(1).unwrap();
        pool.set_num_threads(2).unwrap();
        let both = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let both = both.clone();
            pool.spawn(move || {
                both.wait();
            });
        }
        pool.shutdown();
    }
}

/// A task that blocks gets its spare also from a pool that has been closed.
#[test]
fn a_task_that_blocks_while_the_pool_ends_gets_a_spare() {
    for had_one in [false, true] {
        let pool = pool(1);
        if had_one {
            pool.install(|| stanchion_threadpool::blocking(|| ()));
        }
        let (closing, closed) = mpsc::channel::<()>();
        let (send, receive) = mpsc::channel();
        pool.spawn(move || {
            closed.recv().unwrap_err();
            // Until the pool has been closed, most likely.
            std::thread::sleep(std::time::Duration::from_millis(2));
            stanchion_threadpool::blocking(|| receive.recv().unwrap());
        });
        pool.spawn(move || send.send(()).unwrap());
        drop(closing);
        pool.shutdown();
    }
}
