//! Models of the state of a future, and of how a pool ends beside a wake-up.
//!
//! A poll looks at Relaxed counts here: the state must make up for it. A thread that owes the
//! future a task runs it at once. So each wake-up that must not be lost ends in a poll, on some
//! thread. Loom's cells report two threads that touch the future at the same time.
//!
//! Each line names a model, its threads, and the error that it would show.
//!
//! - `future_a_wake_meets_a_poll`: the poller, a waker. The wake-up is lost, or the poll after it
//!   does not see its reason; two polls at a time.
//! - `future_a_wake_meets_the_end`: the poller, a waker. A future that is done is run again.
//! - `future_two_wakes_bounded`: the poller, two wakers. As the first; the second waker finds the
//!   bit set.
//! - `future_an_abort_meets_a_poll`: the poller, a thread that aborts. It is polled for ever, or is
//!   done twice.
//! - `future_a_join_meets_the_end`: the poller, the handle. The handle waits for ever, or takes an
//!   output that is not there.
//! - `future_a_look_meets_the_end`: the poller, the handle. The handle sees that it is done, but
//!   not the output.
//! - `future_a_join_changes_its_waiter`: the poller, the handle. The first listener is notified
//!   instead of the second; both threads touch the cell.
//! - `future_a_detach_meets_the_end`: the poller, the handle. The output is dropped twice, or
//!   never.
//! - `drain_a_task_meets_the_last_thread`: the last thread, one from outside. The task is left.
//! - `drain_two_tasks_bounded`: the last thread, two from outside. Two take out at a time; the
//!   second's task is left.
//! - `drain_the_draining_thread_sees_other_tasks`: two threads that take out. The draining thread
//!   does not see the other's task.
//! - `drain_the_threads_leave_bounded`: two threads of the pool, one from outside. The last does
//!   not have what the other did at its slot.
//! - `drain_a_dropped_task_creates`: the last thread, one from outside. Taking out goes on inside
//!   of itself, or stops too soon.
//!
//! Every model prints `model NAME: N executions`.

use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion_models::{beside, explore};
use stanchion_threadpool_loom::__internal::{Drain, Finished, FutureState};

use Ordering::{Acquire, Relaxed, Release};

/// The future, and then its output.
#[derive(Debug, PartialEq, Eq)]
enum Body {
    Polled(u32),
    Ready,
    Cancelled,
    Taken,
}

/// A future that is ready when `wanted` events have come.
struct Task {
    /// The state that is tested. The task, the wakers and the join handle write it.
    state: FutureState<Body, usize>,
    /// The number of events that have come. Each waker adds one.
    events: AtomicU32,
    /// The number of events after which the future is ready. Written when the task is made.
    wanted: u32,
    /// Set for each listener that was notified of the end. The thread that finishes the task writes
    /// it.
    told: [AtomicU32; 2],
    /// The number of outputs that were dropped. The thread that drops one adds one.
    dropped: AtomicU32,
}

impl Task {
    fn new(wanted: u32) -> Arc<Self> {
        Arc::new(Self {
            state: FutureState::new(Body::Polled(0)),
            events: AtomicU32::fresh(0),
            wanted,
            told: [AtomicU32::fresh(0), AtomicU32::fresh(0)],
            dropped: AtomicU32::fresh(0),
        })
    }

    /// The task that is owed to the future: polls it until no thread owes it one, or it is done.
    fn run(&self) {
        loop {
            // SAFETY: this is the task.
            let goes_on = unsafe { self.state.begin() };
            let ready = self.events.load(Relaxed) >= self.wanted;
            let poll = |body: *mut Body| {
                // SAFETY: this runs it.
                let body = unsafe { &mut *body };
                let Body::Polled(polls) = body else { panic!("{body:?} was polled again") };
                match (goes_on, ready) {
                    (false, _) => *body = Body::Cancelled,
                    (true, true) => *body = Body::Ready,
                    (true, false) => *polls += 1,
                }
                !goes_on || ready
            };
            // SAFETY: this runs it.
            if unsafe { self.state.body(poll) } {
                return self.finish();
            }
            // SAFETY: this runs it.
            if !unsafe { self.state.pause() } {
                return;
            }
        }
    }

