//! Models of the locks and channels of `sync`: exclusion, and no lost wake-up, also when a thread
//! gives up. Loom's threads are kernel threads here. The models explore the queue, the words, and a
//! thread's wait and its notification.
//!
//! Two threads are explored without bound where each takes a part in the protocol once. The four
//! of these models that have more than 110,000 executions are explored without bound only by
//! `cargo xtask loom --whole`. `cargo test` explores them with 5 preemptions.
//!
//! - mutex. Without bound: two that take and release it; one to which it is given; one that comes
//!   too late. What is left to the bounded models: one that gives up, wakes for nothing, or
//!   fetches the holder; two sections a thread; three threads.
//! - condition variable. Without bound: one that waits, one that notifies, with a spin lock in the
//!   mutex's place. What is left to the bounded models: the same with the mutex; one that gives
//!   up; three threads.
//! - semaphore. Without bound: two that take and return a permit. What is left to the bounded
//!   models: permits that are added; one that gives up; three threads.
//! - barrier. Without bound: two that meet. What is left to the bounded models: two rounds; a
//!   token that comes meanwhile; three threads.
//! - channel. Without bound: nothing: the wait at a channel is in `channel_waits.rs`, with a spin
//!   lock in the mutex's place. What is left to the bounded models: all.
//!
//! Where two threads take a lock, one of them holds it from the beginning: the thread that
//! exchanges the free word first has it in that one step, and it makes no difference which of the
//! two that is. Both from the beginning are 526,416 executions and find nothing more.

use std::time::Duration;

use stanchion_activations_loom::select;
use stanchion_activations_loom::sync::{Barrier, Condvar, Mutex, Semaphore, channel};
use stanchion_activations_loom::sync::{PolicyMutex, PolicyMutexGuard, RawCondvar};
use stanchion_competitive::policy::AlwaysBlock;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Instant;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{brief, explore};
use stanchion_spin::TestAndSet;

/// A lock, and the payload that it guards.
struct Room<L> {
    /// The object that is tested: a mutex, with or without a condition, a semaphore or a barrier.
    /// All threads write it.
    lock: L,
    /// The payload. A thread writes it where `lock` orders that.
    payload: UnsafeCell<u32>,
}

// SAFETY: the payload is changed as the lock allows. The models check that.
unsafe impl<L: Sync> Sync for Room<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for Room<L> {}

impl<L: Send + Sync + 'static> Room<L> {
    fn new(lock: L) -> Arc<Self> {
        Arc::new(Self { lock, payload: UnsafeCell::new(0) })
    }

    fn change(&self) {
        // SAFETY: the caller may; if that is not enough, the cell reports it.
        self.payload.with_mut(|count| unsafe { *count += 1 });
    }

    fn look(&self) -> u32 {
        // SAFETY: as above.
        self.payload.with(|count| unsafe { *count })
    }
}

fn also<L: Send + Sync + 'static, R: 'static>(
    room: &Arc<Room<L>>,
    body: fn(&Room<L>) -> R,
) -> thread::JoinHandle<R> {
    let room = room.clone();
    thread::spawn(move || body(&room))
}

type Blocking = PolicyMutex<(), AlwaysBlock>;

fn mutex() -> Arc<Room<Blocking>> {
    Room::new(Blocking::new(()))
}

fn section(room: &Room<Blocking>) {
    let _guard = room.lock.lock();
    room.change();
}

fn section_given_away(room: &Room<Blocking>) {
    let guard = room.lock.lock();
    room.change();
    PolicyMutexGuard::unlock_fair(guard);
}

fn section_in_time(room: &Room<Blocking>) -> u32 {
    let got = room.lock.try_lock_for(Duration::from_secs(1));
    got.map_or(0, |_guard| {
        room.change();
        1
    })
}

/// The lock is held when the other thread comes.
#[test]
fn user_mutex_two_threads() {
    let model = brief::bounded(Model::new().choices(0), 5, None);
    explore("user_mutex_two_threads", model, || {
        let room = mutex();
        let guard = room.lock.lock();
        let other = also(&room, section);
        room.change();
        drop(guard);
        other.join().unwrap();
        assert_eq!(room.look(), 2);
        assert!(room.lock.try_lock().is_some());
    });
}

/// The same, where the other thread is given the lock if it waits. It keeps it.
#[test]
fn user_mutex_given_to_a_waiter() {
    let model = brief::bounded(Model::new().choices(0), 5, None);
    explore("user_mutex_given_to_a_waiter", model, || {
        let room = mutex();
        let guard = room.lock.lock();
        let other = also(&room, |room| {
            core::mem::forget(room.lock.lock());
            room.change();
        });
        room.change();
        PolicyMutexGuard::unlock_fair(guard);
        other.join().unwrap();
        assert_eq!(room.look(), 2);
        assert!(room.lock.is_locked());
    });
}

