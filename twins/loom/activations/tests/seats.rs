//! Models of seats: one carrier uses a seat, whoever takes it sees what was done on it, and no seat
//! and no carrier is forgotten.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `seats_taken_or_entered` | a carrier that comes back from a thread, one that takes its seat | both use it |
//! | `seats_taken_and_given_bounded` | the same, where the taker gives it to a third carrier | that does not see what was done on it |
//! | `seats_taken_by_two_bounded` | a carrier in a thread, two that take its seat | both have it |
//! | `seats_taken_too_late` | a carrier that has lost its seat and runs on another, one that still takes it for the first one's holder | the first has two users |
//! | `seats_called_or_rested_bounded` | a carrier that rests, one that mails it a thread | it sleeps beside its mail, and nobody knows that it wants a seat |
//! | `seats_raised_or_rested_bounded` | a carrier that rests with a thread of low priority, one that mails it an urgent one | it waits for a seat behind those that are less urgent |
//! | `seats_vacant_or_rested_bounded` | a carrier that rests, one that has a seat for which there is nobody | one waits for the other |
//! | `seats_end_or_rest_bounded` | a carrier that rests, one that ends all that rest | it sleeps for ever |
//! | `seats_asleep_or_told`, `seats_asleep_or_told_by_number` | a carrier that goes to sleep on its seat, one that makes something ready | it sleeps beside it |
//! | `seats_told_of_what_was_done` | the same, where it looks no more | it does not see what was done |
//! | `seats_opened_and_closed` | two that each open a seat of a surplus of one, use it and close it | both have it, or one does not see what was done on it |
//! | `seats_closed_as_too_many` | two that each have a seat of the surplus, of which one is too many | both close theirs, or none |
//! | `seats_reopened_after_too_many` | one that closes a seat too many, one that opens it again | it does not see what was done on it |
//! | `seats_dozing_or_told_bounded` | a carrier that dozes, which nobody wakes for what lies at another seat, and then sleeps; one that makes such a thing ready | it sleeps beside it |
//! | `seats_dozing_or_called_bounded` | a carrier that dozes, one that wakes all for something else | it dozes beside it |
//! | `seats_asleep_for_a_time` | a carrier that goes to sleep for a time, which may pass, one that makes something ready | it goes on while it is being woken, and sleeps through the next time |
//!
//! Two threads are explored without bound, but for those between which the lock of the reserve is:
//! a mutex with a policy, whose every try is explored. Every model prints `model NAME: N
//! executions`.

#[path = "common/carrier.rs"]
#[allow(dead_code)]
mod carrier;
#[path = "../../../../crates/activations/src/priority.rs"]
#[allow(dead_code, unreachable_pub)]
mod priority;
#[path = "../../../../crates/activations/src/reserve.rs"]
#[allow(dead_code, unreachable_pub)]
mod reserve;
#[path = "../../../../crates/activations/src/seat.rs"]
#[allow(dead_code, unreachable_pub)]
mod seat;
#[path = "../../../../crates/activations/src/sleeping.rs"]
#[allow(dead_code, unreachable_pub)]
mod sleeping;
#[path = "../../../../crates/activations/src/standing.rs"]
#[allow(dead_code, unreachable_pub)]
mod standing;
#[path = "../../../../crates/activations/src/surplus.rs"]
#[allow(dead_code, unreachable_pub)]
mod surplus;

use carrier::Carrier;
use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::{Model, thread};
use priority::Priority;
use reserve::{Reserve, Rest};
use sleeping::Sleeping;
use standing::{Called, Standing};
use surplus::Surplus;

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// Carrier 0 sits on seat 0 and runs a thread; the others have no seat.
struct Room {
    carriers: [Carrier; 3],
    reserve: Reserve,
    /// What is done on the seats.
    seats: [UnsafeCell<u32>; 2],
}

// SAFETY: seats are used by one at a time. The models check that.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

impl Room {
    fn new() -> Arc<Self> {
        Self::with(Carrier::new(Standing::seated()))
    }

    fn with(seated: Carrier) -> Arc<Self> {
        let spare = || Carrier::new(Standing::spare());
        let room = Self {
            carriers: [seated, spare(), spare()],
            reserve: Reserve::new(),
            seats: [UnsafeCell::new(0), UnsafeCell::new(0)],
        };
        room.sit(0);
        room.standing(0).leave(0);
        Arc::new(room)
    }

    fn standing(&self, carrier: usize) -> &Standing {
        self.carriers[carrier].standing()
    }

