//! Models of slots: one worker uses a slot, a taker sees what was done on it, and no slot and no
//! worker is forgotten.
//!
//! - `slots_taken_or_entered`. Threads: a worker that comes back from a thread, one that takes its
//!   slot. Failure it looks for: both use it.
//! - `slots_taken_and_given_bounded`. Threads: the same, where the taker gives it to a third
//!   worker. Failure it looks for: that does not see what was done on it.
//! - `slots_taken_by_two_bounded`. Threads: a worker in a thread, two that take its slot. Failure
//!   it looks for: both have it.
//! - `slots_taken_too_late`. Threads: a worker that has lost its slot and runs on another, one
//!   that still takes it for the owner of the first. Failure it looks for: the first has two
//!   users.
//! - `slots_notified_or_rested_bounded`. Threads: a worker that rests, one that sends it a thread.
//!   Failure it looks for: it sleeps beside the thread, and no thread knows that it waits for a
//!   slot.
//! - `slots_raised_or_rested_bounded`. Threads: a worker that rests with a thread of low priority,
//!   one that sends it a thread of high priority. Failure it looks for: it waits for a slot behind
//!   those of lower priority.
//! - `slots_vacant_or_rested_bounded`. Threads: a worker that rests, one that has a slot for which
//!   there is no worker. Failure it looks for: one waits for the other.
//! - `slots_end_or_rest_bounded`. Threads: a worker that rests, one that ends all that rest.
//!   Failure it looks for: it sleeps for ever.
//! - `slots_asleep_or_woken`, `slots_asleep_or_woken_by_number`. Threads: a worker that goes to
//!   sleep on its slot, one that makes work ready. Failure it looks for: it sleeps beside the
//!   work.
//! - `slots_woken_see_what_was_done`. Threads: the same, where it looks no more. Failure it looks
//!   for: it does not see what was done.
//! - `slots_opened_and_closed`. Threads: two that each open the one overcommitted slot, use it and
//!   close it. Failure it looks for: both have it, or one does not see what was done on it.
//! - `slots_closed_as_excess`. Threads: two that each have an overcommitted slot, of which one is
//!   too many. Failure it looks for: both close theirs, or none.
//! - `slots_reopened_after_excess`. Threads: one that closes a slot too many, one that opens it
//!   again. Failure it looks for: it does not see what was done on it.
//! - `slots_timed_or_local_work_bounded`. Threads: a worker with a timed park, which is not
//!   woken for work on another slot, and then parks without a deadline; one that makes such work
//!   ready. Failure it looks for: it sleeps beside the work.
//! - `slots_timed_or_woken_bounded`. Threads: a worker with a timed park, one that wakes all for
//!   other work. Failure it looks for: it sleeps beside the work.
//! - `slots_asleep_for_a_time`. Threads: a worker that goes to sleep for a time, which may pass,
//!   one that makes work ready. Failure it looks for: it goes on while it is being woken, and
//!   sleeps through the next time.
//!
//! Two threads are explored without bound, except where the lock of the idle workers is between
//! them: a mutex with a policy, of which every try is explored. Every model prints `model NAME: N
//! executions`.

use stanchion_activations_loom::__internal::{
    IdleWorkers, Overcommit, Ownership, ParkedSlots, Rest, WokenFor,
};
use stanchion_activations_loom::Priority;
use stanchion_machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};

/// A worker: its ownership, and whether its mailbox is full. The mailbox orders nothing.
struct Worker {
    /// The ownership of the worker's slot. The worker writes it, and so does a thread that takes
    /// its slot, gives it one, or ends its sleep.
    ownership: Ownership,
    /// Set while the mailbox is full, by the thread that fills it.
    is_mailed: AtomicBool,
    /// The priority of the threads in the mailbox.
    mailed: Priority,
}

impl Worker {
    fn new(ownership: Ownership, mailed: Priority) -> Self {
        Self { ownership, is_mailed: AtomicBool::fresh(false), mailed }
    }

