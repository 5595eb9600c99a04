//! Models of the completion of a gang: a thread that finds the barrier broken finds the reason, and
//! a thread that finds the gang done sees what its members did.
//!
//! - `gang_completion_tells_a_waiter`: a member panics, and another waits for it. Without the
//!   fences the waiter learns that the member has gone, but not why.
//! - `gang_completion_tells_an_observer`: a member returns, and another only asks whether the
//!   barrier is broken. The same could go wrong.
//! - `gang_completion_of_two_bounded`: a member returns, another waits for it, and a third thread
//!   cancels. The waiter could hang, or get a reason that is none.
//! - `gang_completion_wakes_a_joiner`: the last member ends, and a thread joins. The wake-up could
//!   be lost, or the results not be seen.
//!
//! Every model prints `model NAME: N executions`.

use stanchion_gang_loom::__internal::Completion;
use stanchion_gang_loom::Ended;
use stanchion_gang_loom::barrier::Barrier;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until};
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A gang of two, and the result of one of them.
struct Gang {
    /// The completion of the gang.
    completion: Completion,
    /// Written by one member before the gang is done.
    result: UnsafeCell<u32>,
}

// SAFETY: the result is written before the gang is done, and read after. The models check that.
unsafe impl Send for Gang {}
// SAFETY: as above.
unsafe impl Sync for Gang {}

fn gang() -> Arc<Gang> {
    Arc::new(Gang { completion: Completion::new(2), result: UnsafeCell::new(0) })
}

fn in_thread(gang: &Arc<Gang>, body: impl FnOnce(&Gang) + 'static) -> thread::JoinHandle<()> {
    let gang = gang.clone();
    thread::spawn(move || body(&gang))
}

/// Waits for the other member, which does not come, and returns the reason.
fn meet(gang: &Gang, me: usize) -> Ended {
    let barrier = &gang.completion.barrier;
    barrier.member_state(me);
    let met = barrier.wait_at(&mut (), &mut <Patient>::start(), Deadline::NEVER);
    assert!(met.is_err(), "the other does not come");
    gang.completion.reason()
}

#[test]
fn gang_completion_tells_a_waiter() {
    explore("gang_completion_tells_a_waiter", Model::new().choices(1), || {
        let gang = gang();
        let other = in_thread(&gang, |gang| gang.completion.end(Ended::Panicked { member: 1 }));
        assert_eq!(meet(&gang, 0), Ended::Panicked { member: 1 });
        other.join().expect("no panic");
    });
}

#[test]
fn gang_completion_tells_an_observer() {
    explore("gang_completion_tells_an_observer", Model::new(), || {
        let gang = gang();
        let other = in_thread(&gang, |gang| gang.completion.leave(1));
        let broken = || gang.completion.barrier.broken();
        let _ = retry_until(broken, &mut <Patient>::start());
        assert_eq!(gang.completion.reason(), Ended::Left { member: 1 });
        other.join().expect("no panic");
    });
}

#[test]
fn gang_completion_of_two_bounded() {
    explore("gang_completion_of_two_bounded", Model::new().choices(1).preemptions(2), || {
        let gang = gang();
        let other = in_thread(&gang, |gang| gang.completion.leave(1));
        let canceller = in_thread(&gang, |gang| gang.completion.end(Ended::Cancelled));
        let why = meet(&gang, 0);
        assert!(matches!(why, Ended::Cancelled | Ended::Left { member: 1 }), "{why}");
        other.join().expect("no panic");
        canceller.join().expect("no panic");
    });
}

#[test]
fn gang_completion_wakes_a_joiner() {
    explore("gang_completion_wakes_a_joiner", Model::new(), || {
        let gang = gang();
        let last = in_thread(&gang, |gang| {
            // SAFETY: no thread reads it before the gang is done.
            gang.result.with_mut(|result| unsafe { *result = 7 });
            gang.completion.set_done();
        });
        gang.completion.wait();
        // SAFETY: the gang is done.
        gang.result.with(|result| assert_eq!(unsafe { *result }, 7));
        last.join().expect("no panic");
    });
}
