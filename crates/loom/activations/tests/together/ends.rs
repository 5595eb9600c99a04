//! Models of ends and of times: a scope is left when its threads have ended, a runtime ends when it
//! has no thread any more, and some worker watches the clock.
//!
//! - `ends_of_a_scope`. Threads: a scope's body, its thread. Failure it looks for: the scope is
//!   left while its thread runs, or does not see what it did; the body is not woken.
//! - `ends_of_a_scope_of_two_bounded`. Threads: the same, with two threads. Failure it looks for:
//!   the same; the last thread is not the one that wakes the body.
//! - `ends_counted_here`. Threads: a worker with a thread that creates another one and ends, one
//!   that asks whether all have ended. Failure it looks for: it answers that all have, before the
//!   second has begun.
//! - `ends_counted_there_bounded`. Threads: the same, where a third worker runs the second thread.
//!   Failure it looks for: the same.
//! - `ends_counted_outside`. Threads: one that spawns from outside and closes, a worker that asks.
//!   Failure it looks for: the same, of the thread from outside.
//! - `ends_seen_by_one_of_two`. Threads: two workers on which the last two threads end, and that
//!   go to sleep. Failure it looks for: neither finds that all has ended.
//! - `ends_wake_the_waiter_bounded`. Threads: one that waits for the runtime's end, the worker
//!   that ends it. Failure it looks for: it waits for ever.
//! - `ends_of_a_timekeeper_bounded`. Threads: a worker that is the timekeeper and gets work, one
//!   that goes to sleep. Failure it looks for: there is no timekeeper.
//! - `ends_of_a_sleep_by_a_time_bounded`. Threads: a worker that goes to sleep, one that adds a
//!   time. Failure it looks for: there is no timekeeper.
//!
//! The threads of a runtime are threads of loom here, as loom does not switch stacks. Three models
//! of two threads are bounded, because the lock of times and waiters is a mutex with a policy,
//! every try of which is explored. What the two do under it is one step each. Every model prints
//! `model NAME: N executions`.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use stanchion_activations_loom::__internal::{
    Attributes, LiveThreads, ParkedSlots, Process, Scheduler, ScopeData, TaskCell, Thread,
    ThreadCounts, Timers, wait_for_end, wait_until,
};
use stanchion_activations_loom::current;
use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};

/// A runtime with threads that do not park.
struct NoParks;

impl Scheduler for NoParks {
    fn process(&self) -> Process {
        Process::current()
    }

    unsafe fn make_ready(_runtime: NonNull<Self>, _thread: Thread) {
        unreachable!("its threads do not park")
    }
}

/// A value that one thread changes, and that another reads when the first has ended.
struct Payload(UnsafeCell<u32>);

// SAFETY: it is used as the ends allow. The models check that.
unsafe impl Send for Payload {}
// SAFETY: as above.
unsafe impl Sync for Payload {}

impl Payload {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn change(&self) {
        // SAFETY: the one thread that does; the cell reports others.
        self.0.with_mut(|done| unsafe { *done += 1 });
    }

    fn is_changed(&self) -> bool {
        // SAFETY: that thread has ended; if not, the cell reports it.
        self.0.with(|done| unsafe { *done == 1 })
    }
}

/// Spawns threads in a scope and waits for them, as `Runtime::scope` does. The threads are loom's.
fn scope_of<const THREADS: usize>() {
    let runtime = std::sync::Arc::new(NoParks);
    let done = std::sync::Arc::new([(); THREADS].map(|()| Payload::new()));
    let scope = std::sync::Arc::new(ScopeData::new(current()));
    let threads = [(); THREADS].map(|()| ()).into_iter().enumerate().map(|(index, ())| {
        scope.enter();
        // Loom does not see the standard library's counts of references: no reference to the scope
        // is the last.
        core::mem::forget(scope.clone());
        let payload = done.clone();
        let body = move || payload[index].change();
        let thread = TaskCell::thread(Attributes::default(), &runtime, Some(scope.clone()), body);
        // Its join handle is forgotten.
        stanchion_machine::thread::spawn(move || {
            // SAFETY: once, and its own reference is used up.
            unsafe { ManuallyDrop::new(thread).run() }.send();
        })
    });
    let threads: Vec<_> = threads.collect();
    wait_until(Deadline::NEVER, || scope.has_ended());
    assert!(done.iter().all(Payload::is_changed));
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn ends_of_a_scope() {
    explore("ends_of_a_scope", Model::new().choices(0), scope_of::<1>);
}

#[test]
fn ends_of_a_scope_of_two_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("ends_of_a_scope_of_two_bounded", model, scope_of::<2>);
}

/// A runtime with a few workers.
struct Runtime {
    /// The word that says whether the runtime closes or has ended.
    live_threads: LiveThreads,
    /// The created and ended threads of each worker. Written by that worker.
    counts: Box<[ThreadCounts]>,
    /// The parkers of the slots. A worker that is about to sleep announces itself there.
    parked: ParkedSlots,
    /// The timers, and the number of the timekeeper. Any worker may write them.
    timers: Timers,
    /// Set when the last thread can be run.
    ready: AtomicBool,
    /// The payload of that thread.
    done: Payload,
}

