//! Models of the semaphore: as many threads are inside as there are permits, and no wake-up is
//! lost, whichever thread gives up.
//!
//! The gate is a spin lock where that is enough, because the blocking mutex's own steps are
//! modelled elsewhere and multiply the executions.

use std::time::Duration;

use lock_api::RawMutex;
use stanchion_competitive_loom::policy::AlwaysBlock;
use stanchion_competitive_loom::{RawPolicyMutex, Semaphore};
use stanchion_machine::Model;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};
use stanchion_spin::TestAndSet;

/// A semaphore, and a payload that the thread with all its permits may change.
struct Room<G> {
    /// The semaphore.
    semaphore: Semaphore<G>,
    /// The payload. Written by the thread that has all permits.
    payload: UnsafeCell<u32>,
}

// SAFETY: the payload is changed with all permits taken. The models check that.
unsafe impl<G: Sync> Sync for Room<G> {}
// SAFETY: as above.
unsafe impl<G: Send> Send for Room<G> {}

impl<G: RawMutex> Room<G> {
    fn new(permits: u32) -> Arc<Self> {
        let semaphore = Semaphore::with_gate(G::INIT, permits);
        Arc::new(Self { semaphore, payload: UnsafeCell::new(0) })
    }

    fn change(&self) {
        // SAFETY: the caller has all permits; if that is not enough, the cell reports it.
        self.payload.with_mut(|count| unsafe { *count += 1 });
    }

    fn look(&self) -> u32 {
        // SAFETY: the caller has a permit, so no thread has all.
        self.payload.with(|count| unsafe { *count })
    }
}

/// One permit: a mutex.
fn exclude<G: RawMutex + 'static>() {
    let room = Room::<G>::new(1);
    let other = beside(&room, |room| {
        let _permit = room.semaphore.acquire();
        room.change();
    });
    {
        let _permit = room.semaphore.acquire();
        room.change();
    }
    other.join().unwrap();
    assert_eq!(room.look(), 2);
    assert_eq!(room.semaphore.available_permits(), 1);
}

#[test]
fn semaphore_two_threads_bounded() {
    let model = Model::new().preemptions(3);
    explore("semaphore_two_threads_bounded", model, exclude::<TestAndSet>);
}

#[test]
fn semaphore_behind_a_blocking_mutex_bounded() {
    let model = Model::new().preemptions(3).choices(1).objects(24);
    explore(
        "semaphore_behind_a_blocking_mutex_bounded",
        model,
        exclude::<RawPolicyMutex<AlwaysBlock>>,
    );
}

/// A permit as a message: the thread that takes it sees the writes before it was added.
#[test]
fn semaphore_added_permits() {
    explore("semaphore_added_permits", Model::new().choices(2), || {
        let room = Room::<TestAndSet>::new(0);
        let adder = beside(&room, |room| {
            room.change();
            room.semaphore.add_permits(1);
        });
        room.semaphore.acquire().forget();
        assert_eq!(room.look(), 1);
        adder.join().unwrap();
        assert_eq!(room.semaphore.available_permits(), 0);
    });
}

#[test]
fn semaphore_three_threads_bounded() {
    explore("semaphore_three_threads_bounded", Model::new().preemptions(2).choices(0), || {
        let room = Room::<TestAndSet>::new(1);
        let body = |room: &Room<_>| {
            let _permit = room.semaphore.acquire();
            room.change();
        };
        let others = [beside(&room, body), beside(&room, body)];
        body(&room);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(room.look(), 3);
        assert_eq!(room.semaphore.available_permits(), 1);
    });
}

