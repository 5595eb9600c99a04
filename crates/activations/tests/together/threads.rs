//! Threads of a runtime: that all of them run, park, wake, end, and are joined.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use stanchion_activations::{JoinHandle, Runtime, current, park, park_timeout, spawn, yield_now};

#[test]
fn each_of_many_runs_once() {
    for processors in 1..=4 {
        let runtime = Runtime::new(processors).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..10_000)
            .map(|_| {
                let ran = ran.clone();
                runtime.spawn(move || ran.fetch_add(1, Ordering::Relaxed))
            })
            .collect();
        let numbers = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(numbers.collect::<std::collections::HashSet<_>>().len(), 10_000);
        assert_eq!(ran.load(Ordering::Relaxed), 10_000);
    }
}

#[test]
fn a_tree_of_threads_that_join_their_children() {
    fn leaves(depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let children: Vec<JoinHandle<u64>> =
            (0..2).map(|_| spawn(move || leaves(depth - 1))).collect();
        children.into_iter().map(|child| child.join().unwrap()).sum()
    }
    for processors in 1..=4 {
        assert_eq!(Runtime::new(processors).unwrap().run(|| leaves(10)), 1 << 10);
    }
}

#[test]
fn two_that_wake_each_other() {
    for processors in 1..=2 {
        let runtime = Runtime::new(processors).unwrap();
        runtime.run(|| {
            let turn = Arc::new(AtomicUsize::new(0));
            let main = current();
            let other = {
                let turn = turn.clone();
                spawn(move || {
                    for round in 0..1_000 {
                        while turn.load(Ordering::Acquire) != 2 * round + 1 {
                            park();
                        }
                        turn.store(2 * round + 2, Ordering::Release);
                        main.unpark();
                    }
                })
            };
            for round in 0..1_000 {
                turn.store(2 * round + 1, Ordering::Release);
                other.thread().unpark();
                while turn.load(Ordering::Acquire) != 2 * round + 2 {
                    park();
                }
            }
            other.join().unwrap();
        });
    }
}

#[test]
fn a_token_is_kept_for_the_next_park() {
    let runtime = Runtime::new(1).unwrap();
    runtime.run(|| {
        current().unpark();
        current().unpark();
        park();
        assert!(!park_timeout(Duration::from_millis(1)), "there was one token");
    });
    current().unpark();
    park();
}

#[test]
fn yielding_lets_the_others_run() {
    let runtime = Runtime::new(1).unwrap();
    runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let other = {
            let done = done.clone();
            spawn(move || done.store(true, Ordering::Release))
        };
        while !done.load(Ordering::Acquire) {
            yield_now();
        }
        other.join().unwrap();
    });
}

#[test]
fn a_panic_is_the_joiners() {
    let runtime = Runtime::new(1).unwrap();
    let payload = runtime.spawn(|| panic!("of the thread")).join().unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"of the thread"));
    assert_eq!(runtime.run(|| 1), 1, "the runtime goes on");
}

#[test]
fn dropping_a_runtime_waits_for_detached_threads() {
    let ran = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::new(2).unwrap();
    for _ in 0..100 {
        let ran = ran.clone();
        runtime.spawn(move || {
            yield_now();
            let ran = ran.clone();
            spawn(move || ran.fetch_add(1, Ordering::Relaxed));
        });
    }
    drop(runtime);
    assert_eq!(ran.load(Ordering::Relaxed), 100);
}

#[test]
fn a_runtime_dropped_by_its_own_thread_ends_when_that_has() {
    let runtime = Runtime::new(2).unwrap();
    let (sent, receives) = mpsc::channel();
    let (given, takes) = mpsc::channel::<Runtime>();
    let thread = runtime.spawn(move || {
        drop(takes.recv().unwrap());
        yield_now();
        sent.send(()).unwrap();
    });
    given.send(runtime).unwrap();
    receives.recv().unwrap();
    thread.join().unwrap();
}

