//! Models of the slot scheduler: a member that may run gets its processor, no two members hold one
//! processor, and what was done on a processor is seen by its next holder.
//!
//! Each model says which threads it has, and what could go wrong:
//!
//! - `slot_scheduler_hands_over_bounded`: a member that ends, and one of the next slot. A wake-up
//!   is lost between releasing, rotating and sleeping; a race on the processor.
//! - `slot_scheduler_takes_over_bounded`: a member that ends, and one of the next slot that ends
//!   its turn. It has the processor, and does not see what was done there.
//! - `slot_scheduler_publishes_bounded`: a member that comes, and a thread that writes the table.
//!   The member sees the turn, and the table as it was before.
//! - `slot_scheduler_deactivates_and_activates_bounded`: two members of two slots, each inactive
//!   for a while. Both find the other's slot on, or none: one never comes back.
//! - `slot_scheduler_ends_a_turn_bounded`: a member that ends its turn itself, and one of the next
//!   slot. The first releases and is not woken again, or the next is not woken.
//! - `slot_scheduler_ends_a_turn_by_timer_bounded`: two members of two slots, and the timer. The
//!   same, while either comes or goes.
//! - `slot_scheduler_evicts_bounded`: a member that does not check, one of the next slot, and the
//!   timer. The next never gets the processor.
//! - `slot_scheduler_lowers_priority_bounded`: the same, where the timer changes priorities.
//! - `slot_scheduler_sees_a_holder_bounded`: a member that comes, and the timer. The member takes
//!   its processor in a turn that is over, and the timer does not see it.
//! - `slot_scheduler_migrates_bounded`: a member, and a thread that gives it another processor. It
//!   waits at the old one, or takes both.
//! - `slot_scheduler_unites_slots_bounded`: two members on one processor each, and their slots are
//!   united. One does not learn its new processor.
//! - `gang_parker_wakes`: a thread that parks, and one that unparks it. The unpark is lost, or what
//!   was done before it.
//! - `exchange_buffers_three_exchanges`: two members. One reads a value of another exchange, or one
//!   that is being written.
//!
//! Every model prints `model NAME: N executions`.

use stanchion_gang_loom::__internal::{ExchangeBuffers, Parker, Preemption, SlotScheduler, Turn};
use stanchion_gang_loom::barrier::{Barrier, Central};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy};
use stanchion_machine::{Model, thread};
use stanchion_models::{brief, explore};

/// A slot scheduler, and what is done on its processors.
struct Processors {
    /// The scheduler.
    scheduler: SlotScheduler,
    /// Counts what was done, by processor. Written by its holder.
    processors: Vec<UnsafeCell<u32>>,
}

// SAFETY: the scheduler keeps the holders of a processor apart. The models check that.
unsafe impl Send for Processors {}
// SAFETY: as above.
unsafe impl Sync for Processors {}

/// A quantum that is never over by itself: time stands still.
const LONG: u64 = 1_000_000;

impl Processors {
    /// Creates a slot for each row, in which each named entity has the processor of its column.
    fn new<const PROCESSORS: usize>(rows: &[[Option<usize>; PROCESSORS]]) -> Arc<Self> {
        Self::with_preemption(Preemption::None, rows)
    }