/// The time is over when it comes, and the lock may be free just then.
#[test]
fn user_mutex_tried_too_late() {
    explore("user_mutex_tried_too_late", Model::new().choices(0), || {
        let room = mutex();
        let guard = room.lock.lock();
        let other = also(&room, |room| {
            let got = room.lock.try_lock_until(Instant::now() - Duration::from_secs(1));
            got.is_some_and(|guard| {
                core::mem::forget(guard);
                room.change();
                true
            })
        });
        room.change();
        drop(guard);
        let got = other.join().unwrap();
        assert_eq!(room.look(), 1 + u32::from(got));
        assert_eq!(room.lock.is_locked(), got);
    });
}

#[test]
fn user_mutex_that_wakes_for_nothing_bounded() {
    let model = Model::new().choices(1).preemptions(3);
    explore("user_mutex_that_wakes_for_nothing_bounded", model, || {
        let room = mutex();
        let other = also(&room, section);
        section(&room);
        other.join().unwrap();
        assert_eq!(room.look(), 2);
    });
}

#[test]
fn user_mutex_given_away_bounded() {
    let model = brief::bounded(Model::new().choices(0), 2, 3);
    explore("user_mutex_given_away_bounded", model, || {
        let room = mutex();
        let other = also(&room, section_given_away);
        section_given_away(&room);
        section(&room);
        other.join().unwrap();
        assert_eq!(room.look(), 3);
        assert!(room.lock.try_lock().is_some());
    });
}

/// A choice says that the holder was preempted, and the waiter fetches it.
#[test]
fn user_mutex_fetches_its_holder_bounded() {
    let model = Model::new().choices(2).preemptions(3);
    explore("user_mutex_fetches_its_holder_bounded", model, || {
        let room = mutex();
        let other = also(&room, section);
        section(&room);
        other.join().unwrap();
        assert_eq!(room.look(), 2);
        assert!(room.lock.try_lock().is_some(), "no flag is left");
    });
}

#[test]
fn user_mutex_gives_up_bounded() {
    let model = brief::bounded(Model::new().choices(2), 2, 3);
    explore("user_mutex_gives_up_bounded", model, || {
        let room = mutex();
        let other = also(&room, section_in_time);
        section(&room);
        let got = other.join().unwrap();
        assert_eq!(room.look(), 1 + got);
        assert!(room.lock.try_lock().is_some());
    });
}

#[test]
fn user_mutex_three_threads_bounded() {
    let model = brief::bounded(Model::new().choices(0), 1, 2);
    explore("user_mutex_three_threads_bounded", model, || {
        let room = mutex();
        let others = [also(&room, section), also(&room, section)];
        section(&room);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(room.look(), 3);
        assert!(room.lock.try_lock().is_some());
    });
}

/// One that was woken gives up, and another one waits behind it.
#[test]
fn user_mutex_three_threads_one_gives_up_bounded() {
    let model = brief::bounded(Model::new().choices(1), 1, 2);
    explore("user_mutex_three_threads_one_gives_up_bounded", model, || {
        let room = mutex();
        let others = [
            also(&room, section),
            also(&room, |room| {
                section_in_time(room);
            }),
        ];
        let guard = room.lock.lock();
        drop(guard);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(room.lock.try_lock().is_some());
    });
}

type Pair = (Mutex<bool>, Condvar);

/// A mutex of which little is to be explored.
type SpinMutex = lock_api::Mutex<TestAndSet, bool>;
type SpinCondvar = lock_api::Condvar<RawCondvar<TestAndSet>>;

fn pair() -> Arc<Room<Pair>> {
    Room::new((Mutex::new(false), Condvar::new()))
}

fn tell(room: &Room<Pair>) {
    room.change();
    *room.lock.0.lock() = true;
    room.lock.1.notify_one();
}

/// The mutex is held when the other thread comes to notify.
#[test]
fn user_condvar_notified() {
    explore("user_condvar_notified", Model::new().choices(0), || {
        let pair = (SpinMutex::new(false), SpinCondvar::new());
        let room = Room::new(pair);
        let mut told = room.lock.0.lock();
        let other = also(&room, |room| {
            room.change();
            *room.lock.0.lock() = true;
            room.lock.1.notify_one();
        });
        room.lock.1.wait_while(&mut told, |told| !*told);
        assert_eq!(room.look(), 1);
        drop(told);
        other.join().unwrap();
    });
}

