//! Models of the barriers: no member goes on before all have arrived, what was done before is seen
//! after, a phase is crossed by all or broken for all, and each member that sleeps is woken.
//!
//! Each barrier has these models. Some are only of the barriers that spin, or have another bound
//! for barriers that sleep.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `two_members` | 2, one phase | none |
//! | `two_phases` (not if they sleep) | 2 | none |
//! | `two_long_phases_bounded` (if they spin) | 2 | 2 preemptions |
//! | `two_sleepers_bounded` (if they spin) | 3, one phase | 2 preemptions |
//! | `a_timeout_meets_an_arrival` | 2, one gives up at any time | none or 3 preemptions |
//! | `a_leaver_meets_an_arrival` | 2, one leaves when it has crossed | none or 3 preemptions |
//! | `a_leaver_meets_a_waiter` | 2, one leaves instead of arriving | none |
//! | `a_leaver_meets_a_sleeper_bounded` (if they spin) | the same | 3 preemptions |
//! | `three_members_bounded` | 3, one phase | 3 preemptions, or 2 |
//! | `a_leaver_meets_two_bounded` (`Dissemination`) | 3, one leaves | 4 preemptions |
//! | `a_timeout_meets_two_bounded` | 3, one gives up at any time | 1 preemption |
//!
//! A member of a barrier that is made for spinning goes to sleep by choice: its first choice says
//! whether its first wait is a long one. In `two_long_phases_bounded` each member goes to sleep or
//! not in each of two phases.
//!
//! Sleepers wake spuriously only where a deadline may pass as well. Elsewhere that multiplies the
//! executions by a hundred.

use core::time::Duration;

use stanchion_gang_loom::barrier::{Barrier, CoResident, Dissemination, TwoPhase, Yielding};
use stanchion_gang_loom::{Broken, Crossing, Waiter};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy};
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A cell that one member at a time writes: the phase says which.
struct Written(UnsafeCell<u32>);

// SAFETY: the phases of a barrier keep its writers and readers apart. The models check that.
unsafe impl Send for Written {}
// SAFETY: as above.
unsafe impl Sync for Written {}

/// The cells that members share, one for each member.
struct Cells<const MEMBERS: usize>([Written; MEMBERS]);

impl<const MEMBERS: usize> Cells<MEMBERS> {
    fn new() -> Arc<Self> {
        Arc::new(Self([0; MEMBERS].map(|phase| Written(UnsafeCell::new(phase)))))
    }

    /// Writes the cell of `me` before a phase. The others read it after that.
    fn write(&self, me: usize, phase: u32) {
        // SAFETY: the member's own cell. Its last readers have arrived in the phase before.
        self.0[me].0.with_mut(|mine| unsafe { *mine = phase });
    }

    /// Reads the cells of the others after a phase. Their members write again after the next.
    fn read(&self, me: usize, phase: u32) {
        for (_, cell) in self.0.iter().enumerate().filter(|&(index, _)| index != me) {
            // SAFETY: all members have crossed the phase before which it was written.
            cell.0.with(|theirs| assert_eq!(unsafe { *theirs }, phase));
        }
    }
}

/// Runs `body` as every member, and returns the result of each.
fn together<B: Barrier + 'static, const MEMBERS: usize, R: Send + 'static>(
    body: impl Fn(Waiter<Arc<B>>, &Cells<MEMBERS>) -> R + Copy + Send + 'static,
) -> Vec<R> {
    let cells = Cells::new();
    let barrier = Arc::new(B::with_members(MEMBERS).expect("few"));
    let mut waiters = Waiter::all(barrier).into_iter();
    let first = waiters.next().expect("at least one");
    let others: Vec<_> = waiters
        .map(|waiter| {
            let cells = Arc::clone(&cells);
            thread::spawn(move || body(waiter, &cells))
        })
        .collect();
    let mut results = vec![body(first, &cells)];
    results.extend(others.into_iter().map(|other| other.join().expect("no panic")));
    results
}

fn leads(crossing: Result<Crossing, Broken>) -> u32 {
    crossing.expect("whole").is_leader().into()
}

/// Models some phases. Members write before the first, read after it, and write again after the
/// second.
fn two_members<B: Barrier + 'static>(name: &str, model: Model, phases: u32) {
    explore(name, model, move || {
        let led = together::<B, 2, _>(move |mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let mut led = leads(waiter.wait());
            cells.read(me, 1);
            if phases > 1 {
                led += leads(waiter.wait());
                cells.write(me, 2);
            }
            // Another model lets members leave.
            (led, waiter)
        });
        assert_eq!(led.iter().map(|(led, _)| led).sum::<u32>(), phases, "one leader a phase");
    });
}

