//! The verbs that rayon has: free functions, broadcasts that are not waited for, contexts.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use stanchion_threadpool::{
    ThreadPool, ThreadPoolBuilder, Wait, Worker, broadcast, current_num_threads,
    current_thread_index, in_place_scope, in_place_scope_fifo, join_context, scope, scope_fifo,
    spawn, spawn_broadcast, yield_local, yield_now,
};

const WAITS: [Wait; 4] = [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park];

fn pool(threads: usize, wait: Wait) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).wait(wait).build().unwrap()
}

#[test]
fn free_functions_use_the_pool_of_the_calling_worker() {
    let pool = pool(3, Wait::Any);
    pool.install(|| {
        assert_eq!(current_num_threads(), 3);
        assert_eq!(broadcast(Worker::index), [0, 1, 2]);
        let (here, count) = (Cell::new(0), AtomicUsize::new(0));
        in_place_scope(|s| {
            s.spawn(|_| assert!(current_thread_index().is_some()));
            here.set(1);
        });
        in_place_scope_fifo(|s| s.spawn_fifo(|_| assert_eq!(current_num_threads(), 3)));
        scope_fifo(|s| {
            s.spawn_broadcast(|_, _| {
                count.fetch_add(1, Relaxed);
            });
        });
        assert_eq!((here.get(), count.into_inner()), (1, 3));
    });
    assert_eq!((pool.yield_now(), pool.yield_local()), (None, None));
    pool.shutdown();
}

#[test]
fn free_functions_say_what_to_do_where_there_is_no_pool() {
    let calls: [fn(); 5] = [
        || drop(broadcast(|_| ())),
        || spawn_broadcast(|_| ()),
        || {
            let _ = current_num_threads();
        },
        || in_place_scope(|_| ()),
        || {
            join_context(|_| (), |_| ());
        },
    ];
    for call in calls {
        let payload = catch_unwind(call).unwrap_err();
        let text = payload.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(text.contains("build_global"), "{text}");
    }
}

#[test]
fn spawned_broadcast_runs_once_on_each_thread_before_shutdown_returns() {
    for wait in WAITS {
        let pool = pool(3, wait);
        let (send, receive) = mpsc::channel();
        for round in 0..20 {
            let send = send.clone();
            pool.spawn_broadcast(move |worker| send.send((round, worker.index())).unwrap());
        }
        drop(send);
        pool.shutdown();
        let mut calls: Vec<_> = receive.iter().collect();
        calls.sort_unstable();
        let all: Vec<_> =
            (0..20).flat_map(|round| (0..3).map(move |index| (round, index))).collect();
        assert_eq!(calls, all, "{wait:?}");
    }
}

#[test]
fn spawned_broadcasts_of_tasks_run_although_the_pool_is_dropped() {
    let (send, receive) = mpsc::channel();
    let pool = pool(3, Wait::Any);
    pool.spawn(move || spawn(move || spawn_broadcast(move |_| send.send(()).unwrap())));
    drop(pool);
    assert_eq!(receive.iter().count(), 3);
}

#[test]
fn shutdown_now_drops_spawned_broadcasts_that_have_not_begun() {
    // The task may end before the pool is told to discard: then the call is made, as it should be.
    let dropped = (0..100).any(|attempt| {
        let pool = pool(1, Wait::Any);
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        pool.spawn(move || {
            begun.send(()).unwrap();
            let _ = may_go.recv();
        });
        has_begun.recv().unwrap();
        let (kept, calls) = (Arc::new(()), Arc::new(AtomicUsize::new(0)));
        let (owned, called) = (kept.clone(), calls.clone());
        pool.spawn_broadcast(move |_| {
            let _owned = &owned;
            called.fetch_add(1, Relaxed);
        });
        let ender = std::thread::spawn(move || pool.shutdown_now());
        std::thread::sleep(Duration::from_millis(attempt));
        drop(go);
        ender.join().unwrap();
        assert_eq!(Arc::strong_count(&kept), 1, "what it owns is dropped either way");
        calls.load(Relaxed) == 0
    });
    assert!(dropped);
}

#[test]
fn scope_waits_for_its_broadcasts_and_hands_on_their_panics() {
    for wait in WAITS {
        let pool = pool(3, wait);
        let calls = AtomicUsize::new(0);
        let borrowed = Arc::new(());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|s| {
                let owned = borrowed.clone();
                s.spawn_broadcast(|s, _| {
                    s.spawn_broadcast(|_, _| {
                        calls.fetch_add(1, Relaxed);
                    });
                });
                s.spawn_broadcast(move |_, worker| {
                    let _owned = &owned;
                    assert!(worker.index() != 1, "the second");
                });
            });
        }));
        let payload = caught.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"the second"), "{wait:?}");
        assert_eq!(calls.into_inner(), 9, "{wait:?}");
        assert_eq!(Arc::strong_count(&borrowed), 1, "{wait:?}");
        pool.shutdown();
    }
}

#[test]
fn scope_outside_of_the_pool_waits_for_its_broadcasts() {
    let pool = pool(3, Wait::Any);
    let calls = AtomicUsize::new(0);
    pool.in_place_scope(|s| {
        s.spawn_broadcast(|_, _| {
            calls.fetch_add(1, Relaxed);
        });
    });
    assert_eq!(calls.into_inner(), 3);
}

#[test]
fn contexts_say_which_half_was_taken() {
    let one = pool(1, Wait::Any);
    let neither = || join_context(|a| a.migrated(), |b| b.migrated());
    assert_eq!(one.install(neither), (false, false));
    let two = pool(2, Wait::Any);
    for _ in 0..1_000 {
        two.install(|| {
            let caller = current_thread_index();
            let ((a, here), (b, there)) = join_context(
                |a| (a.migrated(), current_thread_index()),
                |b| (b.migrated(), current_thread_index()),
            );
            assert_eq!((a, here), (false, caller));
            assert_eq!(b, there != caller);
        });
    }
}

#[test]
fn yielding_locally_takes_nothing_from_other_workers() {
    let pool = pool(2, Wait::Any);
    let (meet, met) = (&std::sync::Barrier::new(2), AtomicUsize::new(0));
    pool.install(|| {
        scope(|s| {
            s.spawn(|_| {
                meet.wait();
                // The other worker has eight tasks, and has not begun one.
                while yield_local() == Some(true) {}
                assert_eq!(met.load(Relaxed), 0);
                meet.wait();
            });
            // This worker waits inside of its body, so that the other one takes the task above.
            meet.wait();
            for _ in 0..8 {
                s.spawn(|_| {
                    met.fetch_add(1, Relaxed);
                });
            }
            meet.wait();
        });
    });
    assert_eq!(met.into_inner(), 8);
    assert_eq!(yield_now(), None);
}
