//! Workers that wait: rows of waits that must not deadlock, and the depth of the stack.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

use stanchion_alone::Sleepers;
use stanchion_threadpool::strategy::{SingleLock, Strategy, WorkStealing};
use stanchion_threadpool::{
    MAX_NESTED_TASKS, Scope, ThreadPool, ThreadPoolBuilder, Wait, blocking, current_thread_index,
    join, scope, spawn, spawn_future,
};

const WAITS: [Wait; 4] = [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park];

fn pool<S: Strategy>(threads: usize, wait: Wait) -> ThreadPool<S> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .wait(wait)
        .idle_spin(Duration::from_micros(1))
        .build_with()
        .unwrap()
}

/// Work that takes long enough for others to take its parts.
fn sum(n: u64) -> u64 {
    if n < 2 {
        std::thread::yield_now();
        return n;
    }
    let (a, b) = join(|| sum(n / 2), || sum(n - n / 2));
    a + b
}

/// rayon#592: a task holds a mutex while it waits for a fork, and another task that wants the mutex
/// runs on top of it.
fn mutex_across_join<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(3, wait);
    let total = Mutex::new(0);
    pool.scope(|s| {
        for _ in 0..40 {
            s.spawn(|_| {
                let mut total = total.lock().unwrap();
                *total += sum(64);
            });
        }
    });
    assert_eq!(total.into_inner().unwrap(), 40 * 64);
    pool.shutdown();
}

#[test]
fn rayon_592_a_mutex_may_be_held_across_join_when_isolated() {
    for wait in [Wait::Isolated, Wait::Park] {
        mutex_across_join::<WorkStealing>(wait);
        mutex_across_join::<SingleLock>(wait);
    }
}