#[test]
fn user_condvar_two_threads_bounded() {
    let model = brief::bounded(Model::new().choices(0), 2, 3);
    explore("user_condvar_two_threads_bounded", model, || {
        let room = pair();
        let other = also(&room, tell);
        room.lock.1.wait_while(&mut room.lock.0.lock(), |told| !*told);
        assert_eq!(room.look(), 1);
        other.join().unwrap();
    });
}

#[test]
fn user_condvar_gives_up_bounded() {
    let model = Model::new().choices(1).preemptions(2);
    explore("user_condvar_gives_up_bounded", model, || {
        let room = pair();
        let other = also(&room, tell);
        let mut told = room.lock.0.lock();
        let wait = room.lock.1.wait_while_for(&mut told, |told| !*told, Duration::from_secs(1));
        if !wait.timed_out() {
            assert_eq!(room.look(), 1);
        }
        drop(told);
        other.join().unwrap();
    });
}

#[test]
fn user_condvar_three_threads_bounded() {
    let model = brief::bounded(Model::new().choices(0), 1, 2);
    explore("user_condvar_three_threads_bounded", model, || {
        let room = pair();
        let others = [(); 2].map(|()| {
            also(&room, |room| room.lock.1.wait_while(&mut room.lock.0.lock(), |told| !*told))
        });
        *room.lock.0.lock() = true;
        room.lock.1.notify_all();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

fn permits(count: u32) -> Arc<Room<Semaphore>> {
    Room::new(Semaphore::new(count))
}

fn with_permit(room: &Room<Semaphore>) {
    let _permit = room.lock.acquire();
    room.change();
}

/// The permit is taken when the other thread comes.
#[test]
fn user_semaphore_two_threads() {
    let model = brief::bounded(Model::new().choices(0), 5, None);
    explore("user_semaphore_two_threads", model, || {
        let room = permits(1);
        let permit = room.lock.acquire();
        let other = also(&room, with_permit);
        room.change();
        drop(permit);
        other.join().unwrap();
        assert_eq!(room.look(), 2);
        assert_eq!(room.lock.available_permits(), 1);
    });
}

#[test]
fn user_semaphore_two_threads_bounded() {
    let model = brief::bounded(Model::new().choices(0), 2, 3);
    explore("user_semaphore_two_threads_bounded", model, || {
        let room = permits(1);
        let other = also(&room, with_permit);
        with_permit(&room);
        other.join().unwrap();
        assert_eq!(room.look(), 2);
        assert_eq!(room.lock.available_permits(), 1);
    });
}

#[test]
fn user_semaphore_added_permits_bounded() {
    let model = brief::bounded(Model::new().choices(1), 2, 3);
    explore("user_semaphore_added_permits_bounded", model, || {
        let room = permits(0);
        let adder = also(&room, |room| {
            room.change();
            room.lock.add_permits(1);
        });
        room.lock.acquire().forget();
        assert_eq!(room.look(), 1);
        adder.join().unwrap();
        assert_eq!(room.lock.available_permits(), 0);
    });
}

#[test]
fn user_semaphore_three_threads_bounded() {
    let model = brief::bounded(Model::new().choices(0), 1, 2);
    explore("user_semaphore_three_threads_bounded", model, || {
        let room = permits(1);
        let others = [also(&room, with_permit), also(&room, with_permit)];
        with_permit(&room);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(room.look(), 3);
        assert_eq!(room.lock.available_permits(), 1);
    });
}

/// A thread that wants two permits and gives up may stand before one that wants one.
#[test]
fn user_semaphore_gives_up_bounded() {
    let model = brief::bounded(Model::new().choices(1), 1, 2);
    explore("user_semaphore_gives_up_bounded", model, || {
        let room = permits(1);
        let others = [
            also(&room, with_permit),
            also(&room, |room| {
                drop(room.lock.try_acquire_many_for(2, Duration::from_secs(1)));
            }),
        ];
        room.lock.add_permits(1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(room.look(), 1);
        assert_eq!(room.lock.available_permits(), 2);
        assert!(room.lock.try_acquire_many(2).is_some(), "there is no line");
    });
}

#[test]
fn user_barrier_two_threads() {
    let model = brief::bounded(Model::new().choices(0), 5, None);
    explore("user_barrier_two_threads", model, || {
        let room = Room::new(Barrier::new(2));
        let other = also(&room, |room| {
            room.change();
            room.lock.wait().is_leader()
        });
        let leads = room.lock.wait().is_leader();
        assert_eq!(room.look(), 1);
        assert_ne!(other.join().unwrap(), leads);
    });
}

/// An unpark that comes while its thread waits is for its next park.
#[test]
fn user_barrier_leaves_the_token_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("user_barrier_leaves_the_token_bounded", model, || {
        let room = Room::new(Barrier::new(2));
        let waits = stanchion_activations_loom::current();
        let barrier = room.clone();
        let other = thread::spawn(move || {
            waits.unpark();
            barrier.lock.wait();
        });
        room.lock.wait();
        // Sleeps for ever if the wait has used it up.
        stanchion_activations_loom::park();
        other.join().unwrap();
    });
}

/// Two rounds: one thread comes again while the other is on its way.
#[test]
fn user_barrier_twice_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("user_barrier_twice_bounded", model, || {
        let room = Room::new(Barrier::new(2));
        let other = also(&room, |room| {
            room.lock.wait();
            room.change();
            room.lock.wait();
        });
        room.lock.wait();
        room.lock.wait();
        assert_eq!(room.look(), 1);
        other.join().unwrap();
    });
}

#[test]
fn user_barrier_three_threads_bounded() {
    let model = Model::new().choices(0).preemptions(2);
    explore("user_barrier_three_threads_bounded", model, || {
        let room = Room::new(Barrier::new(3));
        let others = [(); 2].map(|()| also(&room, |room| room.lock.wait().is_leader()));
        let leads = room.lock.wait().is_leader();
        let led = others.into_iter().map(|other| other.join().unwrap());
        assert_eq!(led.chain([leads]).filter(|&led| led).count(), 1);
    });
}

fn channel_of(name: &str, capacity: Option<usize>, preemptions: usize) {
    let model = Model::new().choices(0).branches(20_000).objects(48);
    let model = brief::bounded(model, preemptions, 2);
    explore(name, model, move || {
        let (sender, receiver) = capacity.map_or_else(channel::unbounded, channel::bounded);
        let sends = thread::spawn(move || {
            for message in 0..2 {
                sender.send(message).unwrap();
            }
        });
        assert_eq!(receiver.iter().collect::<Vec<u32>>(), [0, 1]);
        sends.join().unwrap();
    });
}

#[test]
fn user_channel_unbounded_bounded() {
    channel_of("user_channel_unbounded_bounded", None, 1);
}

#[test]
fn user_channel_of_one_place_bounded() {
    channel_of("user_channel_of_one_place_bounded", Some(1), 1);
}

#[test]
fn user_channel_without_places_bounded() {
    channel_of("user_channel_without_places_bounded", Some(0), 1);
}

/// The one that gives up goes, and the other one sees the end.
#[test]
fn user_channel_without_places_gives_up_bounded() {
    let model = Model::new().choices(1).branches(20_000).objects(48);
    let model = brief::bounded(model, 1, 2);
    explore("user_channel_without_places_gives_up_bounded", model, || {
        let (sender, receiver) = channel::bounded(0);
        let sends = thread::spawn(move || sender.send(7).is_ok());
        let got = receiver.recv_timeout(Duration::from_secs(1)).is_ok();
        drop(receiver);
        assert_eq!(sends.join().unwrap(), got);
    });
}

#[test]
fn user_channel_sender_gives_up_bounded() {
    let model = Model::new().choices(1).branches(20_000).objects(48);
    let model = brief::bounded(model, 1, 2);
    explore("user_channel_sender_gives_up_bounded", model, || {
        let (sender, receiver) = channel::bounded(0);
        let receives = thread::spawn(move || receiver.recv().is_ok());
        let sent = sender.send_timeout(7, Duration::from_secs(1)).is_ok();
        drop(sender);
        assert_eq!(receives.join().unwrap(), sent);
    });
}

/// Each thread would send on one channel or receive from the other: they do the same operation.
#[test]
fn user_channel_selections_meet_bounded() {
    let model = Model::new().choices(0).branches(20_000).objects(48);
    let model = brief::bounded(model, 1, 2);
    explore("user_channel_selections_meet_bounded", model, || {
        let (left, left_received) = channel::bounded(0);
        let (right, right_received) = channel::bounded(0);
        let other = thread::spawn(move || {
            select! {
                recv(left_received) -> message => message.unwrap(),
                send(right, 2) -> sent => sent.map(|()| 2).unwrap(),
            }
        });
        let moved = select! {
            send(left, 1) -> sent => sent.map(|()| 1).unwrap(),
            recv(right_received) -> message => message.unwrap(),
        };
        assert_eq!(other.join().unwrap(), moved);
    });
}