/// Models a wait that may time out at any time.
fn a_timeout_meets_an_arrival<B: Barrier + 'static>(name: &str, model: Model) {
    explore(name, model, || {
        let mut results = together::<B, 2, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let deadline = if me == 0 { in_a_while() } else { Deadline::NEVER };
            let outcome = waiter.wait_with(&mut <Patient>::start(), deadline);
            if outcome.is_ok() {
                cells.read(me, 1);
            }
            (outcome, waiter)
        });
        assert_eq!(results[0].0.is_ok(), results[1].0.is_ok(), "crossed by all or broken for all");
        if results[0].0.is_err() {
            for (outcome, waiter) in &mut results {
                assert_eq!(*outcome, Err(Broken::TimedOut));
                assert_eq!(waiter.wait(), Err(Broken::TimedOut), "broken is for good");
            }
        }
    });
}

/// Returns a deadline that passes by choice.
fn in_a_while() -> Deadline {
    Deadline::after(Duration::from_secs(1))
}

/// Models member 1 leaving when it has crossed, while the other may still be about to see that.
fn a_leaver_meets_an_arrival<B: Barrier + 'static>(name: &str, model: Model) {
    explore(name, model, || {
        let mut stays = together::<B, 2, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            assert!(waiter.wait().is_ok());
            cells.read(me, 1);
            (me == 0).then_some(waiter)
        });
        let waiter = stays[0].as_mut().expect("member 0 stays");
        assert_eq!(waiter.wait(), Err(Broken::Left));
    });
}

/// Models member 1 leaving while the other waits for it, or is about to.
fn a_leaver_meets_a_waiter<B: Barrier + 'static>(name: &str, model: Model) {
    explore(name, model, || {
        together::<B, 2, _>(|mut waiter, _: &Cells<2>| {
            if waiter.index() == 0 {
                assert_eq!(waiter.wait(), Err(Broken::Left));
                return Some(waiter);
            }
            None
        });
    });
}

/// Models one phase of three members.
fn three_members<B: Barrier + 'static>(name: &str, model: Model) {
    explore(name, model, || {
        let led = together::<B, 3, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let led = leads(waiter.wait());
            cells.read(me, 1);
            (led, waiter)
        });
        assert_eq!(led.iter().map(|(led, _)| led).sum::<u32>(), 1, "one leader");
    });
}

/// Models one of three that may give up: all cross, or all get the reason.
fn a_timeout_meets_two<B: Barrier + 'static>(name: &str, model: Model) {
    explore(name, model, || {
        let crossed = together::<B, 3, _>(|mut waiter, _: &Cells<3>| {
            let gives_up = waiter.index() == 1;
            let deadline = if gives_up { in_a_while() } else { Deadline::NEVER };
            (waiter.wait_with(&mut <Patient>::start(), deadline).map(drop_crossing), waiter)
        });
        let crossed: Vec<_> = crossed.into_iter().map(|(crossed, _)| crossed).collect();
        assert!(crossed.iter().all(|&each| each == crossed[0]), "{crossed:?}");
        assert!(matches!(crossed[0], Ok(()) | Err(Broken::TimedOut)), "{crossed:?}");
    });
}

/// Models member 2 leaving when it has crossed, while two others may still be on their way.
fn a_leaver_meets_two<B: Barrier + 'static>(name: &str, model: Model) {
    explore(name, model, || {
        let stay = together::<B, 3, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            assert!(waiter.wait().is_ok());
            cells.read(me, 1);
            (me != 2).then_some(waiter)
        });
        assert_eq!(stay.iter().flatten().count(), 2);
    });
}

fn drop_crossing(_: Crossing) {}

