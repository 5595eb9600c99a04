//! Models of how idle workers sleep: a worker that would sleep for ever beside a task is reported
//! as a deadlock.
//!
//! The sources of work are counts here, Relaxed on purpose: the protocol of `SLEEPING.md` must make
//! up for it.
//!
//! Each line names a model, its threads, and the error that it would show.
//!
//! - `sleeping_a_task_is_found`: a producer, a worker. It sleeps beside the task.
//! - `sleeping_a_search_ends_for_a_signal`: a producer, a worker with a signal. The signal is
//!   missed.
//! - `sleeping_two_tasks_bounded`: a producer of two, a worker. The second task is missed.
//! - `sleeping_a_burst_wakes_both_bounded`: a producer of two, two workers that take one and leave.
//!   The second sleeps on.
//! - `sleeping_a_named_sleeper_bounded`: a producer, a worker, one that waits for something else.
//!   The wake-up goes to the one that the task does not concern.
//! - `sleeping_a_worker_told_by_name_bounded`: a producer, two workers, one signalled by index to
//!   stop. The claim goes with the one that stops.
//! - `sleeping_a_lone_task_is_found`: a producer that says that its task is alone, a worker. It
//!   sleeps beside the task.
//! - `sleeping_a_dozing_worker_is_woken_bounded`: a producer of one that is alone and one more, a
//!   worker that dozes. The second does not wake it.
//! - `sleeping_the_last_searcher_wakes_bounded`: a producer of two that notifies for one, two
//!   workers. The second task lies while a worker sleeps.
//! - `sleeping_the_last_searcher_looks_twice_bounded`: a producer that sees a worker search, that
//!   worker, which stops to search, a worker that sleeps. The task lies while it sleeps.
//! - `sleeping_a_searcher_keeps_a_task`: a worker that has moved a task into its own queue and
//!   stops to search, a worker that goes to sleep. It sleeps beside the task.
//! - `sleeping_the_monitor_off_duty`: a producer, the monitor. It sleeps beside the task.
//! - `sleeping_a_task_that_moves`: a worker that moves two tasks from one queue to another and runs
//!   one, a worker. It slept while both were in no queue.
//!
//! The four models that have more than 70,000 executions without a bound are explored so only by
//! `cargo xtask loom --whole`. `cargo test` explores them with 5 preemptions. Every model prints
//! `model NAME: N executions`.

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{brief, explore};
use stanchion_threadpool_loom::__internal::{LastCheck, Monitor, Sleep};

/// A queue with tasks, and the signal of one of the workers.
struct Pool {
    /// The number of ready tasks. A producer adds to it, and a worker takes from it.
    ready: AtomicUsize,
    /// 1 once a worker has its signal. The signalling thread writes it.
    order: AtomicUsize,
    /// The protocol that is tested. All threads write it.
    sleep: Sleep,
}

impl Pool {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            ready: AtomicUsize::fresh(0),
            order: AtomicUsize::fresh(0),
            sleep: Sleep::new(),
        })
    }

    /// A producer's (a) to (d).
    fn create(&self) -> usize {
        let ready = self.ready.fetch_add(1, Relaxed) + 1;
        self.sleep.notify(ready)
    }

    fn take(&self) -> bool {
        self.ready.fetch_update(Relaxed, Relaxed, |ready| ready.checked_sub(1)).is_ok()
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Relaxed) > 0
    }

    /// A worker that runs one task, however long it takes to come. Then it is busy for ever, so it
    /// takes none of the tasks that it leaves.
    fn work(&self, index: usize) {
        self.sleep.start_searching();
        while !self.take() {
            self.sleep.sleep(index, None, |_| self.is_ready());
        }
        self.sleep.stop_searching(|| self.is_ready());
    }

    /// [`create`](Self::create), for a task that is alone.
    fn create_lone(&self) {
        self.ready.fetch_add(1, Relaxed);
        self.sleep.notify_lone();
    }

    /// [`work`](Self::work), for a worker that has come in vain: it minds a task that is alone only
    /// when it comes back by itself.
    fn work_dozing(&self, index: usize) {
        self.sleep.start_searching();
        while !self.take() {
            self.sleep.sleep(index, Some(1_000), |looks| match looks {
                LastCheck::All => self.is_ready(),
                LastCheck::SkipLone => self.ready.load(Relaxed) > 1,
            });
        }
        self.sleep.stop_searching(|| self.is_ready());
    }

    /// A worker that leaves when it is signalled to, and may run a task before.
    fn work_until_told(&self, index: usize) {
        self.sleep.start_searching();
        let told = || self.order.load(Relaxed) != 0;
        while !told() && !self.take() {
            self.sleep.sleep(index, None, |_| self.is_ready() || told());
        }
        self.sleep.stop_searching(|| self.is_ready());
    }

    fn notify_worker(&self, index: usize) {
        self.order.store(1, Relaxed);
        self.sleep.notify_worker(index);
    }

    /// A worker that waits for one thing and runs nothing.
    fn wait_apart(&self, index: usize) {
        while self.order.load(Relaxed) == 0 {
            self.sleep.sleep_until_named(index, || self.order.load(Relaxed) == 0);
        }
    }

    fn is_quiet(&self) -> bool {
        !self.sleep.is_watched()
    }
}