    fn finish(&self) {
        // SAFETY: this runs it.
        match unsafe { self.state.finish() } {
            Finished::NoListener => {}
            Finished::Listener(listener) => self.told[listener].store(1, Release),
            Finished::Detached => self.discard(),
        }
    }

    /// Takes the output.
    fn take(&self) -> Body {
        // SAFETY: it is done, and the caller has the handle.
        let take = |body: *mut Body| unsafe { body.replace(Body::Taken) };
        // SAFETY: as above.
        unsafe { self.state.body(take) }
    }

    fn discard(&self) {
        assert_eq!(self.take(), Body::Ready);
        self.dropped.fetch_add(1, Relaxed);
    }

    fn event(&self) {
        self.events.fetch_add(1, Relaxed);
        if self.state.wake() {
            self.run();
        }
    }

    /// The handle waits with this listener, and takes the output.
    fn join(&self, listener: usize) -> Body {
        // SAFETY: the caller has the handle.
        if unsafe { self.state.listen(listener) } {
            wait_until(&self.told[listener], Acquire, |told| told == 1, &mut <Patient>::start());
        }
        self.take()
    }
}

#[test]
fn future_a_wake_meets_a_poll() {
    explore("future_a_wake_meets_a_poll", Model::new(), || {
        let task = Task::new(1);
        let waker = beside(&task, Task::event);
        task.run();
        waker.join().unwrap();
        assert!(task.state.is_done());
        assert_eq!(task.take(), Body::Ready);
    });
}

#[test]
fn future_a_wake_meets_the_end() {
    explore("future_a_wake_meets_the_end", Model::new(), || {
        let task = Task::new(0);
        let waker = beside(&task, |task| (0..2).for_each(|_| task.event()));
        task.run();
        waker.join().unwrap();
        assert!(!task.state.wake());
        assert_eq!(task.take(), Body::Ready);
    });
}

#[test]
fn future_two_wakes_bounded() {
    explore("future_two_wakes_bounded", Model::new().preemptions(3), || {
        let task = Task::new(2);
        let wakers = [beside(&task, Task::event), beside(&task, Task::event)];
        task.run();
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        assert!(task.state.is_done());
        assert_eq!(task.take(), Body::Ready);
    });
}

#[test]
fn future_an_abort_meets_a_poll() {
    explore("future_an_abort_meets_a_poll", Model::new(), || {
        let task = Task::new(1);
        let aborter = beside(&task, |task| {
            if task.state.abort() {
                task.run();
            }
        });
        task.run();
        aborter.join().unwrap();
        assert!(task.state.is_done());
        assert_eq!(task.take(), Body::Cancelled);
    });
}

#[test]
fn future_a_join_meets_the_end() {
    explore("future_a_join_meets_the_end", Model::new(), || {
        let task = Task::new(0);
        let runner = beside(&task, Task::run);
        assert_eq!(task.join(0), Body::Ready);
        runner.join().unwrap();
    });
}

#[test]
fn future_a_look_meets_the_end() {
    explore("future_a_look_meets_the_end", Model::new(), || {
        let task = Task::new(0);
        let runner = beside(&task, Task::run);
        let output = if task.state.is_done() { task.take() } else { task.join(0) };
        assert_eq!(output, Body::Ready);
        runner.join().unwrap();
    });
}

#[test]
fn future_a_join_changes_its_waiter() {
    explore("future_a_join_changes_its_waiter", Model::new(), || {
        let task = Task::new(0);
        let runner = beside(&task, Task::run);
        // SAFETY: this is the handle.
        if unsafe { task.state.listen(0) } {
            assert_eq!(task.join(1), Body::Ready);
        } else {
            assert_eq!(task.take(), Body::Ready);
        }
        runner.join().unwrap();
        let told = task.told.each_ref().map(|told| told.load(Relaxed));
        assert_ne!(told, [1, 1], "one is told at most");
    });
}

#[test]
fn future_a_detach_meets_the_end() {
    explore("future_a_detach_meets_the_end", Model::new(), || {
        let task = Task::new(0);
        let runner = beside(&task, Task::run);
        // SAFETY: this is the handle.
        let listens = unsafe { task.state.listen(0) };
        // SAFETY: as above; it is not used again.
        if unsafe { task.state.detach() } {
            task.discard();
        }
        runner.join().unwrap();
        assert_eq!(task.dropped.load(Relaxed), 1);
        assert!(listens || task.told[0].load(Relaxed) == 0);
    });
}