    /// Uses a seat.
    fn sit(&self, seat: usize) {
        // SAFETY: the caller has it. The models check that.
        self.seats[seat].with_mut(|seat| unsafe { *seat += 1 });
    }
}

fn beside(room: &Arc<Room>, body: impl FnOnce(&Room) + 'static) -> thread::JoinHandle<()> {
    let room = room.clone();
    thread::spawn(move || body(&room))
}

#[test]
fn seats_taken_or_entered() {
    explore("seats_taken_or_entered", Model::new(), || {
        let room = Room::new();
        let taker = beside(&room, |room| {
            if room.standing(0).take(0) {
                room.sit(0);
            }
        });
        if room.standing(0).enter(0) {
            room.sit(0);
            room.standing(0).leave(0);
        }
        taker.join().expect("no panic");
    });
}

#[test]
fn seats_taken_and_given_bounded() {
    explore("seats_taken_and_given_bounded", Model::new().preemptions(2).choices(0), || {
        let room = Room::new();
        let other = beside(&room, |room| {
            if room.standing(1).sleep() == Called::Seat {
                room.sit(0);
            }
        });
        let holder = beside(&room, |room| {
            if room.standing(0).enter(0) {
                room.sit(0);
                room.standing(0).leave(0);
            }
        });
        if room.standing(0).take(0) {
            room.standing(1).give();
        } else {
            room.standing(1).end();
        }
        other.join().expect("no panic");
        holder.join().expect("no panic");
    });
}

