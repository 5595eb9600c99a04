//! Models of the lookout: it does not sleep beside what only it sees, and it ends.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `lookout_sees_what_is_made_ready` | the lookout, who makes something ready while the one carrier is blocked | nobody takes the carrier's seat |
//! | `lookout_sees_what_is_made_ready_when_it_leaves` | the same, where it has been on guard for something before | each of the two leaves it to the other |
//! | `lookout_sees_what_comes_after_its_looks_bounded` | the same, where the first is taken by another carrier | the lookout sleeps on guard, and has passed over the blocked carrier |
//! | `lookout_ends_with_its_runtime` | the lookout, who ends the runtime | it sleeps for ever |
//! | `lookout_beside_a_carrier_that_sleeps_bounded` | the lookout, a carrier that goes to sleep on its seat, who makes something ready | all sleep beside it |
//!
//! The lookout's file is the crate's, with its guard, the places where carriers sleep and the surplus. What it asks of the rest is said here: a carrier is blocked
//! or not, a seat that can be taken is taken at once, and what is ready is done by who takes it. Loom's watch tells of no switch that comes while the lookout sleeps,
//! so what is modelled is who rings it, not what the kernel does. Nor does its clock move, so its rounds, in which nobody rings it, are not modelled. Every model prints `model NAME: N executions`.

#[path = "../../../../crates/activations/src/guard.rs"]
#[allow(dead_code, unreachable_pub)]
mod guard;
#[path = "../../../../crates/activations/src/lookout.rs"]
#[allow(dead_code, unreachable_pub)]
mod lookout;
#[path = "../../../../crates/activations/src/sleeping.rs"]
#[allow(dead_code, unreachable_pub)]
mod sleeping;
#[path = "../../../../crates/activations/src/surplus.rs"]
#[allow(dead_code, unreachable_pub)]
mod surplus;

use std::sync::Arc;

use machine::clock::Deadline;
use machine::{Model, thread};

use shared::Shared;

/// A carrier that blocks in its thread, or never does.
mod carrier {
    use machine::presence::Presence;

    pub(crate) struct Carrier {
        pub(crate) blocked: bool,
    }

    impl Carrier {
        pub(crate) fn seen_as(&self) -> Option<usize> {
            Some(0)
        }

        pub(crate) fn is_blocked(&self) -> bool {
            self.blocked
        }

        pub(crate) fn presence(&self) -> Presence {
            if self.blocked { Presence::Blocked } else { Presence::Running }
        }
    }
}

mod handover {
    #[derive(PartialEq, Eq)]
    pub(crate) enum Looks {
        Woken,
    }

    #[derive(PartialEq, Eq)]
    pub(crate) enum Found {
        Fine,
        Unneeded,
        Blocked(u64),
        Taken,
    }
}

/// A runtime whose carriers sit on the seats of their numbers, and something that is to be done, once or twice.
mod shared {
    use machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
    use machine::cell::UnsafeCell;
    use machine::clock::Deadline;

    use crate::carrier::Carrier;
    use crate::handover::{Found, Looks};
    use crate::lookout::Lookout;
    use crate::sleeping::Sleeping;
    use crate::surplus::Surplus;

    pub(crate) struct Shared {
        carriers: [Carrier; 2],
        pub(crate) sleeping: Sleeping,
        surplus: Surplus,
        lookout: Lookout,
        /// How many are ready, have been done, and are to be done in all.
        ready: AtomicU32,
        done: AtomicU32,
        all: u32,
        what: [UnsafeCell<u32>; 2],
        over: AtomicBool,
    }

    // SAFETY: `what` is written before it is ready, and read by who takes it. The models check that.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    /// Of one processor.
    pub(crate) struct Demand;

    impl Demand {
        pub(crate) fn allowed(&self) -> usize {
            1
        }
    }

    /// The seat of a number, and its carrier's.
    pub(crate) struct Seat(usize);

    impl Seat {
        pub(crate) fn holder(&self) -> usize {
            self.0
        }
    }

    impl Shared {
        pub(crate) fn new(blocked: bool, all: u32) -> Self {
            Self {
                carriers: [blocked; 2].map(|blocked| Carrier { blocked }),
                sleeping: Sleeping::new(1),
                surplus: Surplus::new(1, 1),
                lookout: Lookout::new(true),
                ready: AtomicU32::fresh(0),
                done: AtomicU32::fresh(0),
                all,
                what: [UnsafeCell::new(0), UnsafeCell::new(0)],
                over: AtomicBool::fresh(false),
            }
        }

        /// Makes one ready and tells no thread, as where a carrier that runs finds it.
        pub(crate) fn put(&self, which: usize) {
            // SAFETY: it is not ready yet.
            self.what[which].with_mut(|what| unsafe { *what = 7 });
            // Release: what a queue's lock does.
            self.ready.fetch_add(1, Ordering::Release);
        }

        /// As `Shared::put_outside` and `Shared::tell` do.
        pub(crate) fn make_ready(&self, which: usize) {
            self.put(which);
            if self.sleeping.tell(1, false) == 0 {
                self.guard();
            }
        }

