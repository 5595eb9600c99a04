//! Models of the parts of a pool in which two threads meet: latches, and the count of tasks for
//! which a scope or a broadcast waits.
//!
//! Each line names a model, its threads, and the error that it would show.
//!
//! - `latch_of_an_outsider`: a waiter that sleeps, the setter. A wake-up is lost; the outcome is
//!   not seen; the latch is used after it is gone.
//! - `latch_of_a_worker`: a waiter that watches and sleeps elsewhere, the setter. The setter does
//!   not wake it, and it sleeps on.
//! - `count_latch_of_a_scope`: a waiter with a part of its own, a task that creates another. The
//!   scope is left too soon; what the tasks did is not seen.
//! - `count_latch_of_two_bounded`: a waiter, two tasks. The last task does not hand on what the
//!   first did; the scope is used after it is gone.
//!
//! Payloads are checked cells, and every latch is dropped as soon as its waiter may return. Every
//! model prints `model NAME: N executions`.

use stanchion_competitive::EventCount;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;
use stanchion_threadpool_loom::__internal::{CountLatch, Latch};

/// A pointer that is sent to another thread.
struct Sent<T>(*const T);
// SAFETY: the thread that unpacks it answers for its use of the pointer.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    fn get(&self) -> *const T {
        self.0
    }
}

/// A result that a task leaves for its waiter, as an `install` and a fork do.
struct Job {
    /// The result. The setter writes it once, before it sets the latch.
    outcome: UnsafeCell<u32>,
    /// The latch that is tested. The setter sets it, and the owner waits for it.
    latch: Latch,
}

impl Job {
    fn new() -> Box<Self> {
        Box::new(Self { outcome: UnsafeCell::new(0), latch: Latch::new() })
    }

    /// The owner's last act: it must be the last access of any thread.
    fn take(self) -> u32 {
        // SAFETY: the latch is set.
        self.outcome.with(|outcome| unsafe { *outcome })
    }
}

/// Writes the outcome and sets the latch; says whether the waiter must be woken.
///
/// # Safety
///
/// The job is alive until its latch is set, and this is called once.
unsafe fn end(job: *const Job) -> (bool, *const Latch) {
    // SAFETY: the caller's promise; so below.
    let these = unsafe { &*job };
    // SAFETY: the owner looks when the latch is set.
    these.outcome.with_mut(|outcome| unsafe { *outcome += 5 });
    let latch = &raw const these.latch;
    // SAFETY: alive until it is set.
    (unsafe { Latch::set(latch) }, latch)
}

#[test]
fn latch_of_an_outsider() {
    explore("latch_of_an_outsider", Model::new(), || {
        let job = Job::new();
        let sent = Sent(&raw const *job);
        let setter = thread::spawn(move || {
            // SAFETY: the owner waits.
            let (told, latch) = unsafe { end(sent.get()) };
            if told {
                Latch::wake(latch);
            }
        });
        job.latch.wait();
        assert_eq!((*job).take(), 5);
        setter.join().unwrap();
    });
}

#[test]
fn latch_of_a_worker() {
    explore("latch_of_a_worker", Model::new(), || {
        let job = Job::new();
        let events = Arc::new(EventCount::new());
        let sent = Sent(&raw const *job);
        let setter = {
            let events = events.clone();
            thread::spawn(move || {
                // SAFETY: the owner waits.
                if unsafe { end(sent.get()) }.0 {
                    events.notify_only(3);
                }
            })
        };
        while !job.latch.is_set() {
            let key = events.prepare();
            if job.latch.watch() {
                events.wait_as(key, 3, Deadline::NEVER);
            }
        }
        assert_eq!((*job).take(), 5);
        setter.join().unwrap();
    });
}

/// A scope: a count, and a cell for each task.
struct Scope {
    /// The latch that is tested. A new task adds one, and a task that ends takes one away.
    count: CountLatch,
    /// A cell for each task. The task writes its own.
    parts: [UnsafeCell<u32>; 2],
}

impl Scope {
    fn new(open: usize) -> Box<Self> {
        let parts = [const { UnsafeCell::new(0) }; 2];
        Box::new(Self { count: CountLatch::new(open), parts })
    }

    /// The owner waits, and looks at what the tasks did. The scope is gone afterwards.
    fn wait(&self, own: bool) -> u32 {
        if !(own && self.count.decrement_own()) {
            self.count.latch().wait();
        }
        // SAFETY: all have ended.
        self.parts.iter().map(|part| part.with(|part| unsafe { *part })).sum()
    }
}

/// The task number `at` ends.
///
/// # Safety
///
/// It was counted, and has not ended.
unsafe fn end_task(scope: *const Scope, at: usize) {
    // SAFETY: the scope is there until this has ended; so below.
    let these = unsafe { &*scope };
    // SAFETY: this task's own.
    these.parts[at].with_mut(|part| unsafe { *part += 1 });
    // SAFETY: as above.
    if let Some(latch) = unsafe { CountLatch::decrement(&raw const these.count) } {
        Latch::wake(latch);
    }
}

#[test]
fn count_latch_of_a_scope() {
    explore("count_latch_of_a_scope", Model::new(), || {
        let scope = Scope::new(1);
        scope.count.increment();
        let sent = Sent(&raw const *scope);
        let task = thread::spawn(move || {
            // SAFETY: the scope waits for the task.
            unsafe { (*sent.get()).count.increment() };
            for at in 0..2 {
                // SAFETY: counted, by the owner and by this.
                unsafe { end_task(sent.get(), at) };
            }
        });
        assert_eq!(scope.wait(true), 2);
        drop(scope);
        task.join().unwrap();
    });
}

#[test]
fn count_latch_of_two_bounded() {
    explore("count_latch_of_two_bounded", Model::new().preemptions(2), || {
        let scope = Scope::new(2);
        let tasks = [0, 1].map(|at| {
            let sent = Sent(&raw const *scope);
            // SAFETY: counted above.
            thread::spawn(move || unsafe { end_task(sent.get(), at) })
        });
        assert_eq!(scope.wait(false), 2);
        drop(scope);
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}
