//! Models of the gate: whoever may sit gets in, nobody sits on another's lap, and what was done on
//! a seat is seen by who sits there next.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `gate_handed_over_bounded` | a member that ends, one of the next slot | a wake-up is lost between leaving, turning and sleeping; a race on the seat |
//! | `gate_taken_over_bounded` | a member that ends, one of the next slot that ends its turn | it has the seat, and not what was done there |
//! | `gate_published_bounded` | a member that comes, who writes the table | it sees the round, and the table as it was before |
//! | `gate_retire_and_resume_bounded` | two members of two slots, each blocked for a while | both find the other's slot on, or nobody's: one never comes back |
//! | `gate_turned_bounded` | a member that ends its turn itself, one of the next slot | who looks leaves and is not woken again; the next is not woken |
//! | `gate_turned_by_the_clock_bounded` | two members of two slots, the clock | the same, while either comes or goes |
//! | `gate_put_out_bounded` | one that does not look, one of the next slot, the clock | the next never gets the seat |
//! | `gate_fallen_behind_bounded` | the same, where the clock changes priorities | the same |
//! | `gate_sits_or_is_seen_bounded` | a member that comes, the clock | it sits down in a turn that is over, and who ends the turn does not see it |
//! | `gate_moved_bounded` | a member, and who gives it another seat | it waits at the old seat; it takes both |
//! | `gate_given_up_bounded` | two members on one seat each, whose slots are united | one is not told of its new seat |
//! | `bell_rings` | who listens, who rings | the ring is not heard, or not what was done before it |
//! | `board_three_exchanges` | two members | a value of another exchange is read, or one that is being written |
//!
//! Every model prints `model NAME: N executions`.

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::wait::{Patient, WaitPolicy};
use machine::{Model, thread};
use stanchion_gang_loom::__internal::{Bell, Board, Force, Gate, Round};
use stanchion_gang_loom::barrier::{Barrier, Central};

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A gate, and what is done on its seats.
struct Room {
    gate: Gate,
    seats: Vec<UnsafeCell<u32>>,
}

// SAFETY: the seats' holders are apart, by the gate. The models check that.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

/// A quantum that is never over by itself: time stands still.
const LONG: u64 = 1_000_000;

impl Room {
    /// One slot a row, in which each named berth has the seat of its column.
    fn new<const SEATS: usize>(rows: &[[Option<usize>; SEATS]]) -> Arc<Self> {
        Self::forcing(Force::None, rows)
    }

    fn forcing<const SEATS: usize>(force: Force, rows: &[[Option<usize>; SEATS]]) -> Arc<Self> {
        let gate = Gate::new(SEATS, rows.len(), LONG).forcing(force);
        for row in rows {
            for (seat, berth) in row.iter().enumerate() {
                berth.iter().for_each(|&berth| gate.assign(berth, seat));
            }
        }
        publish(&gate, rows);
        Arc::new(Self { gate, seats: (0..SEATS).map(|_| UnsafeCell::new(0)).collect() })
    }

    /// Goes through the gate and does something on its seat.
    fn pass(&self, berth: usize) -> Round {
        let round = self.gate.pass(berth);
        // SAFETY: the seat is its own, by the gate.
        self.seats[self.gate.seat(berth)].with_mut(|seat| unsafe { *seat += 1 });
        round
    }
}

fn publish<const SEATS: usize>(gate: &Gate, rows: &[[Option<usize>; SEATS]]) {
    let rows: Vec<_> = rows.iter().flatten().map(|sits| sits.map(|berth| (berth, true))).collect();
    gate.publish(&rows);
}

fn in_thread(room: &Arc<Room>, body: impl FnOnce(&Room) + 'static) -> thread::JoinHandle<()> {
    let room = room.clone();
    thread::spawn(move || body(&room))
}

#[test]
fn gate_handed_over_bounded() {
    explore("gate_handed_over_bounded", Model::new().preemptions(3).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        let next = in_thread(&room, |room| {
            room.pass(1);
            room.gate.retire(1);
        });
        room.pass(0);
        room.gate.retire(0);
        next.join().expect("no panic");
        // SAFETY: both have left the seat.
        room.seats[0].with(|seat| assert_eq!(unsafe { *seat }, 2));
    });
}

#[test]
fn gate_taken_over_bounded() {
    explore("gate_taken_over_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        let first = in_thread(&room, |room| {
            room.pass(0);
            room.gate.retire(0);
        });
        room.gate.turn_over(room.gate.round());
        room.pass(1);
        room.gate.retire(1);
        first.join().expect("no panic");
    });
}

#[test]
fn gate_published_bounded() {
    explore("gate_published_bounded", Model::new().preemptions(1).choices(1), || {
        let room = Room::new(&[[Some(0), None]]);
        let member = {
            let room = room.clone();
            thread::spawn(move || room.pass(0))
        };
        publish(&room.gate, &[[None, None]]);
        let without = room.gate.round();
        room.gate.move_to(0, 1);
        publish(&room.gate, &[[None, Some(0)]]);
        let passed = member.join().expect("no panic");
        // The table may be newer than the round, and not older.
        assert!(passed != without || room.gate.holder(1) == Some(0), "it sits where nobody does");
    });
}

