//! Locks in the child of a fork: a lock that another thread of the parent held stays held, every
//! other lock works, and no thread of the parent is waited for or woken.
//!
//! Each test has a process of its own. std starts and ends threads under a lock, which a child that
//! is forked beside the threads of other tests may find held for ever.
#![cfg(all(unix, not(miri)))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_alone::{Sleepers, alone};
use stanchion_competitive::policy::AlwaysBlock;
use stanchion_competitive::{
    Condvar, EventCount, Mutex, Once, OnceLock, OnceState, PolicyMutex, RwLock,
    RwLockUpgradableReadGuard, Semaphore,
};
use stanchion_machine::clock::Deadline;

/// The time that a child may take, on a machine where each yield waits for busy processes.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `body` in a child. Returns whether it ended well: neither panicked nor hung.
#[must_use = "assert it once no thread of the parent waits any more"]
fn in_child(body: impl FnOnce()) -> bool {
    // SAFETY: the child runs `body`, which uses the C library as any program does that goes on
    // after a fork without `exec`, and then ends without the parent's destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed: {}", std::io::Error::last_os_error());
    if child == 0 {
        let ended = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    let began = Instant::now();
    let mut status = 0;
    // SAFETY: the status is writable, and the child is this thread's.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if began.elapsed() > LIMIT {
            // SAFETY: the child has not been waited for, so its number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        thread::sleep(Duration::from_millis(1));
    }
    status == 0
}

/// Four threads that mostly block on one mutex.
fn contend(mutex: &PolicyMutex<usize, AlwaysBlock>) {
    const ROUNDS: usize = 50;
    thread::scope(|scope| {
        let before = *mutex.lock();
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let mut count = mutex.lock();
                    // A yield takes milliseconds beside a busy process.
                    if round % 10 == 0 {
                        thread::yield_now();
                    }
                    *count += 1;
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*mutex.lock(), before + 4 * ROUNDS);
    });
}

#[test]
fn a_mutex_that_threads_of_the_parent_sleep_on_works_in_a_child() {
    alone("a_mutex_that_threads_of_the_parent_sleep_on_works_in_a_child", || {
        const LOCKS: usize = 40;
        static LOCK: [PolicyMutex<usize, AlwaysBlock>; LOCKS] =
            [const { PolicyMutex::new(0) }; LOCKS];
        static WAITERS: Sleepers = Sleepers::new();
        thread::scope(|scope| {
            let held: Vec<_> = LOCK.iter().map(|lock| lock.lock()).collect();
            for lock in LOCK.iter().chain(&LOCK[..LOCKS / 2]) {
                scope.spawn(|| {
                    WAITERS.arrive();
                    *lock.lock() += 1;
                });
            }
            WAITERS.until_asleep(LOCKS + LOCKS / 2);
            let mut held = Some(held);
            let ended = in_child(|| {
                let fresh = PolicyMutex::new(0);
                contend(&fresh);
                // The forking thread held them, so it does here.
                drop(held.take());
                LOCK.iter().for_each(contend);
                assert!(in_child(|| LOCK.iter().for_each(contend)), "a grandchild");
            });
            drop(held);
            assert!(ended);
        });
        let sum: usize = LOCK.iter().map(|lock| *lock.lock()).sum();
        assert_eq!(sum, LOCKS + LOCKS / 2, "each thread of the parent came through");
    });
}

/// Whatever a thread of the parent is doing at the fork, above all inside the table of sleepers.
#[test]
fn children_of_a_program_that_contends_all_the_time_work() {
    alone("children_of_a_program_that_contends_all_the_time_work", || {
        static BUSY: [PolicyMutex<usize, AlwaysBlock>; 4] = [const { PolicyMutex::new(0) }; 4];
        static FILLED: Condvar = Condvar::new();
        static STOP: AtomicBool = AtomicBool::new(false);
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        thread::scope(|scope| {
            for thread in 0..6 {
                scope.spawn(move || {
                    STARTED.fetch_add(1, SeqCst);
                    while !STOP.load(SeqCst) {
                        let mut count = BUSY[thread % BUSY.len()].lock();
                        *count += 1;
                        FILLED.wait_for(&mut count, Duration::from_micros(50));
                        FILLED.notify_one();
                    }
                });
            }
            while STARTED.load(SeqCst) < 6 {
                thread::yield_now();
            }
            let all_end = (0..25).all(|_| {
                in_child(|| {
                    let fresh = PolicyMutex::new(0);
                    contend(&fresh);
                    // Each of these may be held for ever. The others can be taken.
                    for lock in &BUSY {
                        drop(lock.try_lock_for(Duration::from_millis(1)));
                    }
                    let own = Mutex::new(false);
                    thread::scope(|scope| {
                        scope.spawn(|| {
                            *own.lock() = true;
                            FILLED.notify_all();
                        });
                        let mut told = own.lock();
                        FILLED.wait_while(&mut told, |told| !*told);
                    });
                })
            });
            STOP.store(true, SeqCst);
            assert!(all_end);
        });
    });
}

