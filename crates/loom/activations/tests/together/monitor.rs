//! Models of the monitor: it does not sleep beside work that only it would notice, and it ends.
//!
//! - `monitor_sees_ready_work`. Threads: the monitor, one that makes work ready while the one
//!   worker is blocked. Failure it looks for: the worker's slot is never taken.
//! - `monitor_sees_ready_work_when_it_leaves`. Threads: the same, where the workers were armed for
//!   other work before. Failure it looks for: each of the two leaves it to the other.
//! - `monitor_sees_work_after_its_looks_bounded`. Threads: the same, where another worker takes the
//!   first item. Failure it looks for: the monitor sleeps and has passed over the blocked worker.
//! - `monitor_ends_with_its_runtime`. Threads: the monitor, one that ends the runtime. Failure it
//!   looks for: it sleeps for ever.
//! - `monitor_beside_a_sleeping_worker_bounded`. Threads: the monitor, a worker that goes to sleep
//!   on its slot, one that makes work ready. Failure it looks for: all sleep beside it.
//!
//! The monitor's loop is the crate's, with its watch state, the parkers and the overcommitted
//! slots. The rest of the runtime is the model's: a worker is blocked or not, a slot that can be
//! taken is taken at once, and the taker does the ready work. Loom's watch reports no switch that
//! comes while the monitor sleeps. So the models explore the threads that wake the monitor, not
//! the kernel. Nor does loom's clock move, so the rounds in which the monitor polls are not
//! modelled. Every model prints `model NAME: N executions`.

use std::sync::Arc;

use stanchion_activations_loom::__internal::{
    Found, Monitor, Monitored, MonitoredRuntime, MonitoredWorker, Overcommit, ParkedSlots,
    ensure_watched, run_monitor,
};
use stanchion_machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::presence::Presence;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A worker that blocks in its thread, or never does.
struct Worker {
    /// True if a look at the worker finds it blocked. Never written.
    is_blocked: bool,
}

impl MonitoredWorker for Worker {
    fn presence_index(&self) -> Option<usize> {
        Some(0)
    }

    fn presence(&self) -> Presence {
        if self.is_blocked { Presence::Blocked } else { Presence::Running }
    }

    fn is_blocked(&self) -> bool {
        self.is_blocked
    }
}

/// A runtime with workers that own the slots of their numbers, and work that is to be done, once or
/// twice.
struct Runtime {
    /// The workers, each with the slot of its number.
    workers: [Worker; 2],
    /// The parkers of the slots. A worker announces its sleep there, and a maker of work wakes it.
    parked: ParkedSlots,
    /// The overcommitted slots. The monitor limits their number.
    overcommit: Overcommit,
    /// The monitor's state, which is tested. All threads write it.
    monitor: Monitor,
    /// The items of work that are ready.
    ready: AtomicU32,
    /// The items that were done.
    done: AtomicU32,
    /// The items that are to be done in all.
    all: u32,
    /// The payload of each item.
    work: [UnsafeCell<u32>; 2],
    /// Set by the thread that ends the runtime.
    is_over: AtomicBool,
}

// SAFETY: `work` is written before it is ready, and read by its taker. The models check that.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

impl Runtime {
    fn new(is_blocked: bool, all: u32) -> Arc<Self> {
        Arc::new(Self {
            workers: [is_blocked; 2].map(|is_blocked| Worker { is_blocked }),
            parked: ParkedSlots::new(1),
            overcommit: Overcommit::new(1, 1),
            monitor: Monitor::new(true),
            ready: AtomicU32::fresh(0),
            done: AtomicU32::fresh(0),
            all,
            work: [UnsafeCell::new(0), UnsafeCell::new(0)],
            is_over: AtomicBool::fresh(false),
        })
    }

    /// Makes work ready and wakes no thread, as where a worker that runs will find it.
    fn put(&self, item: usize) {
        // SAFETY: it is not ready yet.
        self.work[item].with_mut(|work| unsafe { *work = 7 });
        // Release: as the lock of a queue.
        self.ready.fetch_add(1, Ordering::Release);
    }

    /// Makes work ready as `RuntimeState::wake` does.
    fn make_ready(&self, item: usize) {
        self.put(item);
        if self.parked.wake(1, false) == 0 {
            ensure_watched(self);
        }
    }

