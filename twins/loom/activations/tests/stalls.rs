//! Models of [`Runtime::stalled`](stanchion_activations_loom::Runtime::stalled): it tells of
//! threads that wait only if none can go on.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `stalls_when_all_have_parked` | a carrier whose thread parks, one that asks | it tells, and does not see what the thread did before; or it never tells |
//! | `stalls_beside_mail` | two carriers, of which one mails the other a thread and sleeps, and the other is about to sleep; one that asks | it tells of the thread that is ready |
//! | `stalls_beside_mail_of_two_bounded` | the same, each on its own | the same |
//! | `stalls_beside_a_time` | a carrier that a time wakes, whose thread then waits for another; one that asks | it tells of the thread that runs in between |
//! | `stalls_beside_a_block` | a carrier that blocks in the kernel, whose seat goes to another that sleeps there; one that asks | it tells of the thread that is in the kernel |
//! | `stalls_beside_a_seat_in_hand` | the same, where the blocked one comes back and rests, and the other blocks with a thread that was ready; one that asks | it tells of that one |
//!
//! What several carriers do is one thread's where the order in which they do it is what is looked
//! for: who asks is beside it all the same. So all but one are of two threads, without bound. It
//! looks twice before it tells; what is explored is one look, which is to be right by itself. Every
//! model prints `model NAME: N executions`.

#[path = "common/carrier.rs"]
#[allow(dead_code)]
mod carrier;
#[path = "../../../../crates/activations/src/priority.rs"]
#[allow(dead_code, unreachable_pub)]
mod priority;
#[path = "../../../../crates/activations/src/sleeping.rs"]
#[allow(dead_code, unreachable_pub)]
mod sleeping;
#[path = "../../../../crates/activations/src/stall.rs"]
#[allow(dead_code, unreachable_pub)]
mod stall;
#[path = "../../../../crates/activations/src/standing.rs"]
#[allow(dead_code, unreachable_pub)]
mod standing;
#[path = "../../../../crates/activations/src/upcall.rs"]
#[allow(dead_code, unreachable_pub)]
mod upcall;

use machine::atomic::Ordering;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::{Model, thread};

use shared::Shared;
use standing::{Called, Standing};
use upcall::Upcall;

/// Nothing is timed here.
mod latency {
    #[derive(Default)]
    pub(crate) struct Histogram;

    pub(crate) struct Latencies;

    impl Histogram {
        pub(crate) fn note(&self, _nanos: u64) {}

        pub(crate) fn read(&self) -> Latencies {
            Latencies
        }
    }
}

/// A runtime of some carriers and one thread, which never ends. Its queues order nothing.
mod shared {
    use machine::atomic::{AtomicBool, Fresh, Ordering};
    use machine::cell::UnsafeCell;

    use crate::carrier::Carrier;
    use crate::sleeping::Sleeping;
    use crate::standing::Standing;
    use crate::upcall::Counters;

    pub(crate) struct Shared {
        pub(crate) carriers: Vec<Carrier>,
        pub(crate) sleeping: Sleeping,
        /// The thread is ready.
        pub(crate) ready: AtomicBool,
        /// It waits for a time.
        pub(crate) time: AtomicBool,
        pub(crate) counters: Counters,
        /// What it has done.
        pub(crate) done: UnsafeCell<u32>,
    }

    // SAFETY: who asks looks at what the thread has done when it has parked. The models check that.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    pub(crate) struct Stacks;

    impl Stacks {
        pub(crate) fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }

    impl Shared {
        pub(crate) fn new(carriers: impl IntoIterator<Item = Standing>, seats: usize) -> Self {
            Self {
                carriers: carriers.into_iter().map(Carrier::new).collect(),
                sleeping: Sleeping::new(seats),
                ready: AtomicBool::fresh(false),
                time: AtomicBool::fresh(false),
                counters: Counters::default(),
                done: UnsafeCell::new(0),
            }
        }

        pub(crate) fn sleeping(&self) -> &Sleeping {
            &self.sleeping
        }

        pub(crate) fn started(&self) -> usize {
            self.carriers.len()
        }

        pub(crate) fn carrier(&self, index: usize) -> &Carrier {
            &self.carriers[index]
        }

        pub(crate) fn has_work(&self) -> bool {
            self.ready.load(Ordering::Relaxed)
        }

        pub(crate) fn awaits_time(&self) -> bool {
            self.time.load(Ordering::Relaxed)
        }

        pub(crate) fn ended_and_created(&self) -> (u64, u64) {
            (0, 1)
        }

        pub(crate) fn counters(&self) -> &Counters {
            &self.counters
        }

        pub(crate) fn stacks(&self) -> Stacks {
            Stacks
        }
    }
}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

fn beside(shared: &Arc<Shared>, body: impl FnOnce(&Shared) + 'static) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || body(&shared))
}

/// So many carriers with a seat each.
fn seated(carriers: usize) -> Arc<Shared> {
    Arc::new(Shared::new((0..carriers).map(|_| Standing::seated()), carriers))
}

