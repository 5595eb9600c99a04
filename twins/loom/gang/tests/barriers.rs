//! Models of the barriers: nobody goes on before all have come, what was done before is seen after, and a phase is crossed by all or broken for all.
//!
//! | model of each barrier | threads | bound |
//! | --- | --- | --- |
//! | `two_members` | 2, two phases | none |
//! | `a_timeout_meets_an_arrival` | 2, one gives up at any time, two phases | none |
//! | `a_leaver_meets_an_arrival` | 2, one leaves after a phase | none |
//! | `three_members_bounded` | 3, one phase, then all leave | 3 preemptions |
//! | `a_timeout_meets_two_bounded` | 3, one gives up at any time | 2 preemptions |

use core::time::Duration;

use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::wait::{Patient, WaitPolicy};
use machine::{Model, thread};
use stanchion_gang_loom::barrier::{Barrier, BitMask, Central, CoResident};
use stanchion_gang_loom::{Broken, Crossing, Waiter};

/// A cell that one member at a time writes: who, is agreed on by the phase.
struct Written(UnsafeCell<u32>);

// SAFETY: the phases of a barrier keep its writers and readers apart. The models check that.
unsafe impl Send for Written {}
// SAFETY: as above.
unsafe impl Sync for Written {}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// What members share.
struct Cells<const MEMBERS: usize>([Written; MEMBERS]);

impl<const MEMBERS: usize> Cells<MEMBERS> {
    fn new() -> Arc<Self> {
        Arc::new(Self([0; MEMBERS].map(|phase| Written(UnsafeCell::new(phase)))))
    }

    /// Before a phase: the others read it after.
    fn write(&self, me: usize, phase: u32) {
        // SAFETY: a member's own cell, whose last readers have come to the phase before.
        self.0[me].0.with_mut(|mine| unsafe { *mine = phase });
    }

    /// After a phase: their owners write again after the next.
    fn read(&self, me: usize, phase: u32) {
        for (_, cell) in self.0.iter().enumerate().filter(|&(index, _)| index != me) {
            // SAFETY: all have crossed the phase that it was written before.
            cell.0.with(|theirs| assert_eq!(unsafe { *theirs }, phase));
        }
    }
}

/// Runs `body` as every member, and returns what each returned.
fn together<B: Barrier + 'static, const MEMBERS: usize, R: Send + 'static>(
    body: fn(Waiter<Arc<B>>, &Cells<MEMBERS>) -> R,
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

/// Two phases, with what the members write before the first, read after it, and write again after the second.
fn two_members<B: Barrier + 'static>(name: &str) {
    explore(name, Model::new(), || {
        let led = together::<B, 2, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let mut led = leads(waiter.wait());
            cells.read(me, 1);
            led += leads(waiter.wait());
            cells.write(me, 2);
            // Leaving is another model's.
            (led, waiter)
        });
        assert_eq!(led.iter().map(|(led, _)| led).sum::<u32>(), 2, "one leader a phase");
    });
}

/// One member's first wait may time out at any time. The other goes on to a second phase, which nobody else comes to.
fn a_timeout_meets_an_arrival<B: Barrier + 'static>(name: &str) {
    explore(name, Model::new(), || {
        let results = together::<B, 2, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let gives_up = me == 0;
            let deadline = if gives_up { in_a_while() } else { Deadline::NEVER };
            let first = waiter.wait_with(&mut <Patient>::start(), deadline);
            if first.is_ok() {
                cells.read(me, 1);
            }
            // Somebody else must be told as well.
            let second = (!gives_up || first.is_err()).then(|| waiter.wait());
            (first, second)
        });
        let [(first, second), (other, after)] = results[..] else { panic!("two members") };
        assert_eq!(first.is_ok(), other.is_ok(), "crossed by all or broken for all");
        let after = after.expect("it waits again");
        if first.is_ok() {
            assert_eq!(after, Err(Broken::Left));
        } else {
            assert_eq!([first, other, after], [Err(Broken::TimedOut); 3]);
            assert_eq!(second, Some(Err(Broken::TimedOut)), "broken is for good");
        }
    });
}

/// A moment to come, which passes by choice.
fn in_a_while() -> Deadline {
    Deadline::after(Duration::from_secs(1))
}

/// Member 1 leaves when it has crossed, while the other may still be about to see that.
fn a_leaver_meets_an_arrival<B: Barrier + 'static>(name: &str) {
    explore(name, Model::new(), || {
        let results = together::<B, 2, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let crossed = waiter.wait().is_ok();
            cells.read(me, 1);
            let second = (me == 0).then(|| waiter.wait());
            (crossed, second)
        });
        assert_eq!(results, [(true, Some(Err(Broken::Left))), (true, None)]);
    });
}

/// One phase; who is through leaves at once, without a word to those who are still about to see it.
fn three_members<B: Barrier + 'static>(name: &str) {
    explore(name, Model::new().preemptions(3), || {
        let led = together::<B, 3, _>(|mut waiter, cells| {
            let me = waiter.index();
            cells.write(me, 1);
            let led = leads(waiter.wait());
            cells.read(me, 1);
            led
        });
        assert_eq!(led.iter().sum::<u32>(), 1, "one leader");
    });
}

/// One of three may give up: all cross, or all are told.
fn a_timeout_meets_two<B: Barrier + 'static>(name: &str) {
    explore(name, Model::new().preemptions(2), || {
        let crossed = together::<B, 3, _>(|mut waiter, _: &Cells<3>| {
            let gives_up = waiter.index() == 1;
            let deadline = if gives_up { in_a_while() } else { Deadline::NEVER };
            waiter.wait_with(&mut <Patient>::start(), deadline).map(drop_crossing)
        });
        assert!(crossed.iter().all(|&each| each == crossed[0]), "{crossed:?}");
        assert!(matches!(crossed[0], Ok(()) | Err(Broken::TimedOut)), "{crossed:?}");
    });
}

fn drop_crossing(_: Crossing) {}

macro_rules! models {
    ($($barrier:ident: $type:ty;)+) => {$(
        mod $barrier {
            use super::*;

            #[test]
            fn two_members() {
                super::two_members::<$type>(concat!(stringify!($barrier), "::two_members"));
            }

            #[test]
            fn a_timeout_meets_an_arrival() {
                super::a_timeout_meets_an_arrival::<$type>(concat!(stringify!($barrier), "::a_timeout_meets_an_arrival"));
            }

            #[test]
            fn a_leaver_meets_an_arrival() {
                super::a_leaver_meets_an_arrival::<$type>(concat!(stringify!($barrier), "::a_leaver_meets_an_arrival"));
            }

            #[test]
            fn three_members_bounded() {
                super::three_members::<$type>(concat!(stringify!($barrier), "::three_members_bounded"));
            }

            #[test]
            fn a_timeout_meets_two_bounded() {
                super::a_timeout_meets_two::<$type>(concat!(stringify!($barrier), "::a_timeout_meets_two_bounded"));
            }
        }
    )+};
}

models! {
    central: Central;
    bit_mask: BitMask;
    co_resident: CoResident;
}