#[test]
fn a_kernel_thread_wakes_user_level_ones_and_the_other_way_round() {
    let runtime = Runtime::new(1).unwrap();
    let outside = current();
    let inside = runtime.spawn(move || {
        park();
        outside.unpark();
    });
    inside.thread().unpark();
    park();
    inside.join().unwrap();
}

#[test]
fn time_comes_while_no_thread_runs() {
    let runtime = Runtime::new(2).unwrap();
    let sleepers: Vec<_> = (0..50)
        .map(|n| runtime.spawn(move || park_timeout(Duration::from_micros(n * 40))))
        .collect();
    assert!(sleepers.into_iter().all(|sleeper| !sleeper.join().unwrap()));
}

/// The result of a thread, with a closure for its drop.
struct Dropped<F: FnMut()>(F);

impl<F: FnMut()> Drop for Dropped<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn detached_result_is_dropped_by_its_thread() {
    let runtime = Runtime::new(1).unwrap();
    let (sent, receives) = mpsc::channel();
    let (dropped, drops) = mpsc::channel();
    drop(runtime.spawn(move || {
        let me = current().id();
        // The thread that drops the handle of an ended thread drops its result.
        drops.recv().unwrap();
        Dropped(move || {
            // It may wait, as any code of a thread.
            yield_now();
            park_timeout(Duration::from_micros(1));
            spawn(|| ()).join().unwrap();
            sent.send((me, current().id())).unwrap();
        })
    }));
    dropped.send(()).unwrap();
    let (thread, dropped_by) = receives.recv().unwrap();
    assert_eq!(thread, dropped_by);
}

#[test]
fn result_that_panics_on_drop_harms_no_thread() {
    let runtime = Runtime::new(1).unwrap();
    for _ in 0..3 {
        let (dropped, drops) = mpsc::channel();
        let (dropped_too, drops_too) = mpsc::channel();
        drop(runtime.spawn(move || {
            drops.recv().unwrap();
            Dropped(|| panic!("when dropped"))
        }));
        drop(runtime.spawn(move || {
            drops_too.recv().unwrap();
            std::panic::panic_any(Dropped(|| panic!("payload, when dropped")))
        }));
        dropped.send(()).unwrap();
        dropped_too.send(()).unwrap();
    }
    assert_eq!(runtime.run(|| 1), 1, "the runtime goes on");
}

#[test]
fn a_result_is_dropped_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::new(2).unwrap();
    let count = || {
        let drops = drops.clone();
        move || {
            let drops = drops.clone();
            Dropped(move || {
                drops.fetch_add(1, Ordering::Relaxed);
            })
        }
    };
    for _ in 0..100 {
        drop(runtime.spawn(count()));
        drop(runtime.spawn(count()).join());
        let ended = runtime.spawn(count());
        while !ended.is_finished() {
            std::thread::yield_now();
        }
        drop(ended);
    }
    drop(runtime);
    assert_eq!(drops.load(Ordering::Relaxed), 300);
}

#[test]
fn handles_outlive_the_runtime() {
    let runtime = Runtime::new(1).unwrap();
    let (joined, dropped) = (runtime.spawn(|| vec![7]), runtime.spawn(|| vec![8]));
    let thread = joined.thread().clone();
    drop(runtime);
    thread.unpark();
    assert!(joined.is_finished() && dropped.is_finished());
    drop(dropped);
    assert_eq!(joined.join().unwrap(), [7]);
    thread.unpark();
    assert_eq!(thread.name(), None);
}

#[test]
fn a_runtime_may_end_while_its_last_thread_is_woken() {
    for _ in 0..100 {
        let runtime = Runtime::new(1).unwrap();
        let thread = runtime.spawn(park).thread().clone();
        let ends = std::thread::spawn(move || drop(runtime));
        // The runtime is there as long as the thread, which this lets end.
        thread.unpark();
        drop(thread);
        ends.join().unwrap();
    }
}