        /// Does one that is ready; whether there was one. The last ends the runtime.
        pub(crate) fn take(&self) -> bool {
            let less = |ready: u32| ready.checked_sub(1);
            // Acquire: what a queue's lock does; so Release.
            let taken = self.ready.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_ok();
            if taken {
                let which = self.done.fetch_add(1, Ordering::Relaxed);
                // SAFETY: taken, in the order in which they were made.
                self.what[which as usize].with(|what| assert_eq!(unsafe { *what }, 7));
                self.over.store(which + 1 == self.all, Ordering::Relaxed);
            }
            taken
        }

        /// As `Shared::end_if_done` does.
        pub(crate) fn end(&self) {
            self.over.store(true, Ordering::Relaxed);
            self.lookout.wake();
        }

        pub(crate) fn is_over(&self) -> bool {
            self.over.load(Ordering::Relaxed)
        }

        pub(crate) fn has_work(&self) -> bool {
            self.ready.load(Ordering::Relaxed) > 0
        }

        pub(crate) fn lookout(&self) -> &Lookout {
            &self.lookout
        }

        pub(crate) fn surplus(&self) -> &Surplus {
            &self.surplus
        }

        pub(crate) fn demand(&self) -> Demand {
            Demand
        }

        pub(crate) fn seats_in_use(&self) -> impl Iterator<Item = usize> + '_ {
            (0..1).chain(self.surplus.seats())
        }

        pub(crate) fn seat(&self, index: usize) -> Seat {
            Seat(index)
        }

        pub(crate) fn carrier(&self, index: usize) -> &Carrier {
            &self.carriers[index]
        }

        pub(crate) fn count_carriers(&self, which: impl Fn(&Carrier) -> bool) -> usize {
            self.seats_in_use().filter(|&seat| which(&self.carriers[seat])).count()
        }

        pub(crate) fn lacks_runners(&self) -> bool {
            self.count_carriers(|carrier| !carrier.is_blocked()) < 1
        }

        pub(crate) fn look_at(&self, seat: usize, _looks: Looks) -> Found {
            self.examine(seat)
        }

        pub(crate) fn examine(&self, seat: usize) -> Found {
            if !self.carriers[seat].is_blocked() {
                Found::Fine
            } else if self.take() {
                Found::Taken
            } else {
                Found::Unneeded
            }
        }

        pub(crate) fn is_short_of_none(&self) {}

        pub(crate) fn is_time(&self) -> bool {
            false
        }

        pub(crate) fn is_time_unwatched(&self) -> bool {
            false
        }

        pub(crate) fn look_out_until(&self, _for_times: bool) -> Deadline {
            Deadline::NEVER
        }
    }
}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

fn beside(shared: &Arc<Shared>, body: fn(&Arc<Shared>)) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || body(&shared))
}

#[test]
fn lookout_sees_what_is_made_ready() {
    explore("lookout_sees_what_is_made_ready", Model::new().choices(0), || {
        let shared = Arc::new(Shared::new(true, 1));
        let lookout = beside(&shared, lookout::look_out);
        shared.make_ready(0);
        lookout.join().expect("no panic");
    });
}

/// Who makes the second ready may find it on guard because of the first.
#[test]
fn lookout_sees_what_is_made_ready_when_it_leaves() {
    explore("lookout_sees_what_is_made_ready_when_it_leaves", Model::new().choices(0), || {
        let shared = Arc::new(Shared::new(true, 2));
        shared.make_ready(0);
        let lookout = beside(&shared, lookout::look_out);
        shared.make_ready(1);
        lookout.join().expect("no panic");
    });
}

/// The lookout looks because of the first, which a running carrier takes meanwhile. The second
/// becomes ready afterwards, and only the lookout can see that its carrier is blocked.
#[test]
fn lookout_sees_what_comes_after_its_looks_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("lookout_sees_what_comes_after_its_looks_bounded", model, || {
        let shared = Arc::new(Shared::new(true, 2));
        shared.put(0);
        let lookout = beside(&shared, lookout::look_out);
        shared.take();
        shared.make_ready(1);
        lookout.join().expect("no panic");
    });
}

#[test]
fn lookout_ends_with_its_runtime() {
    explore("lookout_ends_with_its_runtime", Model::new(), || {
        let shared = Arc::new(Shared::new(false, 0));
        let lookout = beside(&shared, lookout::look_out);
        shared.end();
        lookout.join().expect("no panic");
    });
}

/// As a carrier that has found nothing.
fn carries(shared: &Arc<Shared>) {
    loop {
        shared.sleeping.announce(0, false);
        shared.lookout().pause(shared.carrier(0));
        if shared.has_work() {
            shared.sleeping.retract(0);
        } else {
            shared.sleeping.sleep(0, Deadline::NEVER);
        }
        shared.lookout().begin(shared.carrier(0));
        if shared.take() {
            return shared.end();
        }
    }
}

#[test]
fn lookout_beside_a_carrier_that_sleeps_bounded() {
    let model = Model::new().choices(0).preemptions(2);
    explore("lookout_beside_a_carrier_that_sleeps_bounded", model, || {
        let shared = Arc::new(Shared::new(false, 1));
        let others = [beside(&shared, lookout::look_out), beside(&shared, carries)];
        shared.make_ready(0);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
    });
}
