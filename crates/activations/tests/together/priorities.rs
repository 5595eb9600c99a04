//! Priorities: with one processor, that the more urgent of two ready threads runs first, from the
//! next scheduling point on.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use stanchion_activations::Priority::{self, High, Low, Normal};
use stanchion_activations::sync::{Barrier, Mutex as Lock};
use stanchion_activations::{Builder, JoinHandle, Runtime, park, spawn, yield_now};

/// In which order things have happened.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn say(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn said(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Spawns a thread that only says so.
    fn speaker(&self, priority: Priority, what: &'static str) -> JoinHandle<()> {
        let log = self.clone();
        Builder::new().priority(priority).spawn(move || log.say(what))
    }
}

/// One processor that stays with a thread which blocks in the kernel, so that the order of all is
/// the priorities'.
fn one_processor() -> Runtime {
    Runtime::builder().processors(1).activations(false).build().unwrap()
}

/// Runs `body` in a thread of that priority, on one processor.
fn alone(priority: Priority, body: impl FnOnce(&Log) + Send + 'static) -> Vec<&'static str> {
    let runtime = one_processor();
    let log = Log::default();
    let inside = log.clone();
    let thread = Builder::new().on(&runtime).priority(priority).spawn(move || body(&inside));
    thread.join().unwrap();
    drop(runtime);
    log.said()
}

#[test]
fn ready_threads_run_in_order_of_priority() {
    let said = alone(High, |log| {
        for (priority, what) in [(Low, "low"), (Normal, "normal"), (High, "high")] {
            log.speaker(priority, what);
        }
        log.say("the spawner");
    });
    assert_eq!(said, ["the spawner", "high", "normal", "low"]);
}

#[test]
fn spawn_gives_way_to_a_higher_priority() {
    let said = alone(Low, |log| {
        log.speaker(High, "high");
        log.say("after high");
        log.speaker(Normal, "normal");
        log.say("after normal");
        log.speaker(Low, "low");
        log.say("the spawner");
    });
    assert_eq!(said, ["high", "after high", "normal", "after normal", "the spawner", "low"]);
}

#[test]
fn a_normal_thread_gives_way_to_high_ones_only() {
    let said = alone(Normal, |log| {
        log.speaker(Low, "low");
        log.speaker(Normal, "normal");
        log.speaker(High, "high");
        log.say("the spawner");
    });
    assert_eq!(said, ["high", "the spawner", "normal", "low"]);
}

#[test]
fn unpark_gives_way_to_a_thread_that_began_here() {
    for waker in [Low, Normal] {
        let said = alone(waker, |log| {
            let begun = log.clone();
            let high = Builder::new().priority(High).spawn(move || {
                begun.say("it parks");
                park();
                begun.say("it goes on");
            });
            log.say("the waker");
            high.thread().unpark();
            log.say("the waker goes on");
            high.join().unwrap();
        });
        assert_eq!(said, ["it parks", "the waker", "it goes on", "the waker goes on"]);
    }
}

#[test]
fn unpark_of_a_lower_priority_does_not_give_way() {
    let said = alone(High, |log| {
        let begun = log.clone();
        let low = Builder::new().priority(Low).spawn(move || {
            begun.say("it parks");
            park();
            begun.say("it goes on");
        });
        // No other thread is ready: the high one waits for it.
        let between = {
            let log = log.clone();
            Builder::new().priority(Low).spawn(move || log.say("behind it"))
        };
        between.join().unwrap();
        low.thread().unpark();
        log.say("the waker goes on");
        yield_now();
        log.say("also after a yield");
        low.join().unwrap();
    });
    assert_eq!(
        said,
        ["it parks", "behind it", "the waker goes on", "also after a yield", "it goes on"]
    );
}

#[test]
fn the_release_of_a_lock_gives_way() {
    let said = alone(Low, |log| {
        let lock = Arc::new(Lock::new(()));
        let held = lock.lock();
        let waits = {
            let (log, lock) = (log.clone(), lock.clone());
            Builder::new().priority(High).spawn(move || {
                log.say("it waits");
                drop(lock.lock());
                log.say("it goes on");
            })
        };
        log.say("the holder");
        drop(held);
        log.say("the holder goes on");
        waits.join().unwrap();
    });
    assert_eq!(said, ["it waits", "the holder", "it goes on", "the holder goes on"]);
}

/// Those that wait came in the order of their priorities, the least urgent first.
#[test]
fn notify_all_gives_way_to_the_highest_priority() {
    let said = alone(Low, |log| {
        let barrier = Arc::new(Barrier::new(3));
        let waiters = [(Normal, "normal"), (High, "high")].map(|(priority, what)| {
            let (log, barrier) = (log.clone(), barrier.clone());
            Builder::new().priority(priority).spawn(move || {
                barrier.wait();
                log.say(what);
            })
        });
        barrier.wait();
        log.say("the last to come");
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
    assert_eq!(said, ["high", "normal", "the last to come"]);
}

#[test]
fn the_end_of_a_thread_gives_way() {
    let runtime = Arc::new(one_processor());
    let log = Log::default();
    let (inside, of_it) = (log.clone(), runtime.clone());
    let normal = runtime.spawn(move || {
        let next = inside.clone();
        drop(spawn(move || next.say("another normal one")));
        let urgent = inside.clone();
        // By a kernel thread, so that it is no scheduling point of this one's.
        std::thread::spawn(move || {
            drop(Builder::new().on(&of_it).priority(High).spawn(move || urgent.say("high")));
        })
        .join()
        .unwrap();
        inside.say("normal");
    });
    normal.join().unwrap();
    drop(runtime);
    assert_eq!(log.said(), ["normal", "high", "another normal one"]);
}

#[test]
fn all_of_many_run_whatever_their_priorities() {
    for processors in 1..=4 {
        let runtime = Runtime::new(processors).unwrap();
        let threads: Vec<_> = (0..600_usize)
            .map(|number| {
                let priority = [Low, Normal, High][number % 3];
                let body = move || {
                    for _ in 0..5 {
                        yield_now();
                        let child = Builder::new().priority(priority).spawn(move || number);
                        assert_eq!(child.join().unwrap(), number);
                    }
                };
                let builder = Builder::new().on(&runtime).priority(priority);
                match number % 2 {
                    0 => builder.spawn(body),
                    // SAFETY: it keeps nothing of the kernel thread's.
                    _ => unsafe { builder.spawn_migratable(body) },
                }
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// A worker that leaves others' ready threads alone for a while, because to take them has not
/// paid, runs none that is less urgent meanwhile.
#[test]
fn a_low_thread_runs_before_no_normal_one_that_is_left_alone() {
    const NONE: usize = 0;
    let runtime = Runtime::builder().processors(2).activations(false).build().unwrap();
    runtime.run(|| {
        for _ in 0..300 {
            // Thefts of these do not pay.
            let burst: Vec<_> = (0..200).map(|_| spawn(|| ())).collect();
            burst.into_iter().for_each(|thread| thread.join().unwrap());
            let first = Arc::new(AtomicUsize::new(NONE));
            let begin = |priority| {
                let first = first.clone();
                let begun = priority as usize + 1;
                Builder::new().priority(priority).spawn(move || {
                    let _ = first.compare_exchange(NONE, begun, Relaxed, Relaxed);
                })
            };
            // In this order: a worker that sees the second sees the first.
            let threads = [begin(Normal), begin(Low)];
            // Without a scheduling point: the other processor has to run one of them.
            while first.load(Relaxed) == NONE {
                std::hint::spin_loop();
            }
            assert_eq!(first.load(Relaxed), Normal as usize + 1);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    });
}
