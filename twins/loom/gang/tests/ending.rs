//! Models of how a gang ends: who finds the barrier broken can say why, and who finds it done sees
//! what its members did.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `ending_says_why` | a member that panics, one that waits for it | it learns that the other has gone, but not why |
//! | `ending_says_why_to_who_asks` | a member that returns, one that only asks whether the barrier is broken | the same |
//! | `ending_of_two_bounded` | a member that returns, one that waits for it, one who cancels | it hangs; it is told of a reason that is none |
//! | `ending_is_slept_for` | the last member, who joins | a wake-up is lost; the results are not seen |
//!
//! Every model prints `model NAME: N executions`.

use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::wait::{Patient, WaitPolicy, retry_until};
use machine::{Model, thread};
use stanchion_gang_loom::Ended;
use stanchion_gang_loom::__internal::Ending;
use stanchion_gang_loom::barrier::Barrier;

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A gang of two, and what one of them did.
struct Gang {
    ending: Ending,
    result: UnsafeCell<u32>,
}

// SAFETY: the result is written before the gang is done, and read after. The models check that.
unsafe impl Send for Gang {}
// SAFETY: as above.
unsafe impl Sync for Gang {}

fn gang() -> Arc<Gang> {
    Arc::new(Gang { ending: Ending::new(2), result: UnsafeCell::new(0) })
}

fn in_thread(gang: &Arc<Gang>, body: impl FnOnce(&Gang) + 'static) -> thread::JoinHandle<()> {
    let gang = gang.clone();
    thread::spawn(move || body(&gang))
}

/// Why it did not meet the other.
fn meet(gang: &Gang, me: usize) -> Ended {
    let barrier = &gang.ending.barrier;
    barrier.place(me);
    let met = barrier.wait_at(&mut (), &mut <Patient>::start(), Deadline::NEVER);
    assert!(met.is_err(), "the other does not come");
    gang.ending.why_broken()
}

#[test]
fn ending_says_why() {
    explore("ending_says_why", Model::new().choices(1), || {
        let gang = gang();
        let other = in_thread(&gang, |gang| gang.ending.end(Ended::Panicked { member: 1 }));
        assert_eq!(meet(&gang, 0), Ended::Panicked { member: 1 });
        other.join().expect("no panic");
    });
}

#[test]
fn ending_says_why_to_who_asks() {
    explore("ending_says_why_to_who_asks", Model::new(), || {
        let gang = gang();
        let other = in_thread(&gang, |gang| gang.ending.leave(1));
        let broken = || gang.ending.barrier.broken();
        let _ = retry_until(broken, &mut <Patient>::start());
        assert_eq!(gang.ending.why_broken(), Ended::Left { member: 1 });
        other.join().expect("no panic");
    });
}

#[test]
fn ending_of_two_bounded() {
    explore("ending_of_two_bounded", Model::new().choices(1).preemptions(2), || {
        let gang = gang();
        let other = in_thread(&gang, |gang| gang.ending.leave(1));
        let canceller = in_thread(&gang, |gang| gang.ending.end(Ended::Cancelled));
        let why = meet(&gang, 0);
        assert!(matches!(why, Ended::Cancelled | Ended::Left { member: 1 }), "{why}");
        other.join().expect("no panic");
        canceller.join().expect("no panic");
    });
}

#[test]
fn ending_is_slept_for() {
    explore("ending_is_slept_for", Model::new(), || {
        let gang = gang();
        let last = in_thread(&gang, |gang| {
            // SAFETY: nobody reads it before the gang is done.
            gang.result.with_mut(|result| unsafe { *result = 7 });
            gang.ending.set_done();
        });
        gang.ending.sleep();
        // SAFETY: the gang is done.
        gang.result.with(|result| assert_eq!(unsafe { *result }, 7));
        last.join().expect("no panic");
    });
}