    fn mail(&self) {
        self.is_mailed.store(true, Ordering::Relaxed);
    }

    fn mailed_priority(&self) -> Option<Priority> {
        self.is_mailed.load(Ordering::Relaxed).then_some(self.mailed)
    }
}

/// Worker 0 owns slot 0 and runs a thread. The others own no slot.
struct Scene {
    /// The workers, by number.
    workers: [Worker; 3],
    /// The lists that are tested.
    idle_workers: IdleWorkers,
    /// The payload of each slot.
    slots: [UnsafeCell<u32>; 2],
}

// SAFETY: a slot has one user at a time. The models check that.
unsafe impl Send for Scene {}
// SAFETY: as above.
unsafe impl Sync for Scene {}

impl Scene {
    fn new() -> Arc<Self> {
        Self::with_mail_of(Priority::Normal)
    }

    /// Worker 0 is sent threads of this priority.
    fn with_mail_of(mailed: Priority) -> Arc<Self> {
        let owner = Worker::new(Ownership::with_slot(), mailed);
        let idle = || Worker::new(Ownership::idle(), Priority::Normal);
        let scene = Self {
            workers: [owner, idle(), idle()],
            idle_workers: IdleWorkers::new(),
            slots: [UnsafeCell::new(0), UnsafeCell::new(0)],
        };
        scene.use_slot(0);
        scene.ownership(0).leave(0);
        Arc::new(scene)
    }

    fn ownership(&self, worker: usize) -> &Ownership {
        &self.workers[worker].ownership
    }

    fn use_slot(&self, slot: usize) {
        // SAFETY: the caller owns it. The models check that.
        self.slots[slot].with_mut(|slot| unsafe { *slot += 1 });
    }

    fn rest(&self, worker: usize, ready: Option<Priority>) -> Rest {
        let Worker { ownership, .. } = &self.workers[worker];
        let mailed = || self.workers[worker].mailed_priority();
        self.idle_workers.rest(worker, ownership, ready, mailed, true)
    }

    /// Sends worker 0 a thread.
    fn send(&self) {
        let worker = &self.workers[0];
        worker.mail();
        self.idle_workers.notify(0, &worker.ownership, worker.mailed);
    }
}

#[test]
fn slots_taken_or_entered() {
    explore("slots_taken_or_entered", Model::new(), || {
        let scene = Scene::new();
        let taker = beside(&scene, |scene| {
            if scene.ownership(0).take(0) {
                scene.use_slot(0);
            }
        });
        if scene.ownership(0).enter(0) {
            scene.use_slot(0);
            scene.ownership(0).leave(0);
        }
        taker.join().expect("no panic");
    });
}

#[test]
fn slots_taken_and_given_bounded() {
    explore("slots_taken_and_given_bounded", Model::new().preemptions(2).choices(0), || {
        let scene = Scene::new();
        let other = beside(&scene, |scene| {
            if scene.ownership(1).sleep() == WokenFor::Slot {
                scene.use_slot(0);
            }
        });
        let owner = beside(&scene, |scene| {
            if scene.ownership(0).enter(0) {
                scene.use_slot(0);
                scene.ownership(0).leave(0);
            }
        });
        if scene.ownership(0).take(0) {
            scene.ownership(1).give();
        } else {
            scene.ownership(1).end();
        }
        other.join().expect("no panic");
        owner.join().expect("no panic");
    });
}