/// One thread wants all permits, two want one each: all three get their permits.
#[test]
fn semaphore_all_or_one_bounded() {
    explore("semaphore_all_or_one_bounded", Model::new().preemptions(2).choices(1), || {
        let room = Room::<TestAndSet>::new(2);
        let looks = |room: &Room<_>| {
            let _permit = room.semaphore.acquire();
            assert!(room.look() <= 1);
        };
        let others = [beside(&room, looks), beside(&room, looks)];
        {
            let permits = room.semaphore.acquire_many(2);
            assert_eq!(permits.count(), 2);
            room.change();
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(room.semaphore.available_permits(), 2);
    });
}

/// The first in line gives up: the thread behind it gets the permits that are left.
#[test]
fn semaphore_giving_up_swallows_nothing_bounded() {
    let model = Model::new().preemptions(1).choices(2);
    explore("semaphore_giving_up_swallows_nothing_bounded", model, || {
        let room = Room::<TestAndSet>::new(0);
        let greedy = beside(&room, |room| {
            let permits = room.semaphore.try_acquire_many_for(2, Duration::from_secs(1));
            permits.is_some()
        });
        let adder = beside(&room, |room| (0..2).for_each(|_| room.semaphore.add_permits(1)));
        drop(room.semaphore.acquire());
        adder.join().unwrap();
        greedy.join().unwrap();
        assert_eq!(room.semaphore.available_permits(), 2);
    });
}

#[test]
fn semaphore_gives_up() {
    explore("semaphore_gives_up", Model::new(), || {
        let room = Room::<TestAndSet>::new(0);
        let adder = beside(&room, |room| room.semaphore.add_permits(1));
        let got = room.semaphore.try_acquire_for(Duration::from_secs(1)).map(|one| one.forget());
        adder.join().unwrap();
        assert_eq!(room.semaphore.available_permits(), u32::from(got.is_none()));
        assert_eq!(room.semaphore.try_acquire().is_some(), got.is_none());
    });
}

#[test]
fn semaphore_tries() {
    explore("semaphore_tries", Model::new().weak_failures(1), || {
        let room = Room::<TestAndSet>::new(1);
        let body =
            |room: &Room<_>| room.semaphore.try_acquire().map(|_one| room.change()).is_some();
        let other = beside(&room, body);
        let mine = body(&room);
        let others = other.join().unwrap();
        assert!(mine || others);
        assert_eq!(room.look(), u32::from(mine) + u32::from(others));
    });
}

/// A thread that waits gives up when the semaphore is closed, and sees the writes before that.
#[test]
fn semaphore_closing_ends_a_wait() {
    explore("semaphore_closing_ends_a_wait", Model::new().choices(3), || {
        let room = Room::<TestAndSet>::new(0);
        let closer = beside(&room, |room| {
            room.change();
            room.semaphore.close();
        });
        assert!(room.semaphore.acquire_unless_closed().is_err());
        assert_eq!(room.look(), 1);
        closer.join().unwrap();
        assert!(room.semaphore.try_acquire_many(0).is_none());
    });
}

/// The first in line, and one behind it, which the first lets through the gate.
#[test]
fn semaphore_closing_ends_two_waits_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("semaphore_closing_ends_two_waits_bounded", model, || {
        let room = Room::<TestAndSet>::new(1);
        let waits = |room: &Room<_>| assert!(room.semaphore.acquire_many_unless_closed(2).is_err());
        let other = beside(&room, waits);
        let closer = beside(&room, |room| room.semaphore.close());
        waits(&room);
        other.join().unwrap();
        closer.join().unwrap();
        assert_eq!(room.semaphore.available_permits(), 1);
    });
}

/// A release and the closing come at once: the waiter gets the permit or nothing, and none is lost.
#[test]
fn semaphore_closing_beside_a_release_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("semaphore_closing_beside_a_release_bounded", model, || {
        let room = Room::<TestAndSet>::new(0);
        let adder = beside(&room, |room| room.semaphore.add_permits(1));
        let closer = beside(&room, |room| room.semaphore.close());
        let got = room.semaphore.acquire_unless_closed().map(|one| one.forget()).is_ok();
        adder.join().unwrap();
        closer.join().unwrap();
        assert_eq!(room.semaphore.available_permits(), u32::from(!got));
    });
}

/// A thread that only looks sees nothing, or all that was done before the closing.
#[test]
fn semaphore_is_seen_closed() {
    explore("semaphore_is_seen_closed", Model::new(), || {
        let room = Room::<TestAndSet>::new(0);
        let closer = beside(&room, |room| {
            room.change();
            room.semaphore.close();
        });
        if room.semaphore.is_closed() {
            assert_eq!(room.look(), 1);
        }
        closer.join().unwrap();
    });
}

/// Permits are taken away beside a thread that waits for them: none is lost or counted twice.
#[test]
fn semaphore_forgotten_permits_bounded() {
    let model = Model::new().preemptions(3).choices(2).weak_failures(1);
    explore("semaphore_forgotten_permits_bounded", model, || {
        let room = Room::<TestAndSet>::new(1);
        let other = beside(&room, |room| {
            let taken = room.semaphore.forget_permits(2);
            room.semaphore.add_permits(taken + 1);
        });
        assert_eq!(room.semaphore.acquire_many(2).count(), 2);
        other.join().unwrap();
        assert_eq!(room.semaphore.available_permits(), 2);
    });
}
