//! Models of [`Runtime::stalled`](stanchion_activations_loom::Runtime::stalled): it reports threads
//! that wait only if none can go on.
//!
//! - `stall_when_all_have_parked`. Threads: a worker with a thread that parks, one that asks.
//!   Failure it looks for: it reports, and does not see what the thread did before; or it never
//!   reports.
//! - `stall_beside_mail`. Threads: two workers, of which one sends the other a thread and sleeps,
//!   and the other is about to sleep; one that asks. Failure it looks for: it reports the thread
//!   that is ready.
//! - `stall_beside_mail_of_two_bounded`. Threads: the same, each on its own. Failure it looks for:
//!   the same.
//! - `stall_beside_a_time`. Threads: a worker that a time wakes, and its thread then waits for
//!   another; one that asks. Failure it looks for: it reports the thread that runs in between.
//! - `stall_beside_a_block`. Threads: a worker that blocks in the kernel, and its slot goes to
//!   another that sleeps there; one that asks. Failure it looks for: it reports the thread that is
//!   in the kernel.
//! - `stall_beside_a_slot_in_hand`. Threads: the same, where the blocked worker comes back and
//!   rests, and the other blocks with a thread that was ready; one that asks. Failure it looks
//!   for: it reports that thread.
//!
//! Where the order of the steps of several workers matters, one thread does them all: the thread
//! that asks is beside it all the same. So all but one model have two threads, without bound. The
//! report looks twice. A model explores one look, which is to be right by itself. Every model
//! prints `model NAME: N executions`.

use stanchion_activations_loom::__internal::{
    Ownership, ParkedSlots, Snapshot, StallView, UpcallCounts, WokenFor, all_wait,
};
use stanchion_activations_loom::Upcall;
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};

/// A worker: its ownership, and whether its mailbox is full. The mailbox orders nothing.
struct Worker {
    /// The ownership of the worker's slot. The worker writes it, and so does a thread that takes
    /// its slot or gives it one.
    ownership: Ownership,
    /// Set while the mailbox is full. Orders nothing.
    is_mailed: AtomicBool,
}

/// A runtime of some workers and one thread, which never ends. Its queues order nothing.
struct Runtime {
    /// The workers, by number.
    workers: Vec<Worker>,
    /// The parkers of the slots. A worker announces its sleep there, and a sender of mail wakes it.
    parked: ParkedSlots,
    /// Set while the thread is ready.
    ready: AtomicBool,
    /// Set while it waits for a time.
    time: AtomicBool,
    /// The upcalls, of which the report reads one.
    counters: UpcallCounts,
    /// The payload of the thread.
    done: UnsafeCell<u32>,
}

// SAFETY: the thread that asks looks at the payload when the thread has parked. The models check
// that.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

impl StallView for Runtime {
    fn snapshot(&self) -> Snapshot {
        Snapshot { ended: 0, created: 1, assignments: self.counters.assignments() }
    }

    fn parked(&self) -> &ParkedSlots {
        &self.parked
    }

    fn started(&self) -> usize {
        self.workers.len()
    }

    fn ownership(&self, worker: usize) -> &Ownership {
        &self.workers[worker].ownership
    }

    /// No thread of the models panics.
    fn awaits_mail(&self, _worker: usize) -> bool {
        false
    }

    fn has_any_work(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
            || self.time.load(Ordering::Relaxed)
            || self.workers.iter().any(|worker| worker.is_mailed.load(Ordering::Relaxed))
    }
}

impl Runtime {
    fn new(workers: impl IntoIterator<Item = Ownership>, slots: usize) -> Arc<Self> {
        let worker = |ownership| Worker { ownership, is_mailed: AtomicBool::fresh(false) };
        Arc::new(Self {
            workers: workers.into_iter().map(worker).collect(),
            parked: ParkedSlots::new(slots),
            ready: AtomicBool::fresh(false),
            time: AtomicBool::fresh(false),
            counters: UpcallCounts::default(),
            done: UnsafeCell::new(0),
        })
    }

    /// Returns a runtime of so many workers with a slot each.
    fn with_slots(workers: usize) -> Arc<Self> {
        Self::new((0..workers).map(|_| Ownership::with_slot()), workers)
    }

    /// Returns a runtime with one slot and its owner, and a worker without.
    fn one_slot() -> Arc<Self> {
        Self::new([Ownership::with_slot(), Ownership::idle()], 1)
    }

    /// The worker goes on in a thread, on this slot.
    fn leave(&self, worker: usize, slot: usize) {
        self.ownership(worker).leave(slot);
    }

    /// The worker comes back, finds nothing, and is about to sleep.
    fn come_to_rest(&self, worker: usize) {
        assert!(self.ownership(worker).enter(worker), "no thread has taken the slot");
        self.parked.announce(worker, false);
    }