#[test]
fn slots_taken_by_two_bounded() {
    explore("slots_taken_by_two_bounded", Model::new().preemptions(3), || {
        let scene = Scene::new();
        let taken = Arc::new(AtomicU32::fresh(0));
        let takers = [0, 1].map(|_| {
            let taken = taken.clone();
            beside(&scene, move |scene| {
                if scene.ownership(0).take(0) {
                    scene.use_slot(0);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        takers.into_iter().for_each(|taker| taker.join().expect("no panic"));
        assert_eq!(taken.load(Ordering::Relaxed), 1);
        assert!(!scene.ownership(0).enter(0));
    });
}

#[test]
fn slots_taken_too_late() {
    explore("slots_taken_too_late", Model::new().choices(0), || {
        let scene = Scene::new();
        // It has seen that worker 0 owns slot 0.
        let late = beside(&scene, |scene| {
            if scene.ownership(0).take(0) {
                scene.use_slot(0);
            }
        });
        if scene.ownership(0).take(0) {
            // Worker 1 owns it now, and worker 0 comes back, to another slot.
            scene.ownership(0).give();
            scene.ownership(0).leave(1);
            scene.use_slot(0);
        }
        late.join().expect("no panic");
    });
}

#[test]
fn slots_notified_or_rested_bounded() {
    explore("slots_notified_or_rested_bounded", Model::new().preemptions(3).choices(0), || {
        let scene = Scene::new();
        assert!(scene.ownership(0).take(0));
        let sender = beside(&scene, Scene::send);
        scene.rest(0, None);
        sender.join().expect("no panic");
        assert_eq!(scene.idle_workers.waiting(), 1, "it has a ready thread, and no slot");
    });
}

/// A worker that waits for a slot for a thread of low priority is sent one of high priority.
#[test]
fn slots_raised_or_rested_bounded() {
    explore("slots_raised_or_rested_bounded", Model::new().preemptions(3).choices(0), || {
        let scene = Scene::with_mail_of(Priority::High);
        assert!(scene.ownership(0).take(0));
        let sender = beside(&scene, Scene::send);
        scene.rest(0, Some(Priority::Low));
        sender.join().expect("no panic");
        assert_eq!(scene.idle_workers.waiting(), 1, "it waits once");
        let waiting = scene.idle_workers.waiting_from(Priority::High);
        assert_eq!(waiting, 1, "as the thread of high priority does");
    });
}

#[test]
fn slots_vacant_or_rested_bounded() {
    explore("slots_vacant_or_rested_bounded", Model::new().preemptions(2).choices(0), || {
        let scene = Scene::new();
        assert!(scene.ownership(0).take(0));
        let taker = beside(&scene, |scene| {
            scene.use_slot(0);
            if let Some(worker) = scene.idle_workers.vacate(0) {
                scene.ownership(worker).give();
            }
        });
        match scene.rest(0, Some(Priority::Normal)) {
            Rest::Slot(0) => {}
            Rest::Waiting => assert_eq!(scene.ownership(0).sleep(), WokenFor::Slot),
            other => unreachable!("{other:?}"),
        }
        scene.use_slot(0);
        taker.join().expect("no panic");
    });
}

#[test]
fn slots_end_or_rest_bounded() {
    explore("slots_end_or_rest_bounded", Model::new().preemptions(2).choices(0), || {
        let scene = Scene::new();
        assert!(scene.ownership(0).take(0));
        let ended = Arc::new([AtomicU32::fresh(0), AtomicU32::fresh(0)]);
        let both =
            |ended: &[AtomicU32; 2]| ended.iter().all(|one| one.load(Ordering::Acquire) == 1);
        let end = move |scene: &Scene, ended: &[AtomicU32; 2]| {
            if both(ended) {
                scene.idle_workers.end(|worker| scene.ownership(worker).end());
            }
        };
        let last = {
            let ended = ended.clone();
            beside(&scene, move |scene| {
                // As on a worker that rests: under the lock there is a fence.
                ended[1].store(1, Ordering::Release);
                assert_eq!(scene.rest(1, None), Rest::Idle);
                end(scene, &ended);
                assert_eq!(scene.ownership(1).sleep(), WokenFor::End);
            })
        };
        ended[0].store(1, Ordering::Release);
        assert_eq!(scene.rest(0, None), Rest::Idle);
        end(&scene, &ended);
        assert_eq!(scene.ownership(0).sleep(), WokenFor::End);
        last.join().expect("no panic");
    });
}

/// A slot that sleeps, and work that may be ready for it.
struct Sleeper {
    /// The parkers that are tested.
    parked: ParkedSlots,
    /// 1 once the work is ready. The waker writes it.
    ready: AtomicU32,
    /// The payload of the work. The waker writes it before it makes the work ready.
    work: UnsafeCell<u32>,
}

// SAFETY: `work` is written before it is ready, and read after. The models check that.
unsafe impl Send for Sleeper {}
// SAFETY: as above.
unsafe impl Sync for Sleeper {}

impl Sleeper {
    fn new() -> Arc<Self> {
        let (ready, work) = (AtomicU32::fresh(0), UnsafeCell::new(0));
        Arc::new(Self { parked: ParkedSlots::new(1), ready, work })
    }

    /// Prepares the work. It is not ready yet.
    fn prepare(&self) {
        // SAFETY: no other thread has been told of it.
        self.work.with_mut(|work| unsafe { *work = 7 });
    }

    fn assert_prepared(&self) {
        // SAFETY: it is ready.
        self.work.with(|work| assert_eq!(unsafe { *work }, 7));
    }
}

/// Sleeps as a worker does, until there is work.
fn rest(sleeper: &Sleeper, deadline: Deadline) {
    loop {
        sleeper.parked.announce(0, false);
        // Relaxed: the fences order it; ready work is taken under a lock.
        if sleeper.ready.load(Ordering::Relaxed) == 1 {
            sleeper.parked.retract(0);
        } else {
            sleeper.parked.sleep(0, deadline);
        }
        // Acquire: as the lock of a queue.
        if sleeper.ready.load(Ordering::Acquire) == 1 {
            return sleeper.assert_prepared();
        }
    }
}

/// A slot that has slept was woken, and its worker sees what was done before that, without another
/// look at the ready work.
#[test]
fn slots_woken_see_what_was_done() {
    explore("slots_woken_see_what_was_done", Model::new().choices(0), || {
        let sleeper = Sleeper::new();
        let waker = {
            let sleeper = sleeper.clone();
            thread::spawn(move || {
                sleeper.prepare();
                // Relaxed: the fences order it.
                sleeper.ready.store(1, Ordering::Relaxed);
                sleeper.parked.wake(1, false);
            })
        };
        sleeper.parked.announce(0, false);
        // Relaxed: as above.
        if sleeper.ready.load(Ordering::Relaxed) == 1 {
            sleeper.parked.retract(0);
        } else {
            sleeper.parked.sleep(0, Deadline::NEVER);
            sleeper.assert_prepared();
        }
        waker.join().expect("no panic");
    });
}

fn asleep_or_woken(name: &str, model: Model, deadline: fn() -> Deadline, by_number: bool) {
    explore(name, model, move || {
        let sleeper = Sleeper::new();
        let waker = {
            let sleeper = sleeper.clone();
            thread::spawn(move || {
                sleeper.prepare();
                sleeper.ready.store(1, Ordering::Release);
                if by_number {
                    sleeper.parked.wake_slot(0);
                } else {
                    sleeper.parked.wake(1, false);
                }
            })
        };
        rest(&sleeper, deadline());
        waker.join().expect("no panic");
    });
}

#[test]
fn slots_asleep_or_woken() {
    let model = Model::new().choices(0);
    asleep_or_woken("slots_asleep_or_woken", model, || Deadline::NEVER, false);
}

#[test]
fn slots_asleep_or_woken_by_number() {
    let model = Model::new().choices(0);
    asleep_or_woken("slots_asleep_or_woken_by_number", model, || Deadline::NEVER, true);
}

#[test]
fn slots_asleep_for_a_time() {
    let soon = || Deadline::after(core::time::Duration::from_secs(1));
    let model = Model::new().choices(1);
    asleep_or_woken("slots_asleep_for_a_time", model, soon, false);
}

/// Overcommitted slots from number 0 on.
struct Extra {
    /// The slots beyond the processors, which are tested.
    overcommit: Overcommit,
    /// The payload of each slot. The thread that has opened the slot writes it.
    slots: [UnsafeCell<u32>; 2],
}

// SAFETY: a slot has one user at a time. The models check that.
unsafe impl Send for Extra {}
// SAFETY: as above.
unsafe impl Sync for Extra {}

impl Extra {
    fn new(count: usize) -> Arc<Self> {
        let slots = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self { overcommit: Overcommit::new(0, count), slots })
    }

    fn use_slot(&self, slot: usize) {
        // SAFETY: the caller owns it. The models check that.
        self.slots[slot].with_mut(|slot| unsafe { *slot += 1 });
    }
}

#[test]
fn slots_opened_and_closed() {
    fn use_one(extra: &Extra) {
        if let Some(slot) = extra.overcommit.open() {
            extra.use_slot(slot);
            extra.overcommit.close(slot);
        }
    }
    explore("slots_opened_and_closed", Model::new(), || {
        let extra = Extra::new(1);
        let other = {
            let extra = extra.clone();
            thread::spawn(move || use_one(&extra))
        };
        use_one(&extra);
        other.join().expect("no panic");
        assert!(!extra.overcommit.is_any_open());
    });
}

#[test]
fn slots_closed_as_excess() {
    explore("slots_closed_as_excess", Model::new(), || {
        let extra = Extra::new(2);
        let [mine, others] = [0, 1].map(|_| extra.overcommit.open().expect("there are two"));
        extra.overcommit.allow(1);
        let other = {
            let extra = extra.clone();
            thread::spawn(move || extra.overcommit.close_excess(others))
        };
        let closed = extra.overcommit.close_excess(mine);
        assert_ne!(closed, other.join().expect("no panic"));
    });
}

#[test]
fn slots_reopened_after_excess() {
    explore("slots_reopened_after_excess", Model::new(), || {
        let extra = Extra::new(1);
        assert_eq!(extra.overcommit.open(), Some(0));
        extra.overcommit.allow(0);
        let other = {
            let extra = extra.clone();
            thread::spawn(move || {
                extra.use_slot(0);
                extra.overcommit.close_excess(0)
            })
        };
        // If this comes before the other thread looks, that one keeps the slot.
        extra.overcommit.allow(1);
        if extra.overcommit.open().is_some() {
            extra.use_slot(0);
        }
        other.join().expect("no panic");
    });
}

/// Parks once with a deadline, without a look at the work on other slots. Then sleeps as a worker
/// that looks.
fn timed_or_woken(name: &str, is_local: bool) {
    explore(name, Model::new().preemptions(3).choices(0), move || {
        let sleeper = Sleeper::new();
        let waker = {
            let sleeper = sleeper.clone();
            thread::spawn(move || {
                sleeper.prepare();
                sleeper.ready.store(1, Ordering::Release);
                sleeper.parked.wake(1, is_local);
            })
        };
        sleeper.parked.announce(0, true);
        if is_local {
            // It is not woken for that; it comes back by itself.
            sleeper.parked.sleep(0, Deadline::PAST);
            rest(&sleeper, Deadline::NEVER);
        } else if sleeper.ready.load(Ordering::Relaxed) == 1 {
            sleeper.parked.retract(0);
        } else {
            // Its time does not pass: it must be woken.
            sleeper.parked.sleep(0, Deadline::NEVER);
        }
        waker.join().expect("no panic");
    });
}

#[test]
fn slots_timed_or_local_work_bounded() {
    timed_or_woken("slots_timed_or_local_work_bounded", true);
}

#[test]
fn slots_timed_or_woken_bounded() {
    timed_or_woken("slots_timed_or_woken_bounded", false);
}