#[test]
fn a_condition_variable_that_threads_of_the_parent_wait_on_works_in_a_child() {
    alone("a_condition_variable_that_threads_of_the_parent_wait_on_works_in_a_child", || {
        static READY: Mutex<bool> = Mutex::new(false);
        static CHANGED: Condvar = Condvar::new();
        static WAITERS: Sleepers = Sleepers::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut ready = READY.lock();
                    WAITERS.arrive();
                    CHANGED.wait_while(&mut ready, |ready| !*ready);
                });
            }
            WAITERS.until_asleep(3);
            let ended = in_child(|| {
                assert!(!CHANGED.notify_one(), "no thread of this process waits");
                let waiter = thread::spawn(|| {
                    let mut ready = READY.lock();
                    CHANGED.wait_while(&mut ready, |ready| !*ready);
                });
                *READY.lock() = true;
                while !waiter.is_finished() {
                    CHANGED.notify_one();
                    thread::yield_now();
                }
                waiter.join().unwrap();
                assert_eq!(CHANGED.notify_all(), 0);
            });
            *READY.lock() = true;
            assert_eq!(CHANGED.notify_all(), 3);
            assert!(ended);
        });
    });
}

#[test]
fn an_event_count_that_threads_of_the_parent_sleep_on_works_in_a_child() {
    alone("an_event_count_that_threads_of_the_parent_sleep_on_works_in_a_child", || {
        static EVENTS: EventCount = EventCount::new();
        static WAITERS: Sleepers = Sleepers::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let key = EVENTS.prepare();
                    WAITERS.arrive();
                    EVENTS.wait(key);
                });
            }
            WAITERS.until_asleep(3);
            let ended = in_child(|| {
                assert_eq!(EVENTS.notify_all(), 0, "no thread of this process sleeps");
                let sleeper =
                    thread::spawn(|| EVENTS.wait_as(EVENTS.prepare(), 7, Deadline::NEVER));
                while !EVENTS.notify_only(7) && !sleeper.is_finished() {
                    thread::yield_now();
                }
                assert!(sleeper.join().unwrap());
            });
            EVENTS.notify_all();
            assert!(ended);
        });
    });
}

#[test]
fn a_lock_that_readers_of_the_parent_sleep_on_works_in_a_child() {
    alone("a_lock_that_readers_of_the_parent_sleep_on_works_in_a_child", || {
        static LOCK: RwLock<usize> = RwLock::new(0);
        static WAITERS: Sleepers = Sleepers::new();
        thread::scope(|scope| {
            let writing = LOCK.write();
            for _ in 0..5 {
                scope.spawn(|| {
                    WAITERS.arrive();
                    assert_eq!(*LOCK.read(), 0);
                });
            }
            WAITERS.until_asleep(5);
            let mut writing = Some(writing);
            let ended = in_child(|| {
                drop(writing.take());
                assert!(LOCK.try_write().is_some(), "no reader of the parent was let in");
                thread::scope(|scope| {
                    let writing = LOCK.write();
                    let reader = scope.spawn(|| *LOCK.read());
                    thread::sleep(Duration::from_millis(5));
                    drop(writing);
                    assert_eq!(reader.join().unwrap(), 0);
                });
            });
            drop(writing);
            assert!(ended);
        });
        assert!(LOCK.try_write().is_some());
    });
}

#[test]
fn a_lock_that_another_thread_held_stays_held() {
    alone("a_lock_that_another_thread_held_stays_held", || {
        static LOCK: Mutex<usize> = Mutex::new(0);
        static HELD: AtomicBool = AtomicBool::new(false);
        static FORKED: AtomicBool = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _held = LOCK.lock();
                HELD.store(true, SeqCst);
                while !FORKED.load(SeqCst) {
                    thread::yield_now();
                }
            });
            while !HELD.load(SeqCst) {
                thread::yield_now();
            }
            let ended = in_child(|| {
                assert!(LOCK.try_lock().is_none());
                assert!(LOCK.try_lock_for(Duration::from_millis(2)).is_none());
            });
            FORKED.store(true, SeqCst);
            assert!(ended);
        });
        assert!(LOCK.try_lock().is_some());
    });
}

/// The documented limit: a thread that keeps the gate while it waits, waits for ever in the child.
#[test]
fn a_lock_that_a_thread_of_the_parent_upgrades_stays_held() {
    alone("a_lock_that_a_thread_of_the_parent_upgrades_stays_held", || {
        static LOCK: RwLock<usize> = RwLock::new(0);
        thread::scope(|scope| {
            let reading = LOCK.read();
            scope.spawn(|| *RwLockUpgradableReadGuard::upgrade(LOCK.upgradable_read()) += 1);
            while LOCK.try_read().is_some() {
                thread::yield_now();
            }
            let mut reading = Some(reading);
            let ended = in_child(|| {
                drop(reading.take());
                assert!(LOCK.try_write().is_none() && LOCK.try_read().is_none());
                assert!(LOCK.try_write_for(Duration::from_millis(2)).is_none());
                assert!(LOCK.try_read_for(Duration::from_millis(2)).is_none());
            });
            drop(reading);
            assert!(ended);
        });
        assert_eq!(*LOCK.read(), 1);
    });
}