    /// Does an item that is ready. Returns whether there was one. The last one ends the runtime.
    fn take(&self) -> bool {
        let less = |ready: u32| ready.checked_sub(1);
        // AcqRel: as the lock of a queue.
        let taken = self.ready.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_ok();
        if taken {
            let item = self.done.fetch_add(1, Ordering::Relaxed);
            // SAFETY: taken, in the order in which they were made.
            self.work[item as usize].with(|work| assert_eq!(unsafe { *work }, 7));
            self.is_over.store(item + 1 == self.all, Ordering::Relaxed);
        }
        taken
    }

    /// Ends the runtime as `RuntimeState::end_if_done` does.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.monitor.wake();
    }
}

impl Monitored for Runtime {
    type Worker = Worker;

    fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn owner_of(&self, slot: usize) -> &Worker {
        &self.workers[slot]
    }

    fn slots_in_use(&self) -> impl Iterator<Item = usize> {
        (0..1).chain(self.overcommit.open_slots())
    }

    fn is_overcommitted(&self) -> bool {
        self.overcommit.is_any_open()
    }
}

impl MonitoredRuntime for Runtime {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn has_work(&self) -> bool {
        self.ready.load(Ordering::Relaxed) > 0
    }

    fn is_time(&self) -> bool {
        false
    }

    fn is_time_unwatched(&self) -> bool {
        false
    }

    fn timer_deadline(&self, _for_times: bool) -> Deadline {
        Deadline::NEVER
    }

    /// One processor.
    fn allowed(&self) -> usize {
        1
    }

    fn overcommit(&self) -> &Overcommit {
        &self.overcommit
    }

    fn lacks_runners(&self) -> bool {
        self.slots_in_use().all(|slot| self.workers[slot].is_blocked)
    }

    fn look_at(self: &Arc<Self>, slot: usize) -> Found {
        self.examine(slot)
    }

    fn examine(self: &Arc<Self>, slot: usize) -> Found {
        if !self.workers[slot].is_blocked {
            Found::Fine
        } else if self.take() {
            Found::Taken
        } else {
            Found::Unneeded
        }
    }

    fn no_work(&self) {}
}

fn beside(runtime: &Arc<Runtime>, body: fn(&Arc<Runtime>)) -> thread::JoinHandle<()> {
    let runtime = runtime.clone();
    thread::spawn(move || body(&runtime))
}

#[test]
fn monitor_sees_ready_work() {
    explore("monitor_sees_ready_work", Model::new().choices(0), || {
        let runtime = Runtime::new(true, 1);
        let monitor = beside(&runtime, run_monitor);
        runtime.make_ready(0);
        monitor.join().expect("no panic");
    });
}

/// The second item may find the workers armed because of the first.
#[test]
fn monitor_sees_ready_work_when_it_leaves() {
    explore("monitor_sees_ready_work_when_it_leaves", Model::new().choices(0), || {
        let runtime = Runtime::new(true, 2);
        runtime.make_ready(0);
        let monitor = beside(&runtime, run_monitor);
        runtime.make_ready(1);
        monitor.join().expect("no panic");
    });
}

/// The monitor looks because of the first item, which a running worker takes meanwhile. The second
/// becomes ready afterwards, and only the monitor can see that its worker is blocked.
#[test]
fn monitor_sees_work_after_its_looks_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("monitor_sees_work_after_its_looks_bounded", model, || {
        let runtime = Runtime::new(true, 2);
        runtime.put(0);
        let monitor = beside(&runtime, run_monitor);
        runtime.take();
        runtime.make_ready(1);
        monitor.join().expect("no panic");
    });
}

#[test]
fn monitor_ends_with_its_runtime() {
    explore("monitor_ends_with_its_runtime", Model::new(), || {
        let runtime = Runtime::new(false, 0);
        let monitor = beside(&runtime, run_monitor);
        runtime.end();
        monitor.join().expect("no panic");
    });
}

/// Rests as a worker does that has found nothing.
fn run_worker(runtime: &Arc<Runtime>) {
    loop {
        runtime.parked.announce(0, false);
        runtime.monitor.worker_pauses(&runtime.workers[0]);
        if runtime.has_work() {
            runtime.parked.retract(0);
        } else {
            runtime.parked.sleep(0, Deadline::NEVER);
        }
        runtime.monitor.worker_begins(&runtime.workers[0]);
        if runtime.take() {
            return runtime.end();
        }
    }
}

#[test]
fn monitor_beside_a_sleeping_worker_bounded() {
    let model = Model::new().choices(0).preemptions(2);
    explore("monitor_beside_a_sleeping_worker_bounded", model, || {
        let runtime = Runtime::new(false, 1);
        let others = [beside(&runtime, run_monitor), beside(&runtime, run_worker)];
        runtime.make_ready(0);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
    });
}