    /// The worker begins on the slot that it has been given.
    fn begin_on_slot(&self, worker: usize) {
        assert_eq!(self.ownership(worker).sleep(), WokenFor::Slot);
        self.counters.count(Upcall::ProcessorAdded);
    }

    fn assert_not_stalled(&self) {
        assert!(all_wait(self).is_none(), "the thread can go on");
    }
}

#[test]
fn stall_when_all_have_parked() {
    explore("stall_when_all_have_parked", Model::new(), || {
        let runtime = Runtime::with_slots(1);
        runtime.leave(0, 0);
        let worker = beside(&runtime, |runtime| {
            // SAFETY: the thread, before it parks.
            runtime.done.with_mut(|done| unsafe { *done = 7 });
            runtime.come_to_rest(0);
        });
        if all_wait(&*runtime).is_some() {
            // SAFETY: it has parked.
            runtime.done.with(|done| assert_eq!(unsafe { *done }, 7));
        }
        worker.join().expect("no panic");
        let first = all_wait(&*runtime).expect("it waits for ever");
        thread::yield_now();
        assert_eq!(all_wait(&*runtime), Some(first));
    });
}

/// Worker 0 runs a thread, and makes one ready that worker 1 alone can run.
fn send(runtime: &Runtime) {
    runtime.workers[1].is_mailed.store(true, Ordering::Relaxed);
    runtime.parked.wake_slot(1);
    runtime.come_to_rest(0);
}

/// Worker 1 has found nothing to do.
fn look_for_mail(runtime: &Runtime) {
    let is_mailed = &runtime.workers[1].is_mailed;
    runtime.parked.announce(1, false);
    if is_mailed.load(Ordering::Relaxed) {
        runtime.parked.retract(1);
    } else {
        runtime.parked.sleep(1, Deadline::NEVER);
    }
    is_mailed.store(false, Ordering::Relaxed);
    runtime.leave(1, 1);
}

#[test]
fn stall_beside_mail() {
    explore("stall_beside_mail", Model::new().choices(0), || {
        let runtime = Runtime::with_slots(2);
        runtime.leave(0, 0);
        let workers = beside(&runtime, |runtime| {
            send(runtime);
            look_for_mail(runtime);
        });
        runtime.assert_not_stalled();
        workers.join().expect("no panic");
    });
}

#[test]
fn stall_beside_mail_of_two_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("stall_beside_mail_of_two_bounded", model, || {
        let runtime = Runtime::with_slots(2);
        runtime.leave(0, 0);
        let workers = [beside(&runtime, send), beside(&runtime, look_for_mail)];
        runtime.assert_not_stalled();
        workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    });
}

#[test]
fn stall_beside_a_time() {
    explore("stall_beside_a_time", Model::new().choices(0), || {
        let runtime = Runtime::with_slots(1);
        runtime.time.store(true, Ordering::Relaxed);
        runtime.parked.announce(0, false);
        let worker = beside(&runtime, |runtime| {
            // The time comes.
            runtime.parked.retract(0);
            runtime.time.store(false, Ordering::Relaxed);
            runtime.leave(0, 0);
            // The thread waits for another one.
            runtime.time.store(true, Ordering::Relaxed);
            runtime.come_to_rest(0);
        });
        runtime.assert_not_stalled();
        worker.join().expect("no panic");
    });
}

#[test]
fn stall_beside_a_block() {
    explore("stall_beside_a_block", Model::new().choices(0), || {
        let runtime = Runtime::one_slot();
        let workers = beside(&runtime, |runtime| {
            // Into the kernel.
            runtime.leave(0, 0);
            assert!(runtime.ownership(0).take(0));
            runtime.ownership(1).give();
            runtime.begin_on_slot(1);
            runtime.parked.announce(0, false);
        });
        runtime.assert_not_stalled();
        workers.join().expect("no panic");
    });
}

/// The monitor has the slot in its hand for a while.
#[test]
fn stall_beside_a_slot_in_hand() {
    explore("stall_beside_a_slot_in_hand", Model::new().choices(0), || {
        let runtime = Runtime::one_slot();
        runtime.ready.store(true, Ordering::Relaxed);
        runtime.leave(0, 0);
        assert!(runtime.ownership(0).take(0));
        let workers = beside(&runtime, |runtime| {
            // Back from the kernel, with nothing to do.
            runtime.ownership(0).rest(false);
            runtime.ownership(1).give();
            runtime.begin_on_slot(1);
            runtime.ready.store(false, Ordering::Relaxed);
            runtime.leave(1, 0);
        });
        runtime.assert_not_stalled();
        workers.join().expect("no panic");
    });
}
