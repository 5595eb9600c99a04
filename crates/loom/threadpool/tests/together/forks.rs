//! Models of a worker's fork stack: its owner pushes and pops, thieves take the oldest.
//!
//! Each fork is a checked cell. The thread that runs it writes it, the owner or a thief. So a fork
//! that two threads run is a race in its cell, and one that no thread runs fails the count.
//!
//! Each line names a model, its threads, and the error that it would show.
//!
//! - `forks_a_thief_and_the_last_fork`: the owner of one fork, a thief. Both run it, or neither.
//! - `forks_pushed_again`: an owner that pops and pushes another fork, a thief. The claim of the
//!   first fork takes the second, which the owner runs.
//! - `forks_told_beside_a_late_thief_bounded`: an owner that pops, pushes and counts, a thief. The
//!   owner counts none and the thief gets none, so no idle worker is woken.
//! - `forks_two_and_a_thief_bounded`: the owner of two forks inside each other, a thief. The newer
//!   one is stolen before the older one; as above.
//! - `forks_two_thieves_bounded`: the owner of two forks, two thieves. Both thieves run one.
//! - `forks_grow_bounded`: an owner that gets new slots, a thief. The thief reads a slot that was
//!   not copied.
//! - `forks_a_sleeper_sees_a_fork`: an owner that pushes and notifies, a worker that goes to sleep.
//!   It sleeps beside the fork.
//! - `forks_a_sleeper_beside_a_thief_bounded`: an owner of two forks, a thief, a worker that goes
//!   to sleep. It sleeps beside the second fork, as the thief was at the stack.
//!
//! All but the last run a second time, with `_fenced` behind the name, for a stack that does not
//! rely on the kernel's barrier. Every model prints `model NAME: N executions`.

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering::Acquire, Ordering::Release};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};
use stanchion_threadpool_loom::__internal::{ForkStack, Sleep};

/// A fork of these models: it counts its runs.
struct Part {
    /// The number of runs. The thread that runs the fork adds one: the owner or a thief.
    runs: UnsafeCell<u32>,
    /// Set by a thief that has run it.
    done: AtomicUsize,
}

// SAFETY: the models check the cell.
unsafe impl Sync for Part {}

impl Part {
    fn new() -> Self {
        Self { runs: UnsafeCell::fresh(0), done: AtomicUsize::fresh(0) }
    }

    fn run(&self) {
        // SAFETY: one thread runs it: the models check that.
        self.runs.with_mut(|runs| unsafe { *runs += 1 });
    }
}

/// Takes a fork and runs it. Says whether there was one.
fn steal(forks: &ForkStack<Part>, thief: usize) -> bool {
    let Some(fork) = forks.steal(thief) else { return false };
    // SAFETY: parts live as long as the model.
    let part = unsafe { &*fork };
    part.run();
    part.done.store(1, Release);
    true
}

/// Pushes a part, does `first`, and pops the part. Runs it, or waits for its thief.
fn fork(forks: &ForkStack<Part>, part: &Part, first: impl FnOnce()) {
    // SAFETY: the owner's thread; the part lives as long as the model.
    let at = unsafe { forks.push(part) };
    first();
    // SAFETY: as above.
    if unsafe { forks.pop(at) } {
        part.run();
    } else {
        while part.done.load(Acquire) == 0 {
            thread::yield_now();
        }
    }
    // SAFETY: this thread or the thief has run it.
    part.runs.with(|runs| assert_eq!(unsafe { *runs }, 1));
}

/// A stack, forks for it, and a count of idle workers.
struct Pool {
    /// The stack that is tested. Its owner pushes and pops, and thieves steal.
    forks: ForkStack<Part>,
    /// The forks that the owner pushes.
    parts: [Part; 3],
    /// The sleep protocol of the pool. Idle workers announce themselves there, and the owner
    /// notifies.
    sleep: Sleep,
}

impl Pool {
    /// `relies`: on the barrier.
    fn new(relies: bool) -> Arc<Self> {
        let forks = ForkStack::new();
        if relies {
            forks.rely();
        }
        let parts = [(); 3].map(|()| Part::new());
        Arc::new(Self { forks, parts, sleep: Sleep::new() })
    }

    fn fork(&self, part: usize, first: impl FnOnce()) {
        fork(&self.forks, &self.parts[part], first);
    }

    /// As a worker does: after the push it looks for idle workers.
    fn tell(&self) {
        if self.sleep.is_watched() {
            self.sleep.notify(self.forks.ready());
        }
    }