impl Shared {
    /// The carrier goes on in a thread, on the seat of that number.
    fn leaves(&self, carrier: usize, seat: usize) {
        self.carrier(carrier).standing().leave(seat);
    }

    /// It comes back, finds nothing, and is about to sleep.
    fn comes_to_rest(&self, carrier: usize) {
        assert!(self.carrier(carrier).standing().enter(carrier), "nobody has taken the seat");
        self.sleeping.announce(carrier, false);
    }

    /// It has been given that seat.
    fn settles(&self, carrier: usize) {
        assert_eq!(self.carrier(carrier).standing().sleep(), Called::Seat);
        self.counters.tell(Upcall::ProcessorAdded, None);
    }

    fn is_silent(&self) {
        assert!(self.waits_for_others().is_none(), "the thread can go on");
    }
}

#[test]
fn stalls_when_all_have_parked() {
    explore("stalls_when_all_have_parked", Model::new(), || {
        let shared = seated(1);
        shared.leaves(0, 0);
        let carrier = beside(&shared, |shared| {
            // SAFETY: the thread, before it parks.
            shared.done.with_mut(|done| unsafe { *done = 7 });
            shared.comes_to_rest(0);
        });
        if shared.waits_for_others().is_some() {
            // SAFETY: it has parked.
            shared.done.with(|done| assert_eq!(unsafe { *done }, 7));
        }
        carrier.join().expect("no panic");
        assert_eq!(shared.stalled().expect("it waits for ever").waiting(), 1);
    });
}

/// Carrier 0 runs a thread, and makes one ready that carrier 1 alone can run.
fn mails(shared: &Shared) {
    shared.carrier(1).mail();
    shared.sleeping.tell_seat(1);
    shared.comes_to_rest(0);
}

/// Carrier 1 has found nothing to do.
fn looks_for_mail(shared: &Shared) {
    shared.sleeping.announce(1, false);
    if shared.carrier(1).has_mail() {
        shared.sleeping.retract(1);
    } else {
        shared.sleeping.sleep(1, Deadline::NEVER);
    }
    shared.carrier(1).read_mail();
    shared.leaves(1, 1);
}

#[test]
fn stalls_beside_mail() {
    explore("stalls_beside_mail", Model::new().choices(0), || {
        let shared = seated(2);
        shared.leaves(0, 0);
        let carriers = beside(&shared, |shared| {
            mails(shared);
            looks_for_mail(shared);
        });
        shared.is_silent();
        carriers.join().expect("no panic");
    });
}

#[test]
fn stalls_beside_mail_of_two_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("stalls_beside_mail_of_two_bounded", model, || {
        let shared = seated(2);
        shared.leaves(0, 0);
        let carriers = [beside(&shared, mails), beside(&shared, looks_for_mail)];
        shared.is_silent();
        carriers.into_iter().for_each(|carrier| carrier.join().expect("no panic"));
    });
}

#[test]
fn stalls_beside_a_time() {
    explore("stalls_beside_a_time", Model::new().choices(0), || {
        let shared = seated(1);
        shared.time.store(true, Ordering::Relaxed);
        shared.sleeping.announce(0, false);
        let carrier = beside(&shared, |shared| {
            // The time comes.
            shared.sleeping.retract(0);
            shared.time.store(false, Ordering::Relaxed);
            shared.leaves(0, 0);
            // The thread waits for another one.
            shared.time.store(true, Ordering::Relaxed);
            shared.comes_to_rest(0);
        });
        shared.is_silent();
        carrier.join().expect("no panic");
    });
}

/// A carrier with the one seat, and another with none.
fn one_seat() -> Arc<Shared> {
    Arc::new(Shared::new([Standing::seated(), Standing::spare()], 1))
}

#[test]
fn stalls_beside_a_block() {
    explore("stalls_beside_a_block", Model::new().choices(0), || {
        let shared = one_seat();
        let carriers = beside(&shared, |shared| {
            // Into the kernel.
            shared.leaves(0, 0);
            assert!(shared.carrier(0).standing().take(0));
            shared.carrier(1).standing().give();
            shared.settles(1);
            shared.sleeping.announce(0, false);
        });
        shared.is_silent();
        carriers.join().expect("no panic");
    });
}

/// The lookout has the seat in its hand for a while.
#[test]
fn stalls_beside_a_seat_in_hand() {
    explore("stalls_beside_a_seat_in_hand", Model::new().choices(0), || {
        let shared = one_seat();
        shared.ready.store(true, Ordering::Relaxed);
        shared.leaves(0, 0);
        assert!(shared.carrier(0).standing().take(0));
        let carriers = beside(&shared, |shared| {
            // Back from the kernel, with nothing to do.
            shared.carrier(0).standing().rest(false);
            shared.carrier(1).standing().give();
            shared.settles(1);
            shared.ready.store(false, Ordering::Relaxed);
            shared.leaves(1, 0);
        });
        shared.is_silent();
        carriers.join().expect("no panic");
    });
}