/// A writer leaves the gate before it sleeps. Unlike a thread that upgrades, it may still be about
/// to leave it when the child is made.
#[test]
fn a_lock_that_a_writer_of_the_parent_waits_for_is_free_after_the_readers() {
    alone("a_lock_that_a_writer_of_the_parent_waits_for_is_free_after_the_readers", || {
        assert!((0..1_000).any(|_| is_free_after_the_readers()), "each child had the gate locked");
    });
}

fn is_free_after_the_readers() -> bool {
    static LOCK: RwLock<usize> = RwLock::new(0);
    *LOCK.write() = 0;
    let waiters = Sleepers::new();
    thread::scope(|scope| {
        let reading = LOCK.read();
        scope.spawn(|| {
            waiters.arrive();
            *LOCK.write() += 1;
        });
        waiters.until_asleep(1);
        let mut reading = Some(reading);
        in_child(|| {
            assert!(LOCK.try_write().is_none() && LOCK.try_read().is_none());
            drop(reading.take());
            if let Some(mut value) = LOCK.try_write() {
                *value += 5;
            } else {
                // SAFETY: ends the child.
                unsafe { libc::_exit(1) };
            }
            assert_eq!(*LOCK.read(), 5);
            assert!(LOCK.try_write().is_some());
        })
    })
}

/// Tests the documented limit of a body that another thread runs, and cases that it does not
/// affect.
#[test]
fn what_another_thread_does_once_is_not_done_in_a_child() {
    alone("what_another_thread_does_once_is_not_done_in_a_child", || {
        static THEIRS: Once = Once::new();
        static NEW: Once = Once::new();
        static MADE: OnceLock<usize> = OnceLock::new();
        static RUNS: AtomicBool = AtomicBool::new(false);
        static FORKED: AtomicBool = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                THEIRS.call_once(|| {
                    RUNS.store(true, SeqCst);
                    while !FORKED.load(SeqCst) {
                        thread::yield_now();
                    }
                });
            });
            while !RUNS.load(SeqCst) {
                thread::yield_now();
            }
            let ended = in_child(|| {
                assert_eq!(THEIRS.state(), OnceState::InProgress);
                thread::scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|| {
                            NEW.call_once(|| ());
                            MADE.get_or_init(|| 7);
                            MADE.wait();
                        });
                    }
                });
                assert!(NEW.is_completed());
            });
            FORKED.store(true, SeqCst);
            assert!(ended);
        });
        assert!(THEIRS.is_completed() && !NEW.is_completed() && MADE.get().is_none());
    });
}

#[test]
fn a_body_that_forks_goes_on_in_the_child() {
    alone("a_body_that_forks_goes_on_in_the_child", || {
        static FORKS: Once = Once::new();
        let mut child = -1;
        // SAFETY: the child only looks at the `Once` and ends.
        FORKS.call_once(|| child = unsafe { libc::fork() });
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!FORKS.is_completed())) };
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: the status is writable, and the child is this thread's.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(status == 0 && FORKS.is_completed());
    });
}

#[test]
fn a_child_stands_in_line_for_permits_without_its_parents_threads() {
    alone("a_child_stands_in_line_for_permits_without_its_parents_threads", || {
        const SOON: Duration = Duration::from_millis(1);
        let (semaphore, waiters) = (Semaphore::new(2), Sleepers::new());
        let held = semaphore.acquire();
        std::thread::scope(|scope| {
            // One is the first in line. Another comes behind it.
            let first = scope.spawn(|| {
                waiters.arrive();
                drop(semaphore.acquire_many(3));
            });
            waiters.until_asleep(1);
            let second = scope.spawn(|| {
                waiters.arrive();
                drop(semaphore.acquire_many(2));
            });
            waiters.until_asleep(2);
            // After 10 ms the first claims the permit that is left.
            while semaphore.try_acquire().is_some() {
                std::thread::yield_now();
            }
            let all_end = (0..20).all(|_| {
                in_child(|| {
                    let one = semaphore.try_acquire().expect("no thread of the child claims it");
                    assert!(semaphore.try_acquire_for(SOON).is_none());
                    drop(one);
                    assert!(semaphore.try_acquire_many_for(2, SOON).is_none(), "one is held");
                    semaphore.add_permits(2);
                    let three = semaphore.acquire_many(3);
                    std::thread::scope(|scope| {
                        for _ in 0..3 {
                            scope.spawn(|| drop(semaphore.acquire_many(2)));
                        }
                        drop(three);
                    });
                    assert_eq!(semaphore.available_permits(), 3);
                    assert!(in_child(|| drop(semaphore.acquire_many(3))));
                })
            });
            semaphore.add_permits(1);
            drop(held);
            first.join().expect("it gets its permits");
            second.join().expect("it gets its permit");
            assert!(all_end);
        });
        assert_eq!(semaphore.available_permits(), 3);
    });
}