#[test]
fn seats_taken_by_two_bounded() {
    explore("seats_taken_by_two_bounded", Model::new().preemptions(3), || {
        let room = Room::new();
        let taken = Arc::new(AtomicU32::fresh(0));
        let takers = [0, 1].map(|_| {
            let taken = taken.clone();
            beside(&room, move |room| {
                if room.standing(0).take(0) {
                    room.sit(0);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        takers.into_iter().for_each(|taker| taker.join().expect("no panic"));
        assert_eq!(taken.load(Ordering::Relaxed), 1);
        assert!(!room.standing(0).enter(0));
    });
}

#[test]
fn seats_taken_too_late() {
    explore("seats_taken_too_late", Model::new().choices(0), || {
        let room = Room::new();
        // It has seen that carrier 0 sits there.
        let late = beside(&room, |room| {
            if room.standing(0).take(0) {
                room.sit(0);
            }
        });
        if room.standing(0).take(0) {
            // Carrier 1 has it now, and carrier 0 comes back, to another seat.
            room.standing(0).give();
            room.standing(0).leave(1);
            room.sit(0);
        }
        late.join().expect("no panic");
    });
}

#[test]
fn seats_called_or_rested_bounded() {
    explore("seats_called_or_rested_bounded", Model::new().preemptions(3).choices(0), || {
        let room = Room::new();
        assert!(room.standing(0).take(0));
        let caller = beside(&room, |room| {
            let carrier = &room.carriers[0];
            carrier.mail();
            room.reserve.call(0, carrier, Priority::Normal);
        });
        room.reserve.rest(0, &room.carriers[0], None, true);
        caller.join().expect("no panic");
        assert_eq!(room.reserve.waiting(), 1, "it has mail, and no seat");
    });
}

/// A carrier that wants a seat for a thread of low priority is mailed an urgent one.
#[test]
fn seats_raised_or_rested_bounded() {
    explore("seats_raised_or_rested_bounded", Model::new().preemptions(3).choices(0), || {
        let carrier = Carrier::with_mail_priority(Standing::seated(), Priority::High);
        let room = Room::with(carrier);
        assert!(room.standing(0).take(0));
        let caller = beside(&room, |room| {
            let carrier = &room.carriers[0];
            carrier.mail();
            room.reserve.call(0, carrier, Priority::High);
        });
        room.reserve.rest(0, &room.carriers[0], Some(Priority::Low), true);
        caller.join().expect("no panic");
        assert_eq!(room.reserve.waiting(), 1, "it waits once");
        assert_eq!(room.reserve.waiting_from(Priority::High), 1, "as the urgent thread does");
    });
}

#[test]
fn seats_vacant_or_rested_bounded() {
    explore("seats_vacant_or_rested_bounded", Model::new().preemptions(2).choices(0), || {
        let room = Room::new();
        assert!(room.standing(0).take(0));
        let taker = beside(&room, |room| {
            room.sit(0);
            if let Some(carrier) = room.reserve.vacate(0) {
                room.standing(carrier).give();
            }
        });
        match room.reserve.rest(0, &room.carriers[0], Some(Priority::Normal), true) {
            Rest::Seat(0) => {}
            Rest::Wanting => assert_eq!(room.standing(0).sleep(), Called::Seat),
            other => unreachable!("{other:?}"),
        }
        room.sit(0);
        taker.join().expect("no panic");
    });
}

#[test]
fn seats_end_or_rest_bounded() {
    explore("seats_end_or_rest_bounded", Model::new().preemptions(2).choices(0), || {
        let room = Room::new();
        assert!(room.standing(0).take(0));
        let ended = [AtomicU32::fresh(0), AtomicU32::fresh(0)];
        let ended = Arc::new(ended);
        let both =
            |ended: &[AtomicU32; 2]| ended.iter().all(|one| one.load(Ordering::Acquire) == 1);
        let end = move |room: &Room, ended: &[AtomicU32; 2]| {
            if both(ended) {
                room.reserve.end(|carrier| room.standing(carrier).end());
            }
        };
        let last = {
            let ended = ended.clone();
            beside(&room, move |room| {
                // As on a carrier that rests: under the lock there is a fence.
                ended[1].store(1, Ordering::Release);
                let rest = room.reserve.rest(1, &room.carriers[1], None, true);
                assert_eq!(rest, Rest::Spare);
                end(room, &ended);
                assert_eq!(room.standing(1).sleep(), Called::End);
            })
        };
        ended[0].store(1, Ordering::Release);
        assert_eq!(room.reserve.rest(0, &room.carriers[0], None, true), Rest::Spare);
        end(&room, &ended);
        assert_eq!(room.standing(0).sleep(), Called::End);
        last.join().expect("no panic");
    });
}

/// A seat that sleeps, and what may be ready for it.
struct Bed {
    sleeping: Sleeping,
    ready: AtomicU32,
    what: UnsafeCell<u32>,
}

// SAFETY: `what` is written before it is ready, and read after. The models check that.
unsafe impl Send for Bed {}
// SAFETY: as above.
unsafe impl Sync for Bed {}

impl Bed {
    fn new() -> Self {
        let (ready, what) = (AtomicU32::fresh(0), UnsafeCell::new(0));
        Self { sleeping: Sleeping::new(1), ready, what }
    }
}

/// Sleeps as a carrier does, until something is ready.
fn rest(bed: &Bed, deadline: Deadline) {
    loop {
        bed.sleeping.announce(0, false);
        // Relaxed: the fences order it; what is ready is taken under a lock.
        if bed.ready.load(Ordering::Relaxed) == 1 {
            bed.sleeping.retract(0);
        } else {
            bed.sleeping.sleep(0, deadline);
        }
        // Acquire: what a queue's lock does.
        if bed.ready.load(Ordering::Acquire) == 1 {
            // SAFETY: it is ready.
            bed.what.with(|what| assert_eq!(unsafe { *what }, 7));
            return;
        }
    }
}

/// Who has slept has been told, and sees what was done before that, without another look at what is
/// ready.
#[test]
fn seats_told_of_what_was_done() {
    explore("seats_told_of_what_was_done", Model::new().choices(0), || {
        let bed = Arc::new(Bed::new());
        let teller = {
            let bed = bed.clone();
            thread::spawn(move || {
                // SAFETY: nobody has been told yet.
                bed.what.with_mut(|what| unsafe { *what = 7 });
                // Relaxed: the fences order it.
                bed.ready.store(1, Ordering::Relaxed);
                bed.sleeping.tell(1, false);
            })
        };
        bed.sleeping.announce(0, false);
        // Relaxed: likewise.
        if bed.ready.load(Ordering::Relaxed) == 1 {
            bed.sleeping.retract(0);
        } else {
            bed.sleeping.sleep(0, Deadline::NEVER);
            // SAFETY: told.
            bed.what.with(|what| assert_eq!(unsafe { *what }, 7));
        }
        teller.join().expect("no panic");
    });
}

fn asleep_or_told(name: &str, model: Model, deadline: fn() -> Deadline, by_seat: bool) {
    explore(name, model, move || {
        let bed = Arc::new(Bed::new());
        let teller = {
            let bed = bed.clone();
            thread::spawn(move || {
                // SAFETY: it is not ready yet.
                bed.what.with_mut(|what| unsafe { *what = 7 });
                bed.ready.store(1, Ordering::Release);
                if by_seat {
                    bed.sleeping.tell_seat(0);
                } else {
                    bed.sleeping.tell(1, false);
                }
            })
        };
        rest(&bed, deadline());
        teller.join().expect("no panic");
    });
}

#[test]
fn seats_asleep_or_told() {
    let model = Model::new().choices(0);
    asleep_or_told("seats_asleep_or_told", model, || Deadline::NEVER, false);
}

#[test]
fn seats_asleep_or_told_by_number() {
    let model = Model::new().choices(0);
    asleep_or_told("seats_asleep_or_told_by_number", model, || Deadline::NEVER, true);
}

#[test]
fn seats_asleep_for_a_time() {
    let soon = || Deadline::after(core::time::Duration::from_secs(1));
    let model = Model::new().choices(1);
    asleep_or_told("seats_asleep_for_a_time", model, soon, false);
}

/// A surplus of seats from number 0 on.
struct More {
    surplus: Surplus,
    seats: [UnsafeCell<u32>; 2],
}

// SAFETY: seats are used by one at a time. The models check that.
unsafe impl Send for More {}
// SAFETY: as above.
unsafe impl Sync for More {}

impl More {
    fn new(count: usize) -> Arc<Self> {
        let seats = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self { surplus: Surplus::new(0, count), seats })
    }

    fn sit(&self, seat: usize) {
        // SAFETY: the caller has it. The models check that.
        self.seats[seat].with_mut(|seat| unsafe { *seat += 1 });
    }
}

#[test]
fn seats_opened_and_closed() {
    fn use_one(more: &More) {
        if let Some(seat) = more.surplus.open() {
            more.sit(seat);
            more.surplus.close(seat);
        }
    }
    explore("seats_opened_and_closed", Model::new(), || {
        let more = More::new(1);
        let other = {
            let more = more.clone();
            thread::spawn(move || use_one(&more))
        };
        use_one(&more);
        other.join().expect("no panic");
        assert!(!more.surplus.is_open());
    });
}

#[test]
fn seats_closed_as_too_many() {
    explore("seats_closed_as_too_many", Model::new(), || {
        let more = More::new(2);
        let [mine, others] = [0, 1].map(|_| more.surplus.open().expect("there are two"));
        more.surplus.allow(1);
        let other = {
            let more = more.clone();
            thread::spawn(move || more.surplus.close_one_too_many(others))
        };
        let closed = more.surplus.close_one_too_many(mine);
        assert_ne!(closed, other.join().expect("no panic"));
    });
}

#[test]
fn seats_reopened_after_too_many() {
    explore("seats_reopened_after_too_many", Model::new(), || {
        let more = More::new(1);
        assert_eq!(more.surplus.open(), Some(0));
        more.surplus.allow(0);
        let other = {
            let more = more.clone();
            thread::spawn(move || {
                more.sit(0);
                more.surplus.close_one_too_many(0)
            })
        };
        // Perhaps before the other looks: then it keeps the seat.
        more.surplus.allow(1);
        if more.surplus.open().is_some() {
            more.sit(0);
        }
        other.join().expect("no panic");
    });
}

/// Dozes once, without a look at what is ready elsewhere, then sleeps as one who looks.
fn dozing_or_told(name: &str, own: bool) {
    explore(name, Model::new().preemptions(3).choices(0), move || {
        let bed = Arc::new(Bed {
            sleeping: Sleeping::new(1),
            ready: AtomicU32::fresh(0),
            what: UnsafeCell::new(0),
        });
        let teller = {
            let bed = bed.clone();
            thread::spawn(move || {
                // SAFETY: it is not ready yet.
                bed.what.with_mut(|what| unsafe { *what = 7 });
                bed.ready.store(1, Ordering::Release);
                bed.sleeping.tell(1, own);
            })
        };
        bed.sleeping.announce(0, true);
        if own {
            // Nobody wakes it for that; it comes back by itself.
            bed.sleeping.sleep(0, Deadline::PAST);
            rest(&bed, Deadline::NEVER);
        } else if bed.ready.load(Ordering::Relaxed) == 1 {
            bed.sleeping.retract(0);
        } else {
            // Its time does not pass: it must be woken.
            bed.sleeping.sleep(0, Deadline::NEVER);
        }
        teller.join().expect("no panic");
    });
}

#[test]
fn seats_dozing_or_told_bounded() {
    dozing_or_told("seats_dozing_or_told_bounded", true);
}

#[test]
fn seats_dozing_or_called_bounded() {
    dozing_or_told("seats_dozing_or_called_bounded", false);
}