macro_rules! models {
    ($barrier:ident: $type:ty; $($model:ident => $body:expr;)+) => {
        mod $barrier {
            use super::*;

            $(#[test]
            fn $model() {
                let body: fn(&str) = $body;
                body(concat!(stringify!($barrier), "::", stringify!($model)));
            })+
        }
    };
    (spins $($barrier:ident: $type:ty;)+) => {$(
        models! { $barrier: $type;
            two_members => |name| super::two_members::<$type>(name, Model::new().choices(1), 1);
            two_phases => |name| super::two_members::<$type>(name, Model::new().choices(0), 2);
            two_long_phases_bounded => |name| {
                super::two_members::<$type>(name, Model::new().choices(2).preemptions(2), 2);
            };
            a_timeout_meets_an_arrival_bounded => |name| {
                super::a_timeout_meets_an_arrival::<$type>(name, Model::new().choices(2).preemptions(3));
            };
            a_leaver_meets_an_arrival => |name| {
                super::a_leaver_meets_an_arrival::<$type>(name, Model::new().choices(0));
            };
            a_leaver_meets_a_waiter => |name| super::a_leaver_meets_a_waiter::<$type>(name, Model::new().choices(0));
            a_leaver_meets_a_sleeper_bounded => |name| {
                super::a_leaver_meets_a_waiter::<$type>(name, Model::new().choices(1).preemptions(3));
            };
            three_members_bounded => |name| {
                super::three_members::<$type>(name, Model::new().choices(0).preemptions(3));
            };
            two_sleepers_bounded => |name| {
                super::three_members::<$type>(name, Model::new().choices(1).preemptions(2));
            };
            a_timeout_meets_two_bounded => |name| {
                super::a_timeout_meets_two::<$type>(name, Model::new().choices(2).preemptions(1));
            };
        }
    )+};
    (sleeps $($barrier:ident: $type:ty;)+) => {$(
        models! { $barrier: $type;
            two_members => |name| super::two_members::<$type>(name, Model::new().choices(0), 1);
            a_timeout_meets_an_arrival => |name| super::a_timeout_meets_an_arrival::<$type>(name, Model::new().choices(1));
            a_leaver_meets_an_arrival_bounded => |name| {
                super::a_leaver_meets_an_arrival::<$type>(name, Model::new().choices(0).preemptions(3));
            };
            a_leaver_meets_a_waiter => |name| super::a_leaver_meets_a_waiter::<$type>(name, Model::new().choices(0));
            three_members_bounded => |name| super::three_members::<$type>(name, Model::new().choices(0).preemptions(2));
            a_timeout_meets_two_bounded => |name| {
                super::a_timeout_meets_two::<$type>(name, Model::new().choices(1).preemptions(1));
            };
        }
    )+};
}

/// Defines the models of each barrier of the table that has none of its own.
macro_rules! of_the_table {
    ([] $({
        $test:ident: $barrier:ty,
        name: $name:literal,
        sleeps: $sleeps:tt,
        models: [$($kind:ident $module:ident)?],
        $($rest:tt)*
    })+) => {
        $($(models! { $kind $module: $barrier; })?)+
    };
}

stanchion_gang_loom::__barriers!(of_the_table);

// Sleeps as `Blocking` does.
models! { two_phase: TwoPhase;
    two_members => |name| super::two_members::<TwoPhase>(name, Model::new().choices(0), 1);
    a_leaver_meets_an_arrival_bounded => |name| {
        super::a_leaver_meets_an_arrival::<TwoPhase>(name, Model::new().choices(0).preemptions(3));
    };
}

// Counts as `Central` does.
models! { yielding: Yielding;
    two_members => |name| super::two_members::<Yielding>(name, Model::new().choices(0), 1);
}

// The only one in which more than one word says that a phase is crossed.
models! { dissemination_of_three: Dissemination;
    a_leaver_meets_two_bounded => |name| super::a_leaver_meets_two::<Dissemination>(name, Model::new().choices(0).preemptions(4));
}

// Sleeps as `Blocking` does, if a choice says so; whether it times out is another choice.
models! { co_resident: CoResident;
    two_members => |name| super::two_members::<CoResident>(name, Model::new().choices(1), 1);
    a_timeout_meets_an_arrival_bounded => |name| {
        super::a_timeout_meets_an_arrival::<CoResident>(name, Model::new().choices(2).preemptions(3));
    };
    a_leaver_meets_an_arrival_bounded => |name| {
        super::a_leaver_meets_an_arrival::<CoResident>(name, Model::new().choices(1).preemptions(3));
    };
    a_leaver_meets_a_waiter => |name| super::a_leaver_meets_a_waiter::<CoResident>(name, Model::new().choices(1));
    three_members_bounded => |name| {
        super::three_members::<CoResident>(name, Model::new().choices(1).preemptions(2));
    };
}