    /// A worker that looks for a fork until it has run one.
    fn search(&self, thief: usize) {
        self.sleep.start_searching();
        while !steal(&self.forks, thief) {
            self.sleep.sleep(thief, None, |_| self.forks.ready_after_barrier() > 0);
            // Another thief may be at the stack: until it is gone this one does not sleep.
            thread::yield_now();
        }
        self.sleep.stop_searching(|| self.forks.ready_after_barrier() > 0);
    }
}

fn both(name: &str, model: impl Fn() -> Model, body: fn(bool)) {
    explore(name, model(), move || body(true));
    explore(&format!("{name}_fenced"), model(), move || body(false));
}

#[test]
fn forks_a_thief_and_the_last_fork() {
    both("forks_a_thief_and_the_last_fork", Model::new, |relies| {
        let pool = Pool::new(relies);
        let thief = beside(&pool, |pool| steal(&pool.forks, 0));
        pool.fork(0, || ());
        thief.join().unwrap();
    });
}

#[test]
fn forks_pushed_again() {
    both(
        "forks_pushed_again",
        || Model::new().preemptions(3),
        |relies| {
            let pool = Pool::new(relies);
            let thief = beside(&pool, |pool| steal(&pool.forks, 0));
            pool.fork(0, || ());
            pool.fork(1, || ());
            thief.join().unwrap();
        },
    );
}

#[test]
fn forks_told_beside_a_late_thief_bounded() {
    both(
        "forks_told_beside_a_late_thief_bounded",
        || Model::new().preemptions(3),
        |relies| {
            let pool = Pool::new(relies);
            let thief = beside(&pool, |pool| steal(&pool.forks, 0));
            pool.fork(0, || ());
            let mut counted = 0;
            pool.fork(1, || {
                counted = pool.forks.ready();
            });
            let has_stolen = thief.join().unwrap();
            assert!(counted > 0 || has_stolen, "a fork that no thread minds");
        },
    );
}

#[test]
fn forks_two_and_a_thief_bounded() {
    both(
        "forks_two_and_a_thief_bounded",
        || Model::new().preemptions(2),
        |relies| {
            let pool = Pool::new(relies);
            let thief = beside(&pool, |pool| {
                for _ in 0..2 {
                    steal(&pool.forks, 0);
                }
            });
            pool.fork(0, || pool.fork(1, || ()));
            thief.join().unwrap();
        },
    );
}

#[test]
fn forks_two_thieves_bounded() {
    both(
        "forks_two_thieves_bounded",
        || Model::new().preemptions(1),
        |relies| {
            let pool = Pool::new(relies);
            let thieves =
                [0, 1].map(|number| beside(&pool, move |pool| steal(&pool.forks, number)));
            pool.fork(0, || pool.fork(1, || ()));
            for thief in thieves {
                thief.join().unwrap();
            }
        },
    );
}

#[test]
fn forks_grow_bounded() {
    both(
        "forks_grow_bounded",
        || Model::new().preemptions(2),
        |relies| {
            let pool = Pool::new(relies);
            let thief = beside(&pool, |pool| {
                steal(&pool.forks, 0);
                steal(&pool.forks, 0);
            });
            // The first buffer has two slots under loom.
            pool.fork(0, || pool.fork(1, || pool.fork(2, || ())));
            thief.join().unwrap();
        },
    );
}

/// The first half waits until another worker has run the second: if that sleeps on, all are stuck.
#[test]
fn forks_a_sleeper_sees_a_fork() {
    both(
        "forks_a_sleeper_sees_a_fork",
        || Model::new().preemptions(3),
        |relies| {
            let pool = Pool::new(relies);
            let worker = beside(&pool, |pool| pool.search(0));
            pool.fork(0, || {
                pool.tell();
                while pool.parts[0].done.load(Acquire) == 0 {
                    thread::yield_now();
                }
            });
            worker.join().unwrap();
        },
    );
}

/// The thief runs the first fork for ever, as far as the worker that goes to sleep is concerned.
#[test]
fn forks_a_sleeper_beside_a_thief_bounded() {
    let model = Model::new().preemptions(1).choices(1);
    explore("forks_a_sleeper_beside_a_thief_bounded", model, || {
        let pool = Pool::new(true);
        let workers = [0, 1].map(|number| beside(&pool, move |pool| pool.search(number)));
        pool.fork(0, || {
            pool.tell();
            pool.fork(1, || {
                pool.tell();
                while pool.parts[1].done.load(Acquire) == 0 {
                    thread::yield_now();
                }
            });
            while pool.parts[0].done.load(Acquire) == 0 {
                thread::yield_now();
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
    });
}
