//! The locks and channels, with threads of runtimes and of none: they exclude, wake, give up, and
//! survive panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stanchion_activations::sync::channel::{self, RecvTimeoutError, TryRecvError, TrySendError};
use stanchion_activations::sync::{
    Barrier, Condvar, Mutex, MutexGuard, PolicyMutex, RawMutex, Semaphore,
};
use stanchion_activations::{Runtime, spawn, yield_now};
use stanchion_competitive::policy::{AlwaysBlock, AlwaysSpin, HolderAware};
use static_assertions::{assert_impl_all, assert_not_impl_any};

// The protected value is sent to the thread that locks; the guard stays with its thread.
assert_impl_all!(Mutex<std::cell::Cell<u32>>: Send, Sync);
assert_not_impl_any!(Mutex<std::rc::Rc<u32>>: Send, Sync);
assert_not_impl_any!(MutexGuard<'static, u32>: Send);
assert_not_impl_any!(channel::Sender<std::rc::Rc<u32>>: Send, Sync);
assert_impl_all!(channel::Receiver<std::cell::Cell<u32>>: Send, Sync);
assert_impl_all!(Condvar: Send, Sync);
assert_impl_all!(Semaphore: Send, Sync);
assert_impl_all!(Barrier: Send, Sync);

const SOON: Duration = Duration::from_millis(2);

/// Runs `body` so often in threads of a runtime and in kernel threads, at once.
fn among<F>(processors: usize, threads: usize, strangers: usize, body: F)
where
    F: Fn() + Send + Sync + Clone + 'static,
{
    let runtime = Runtime::new(processors).unwrap();
    let threads: Vec<_> = (0..threads).map(|_| runtime.spawn(body.clone())).collect();
    let strangers: Vec<_> = (0..strangers).map(|_| std::thread::spawn(body.clone())).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    strangers.into_iter().for_each(|stranger| stranger.join().unwrap());
}

/// Adds two in two steps, with others let in between if they can be.
fn add_apart(count: &mut usize) {
    let seen = *count;
    yield_now();
    *count = seen + 1;
}

fn excludes<P: stanchion_competitive::Policy + Send + Sync + 'static>() {
    for processors in 1..=4 {
        for strangers in [0, 2] {
            let count = Arc::new(PolicyMutex::<usize, P>::new(0));
            let adder = count.clone();
            among(processors, 50, strangers, move || {
                for round in 0..20 {
                    let mut guard = adder.lock();
                    if round % 4 == 0 { add_apart(&mut guard) } else { *guard += 1 }
                }
            });
            assert_eq!(*count.lock(), (50 + strangers) * 20);
        }
    }
}

#[test]
fn a_mutex_excludes_with_the_default_policy() {
    excludes::<stanchion_competitive::policy::Adaptive>();
}

#[test]
fn a_mutex_excludes_if_waiters_never_spin() {
    excludes::<AlwaysBlock>();
}

#[test]
fn a_mutex_excludes_if_waiters_look_for_the_holder() {
    excludes::<HolderAware>();
}

#[test]
fn a_mutex_excludes_if_waiters_would_spin_for_ever() {
    excludes::<AlwaysSpin>();
}

/// The holder is ready on the processor on which the other one waits.
#[test]
fn two_threads_on_one_processor_do_not_spin_each_other_out() {
    let runtime = Runtime::new(1).unwrap();
    let order = runtime.run(|| {
        let order = Arc::new(PolicyMutex::<Vec<u32>, AlwaysSpin>::new(Vec::new()));
        let mut first = order.lock();
        let other = {
            let order = order.clone();
            spawn(move || order.lock().push(2))
        };
        for _ in 0..3 {
            yield_now();
        }
        first.push(1);
        drop(first);
        other.join().unwrap();
        Arc::into_inner(order).unwrap().into_inner()
    });
    assert_eq!(order, [1, 2]);
}

/// On one processor a thread that frees a lock and asks for it at once would have it for ever.
#[test]
fn fair_unlock_serves_waiters_first() {
    let pushed = Runtime::new(1).unwrap().run(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut guard = order.lock();
        let others: Vec<_> = (0..5)
            .map(|number| {
                let order = order.clone();
                spawn(move || order.lock().push(number))
            })
            .collect();
        while guard.is_empty() {
            // Once they have begun they wait for the lock, and never yield it.
            yield_now();
            MutexGuard::unlock_fair(guard);
            guard = order.lock();
        }
        drop(guard);
        others.into_iter().for_each(|other| other.join().unwrap());
        Arc::into_inner(order).unwrap().into_inner()
    });
    assert_eq!(pushed.len(), 5);
}