    fn with_preemption<const PROCESSORS: usize>(
        preemption: Preemption,
        rows: &[[Option<usize>; PROCESSORS]],
    ) -> Arc<Self> {
        let scheduler =
            SlotScheduler::new(PROCESSORS, rows.len(), LONG).with_preemption(preemption);
        for row in rows {
            for (processor, entity) in row.iter().enumerate() {
                entity.iter().for_each(|&entity| scheduler.assign(entity, processor));
            }
        }
        publish(&scheduler, rows);
        Arc::new(Self {
            scheduler,
            processors: (0..PROCESSORS).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    /// Waits for the turn of `entity` and does something on its processor.
    fn take_turn(&self, entity: usize) -> Turn {
        let turn = self.scheduler.wait_for_turn(entity);
        // SAFETY: the entity holds the processor.
        self.processors[self.scheduler.processor_of(entity)]
            .with_mut(|processor| unsafe { *processor += 1 });
        turn
    }
}

fn publish<const PROCESSORS: usize>(
    scheduler: &SlotScheduler,
    rows: &[[Option<usize>; PROCESSORS]],
) {
    let rows: Vec<_> =
        rows.iter().flatten().map(|sits| sits.map(|entity| (entity, true))).collect();
    scheduler.publish(&rows);
}

fn in_thread(
    shared: &Arc<Processors>,
    body: impl FnOnce(&Processors) + 'static,
) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || body(&shared))
}

#[test]
fn slot_scheduler_hands_over_bounded() {
    let model = brief::bounded(Model::new().choices(1), 2, 3);
    explore("slot_scheduler_hands_over_bounded", model, || {
        let shared = Processors::new(&[[Some(0)], [Some(1)]]);
        let next = in_thread(&shared, |shared| {
            shared.take_turn(1);
            shared.scheduler.deactivate(1);
        });
        shared.take_turn(0);
        shared.scheduler.deactivate(0);
        next.join().expect("no panic");
        // SAFETY: both have released the processor.
        shared.processors[0].with(|processor| assert_eq!(unsafe { *processor }, 2));
    });
}

#[test]
fn slot_scheduler_takes_over_bounded() {
    explore("slot_scheduler_takes_over_bounded", Model::new().preemptions(2).choices(1), || {
        let shared = Processors::new(&[[Some(0)], [Some(1)]]);
        let first = in_thread(&shared, |shared| {
            shared.take_turn(0);
            shared.scheduler.deactivate(0);
        });
        shared.scheduler.end_quantum(shared.scheduler.turn());
        shared.take_turn(1);
        shared.scheduler.deactivate(1);
        first.join().expect("no panic");
    });
}

#[test]
fn slot_scheduler_publishes_bounded() {
    explore("slot_scheduler_publishes_bounded", Model::new().preemptions(1).choices(1), || {
        let shared = Processors::new(&[[Some(0), None]]);
        let member = {
            let shared = shared.clone();
            thread::spawn(move || shared.take_turn(0))
        };
        publish(&shared.scheduler, &[[None, None]]);
        let without = shared.scheduler.turn();
        shared.scheduler.migrate(0, 1);
        publish(&shared.scheduler, &[[None, Some(0)]]);
        let passed = member.join().expect("no panic");
        // The table may be newer than the round, and not older.
        assert!(
            passed != without || shared.scheduler.holder(1) == Some(0),
            "it runs on a processor that it does not hold"
        );
    });
}

#[test]
fn slot_scheduler_deactivates_and_activates_bounded() {
    explore(
        "slot_scheduler_deactivates_and_activates_bounded",
        Model::new().preemptions(2).choices(1),
        || {
            let shared = Processors::new(&[[Some(0)], [Some(1)]]);
            let other = in_thread(&shared, |shared| {
                shared.scheduler.deactivate(1);
                shared.scheduler.activate(1);
                shared.take_turn(1);
                shared.scheduler.deactivate(1);
            });
            shared.take_turn(0);
            shared.scheduler.deactivate(0);
            other.join().expect("no panic");
        },
    );
}

#[test]
fn slot_scheduler_ends_a_turn_bounded() {
    explore("slot_scheduler_ends_a_turn_bounded", Model::new().preemptions(2).choices(1), || {
        let shared = Processors::new(&[[Some(0)], [Some(1)]]);
        let next = in_thread(&shared, |shared| {
            shared.take_turn(1);
            shared.scheduler.deactivate(1);
        });
        let turn = shared.take_turn(0);
        shared.scheduler.end_quantum(turn);
        shared.take_turn(0);
        next.join().expect("no panic");
    });
}

#[test]
fn slot_scheduler_ends_a_turn_by_timer_bounded() {
    explore(
        "slot_scheduler_ends_a_turn_by_timer_bounded",
        Model::new().preemptions(1).choices(1),
        || {
            let shared = Processors::new(&[[Some(0)], [Some(1)]]);
            let next = in_thread(&shared, |shared| {
                shared.take_turn(1);
                shared.scheduler.deactivate(1);
            });
            let member = in_thread(&shared, |shared| {
                shared.take_turn(0);
                shared.take_turn(0);
                shared.scheduler.deactivate(0);
            });
            shared.scheduler.end_quantum(shared.scheduler.turn());
            next.join().expect("no panic");
            member.join().expect("no panic");
        },
    );
}

#[test]
fn slot_scheduler_evicts_bounded() {
    explore("slot_scheduler_evicts_bounded", Model::new().preemptions(2).choices(1), || {
        let shared = Processors::new(&[[Some(0)], [Some(1)]]);
        shared.scheduler.wait_for_turn(0);
        let next = in_thread(&shared, |shared| {
            shared.scheduler.wait_for_turn(1);
            shared.scheduler.deactivate(1);
        });
        shared.scheduler.end_quantum(shared.scheduler.turn());
        shared.scheduler.evict_overstayers(shared.scheduler.turn());
        next.join().expect("no panic");
        shared.scheduler.deactivate(0);
    });
}

#[test]
fn slot_scheduler_lowers_priority_bounded() {
    explore(
        "slot_scheduler_lowers_priority_bounded",
        Model::new().preemptions(2).choices(1),
        || {
            let shared = Processors::with_preemption(Preemption::Priority, &[[Some(0)], [Some(1)]]);
            shared.scheduler.wait_for_turn(0);
            let next = in_thread(&shared, |shared| {
                shared.scheduler.wait_for_turn(1);
                shared.scheduler.deactivate(1);
            });
            shared.scheduler.end_quantum(shared.scheduler.turn());
            shared.scheduler.update_priorities(&mut Vec::new());
            next.join().expect("no panic");
            shared.scheduler.deactivate(0);
        },
    );
}

#[test]
fn slot_scheduler_sees_a_holder_bounded() {
    explore("slot_scheduler_sees_a_holder_bounded", Model::new().preemptions(2).choices(1), || {
        let shared = Processors::new(&[[Some(0)], [Some(1)]]);
        let first = shared.scheduler.turn();
        let member = {
            let shared = shared.clone();
            thread::spawn(move || shared.take_turn(0))
        };
        shared.scheduler.end_quantum(first);
        let seen = shared.scheduler.holder(0);
        // Entity 1 becomes inactive: it is slot 0's turn again.
        shared.scheduler.deactivate(1);
        let passed = member.join().expect("no panic");
        assert!(
            !passed.is_same_turn(first) || seen == Some(0),
            "it stays, and the timer does not know"
        );
    });
}

#[test]
fn slot_scheduler_migrates_bounded() {
    explore("slot_scheduler_migrates_bounded", Model::new().preemptions(2).choices(1), || {
        let shared = Processors::new(&[[Some(0), None]]);
        let member = in_thread(&shared, |shared| {
            let _ = shared.take_turn(0);
        });
        shared.scheduler.migrate(0, 1);
        publish(&shared.scheduler, &[[None, Some(0)]]);
        member.join().expect("no panic");
        shared.take_turn(0);
        assert_eq!((shared.scheduler.holder(0), shared.scheduler.holder(1)), (None, Some(0)));
    });
}

#[test]
fn slot_scheduler_unites_slots_bounded() {
    explore("slot_scheduler_unites_slots_bounded", Model::new().preemptions(2).choices(1), || {
        let shared = Processors::new(&[[Some(0), None], [Some(1), None]]);
        let other = in_thread(&shared, |shared| {
            let _ = shared.take_turn(1);
        });
        shared.take_turn(0);
        // Slot 1 is given up: its member runs beside the other from now on, which stays until the
        // end.
        shared.scheduler.migrate(1, 1);
        publish(&shared.scheduler, &[[Some(0), Some(1)]]);
        other.join().expect("no panic");
    });
}

#[test]
fn gang_parker_wakes() {
    explore("gang_parker_wakes", Model::new(), || {
        let parker = Arc::new((Parker::default(), AtomicU32::fresh(0)));
        let ringer = {
            let parker = parker.clone();
            thread::spawn(move || {
                // Relaxed: the parker orders it.
                parker.1.store(1, Ordering::Relaxed);
                parker.0.unpark();
            })
        };
        loop {
            parker.0.prepare();
            // Relaxed: as above.
            if parker.1.load(Ordering::Relaxed) != 0 {
                parker.0.cancel();
                break;
            }
            parker.0.park(Deadline::NEVER);
        }
        ringer.join().expect("no panic");
    });
}

/// Does three exchanges: the third writes the buffers from which the first was read.
fn exchange(buffers: &ExchangeBuffers, barrier: &Central, me: usize) {
    barrier.member_state(me);
    for phase in 0..3_u64 {
        // SAFETY: its own buffer, before it arrives for this phase.
        unsafe { buffers.write(me, phase, phase * 10 + me as u64) };
        let crossed = barrier.wait_at(&mut (), &mut <Patient>::start(), Deadline::NEVER);
        let _ = crossed.expect("whole");
        // SAFETY: after the crossing, and before the next arrival.
        assert_eq!(unsafe { buffers.read::<u64>(1 - me, phase) }, phase * 10 + 1 - me as u64);
    }
}

#[test]
fn exchange_buffers_three_exchanges() {
    explore("exchange_buffers_three_exchanges", Model::new().choices(0), || {
        let shared = Arc::new((ExchangeBuffers::new(2), Central::new(2).expect("two are few")));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || exchange(&shared.0, &shared.1, 1))
        };
        exchange(&shared.0, &shared.1, 0);
        other.join().expect("no panic");
    });
}
