//! Models of how a closed pool detects that it is done.
//!
//! Each line names a model, its threads, and the error that it would show.
//!
//! - `termination_two_idle_workers_bounded`: two workers of a closed pool, one with a last task.
//!   One leaves while the other may create a task; or both sleep.
//! - `termination_an_idle_worker_left_a_task`: a worker that makes a task ready and becomes idle,
//!   one that looks. All seem idle, and the task is not seen.
//! - `termination_a_leaving_worker_left_a_task`: a worker that makes a task ready and leaves, one
//!   that looks. The same.
//! - `termination_a_spare_is_registered`: a worker that registers another and becomes idle, one
//!   that looks. All seem idle, and one is to take part.
//! - `termination_a_resumed_worker_is_missed`: two idle workers beside a task, which creates
//!   another. One takes the task, the other finds nothing and declares the pool done.
//! - `termination_meets_a_leaving_worker`: a worker that leaves, a worker that closes the pool and
//!   becomes idle. Neither sees that the other must be woken.
//!
//! In all but the first no worker sleeps: `light` and `heavy`, which are fences in a model, would
//! make up for an ordering that is missing. Every model prints `model NAME: N executions`.

use stanchion_competitive::EventCount;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until};
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};
use stanchion_threadpool_loom::__internal::{AllIdle, Termination};

/// A closed pool, as `Registry::is_over` uses its parts.
struct Pool {
    /// The number of ready tasks. A worker takes from it, and adds to it when its task creates
    /// another.
    ready: AtomicUsize,
    /// The number of tasks that have run. The worker that runs one adds one.
    run: AtomicUsize,
    /// The protocol that is tested. Each worker writes it.
    termination: Termination,
    /// The event count on which idle workers sleep. The creator of a task notifies it, and so does
    /// the worker that declares the pool done.
    events: EventCount,
}

impl Pool {
    /// Two threads, and so many tasks.
    fn new(ready: usize) -> Arc<Self> {
        let pool = Self {
            ready: AtomicUsize::fresh(ready),
            run: AtomicUsize::fresh(0),
            termination: Termination::new(),
            events: EventCount::new(),
        };
        (0..2).for_each(|_| pool.termination.register());
        pool.termination.close();
        Arc::new(pool)
    }

    fn take(&self) -> bool {
        let took = |ready: usize| ready.checked_sub(1);
        self.ready.fetch_update(Relaxed, Relaxed, took).is_ok()
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Relaxed) > 0
    }

    fn drain(&self, mut creates: usize) {
        loop {
            if self.take() {
                self.run.fetch_add(1, Relaxed);
                if creates > 0 {
                    creates -= 1;
                    self.ready.fetch_add(1, Relaxed);
                    self.events.notify_one();
                }
            } else if self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.termination.set_idle();
        loop {
            let rested = self.termination.all_idle();
            if self.is_ready() {
                self.termination.set_busy();
                return false;
            }
            match rested {
                Some(rested) if self.termination.declare_done(rested) => {
                    self.events.notify_all();
                    return true;
                }
                Some(_) => {}
                None => {
                    let key = self.events.prepare();
                    if self.is_ready() || self.termination.all_idle().is_some() {
                        self.events.cancel(key);
                    } else {
                        self.events.wait(key);
                    }
                }
            }
        }
    }

    /// Waits until all are idle.
    fn wait_until_all_idle(&self) -> AllIdle {
        retry_until(|| self.termination.all_idle(), &mut <Patient>::start())
    }
}

#[test]
fn termination_two_idle_workers_bounded() {
    explore("termination_two_idle_workers_bounded", Model::new().preemptions(2), || {
        let pool = Pool::new(1);
        let other = beside(&pool, |pool| pool.drain(1));
        pool.drain(0);
        // No worker leaves before the pool is done. The number of runs depends on which worker took
        // the first task: one of the two creates another.
        assert!(!pool.is_ready());
        let run = pool.run.load(Relaxed);
        assert!(run >= 1);
        other.join().unwrap();
        assert_eq!(pool.run.load(Relaxed), run, "a task ran after all was over");
    });
}

#[test]
fn termination_an_idle_worker_left_a_task() {
    explore("termination_an_idle_worker_left_a_task", Model::new(), || {
        let pool = Pool::new(0);
        let other = beside(&pool, |pool| {
            pool.ready.fetch_add(1, Relaxed);
            pool.termination.set_idle();
        });
        pool.termination.set_idle();
        pool.wait_until_all_idle();
        assert!(pool.is_ready());
        other.join().unwrap();
    });
}

#[test]
fn termination_a_leaving_worker_left_a_task() {
    explore("termination_a_leaving_worker_left_a_task", Model::new(), || {
        let pool = Pool::new(0);
        let other = beside(&pool, |pool| {
            pool.ready.fetch_add(1, Relaxed);
            assert!(pool.termination.deregister(), "the pool is closed");
        });
        pool.termination.set_idle();
        pool.wait_until_all_idle();
        assert!(pool.is_ready());
        other.join().unwrap();
    });
}

#[test]
fn termination_a_spare_is_registered() {
    explore("termination_a_spare_is_registered", Model::new(), || {
        let pool = Pool::new(0);
        let other = beside(&pool, |pool| {
            pool.termination.register();
            pool.termination.set_idle();
        });
        pool.termination.set_idle();
        assert!(pool.termination.all_idle().is_none(), "the spare has not come to rest");
        other.join().unwrap();
        pool.termination.set_idle();
        assert!(pool.termination.all_idle().is_some());
    });
}

#[test]
fn termination_a_resumed_worker_is_missed() {
    explore("termination_a_resumed_worker_is_missed", Model::new(), || {
        let pool = Pool::new(1);
        let other = beside(&pool, |pool| {
            pool.termination.set_idle();
            pool.termination.set_busy();
            assert!(pool.take());
            assert!(!pool.termination.is_done(), "it was over while a task ran");
            pool.ready.fetch_add(1, Relaxed);
            pool.termination.set_idle();
        });
        pool.termination.set_idle();
        let rested = pool.termination.all_idle();
        let over =
            rested.is_some_and(|rested| !pool.is_ready() && pool.termination.declare_done(rested));
        assert!(!over, "a task was ready, or ran");
        other.join().unwrap();
        pool.termination.set_busy();
        assert!(pool.take());
        pool.termination.set_idle();
        assert!(
            pool.termination.declare_done(pool.wait_until_all_idle()) && pool.termination.is_done()
        );
    });
}

#[test]
fn termination_meets_a_leaving_worker() {
    explore("termination_meets_a_leaving_worker", Model::new(), || {
        let termination = Arc::new(Termination::new());
        (0..2).for_each(|_| termination.register());
        let told = {
            let termination = termination.clone();
            thread::spawn(move || termination.deregister())
        };
        termination.close();
        termination.set_idle();
        let all_idle = termination.all_idle().is_some();
        assert!(told.join().unwrap() || all_idle, "the last idle worker is not woken");
        assert!(termination.all_idle().is_some());
    });
}
