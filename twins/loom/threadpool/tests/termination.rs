//! Models of how a closed pool finds out that all is over.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `closing_two_that_rest_bounded` | two workers of a closed pool, one with a last task | one leaves while the other may create a task; both sleep |
//! | `closing_who_rests_left_something` | a worker that makes a task ready and rests, one that looks | all seem to rest, and the task is not seen |
//! | `closing_who_leaves_left_something` | a worker that makes a task ready and leaves, one that looks | the same |
//! | `closing_a_spare_is_enlisted` | a worker that enlists another and rests, one that looks | all seem to rest, and one is to take part |
//! | `closing_who_goes_on_is_missed` | two that rest beside a task, which creates another | one takes it, the other finds nothing and says that all is over |
//! | `closing_meets_who_leaves` | a worker that leaves, who closes the pool and rests | neither sees that the other must be told |
//!
//! But for the first nobody sleeps in these: `light` and `heavy`, which are fences in a model, would make up for an ordering that is missing.
//! Every model prints `model NAME: N executions`.

use machine::atomic::{AtomicUsize, Fresh, Ordering::Relaxed};
use machine::sync::Arc;
use machine::wait::{Patient, WaitPolicy, retry_until};
use machine::{Model, thread};
use stanchion_competitive::EventCount;
use stanchion_threadpool_loom::__internal::{AllIdle, Termination};

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A closed pool, as `Registry::is_over` uses its parts.
struct Pool {
    ready: AtomicUsize,
    run: AtomicUsize,
    termination: Termination,
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

    /// Waits until all rest.
    fn wait_for_rest(&self) -> AllIdle {
        retry_until(|| self.termination.all_idle(), &mut <Patient>::start())
    }
}

fn beside(pool: &Arc<Pool>, body: impl FnOnce(&Pool) + Send + 'static) -> thread::JoinHandle<()> {
    let pool = pool.clone();
    thread::spawn(move || body(&pool))
}

#[test]
fn closing_two_that_rest_bounded() {
    explore("closing_two_that_rest_bounded", Model::new().preemptions(2), || {
        let pool = Pool::new(1);
        let other = beside(&pool, |pool| pool.drain(1));
        pool.drain(0);
        // Nobody leaves before all is over. How many have run depends on who took the first: one of the two creates another.
        assert!(!pool.is_ready());
        let run = pool.run.load(Relaxed);
        assert!(run >= 1);
        other.join().unwrap();
        assert_eq!(pool.run.load(Relaxed), run, "a task ran after all was over");
    });
}

#[test]
fn closing_who_rests_left_something() {
    explore("closing_who_rests_left_something", Model::new(), || {
        let pool = Pool::new(0);
        let other = beside(&pool, |pool| {
            pool.ready.fetch_add(1, Relaxed);
            pool.termination.set_idle();
        });
        pool.termination.set_idle();
        pool.wait_for_rest();
        assert!(pool.is_ready());
        other.join().unwrap();
    });
}

#[test]
fn closing_who_leaves_left_something() {
    explore("closing_who_leaves_left_something", Model::new(), || {
        let pool = Pool::new(0);
        let other = beside(&pool, |pool| {
            pool.ready.fetch_add(1, Relaxed);
            assert!(pool.termination.deregister(), "the pool is closed");
        });
        pool.termination.set_idle();
        pool.wait_for_rest();
        assert!(pool.is_ready());
        other.join().unwrap();
    });
}

#[test]
fn closing_a_spare_is_enlisted() {
    explore("closing_a_spare_is_enlisted", Model::new(), || {
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
fn closing_who_goes_on_is_missed() {
    explore("closing_who_goes_on_is_missed", Model::new(), || {
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
        assert!(pool.termination.declare_done(pool.wait_for_rest()) && pool.termination.is_done());
    });
}

#[test]
fn closing_meets_who_leaves() {
    explore("closing_meets_who_leaves", Model::new(), || {
        let termination = Arc::new(Termination::new());
        (0..2).for_each(|_| termination.register());
        let told = {
            let termination = termination.clone();
            thread::spawn(move || termination.deregister())
        };
        termination.close();
        termination.set_idle();
        let all_idle = termination.all_idle().is_some();
        assert!(told.join().unwrap() || all_idle, "who rests is not told that he is the last");
        assert!(termination.all_idle().is_some());
    });
}