thread_local! {
    static ABOVE: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body` one task deeper, and notes how deep that is.
fn deeper(deepest: &AtomicUsize, body: impl FnOnce()) {
    let above = ABOVE.get() + 1;
    ABOVE.set(above);
    deepest.fetch_max(above, SeqCst);
    body();
    ABOVE.set(above - 1);
}

/// rayon#854: each task that waits runs another one on top of itself, which waits as well: the
/// stack is as deep as there are tasks.
#[test]
fn rayon_854_tasks_above_each_other_are_bounded() {
    for wait in WAITS {
        let pool = pool::<WorkStealing>(2, wait);
        let deepest = AtomicUsize::new(0);
        pool.scope(|s| {
            for _ in 0..1_000 {
                s.spawn(|_| {
                    deeper(&deepest, || {
                        scope(|s| s.spawn(|_| deeper(&deepest, || assert_eq!(sum(4), 4))));
                    });
                });
            }
        });
        // Each of the nested ones may have begun one more task of its own scope.
        let most = match wait {
            Wait::Any => MAX_NESTED_TASKS + 2,
            // A worker that waits runs what its thief has ready, here also tasks of the outermost
            // scope. How often it finds one depends on their timing.
            Wait::Leapfrog => usize::MAX,
            Wait::Isolated | Wait::Park => 2,
        };
        // What waits for the outermost scope is no task that counts itself.
        assert!(
            deepest.load(SeqCst) <= most,
            "{wait:?}: {} above each other",
            deepest.load(SeqCst)
        );
        pool.shutdown();
    }
}

/// Waits until a flag is set.
fn until(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        std::thread::yield_now();
    }
}

/// Under [`Wait::Leapfrog`] a worker that waits for a fork runs no task that its thief does not
/// have.
#[test]
fn leapfrogging_worker_leaves_injected_tasks() {
    const TASKS: usize = 1_000;
    let pool = pool::<WorkStealing>(2, Wait::Leapfrog);
    let (waiter, run, mut run_meanwhile) = (Sleepers::new(), AtomicUsize::new(0), 0);
    let [stolen, injected, release] = [const { AtomicBool::new(false) }; 3];
    pool.in_place_scope(|s| {
        s.spawn(|_| {
            let first = || {
                until(&injected);
                waiter.arrive();
            };
            let second = || {
                stolen.store(true, SeqCst);
                until(&release);
            };
            join(first, second);
        });
        // Both workers are busy from here on, so they move no tasks.
        until(&stolen);
        for _ in 0..TASKS {
            s.spawn(|_| {
                run.fetch_add(1, SeqCst);
            });
        }
        injected.store(true, SeqCst);
        waiter.until_asleep(1);
        run_meanwhile = run.load(SeqCst);
        release.store(true, SeqCst);
    });
    assert_eq!(run_meanwhile, 0, "tasks run by a worker that waits for a fork");
    assert_eq!(run.into_inner(), TASKS);
    pool.shutdown();
}

fn descend<'s>(scope_: &Scope<'s>, levels: usize, reached: &'s AtomicUsize) {
    scope_.spawn(move |_| {
        reached.fetch_add(1, SeqCst);
        if levels > 0 {
            scope(|s| descend(s, levels - 1, reached));
        }
    });
}

/// A program that nests deeper than a worker helps: each wait must still find its own task.
#[test]
fn scopes_nest_deeper_than_the_bound_of_nested_tasks() {
    for wait in WAITS {
        for threads in [1, 3] {
            let pool = pool::<WorkStealing>(threads, wait);
            let reached = AtomicUsize::new(0);
            pool.scope(|s| descend(s, 3 * MAX_NESTED_TASKS, &reached));
            assert_eq!(reached.into_inner(), 3 * MAX_NESTED_TASKS + 1, "{wait:?}, {threads}");
            pool.shutdown();
        }
    }
}

fn to_and_fro(here: &ThreadPool, there: &ThreadPool, levels: usize) -> usize {
    if levels == 0 { 0 } else { 1 + there.install(|| to_and_fro(there, here, levels - 1)) }
}

#[test]
fn two_pools_install_into_each_other() {
    for wait in WAITS {
        let (one, two) = (pool(1, wait), pool(1, wait));
        assert_eq!(one.install(|| to_and_fro(&one, &two, 20)), 20, "{wait:?}");
        two.shutdown();
        one.shutdown();
    }
}

#[test]
fn a_worker_waits_in_the_scope_and_the_broadcast_of_another_pool() {
    for wait in WAITS {
        let (one, two) = (pool::<WorkStealing>(1, wait), pool::<WorkStealing>(2, wait));
        let total = AtomicUsize::new(0);
        one.install(|| {
            two.in_place_scope(|s| {
                for _ in 0..10 {
                    s.spawn(|_| {
                        total.fetch_add(one.install(|| 1), SeqCst);
                    });
                }
            });
            let indices = two.broadcast(|worker| {
                let index = worker.index();
                one.install(move || index)
            });
            assert_eq!(indices, [0, 1]);
        });
        assert_eq!(total.into_inner(), 10);
        two.shutdown();
        one.shutdown();
    }
}

/// bevy#6941: a burst of k tasks must start k workers without one waking the next only when it has
/// run its own.
#[test]
fn bevy_6941_a_burst_reaches_all_workers() {
    for wait in WAITS {
        let pool = pool::<WorkStealing>(4, wait);
        for _ in 0..100 {
            // Each task waits for all others: fewer than four workers would wait for ever.
            let barrier = Arc::new(Barrier::new(5));
            for _ in 0..4 {
                let barrier = barrier.clone();
                pool.spawn(move || {
                    barrier.wait();
                });
            }
            barrier.wait();
        }
        pool.shutdown();
    }
}

/// The same from a worker, which becomes one of the four.
#[test]
fn a_burst_from_a_worker_reaches_all_workers() {
    let pool = pool::<WorkStealing>(4, Wait::Any);
    for _ in 0..100 {
        pool.install(|| {
            let barrier = Arc::new(Barrier::new(4));
            for _ in 0..3 {
                let barrier = barrier.clone();
                spawn(move || {
                    barrier.wait();
                });
            }
            barrier.wait();
        });
    }
    pool.shutdown();
}

/// A spare that is not needed sleeps longer than the worker does: the wake-up for a task must not
/// go to the spare.
#[test]
fn a_wake_up_is_not_taken_by_a_spare_that_is_not_needed() {
    for wait in WAITS {
        let pool = pool::<WorkStealing>(1, wait);
        pool.install(|| blocking(|| ()));
        for _ in 0..50 {
            assert_eq!(pool.install(|| 1), 1);
            // Until all are asleep, as they are most of the time.
            while pool.metrics().asleep == 0 {
                std::thread::yield_now();
            }
        }
        pool.shutdown();
    }
}

/// A task of a scope waits, without saying so, for another that it has just created; the only
/// worker left is the one that waits for the scope.
#[test]
fn a_waiter_of_a_scope_is_woken_for_its_new_tasks() {
    for wait in WAITS {
        let pool = pool::<WorkStealing>(2, wait);
        for _ in 0..200 {
            pool.scope(|s| {
                s.spawn(|s| {
                    let (send, receive) = mpsc::channel();
                    // Time for the waiter to fall asleep.
                    std::thread::sleep(Duration::from_micros(20));
                    s.spawn(move |_| send.send(()).unwrap());
                    receive.recv().unwrap();
                });
            });
        }
        pool.shutdown();
    }
}

#[test]
fn blocked_workers_are_replaced_and_the_spares_go_again() {
    let pool = pool::<WorkStealing>(2, Wait::Any);
    for _ in 0..20 {
        let barrier = Barrier::new(8);
        pool.scope(|s| {
            for _ in 0..8 {
                s.spawn(|_| {
                    blocking(|| barrier.wait());
                });
            }
        });
        assert_eq!(pool.broadcast(|_| ()).len(), 2);
    }
    assert_eq!(pool.metrics().active_spares, 0);
    pool.shutdown();
}

/// Waits for a future that waits for one in turn, and so on.
fn futures_inside_each_other(levels: usize) -> usize {
    if levels == 0 {
        return 0;
    }
    1 + spawn_future(async move { futures_inside_each_other(levels - 1) }).join().unwrap()
}

/// A worker with so many tasks above each other that it should run no more may be the only one that
/// can poll the future it waits for.
#[test]
fn futures_nest_deeper_than_the_bound_of_nested_tasks() {
    for spares in [0, 1, 8] {
        let pool = ThreadPoolBuilder::new().num_threads(1).spare_threads(spares).build().unwrap();
        let levels = pool.install(|| futures_inside_each_other(2 * MAX_NESTED_TASKS));
        assert_eq!(levels, 2 * MAX_NESTED_TASKS, "{spares} spares");
        pool.shutdown();
    }
}

/// The same through another pool; without spare threads, and deeper than a worker helps.
#[test]
fn two_pools_without_spares_install_into_each_other() {
    let pool = || ThreadPoolBuilder::new().num_threads(1).spare_threads(0).build().unwrap();
    let (one, two) = (pool(), pool());
    let levels = 3 * MAX_NESTED_TASKS;
    assert_eq!(one.install(|| to_and_fro(&one, &two, levels)), levels);
    two.shutdown();
    one.shutdown();
}

/// A worker that runs scope after scope by itself leaves nothing behind for others to find, but a
/// few blocks.
#[test]
fn scopes_after_each_other_need_no_more_memory_than_one() {
    for wait in [Wait::Isolated, Wait::Leapfrog, Wait::Park] {
        let pool = pool::<WorkStealing>(1, wait);
        let run = AtomicUsize::new(0);
        pool.install(|| {
            for _ in 0..20_000 {
                scope(|s| {
                    s.spawn(|_| {
                        run.fetch_add(1, SeqCst);
                    });
                });
            }
        });
        assert_eq!(run.into_inner(), 20_000);
        assert!(pool.metrics().blocks < 1_000, "{wait:?}: {} blocks", pool.metrics().blocks);
        pool.shutdown();
    }
}

/// Two tasks of a scope meet: one of them must be run by the worker that waits for the scope.
fn two_tasks_meet<S: Strategy>() {
    for wait in WAITS {
        let pool = pool::<S>(2, wait);
        for _ in 0..100 {
            let meet = Barrier::new(2);
            let begun = Barrier::new(2);
            pool.scope(|s| {
                let (meet, begun) = (&meet, &begun);
                s.spawn(move |s| {
                    begun.wait();
                    for _ in 0..2 {
                        s.spawn(|_| {
                            meet.wait();
                        });
                    }
                });
                // Another worker has begun it, so the list is empty when this one comes to wait.
                begun.wait();
            });
        }
        pool.shutdown();
    }
}

#[test]
fn a_waiter_of_a_scope_runs_what_its_tasks_create() {
    macro_rules! under_each {
        ([] $({ $name:ident: $strategy:ty, $($rest:tt)* })+) => {
            $(two_tasks_meet::<$strategy>();)+
        };
    }
    stanchion_threadpool::__strategies!(under_each);
}

/// While a worker waits for a scope the pool shrinks to it, so no other worker will run
/// what the scope's last task creates.
#[test]
fn a_pool_may_shrink_to_the_waiter_of_a_scope() {
    for wait in WAITS {
        let pool = pool::<WorkStealing>(2, wait);
        let last = AtomicUsize::new(0);
        let waits_on_the_first = || {
            if current_thread_index() != Some(0) {
                return false;
            }
            let begun = Barrier::new(2);
            scope(|s| {
                let (pool, begun, last) = (&pool, &begun, &last);
                s.spawn(move |s| {
                    begun.wait();
                    pool.set_num_threads(1).unwrap();
                    s.spawn(|_| last.store(1, SeqCst));
                });
                begun.wait();
            });
            true
        };
        while !pool.install(waits_on_the_first) {}
        assert_eq!(last.into_inner(), 1, "{wait:?}");
        pool.shutdown();
    }
}

/// A task of a closed pool blocks until another one, behind it, has run. There is one worker, so
/// that only a spare can run that.
#[test]
fn a_task_of_a_closed_pool_gets_a_spare() {
    for round in 0..300 {
        let pool = pool::<WorkStealing>(1, WAITS[round % 4]);
        if round % 2 == 0 {
            // The spare exists already, and sleeps.
            pool.install(|| blocking(|| ()));
        }
        let (send, receive) = mpsc::channel();
        pool.spawn(move || assert_eq!(blocking(|| receive.recv()), Ok(7)));
        pool.spawn(move || send.send(7).unwrap());
        pool.shutdown();
    }
}

/// The only spare is asked for again and again, at whatever it is meanwhile: about to stop, or
/// asleep.
#[test]
fn the_only_spare_is_never_out_of_reach() {
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .max_threads(1)
        .spare_threads(1)
        .idle_spin(Duration::from_micros(1))
        .build()
        .unwrap();
    pool.install(|| {
        for _ in 0..5_000 {
            let (send, receive) = mpsc::channel();
            spawn(move || send.send(()).unwrap());
            blocking(|| receive.recv()).unwrap();
        }
    });
    pool.shutdown();
}

/// Two tasks block, and there is one spare. When the first comes back, its spare serves the second.
#[test]
fn a_spare_that_comes_free_serves_a_task_that_got_none() {
    let pool =
        ThreadPoolBuilder::new().num_threads(2).max_threads(2).spare_threads(1).build().unwrap();
    for _ in 0..50 {
        let (release, first) = mpsc::channel::<()>();
        let (send, second) = mpsc::channel::<()>();
        let both = Arc::new(Barrier::new(3));
        let here = both.clone();
        pool.spawn(move || {
            here.wait();
            blocking(|| first.recv()).unwrap();
            // It blocks on, but does not say so: the spare that it had leased is free.
            send.send(()).unwrap();
        });
        let here = both.clone();
        pool.spawn(move || {
            here.wait();
            blocking(|| second.recv()).unwrap();
        });
        both.wait();
        pool.spawn(move || release.send(()).unwrap());
        assert_eq!(pool.install(|| 1), 1);
    }
    pool.shutdown();
}

/// The first half of a fork waits for the second, which was offered to no worker, and says that it
/// blocks.
#[test]
fn the_second_halves_of_a_blocked_worker_are_there_for_spares() {
    for wait in WAITS {
        let pool = pool::<WorkStealing>(1, wait);
        for _ in 0..100 {
            let (send, receive) = mpsc::channel();
            let receive = Mutex::new(receive);
            let first = || blocking(|| receive.lock().unwrap().recv());
            // The fork that is waited for is the second in the ring.
            let ((got, ()), ()) =
                pool.install(|| join(|| join(first, move || send.send(7).unwrap()), || ()));
            assert_eq!(got, Ok(7));
        }
        pool.shutdown();
    }
}

#[test]
fn a_worker_that_blocks_twice_at_once_gets_one_spare() {
    let pool = pool::<WorkStealing>(1, Wait::Any);
    let lent = pool.install(|| blocking(|| blocking(|| pool.metrics().active_spares)));
    assert_eq!(lent, 1);
    assert_eq!(pool.install(|| blocking(|| pool.metrics().active_spares)), 1);
    pool.shutdown();
}