#[test]
fn a_waiter_that_gives_up_leaves_the_others_in_line() {
    for processors in 1..=2 {
        Runtime::new(processors).unwrap().run(|| {
            let mutex = Arc::new(Mutex::new(0));
            let guard = mutex.lock();
            let patient = spawn({
                let mutex = mutex.clone();
                move || *mutex.lock() += 1
            });
            let impatient: Vec<_> = (0..10)
                .map(|_| {
                    let mutex = mutex.clone();
                    spawn(move || mutex.try_lock_for(SOON).is_none())
                })
                .collect();
            for impatient in impatient {
                assert!(impatient.join().unwrap(), "the lock was held all the time");
            }
            drop(guard);
            patient.join().unwrap();
            assert_eq!(*mutex.lock(), 1);
        });
    }
}

#[test]
fn timeouts_and_releases_that_meet_lose_nothing() {
    let got = Arc::new(AtomicUsize::new(0));
    let mutex = Arc::new(Mutex::new(0));
    let (adder, counted) = (mutex.clone(), got.clone());
    among(2, 40, 2, move || {
        for round in 0..30 {
            if let Some(mut guard) = adder.try_lock_for(Duration::from_micros(round * 20)) {
                add_apart(&mut guard);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(*mutex.lock(), got.load(Ordering::Relaxed));
    assert!(mutex.try_lock().is_some(), "and the lock is free");
}

#[test]
fn a_panic_with_a_lock_releases_it() {
    for processors in 1..=2 {
        Runtime::new(processors).unwrap().run(|| {
            let mutex = Arc::new(Mutex::new(1));
            let panics = spawn({
                let mutex = mutex.clone();
                move || {
                    let _guard = mutex.lock();
                    yield_now();
                    std::panic::resume_unwind(Box::new("with the lock"));
                }
            });
            let waits = spawn({
                let mutex = mutex.clone();
                move || *mutex.lock()
            });
            assert_eq!(*panics.join().unwrap_err().downcast::<&str>().unwrap(), "with the lock");
            assert_eq!(waits.join().unwrap(), 1);
        });
    }
}

#[test]
fn forgotten_guard_keeps_its_lock_and_harms_no_other() {
    Runtime::new(2).unwrap().run(|| {
        let mutex = Arc::new(Mutex::new(1));
        let forgets = spawn({
            let mutex = mutex.clone();
            move || std::mem::forget(mutex.lock())
        });
        forgets.join().unwrap();
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let mutex = mutex.clone();
                spawn(move || mutex.try_lock_for(SOON).is_none())
            })
            .collect();
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        // SAFETY: the guard is gone for ever.
        unsafe { mutex.force_unlock(lock_api::GuardNoSend::new()) };
        assert_eq!(*mutex.lock(), 1);
    });
}

/// Threads pass a token around, each waiting for its turn.
#[test]
fn condition_wakes_the_right_threads() {
    for processors in 1..=4 {
        let ring = Arc::new((Mutex::new(0), Condvar::new()));
        let number = Arc::new(AtomicUsize::new(0));
        let shared = ring.clone();
        among(processors, 8, 2, move || {
            let mine = number.fetch_add(1, Ordering::Relaxed);
            for round in 0..20 {
                let mut turn = shared.0.lock();
                shared.1.wait_while(&mut turn, |turn| *turn != round * 10 + mine);
                *turn += 1;
                drop(turn);
                shared.1.notify_all();
            }
        });
        assert_eq!(*ring.0.lock(), 200);
    }
}

#[test]
fn notifications_are_counted() {
    Runtime::new(2).unwrap().run(|| {
        let pair = Arc::new((Mutex::new(0), Condvar::new()));
        assert!(!pair.1.notify_one(), "nobody waits");
        let waiters: Vec<_> = (0..40)
            .map(|_| {
                let pair = pair.clone();
                spawn(move || {
                    let mut came = pair.0.lock();
                    *came += 1;
                    pair.1.wait(&mut came);
                })
            })
            .collect();
        while *pair.0.lock() < 40 {
            yield_now();
        }
        assert!(pair.1.notify_one());
        assert_eq!(pair.1.notify_all(), 39);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn a_wait_for_a_condition_times_out() {
    for processors in 1..=2 {
        Runtime::new(processors).unwrap().run(|| {
            let pair = (Mutex::new(()), Condvar::new());
            let mut guard = pair.0.lock();
            assert!(pair.1.wait_for(&mut guard, SOON).timed_out());
            drop(guard);
            assert!(pair.0.try_lock().is_some());
            assert!(!pair.1.notify_one(), "no thread waits any more");
        });
    }
    let pair = (Mutex::new(()), Condvar::new());
    assert!(pair.1.wait_for(&mut pair.0.lock(), SOON).timed_out(), "nor in a kernel thread");
}

#[test]
fn no_more_than_its_permits_are_out() {
    for processors in 1..=4 {
        let semaphore = Arc::new(Semaphore::new(3));
        let out = Arc::new(AtomicUsize::new(0));
        let (taken, counted) = (semaphore.clone(), out);
        among(processors, 30, 2, move || {
            for round in 0..20 {
                let permits = taken.acquire_many(round % 3 + 1);
                let count = permits.count() as usize;
                assert!(counted.fetch_add(count, Ordering::Relaxed) + count <= 3);
                yield_now();
                counted.fetch_sub(count, Ordering::Relaxed);
            }
        });
        assert_eq!(semaphore.available_permits(), 3);
    }
}

#[test]
fn giving_up_lets_waiters_behind_have_the_permits() {
    Runtime::new(1).unwrap().run(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let wants_two = spawn({
            let semaphore = semaphore.clone();
            move || semaphore.try_acquire_many_for(2, SOON).is_none()
        });
        yield_now();
        let wants_one = spawn({
            let semaphore = semaphore.clone();
            move || semaphore.acquire().count()
        });
        assert!(wants_two.join().unwrap());
        assert_eq!(wants_one.join().unwrap(), 1);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn permits_and_timeouts_that_meet_lose_nothing() {
    let semaphore = Arc::new(Semaphore::new(2));
    let shared = semaphore.clone();
    among(2, 40, 2, move || {
        for round in 0..30 {
            let patience = Duration::from_micros(u64::from(round) * 20);
            let permits = shared.try_acquire_many_for(round % 2 + 1, patience);
            yield_now();
            drop(permits);
        }
    });
    assert_eq!(semaphore.available_permits(), 2);
    assert!(semaphore.try_acquire_many(2).is_some(), "and there is no line");
}

#[test]
fn permits_that_come_back_to_a_full_semaphore_do_not_panic() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    let permits = semaphore.acquire_many(2);
    semaphore.add_permits(1);
    drop(permits);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

#[test]
fn barrier_lets_no_thread_pass_before_all_have_come() {
    for processors in 1..=4 {
        for (threads, strangers) in [(20, 0), (18, 2)] {
            const ROUNDS: usize = 10;
            let barrier = Arc::new(Barrier::new(20));
            let came = Arc::new(AtomicUsize::new(0));
            let leaders = Arc::new(AtomicUsize::new(0));
            let led = leaders.clone();
            among(processors, threads, strangers, move || {
                for round in 1..=ROUNDS {
                    came.fetch_add(1, Ordering::Relaxed);
                    leaders.fetch_add(barrier.wait().is_leader().into(), Ordering::Relaxed);
                    assert!(came.load(Ordering::Relaxed) >= 20 * round);
                    barrier.wait();
                }
            });
            assert_eq!(led.load(Ordering::Relaxed), ROUNDS);
        }
    }
    assert!(Barrier::new(0).wait().is_leader());
    assert!(Barrier::new(1).wait().is_leader());
}

type Ends<T> = (channel::Sender<T>, channel::Receiver<T>);

/// Every message arrives once, and those of one sender in their order.
fn passes_on(processors: usize, strangers: usize, make: fn() -> Ends<(usize, usize)>) {
    const SENDERS: usize = 6;
    const MESSAGES: usize = 100;
    let (sender, receiver) = make();
    let sum = Arc::new(AtomicUsize::new(0));
    let total = sum.clone();
    // The next role, and what those that have not begun yet take their ends from.
    let shared = Arc::new(Mutex::new((0, Some(sender), Some(receiver))));
    let threads = SENDERS + 4 - strangers;
    among(processors, threads, strangers, move || {
        let (role, sender, receiver) = {
            let mut next = shared.lock();
            let mine = next.clone();
            *next = if mine.0 == SENDERS + 3 {
                (0, None, None)
            } else {
                (mine.0 + 1, mine.1.clone(), mine.2.clone())
            };
            mine
        };
        if role < SENDERS {
            drop(receiver);
            let sender = sender.unwrap();
            (0..MESSAGES).for_each(|message| sender.send((role, message)).unwrap());
        } else {
            drop(sender);
            let mut last = [None; SENDERS];
            for (from, message) in receiver.unwrap() {
                assert!(last[from].replace(message) < Some(message));
                total.fetch_add(message + 1, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(sum.load(Ordering::Relaxed), SENDERS * MESSAGES * (MESSAGES + 1) / 2);
}

#[test]
fn a_channel_passes_every_message_on_once() {
    for processors in 1..=4 {
        for strangers in [0, 5] {
            passes_on(processors, strangers, channel::unbounded);
            passes_on(processors, strangers, || channel::bounded(1));
            passes_on(processors, strangers, || channel::bounded(7));
            passes_on(processors, strangers, || channel::bounded(0));
        }
    }
}

#[test]
fn a_channel_ends_when_one_side_has_gone() {
    Runtime::new(1).unwrap().run(|| {
        let (sender, receiver) = channel::bounded(2);
        sender.send(1).unwrap();
        let waits = spawn(move || (receiver.recv(), receiver.recv(), receiver.try_recv()));
        yield_now();
        drop(sender);
        let (first, second, third) = waits.join().unwrap();
        assert_eq!(first, Ok(1));
        assert_eq!(second, Err(channel::RecvError));
        assert_eq!(third, Err(TryRecvError::Disconnected));

        let (sender, receiver) = channel::bounded(1);
        let message = Arc::new(());
        sender.send(message.clone()).unwrap();
        let waits = spawn({
            let message = message.clone();
            move || sender.send(message).is_err()
        });
        yield_now();
        drop(receiver);
        assert!(waits.join().unwrap());
        assert_eq!(Arc::strong_count(&message), 1, "what was left was dropped");
    });
}

#[test]
fn a_channel_gives_up_in_time() {
    Runtime::new(1).unwrap().run(|| {
        let (sender, receiver) = channel::bounded(1);
        assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        sender.send(1).unwrap();
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        assert!(sender.send_timeout(3, SOON).is_err());
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1]);
        let (sender, receiver) = channel::bounded(0);
        assert!(sender.send_timeout(1, SOON).is_err(), "no thread is there to take it");
        assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    });
}

/// From hand to hand, with senders and receivers that give up.
#[test]
fn a_channel_without_places_loses_nothing_to_timeouts() {
    for processors in 1..=2 {
        let (sender, receiver) = channel::bounded(0);
        let (sent, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let roles = Arc::new(AtomicUsize::new(0));
        let (given, taken) = (sent.clone(), received.clone());
        among(processors, 10, 2, move || {
            let sends = roles.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            for round in 0..40 {
                let patience = Duration::from_micros(round % 8 * 50);
                if sends && sender.send_timeout((), patience).is_ok() {
                    given.fetch_add(1, Ordering::Relaxed);
                } else if !sends && receiver.recv_timeout(patience).is_ok() {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        assert_eq!(sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
    }
}

#[test]
fn a_lock_is_small() {
    assert!(size_of::<RawMutex<AlwaysBlock>>() <= 40);
}

/// Whichever of the crate's own thread-locals have gone before.
#[test]
fn a_kernel_thread_waits_in_its_last_destructors() {
    static COMES: Barrier = Barrier::new(2);
    static LOCK: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    static PERMITS: Semaphore = Semaphore::new(0);
    static DONE: Semaphore = Semaphore::new(0);

    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            // The other holds the lock by now.
            COMES.wait();
            let mut changed = LOCK.lock();
            CHANGED.wait_while(&mut changed, |changed| !*changed);
            *changed = false;
            drop(changed);
            PERMITS.acquire().forget();
            DONE.add_permits(1);
        }
    }
    thread_local! {
        static EARLY: std::cell::RefCell<Option<Waits>> = const { std::cell::RefCell::new(None) };
        static LATE: std::cell::RefCell<Option<Waits>> = const { std::cell::RefCell::new(None) };
    }
    let stranger = std::thread::spawn(|| {
        EARLY.with(|place| *place.borrow_mut() = Some(Waits));
        // The crate's own are between them, whichever go first.
        COMES.wait();
        LATE.with(|place| *place.borrow_mut() = Some(Waits));
    });
    Runtime::new(1).unwrap().run(|| {
        COMES.wait();
        for _ in 0..2 {
            let held = LOCK.lock();
            COMES.wait();
            yield_now();
            drop(held);
            yield_now();
            *LOCK.lock() = true;
            CHANGED.notify_one();
            yield_now();
            PERMITS.add_permits(1);
            // Before the lock is taken again, which it may be waiting for.
            DONE.acquire().forget();
        }
    });
    stranger.join().unwrap();
}
