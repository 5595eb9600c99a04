//! The properties of sleeping on a word, tested for each implementation.

use crate::clock::Deadline;
use crate::park::Woken;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use core::time::Duration;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use std::vec::Vec;

macro_rules! suite {
    ($($name:ident),+ $(,)?) => {
        #[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
        mod futex {
            $(#[test] fn $name() { super::$name(super::super::futex::wait, super::super::futex::wake); })+
        }
        mod portable {
            $(#[test] fn $name() { super::$name(super::super::portable::wait, super::super::portable::wake); })+
        }
    };
}

suite!(
    a_changed_word_is_not_waited_on,
    a_deadline_in_the_past_does_not_sleep,
    a_deadline_is_kept,
    a_deadline_at_the_end_of_time_is_none,
    nobody_there_is_nobody_woken,
    as_many_are_woken_as_asked,
    words_do_not_hear_of_each_other,
    a_freed_address_can_be_woken,
    no_wake_up_is_lost,
    no_wake_up_is_lost_to_a_deadline,
    the_threads_own_token_is_left_to_it,
);

type Wait = fn(&AtomicU32, u32, Deadline) -> Woken;
type Wake = fn(*const AtomicU32, usize) -> usize;

fn a_changed_word_is_not_waited_on(wait: Wait, _: Wake) {
    assert_eq!(wait(&AtomicU32::new(1), 0, Deadline::NEVER), Woken::Changed);
    assert_eq!(wait(&AtomicU32::new(1), 0, Deadline::after(Duration::ZERO)), Woken::Changed);
}

fn a_deadline_in_the_past_does_not_sleep(wait: Wait, _: Wake) {
    let word = AtomicU32::new(u32::MAX);
    let past = [Instant::now(), Instant::now().checked_sub(Duration::from_secs(1)).unwrap()];
    for deadline in past.map(Deadline::at).into_iter().chain([Deadline::after(Duration::ZERO)]) {
        assert_eq!(wait(&word, u32::MAX, deadline), Woken::TimedOut);
    }
}

fn a_deadline_is_kept(wait: Wait, _: Wake) {
    let word = AtomicU32::new(0);
    let until = Instant::now() + Duration::from_millis(5);
    while wait(&word, 0, Deadline::at(until)) == Woken::Woken {}
    assert!(Instant::now() >= until, "came back early");
}

fn a_deadline_at_the_end_of_time_is_none(wait: Wait, wake: Wake) {
    for timeout in [Duration::MAX, Duration::from_nanos(u64::MAX - 1), Duration::from_secs(1 << 33)]
    {
        let word = Arc::new(AtomicU32::new(0));
        let sleeper = {
            let word = word.clone();
            thread::spawn(move || {
                while word.load(SeqCst) == 0 {
                    assert_ne!(wait(&word, 0, Deadline::after(timeout)), Woken::TimedOut);
                }
            })
        };
        thread::sleep(Duration::from_millis(1));
        word.store(1, SeqCst);
        wake(&*word, 1);
        sleeper.join().unwrap();
    }
}

fn nobody_there_is_nobody_woken(_: Wait, wake: Wake) {
    assert_eq!(wake(&AtomicU32::new(0), usize::MAX), 0);
}

/// A word on which so many threads sleep that only a wake-up will end.
fn sleepers(count: usize, wait: Wait) -> (Arc<AtomicU32>, Vec<thread::JoinHandle<()>>) {
    let word = Arc::new(AtomicU32::new(0));
    let threads = (0..count)
        .map(|_| {
            let word = word.clone();
            thread::spawn(move || while wait(&word, 0, Deadline::NEVER) != Woken::Woken {})
        })
        .collect();
    (word, threads)
}

/// Wakes until so many have been woken in all, never more than `at_most` in one go.
fn wake_in_all(word: &AtomicU32, count: usize, at_most: usize, wake: Wake) {
    let mut woken = 0;
    while woken < count {
        let now = wake(word, at_most.min(count - woken));
        assert!(now <= at_most);
        woken += now;
        thread::yield_now();
    }
}

fn as_many_are_woken_as_asked(wait: Wait, wake: Wake) {
    let (word, threads) = sleepers(6, wait);
    wake_in_all(&word, 1, 1, wake);
    wake_in_all(&word, 2, 2, wake);
    wake_in_all(&word, 3, usize::MAX, wake);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(wake(&*word, usize::MAX), 0, "the queue is empty");
}

fn words_do_not_hear_of_each_other(wait: Wait, wake: Wake) {
    // Neighbours in one line, and as many as fill some bucket twice.
    let words: Arc<Vec<AtomicU32>> = Arc::new((0..16).map(|_| AtomicU32::new(0)).collect());
    let threads: Vec<_> = (0..words.len())
        .map(|at| {
            let words = words.clone();
            thread::spawn(move || while wait(&words[at], 0, Deadline::NEVER) != Woken::Woken {})
        })
        .collect();
    for (word, thread) in words.iter().zip(threads) {
        wake_in_all(word, 1, usize::MAX, wake);
        thread.join().unwrap();
        assert_eq!(wake(word, usize::MAX), 0, "one sleeper on each");
    }
}

fn a_freed_address_can_be_woken(_: Wait, wake: Wake) {
    let gone = std::boxed::Box::into_raw(std::boxed::Box::new(AtomicU32::new(0)));
    // SAFETY: it came from a Box just now.
    drop(unsafe { std::boxed::Box::from_raw(gone) });
    assert_eq!(wake(gone, 1), 0);
    assert_eq!(wake(core::ptr::null(), 1), 0);
}

/// A ball between two threads: one lost wake-up and neither ever returns.
fn no_wake_up_is_lost(wait: Wait, wake: Wake) {
    const THROWS: u32 = 2_000;
    let ball = Arc::new(AtomicU32::new(0));
    let play = move |ball: &AtomicU32, mine: u32| {
        loop {
            let now = ball.load(SeqCst);
            if now >= THROWS {
                return;
            }
            if now % 2 == mine {
                ball.store(now + 1, SeqCst);
                wake(ball, 1);
            } else {
                wait(ball, now, Deadline::NEVER);
            }
        }
    };
    let other = {
        let ball = ball.clone();
        thread::spawn(move || play(&ball, 1))
    };
    play(&ball, 0);
    other.join().unwrap();
    assert_eq!(ball.load(Relaxed), THROWS);
}

/// Hands out permits one by one to threads with deadlines that pass all the time. If a leaving
/// waiter swallowed a wake-up, no thread would take that permit.
fn no_wake_up_is_lost_to_a_deadline(wait: Wait, wake: Wake) {
    const PERMITS: u32 = 300;
    let permits = Arc::new(AtomicU32::new(0));
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let permits = permits.clone();
            thread::spawn(move || {
                let mut taken = 0;
                loop {
                    let now = permits.load(SeqCst);
                    if now == u32::MAX {
                        return taken;
                    }
                    if now == 0 {
                        let soon = Deadline::after(Duration::from_micros(20));
                        if wait(&permits, 0, soon) == Woken::Woken {
                            // Pass it on to a waiter that did not leave: woken means looked at.
                            wake(&*permits, 1);
                        }
                    } else if permits.compare_exchange(now, now - 1, SeqCst, SeqCst).is_ok() {
                        taken += 1;
                    }
                }
            })
        })
        .collect();
    for _ in 0..PERMITS {
        permits.fetch_add(1, SeqCst);
        wake(&*permits, 1);
        while permits.load(SeqCst) != 0 {
            thread::yield_now();
        }
    }
    permits.store(u32::MAX, SeqCst);
    wake(&*permits, usize::MAX);
    let taken: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    assert_eq!(taken, PERMITS);
}