/// A pool of which only the queue's length and the state of the first slot are left.
struct Pool {
    /// The protocol that is tested. Each thread of the pool and each creator writes it.
    drain: Drain,
    /// The number of ready tasks. Creators add to it, and a draining thread takes from it.
    ready: AtomicU32,
    /// The state of the slot; counts tasks that were taken out.
    slot: UnsafeCell<u32>,
    /// The number of tasks that create another when they are dropped.
    creates: AtomicU32,
}

// SAFETY: a thread that may take out uses the slot; the models check that.
unsafe impl Sync for Pool {}

impl Pool {
    fn new(threads: u32, creates: u32) -> Arc<Self> {
        let drain = Drain::new();
        (0..threads).for_each(|_| drain.register());
        Arc::new(Self {
            drain,
            ready: AtomicU32::fresh(0),
            slot: UnsafeCell::new(0),
            creates: AtomicU32::fresh(creates),
        })
    }

    /// A thread from outside creates a task.
    fn create(&self) {
        self.ready.fetch_add(1, Relaxed);
        self.drain.after_injection(|| self.take_out());
    }

    fn take_out(&self) {
        while self.ready.fetch_update(Relaxed, Relaxed, |ready| ready.checked_sub(1)).is_ok() {
            // SAFETY: `Drain` lets one in at a time.
            self.slot.with_mut(|slot| unsafe { *slot += 1 });
            let creates = self.creates.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            if creates.is_ok() {
                self.create();
            }
        }
    }

    /// A thread of the pool has used its slot, and leaves.
    fn leave(&self) {
        if self.drain.deregister() {
            self.drain.finish(|| self.take_out());
        }
    }

    fn is_empty(&self, taken: u32) {
        assert_eq!(self.ready.load(Relaxed), 0, "a task is left");
        // SAFETY: all others have ended.
        assert_eq!(self.slot.with(|slot| unsafe { *slot }), taken);
    }
}

#[test]
fn drain_a_task_meets_the_last_thread() {
    explore("drain_a_task_meets_the_last_thread", Model::new(), || {
        let pool = Pool::new(1, 0);
        let waker = beside(&pool, Pool::create);
        pool.leave();
        waker.join().unwrap();
        pool.is_empty(1);
    });
}

#[test]
fn drain_two_tasks_bounded() {
    explore("drain_two_tasks_bounded", Model::new().preemptions(2), || {
        let pool = Pool::new(1, 0);
        let wakers = [beside(&pool, Pool::create), beside(&pool, Pool::create)];
        pool.leave();
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        pool.is_empty(2);
    });
}

#[test]
fn drain_the_draining_thread_sees_other_tasks() {
    explore("drain_the_draining_thread_sees_other_tasks", Model::new(), || {
        let pool = Pool::new(0, 0);
        // Without the fences that `light` and `heavy` are in a model.
        let create = |pool: &Pool| {
            pool.ready.fetch_add(1, Relaxed);
            pool.drain.drain(|| pool.take_out());
        };
        let other = beside(&pool, create);
        create(&pool);
        other.join().unwrap();
        pool.is_empty(2);
    });
}

#[test]
fn drain_the_threads_leave_bounded() {
    explore("drain_the_threads_leave_bounded", Model::new().preemptions(3), || {
        let pool = Pool::new(2, 0);
        let waker = beside(&pool, Pool::create);
        let other = beside(&pool, |pool| {
            // SAFETY: this thread has the slot, until it leaves.
            pool.slot.with_mut(|slot| unsafe { *slot += 1 });
            pool.leave();
        });
        pool.leave();
        other.join().unwrap();
        waker.join().unwrap();
        pool.is_empty(2);
    });
}

#[test]
fn drain_a_dropped_task_creates() {
    explore("drain_a_dropped_task_creates", Model::new(), || {
        let pool = Pool::new(1, 1);
        let waker = beside(&pool, Pool::create);
        pool.leave();
        waker.join().unwrap();
        pool.is_empty(2);
    });
}