#[test]
fn gate_retire_and_resume_bounded() {
    explore("gate_retire_and_resume_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        let other = in_thread(&room, |room| {
            room.gate.retire(1);
            room.gate.resume(1);
            room.pass(1);
            room.gate.retire(1);
        });
        room.pass(0);
        room.gate.retire(0);
        other.join().expect("no panic");
    });
}

#[test]
fn gate_turned_bounded() {
    explore("gate_turned_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        let next = in_thread(&room, |room| {
            room.pass(1);
            room.gate.retire(1);
        });
        let round = room.pass(0);
        room.gate.turn_over(round);
        room.pass(0);
        next.join().expect("no panic");
    });
}

#[test]
fn gate_turned_by_the_clock_bounded() {
    explore("gate_turned_by_the_clock_bounded", Model::new().preemptions(1).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        let next = in_thread(&room, |room| {
            room.pass(1);
            room.gate.retire(1);
        });
        let member = in_thread(&room, |room| {
            room.pass(0);
            room.pass(0);
            room.gate.retire(0);
        });
        room.gate.turn_over(room.gate.round());
        next.join().expect("no panic");
        member.join().expect("no panic");
    });
}

#[test]
fn gate_put_out_bounded() {
    explore("gate_put_out_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        room.gate.pass(0);
        let next = in_thread(&room, |room| {
            room.gate.pass(1);
            room.gate.retire(1);
        });
        room.gate.turn_over(room.gate.round());
        room.gate.put_out(room.gate.round());
        next.join().expect("no panic");
        room.gate.retire(0);
    });
}

#[test]
fn gate_fallen_behind_bounded() {
    explore("gate_fallen_behind_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::forcing(Force::Prefer, &[[Some(0)], [Some(1)]]);
        room.gate.pass(0);
        let next = in_thread(&room, |room| {
            room.gate.pass(1);
            room.gate.retire(1);
        });
        room.gate.turn_over(room.gate.round());
        room.gate.prefer(&mut Vec::new());
        next.join().expect("no panic");
        room.gate.retire(0);
    });
}

#[test]
fn gate_sits_or_is_seen_bounded() {
    explore("gate_sits_or_is_seen_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0)], [Some(1)]]);
        let first = room.gate.round();
        let member = {
            let room = room.clone();
            thread::spawn(move || room.pass(0))
        };
        room.gate.turn_over(first);
        let seen = room.gate.holder(0);
        // Berth 1 takes no part: it is slot 0's turn again.
        room.gate.retire(1);
        let passed = member.join().expect("no panic");
        assert!(!passed.is_same_turn(first) || seen == Some(0), "it stays, and nobody knows");
    });
}

#[test]
fn gate_moved_bounded() {
    explore("gate_moved_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0), None]]);
        let member = in_thread(&room, |room| {
            let _ = room.pass(0);
        });
        room.gate.move_to(0, 1);
        publish(&room.gate, &[[None, Some(0)]]);
        member.join().expect("no panic");
        room.pass(0);
        assert_eq!((room.gate.holder(0), room.gate.holder(1)), (None, Some(0)));
    });
}

#[test]
fn gate_given_up_bounded() {
    explore("gate_given_up_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::new(&[[Some(0), None], [Some(1), None]]);
        let other = in_thread(&room, |room| {
            let _ = room.pass(1);
        });
        room.pass(0);
        // Slot 1 is given up: its member sits beside the other from now on, which stays until the
        // end.
        room.gate.move_to(1, 1);
        publish(&room.gate, &[[Some(0), Some(1)]]);
        other.join().expect("no panic");
    });
}

#[test]
fn bell_rings() {
    explore("bell_rings", Model::new(), || {
        let bell = Arc::new((Bell::new(), AtomicU32::fresh(0)));
        let ringer = {
            let bell = bell.clone();
            thread::spawn(move || {
                // Relaxed: the bell orders it.
                bell.1.store(1, Ordering::Relaxed);
                bell.0.ring();
            })
        };
        loop {
            bell.0.listen();
            // Relaxed: as above.
            if bell.1.load(Ordering::Relaxed) != 0 {
                bell.0.stay_awake();
                break;
            }
            bell.0.sleep(Deadline::NEVER);
        }
        ringer.join().expect("no panic");
    });
}

/// Three exchanges: the third writes where the first was read.
fn exchange(board: &Board, barrier: &Central, me: usize) {
    barrier.place(me);
    for phase in 0..3_u64 {
        // SAFETY: its own place, before it arrives for this phase.
        unsafe { board.post(me, phase, phase * 10 + me as u64) };
        let crossed = barrier.wait_at(&mut (), &mut <Patient>::start(), Deadline::NEVER);
        let _ = crossed.expect("whole");
        // SAFETY: after the crossing, and before the next arrival.
        assert_eq!(unsafe { board.read::<u64>(1 - me, phase) }, phase * 10 + 1 - me as u64);
    }
}

#[test]
fn board_three_exchanges() {
    explore("board_three_exchanges", Model::new().choices(0), || {
        let shared = Arc::new((Board::new(2), Central::new(2).expect("two are few")));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || exchange(&shared.0, &shared.1, 1))
        };
        exchange(&shared.0, &shared.1, 0);
        other.join().expect("no panic");
    });
}