fn spawn(pool: &Arc<Pool>, body: impl FnOnce(&Pool) + Send + 'static) -> thread::JoinHandle<()> {
    let pool = pool.clone();
    thread::spawn(move || body(&pool))
}

#[test]
fn sleeping_a_task_is_found() {
    let model = brief::bounded(Model::new(), 5, None);
    explore("sleeping_a_task_is_found", model, || {
        let pool = Pool::new();
        let worker = spawn(&pool, |pool| pool.work(0));
        pool.create();
        worker.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_a_lone_task_is_found() {
    let model = brief::bounded(Model::new(), 5, None);
    explore("sleeping_a_lone_task_is_found", model, || {
        let pool = Pool::new();
        let worker = spawn(&pool, |pool| pool.work(0));
        pool.create_lone();
        worker.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_a_dozing_worker_is_woken_bounded() {
    explore("sleeping_a_dozing_worker_is_woken_bounded", Model::new().preemptions(2), || {
        let pool = Pool::new();
        let worker = spawn(&pool, |pool| pool.work_dozing(0));
        pool.create_lone();
        pool.create();
        worker.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_a_search_ends_for_a_signal() {
    explore("sleeping_a_search_ends_for_a_signal", Model::new(), || {
        let pool = Pool::new();
        let worker = spawn(&pool, |pool| pool.work_until_told(3));
        pool.notify_worker(3);
        worker.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_apart_until_told() {
    explore("sleeping_apart_until_told", Model::new(), || {
        let pool = Pool::new();
        let worker = spawn(&pool, |pool| pool.wait_apart(3));
        pool.notify_worker(3);
        worker.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_two_tasks_bounded() {
    explore("sleeping_two_tasks_bounded", Model::new().preemptions(2), || {
        let pool = Pool::new();
        let worker = spawn(&pool, |pool| (0..2).for_each(|_| pool.work(0)));
        for _ in 0..2 {
            pool.create();
        }
        worker.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_a_burst_wakes_both_bounded() {
    explore("sleeping_a_burst_wakes_both_bounded", Model::new().preemptions(1), || {
        let pool = Pool::new();
        let workers = [spawn(&pool, |pool| pool.work(0)), spawn(&pool, |pool| pool.work(1))];
        for _ in 0..2 {
            pool.create();
        }
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(pool.is_quiet());
    });
}

/// Both tasks are made ready before any worker is notified, and the producer notifies for one. The
/// searcher that finds the first wakes a worker for the second.
#[test]
fn sleeping_the_last_searcher_wakes_bounded() {
    explore("sleeping_the_last_searcher_wakes_bounded", Model::new().preemptions(1), || {
        let pool = Pool::new();
        let workers = [spawn(&pool, |pool| pool.work(0)), spawn(&pool, |pool| pool.work(1))];
        pool.ready.fetch_add(2, Relaxed);
        pool.sleep.notify(1);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_a_named_sleeper_bounded() {
    explore("sleeping_a_named_sleeper_bounded", Model::new().preemptions(2), || {
        let pool = Pool::new();
        let apart = spawn(&pool, |pool| pool.wait_apart(0));
        let worker = spawn(&pool, |pool| pool.work(1));
        pool.create();
        worker.join().unwrap();
        pool.notify_worker(0);
        apart.join().unwrap();
        assert!(pool.is_quiet());
    });
}

#[test]
fn sleeping_a_worker_told_by_name_bounded() {
    explore("sleeping_a_worker_told_by_name_bounded", Model::new().preemptions(1), || {
        let pool = Pool::new();
        let leaves = spawn(&pool, |pool| pool.work_until_told(0));
        let works = spawn(&pool, |pool| pool.work(1));
        pool.create();
        pool.notify_worker(0);
        leaves.join().unwrap();
        // The worker that left may have run the task: then here is another.
        if pool.ready.load(Relaxed) == 0 {
            pool.create();
        }
        works.join().unwrap();
    });
}

/// The tasks are ready from the start: their creator has notified before the worker searched.
/// One thread takes both, keeps one and is busy for ever.
#[test]
fn sleeping_a_task_that_moves() {
    let model = brief::bounded(Model::new(), 5, None);
    explore("sleeping_a_task_that_moves", model, || {
        let pool = Pool::new();
        pool.ready.fetch_add(2, Relaxed);
        let kept = Arc::new(AtomicUsize::fresh(0));
        let worker = {
            let (pool, kept) = (pool.clone(), kept.clone());
            let is_ready = move |pool: &Pool| pool.is_ready() || kept.load(Relaxed) > 0;
            thread::spawn(move || {
                pool.sleep.start_searching();
                while !is_ready(&pool) {
                    pool.sleep.sleep(0, None, |_| is_ready(&pool));
                }
                pool.sleep.stop_searching(|| false);
            })
        };
        pool.ready.fetch_sub(2, Relaxed);
        kept.store(1, Relaxed);
        pool.sleep.notify(1);
        worker.join().unwrap();
    });
}

/// The searcher that stops has found something else and is busy for ever. The producer counts on it
/// if it still sees it search.
#[test]
fn sleeping_the_last_searcher_looks_twice_bounded() {
    let model = Model::new().preemptions(2);
    explore("sleeping_the_last_searcher_looks_twice_bounded", model, || {
        let pool = Pool::new();
        pool.sleep.start_searching();
        let stops = spawn(&pool, |pool| {
            pool.sleep.stop_searching(|| pool.is_ready());
        });
        let creates = spawn(&pool, |pool| {
            pool.create();
        });
        pool.work(0);
        stops.join().unwrap();
        creates.join().unwrap();
        assert!(pool.is_quiet());
    });
}

/// Both workers search from the start. One moves a task into its own queue, where only it and
/// thieves look, and no producer notifies.
#[test]
fn sleeping_a_searcher_keeps_a_task() {
    let model = brief::bounded(Model::new(), 5, None);
    explore("sleeping_a_searcher_keeps_a_task", model, || {
        let pool = Pool::new();
        pool.sleep.start_searching();
        pool.sleep.start_searching();
        let looks = spawn(&pool, |pool| {
            pool.sleep.sleep(0, None, |_| pool.is_ready());
        });
        pool.ready.store(1, Relaxed);
        pool.sleep.stop_searching(|| true);
        looks.join().unwrap();
    });
}

#[test]
fn sleeping_the_monitor_off_duty() {
    explore("sleeping_the_monitor_off_duty", Model::new(), || {
        let pool = Pool::new();
        let monitor = Arc::new(Monitor::new());
        let creates = {
            let (pool, monitor) = (pool.clone(), monitor.clone());
            thread::spawn(move || {
                pool.ready.fetch_add(1, Relaxed);
                monitor.notify_work();
            })
        };
        monitor.go_off_duty(&pool.sleep, || pool.is_ready(), || pool.is_ready());
        creates.join().unwrap();
    });
}