impl Runtime {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            live_threads: LiveThreads::new(),
            counts: (0..workers).map(|_| ThreadCounts::new()).collect(),
            parked: ParkedSlots::new(2),
            timers: Timers::new(),
            ready: AtomicBool::fresh(false),
            done: Payload::new(),
        })
    }

    fn is_done(&self) -> bool {
        self.live_threads.is_done(self.counts.iter())
    }

    fn make_ready(&self) {
        // Release: as the lock of a queue.
        self.ready.store(true, Ordering::Release);
    }

    fn is_ready(&self) -> bool {
        // Acquire: as the lock of a queue.
        self.ready.load(Ordering::Acquire)
    }

    /// Runs the last thread on this worker.
    fn run(&self, worker: usize) {
        self.done.change();
        self.counts[worker].count_end();
    }

    /// Asks whether all have ended, and relies on the answer.
    fn ask(&self) {
        if self.is_done() {
            assert!(self.done.is_changed(), "all have ended, and one has not begun");
        }
    }
}

#[test]
fn ends_counted_here() {
    explore("ends_counted_here", Model::new().choices(0), || {
        let runtime = Runtime::new(1);
        runtime.live_threads.count_creation_outside();
        runtime.live_threads.close();
        let worker = beside(&runtime, |runtime| {
            runtime.counts[0].count_creation();
            runtime.counts[0].count_end();
            runtime.run(0);
        });
        runtime.ask();
        worker.join().expect("no panic");
        assert!(runtime.is_done());
    });
}

#[test]
fn ends_counted_there_bounded() {
    explore("ends_counted_there_bounded", Model::new().choices(0).preemptions(3), || {
        let runtime = Runtime::new(2);
        runtime.live_threads.count_creation_outside();
        runtime.live_threads.close();
        let creates = beside(&runtime, |runtime| {
            runtime.counts[1].count_creation();
            runtime.make_ready();
            runtime.counts[1].count_end();
        });
        let runs = beside(&runtime, |runtime| {
            if runtime.is_ready() {
                runtime.run(0);
            }
        });
        runtime.ask();
        creates.join().expect("no panic");
        runs.join().expect("no panic");
    });
}

#[test]
fn ends_counted_outside() {
    explore("ends_counted_outside", Model::new().choices(0), || {
        let runtime = Runtime::new(1);
        let worker = beside(&runtime, |runtime| {
            runtime.ask();
            if runtime.is_ready() {
                runtime.run(0);
                runtime.ask();
            }
        });
        runtime.live_threads.count_creation_outside();
        runtime.make_ready();
        runtime.live_threads.close();
        worker.join().expect("no panic");
    });
}

/// Goes to sleep as a worker does that has found nothing to do. Returns whether all has ended.
fn go_to_sleep(runtime: &Runtime, worker: usize) -> bool {
    runtime.counts[worker].count_end();
    runtime.parked.announce(worker, false);
    let (ended, created) = runtime.live_threads.ended_and_created(runtime.counts.iter());
    ended == created
}

#[test]
fn ends_seen_by_one_of_two() {
    explore("ends_seen_by_one_of_two", Model::new().choices(0), || {
        let runtime = Runtime::new(2);
        (0..2).for_each(|_| runtime.live_threads.count_creation_outside());
        let sees = Arc::new(AtomicBool::fresh(false));
        let other = {
            let sees = sees.clone();
            // Relaxed: joined before it is looked at.
            beside(&runtime, move |runtime| sees.store(go_to_sleep(runtime, 1), Ordering::Relaxed))
        };
        let here = go_to_sleep(&runtime, 0);
        other.join().expect("no panic");
        assert!(here || sees.load(Ordering::Relaxed), "both have gone to sleep");
    });
}

#[test]
fn ends_wake_the_waiter_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("ends_wake_the_waiter_bounded", model, || {
        let runtime = Runtime::new(0);
        let worker = beside(&runtime, |runtime| runtime.live_threads.end());
        wait_for_end(&runtime.live_threads);
        assert!(runtime.live_threads.is_over());
        worker.join().expect("no panic");
    });
}

/// Goes to sleep as a worker does. Comes back as the timekeeper.
fn keep_time(runtime: &Runtime, slot: usize) {
    loop {
        runtime.parked.announce(slot, false);
        let until = runtime.timers.become_timekeeper(slot);
        if until != Deadline::NEVER {
            return runtime.parked.retract(slot);
        }
        runtime.parked.sleep(slot, until);
    }
}

#[test]
fn ends_of_a_timekeeper_bounded() {
    explore("ends_of_a_timekeeper_bounded", Model::new().choices(0).preemptions(3), || {
        let runtime = Runtime::new(0);
        runtime.timers.add(Deadline::PAST, current());
        assert_ne!(runtime.timers.become_timekeeper(0), Deadline::NEVER);
        let other = beside(&runtime, |runtime| keep_time(runtime, 1));
        if runtime.timers.resign_timekeeper(0) {
            runtime.parked.wake(1, false);
        }
        other.join().expect("no panic");
        assert!(runtime.timers.resign_timekeeper(1), "it is the timekeeper, and there is a time");
    });
}

#[test]
fn ends_of_a_sleep_by_a_time_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("ends_of_a_sleep_by_a_time_bounded", model, || {
        let runtime = Runtime::new(0);
        let sleeper = beside(&runtime, |runtime| keep_time(runtime, 0));
        let (_, late) = runtime.timers.add(Deadline::PAST, current());
        if late.timekeeper {
            runtime.parked.wake(1, false);
        }
        sleeper.join().expect("no panic");
    });
}