/// A `thread::unpark` before a wait is for the next `thread::park` after it.
fn the_threads_own_token_is_left_to_it(wait: Wait, _: Wake) {
    let long = Duration::from_secs(10);
    thread::spawn(move || {
        thread::current().unpark();
        let soon = Deadline::after(Duration::from_millis(2));
        while wait(&AtomicU32::new(0), 0, soon) == Woken::Woken {}
        let start = Instant::now();
        thread::park_timeout(long);
        assert!(start.elapsed() < long / 2, "the wait took the token");
    })
    .join()
    .unwrap();
}

/// A signal ends a sleep; the sleeper comes again with the same deadline, and is not thrown off by
/// it.
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
#[cfg(not(miri))]
#[test]
fn a_signal_is_a_spurious_wake_up() {
    extern "C" fn nothing(_: libc::c_int) {}

    // SAFETY: all zeros is a valid `sigaction`: no flags, so that calls are interrupted rather than
    // restarted.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the handler does nothing; no other test of this program uses the signal.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()) };
    assert_eq!(set, 0);

    for deadline in [Deadline::NEVER, Deadline::after(Duration::from_secs(3600))] {
        let word = Arc::new(AtomicU32::new(0));
        let (sender, ready) = std::sync::mpsc::channel();
        let sleeper = {
            let word = word.clone();
            thread::spawn(move || {
                // SAFETY: a question without pointers.
                sender.send(unsafe { libc::pthread_self() }).unwrap();
                super::futex::wait(&word, 0, deadline)
            })
        };
        let target = ready.recv().unwrap();
        while !sleeper.is_finished() {
            // SAFETY: not joined yet, so the thread's identity is valid.
            unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
            thread::sleep(Duration::from_micros(100));
        }
        assert_eq!(sleeper.join().unwrap(), Woken::Woken);
        assert_eq!(word.load(Relaxed), 0);
    }
}
