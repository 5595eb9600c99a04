//! Tests with signals that arrive while threads lock, wait and signal conditions.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, ETIMEDOUT, c_int, clockid_t, pthread_t};

use super::objects::{Cond, Mutex};
use super::{after, increment};

/// The number of rounds of each thread.
const ROUNDS: u64 = 2_000;

/// The number of signals that have been handled.
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(_: c_int) {
    // Now and then the thread stands still at any point: with a lock, or with a queue's lock.
    if HANDLED.fetch_add(1, Ordering::Relaxed).is_multiple_of(32) {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 300_000 };
        // SAFETY: reads `time`.
        unsafe { libc::nanosleep(&time, ptr::null_mut()) };
    }
}

/// Threads that get signals until all of them are done.
struct Targets {
    /// The `pthread_t` of each thread, or 0 before it has begun. The thread writes it.
    threads: [AtomicU64; TARGETS],
    /// The number of threads that have begun. Each thread adds one.
    begun: AtomicUsize,
    /// The number of threads that have done their work. Each thread adds one.
    done: AtomicUsize,
    /// True after the last signal was sent. The thread that sends them writes it.
    over: AtomicBool,
}

/// The number of threads that get signals.
const TARGETS: usize = 7;

impl Targets {
    const fn new() -> Self {
        Self {
            threads: [const { AtomicU64::new(0) }; TARGETS],
            begun: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Runs `body` on the calling thread. The thread then stays until the last signal has been
    /// sent.
    fn is_one(&self, body: impl FnOnce()) {
        // SAFETY: names the calling thread.
        let me = unsafe { libc::pthread_self() };
        let place = &self.threads[self.begun.fetch_add(1, Ordering::Relaxed)];
        // Release: pairs with the Acquire of `shoot`.
        place.store(me, Ordering::Release);
        body();
        self.done.fetch_add(1, Ordering::Relaxed);
        while !self.over.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn shoot(&self) {
        for turn in 0_usize.. {
            let thread: pthread_t = self.threads[turn % TARGETS].load(Ordering::Acquire);
            if thread != 0 {
                // SAFETY: the thread has begun, and stays until `over`.
                assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0);
            }
            if self.done.load(Ordering::Relaxed) == TARGETS {
                break;
            }
            if turn % 3 == 0 {
                std::thread::yield_now();
            }
        }
        self.over.store(true, Ordering::Release);
    }
}

pub(super) fn storm() {
    // SAFETY: zeros are an action without flags: calls to the kernel that wait are interrupted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    // SAFETY: a handler that only counts and sleeps.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) }, 0);

    let targets = Targets::new();
    let (mutex, count) = (Mutex::new(), AtomicU64::new(0));
    let (ball, to_one, to_other) = (AtomicU64::new(0), Cond::new(), Cond::new());
    let turns = Mutex::new();
    let never = Cond::new();
    let play = |mine: u64, to_me: &Cond, to_other: &Cond| {
        for _ in 0..ROUNDS {
            turns.with(|| {
                while ball.load(Ordering::Relaxed) % 2 != mine {
                    assert_eq!(to_me.wait(&turns), 0);
                }
                ball.fetch_add(1, Ordering::Relaxed);
            });
            to_other.signal();
        }
    };
    let time_out = |clock: clockid_t| {
        let own = Mutex::new();
        for _ in 0..ROUNDS / 20 {
            let (began, time) = (Instant::now(), Duration::from_millis(2));
            let until = after(clock, time);
            own.with(|| {
                loop {
                    match never.wait_by(&own, clock, until) {
                        0 => {}
                        result => break assert_eq!(result, ETIMEDOUT),
                    }
                }
            });
            // The clock of the day may be set back a little meanwhile.
            assert!(began.elapsed() >= time / 2, "{:?}", began.elapsed());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                targets.is_one(|| (0..ROUNDS).for_each(|_| mutex.with(|| increment(&count))));
            });
        }
        scope.spawn(|| targets.is_one(|| play(0, &to_one, &to_other)));
        scope.spawn(|| targets.is_one(|| play(1, &to_other, &to_one)));
        scope.spawn(|| targets.is_one(|| time_out(CLOCK_REALTIME)));
        scope.spawn(|| targets.is_one(|| time_out(CLOCK_MONOTONIC)));
        targets.shoot();
    });
    assert_eq!(count.load(Ordering::Relaxed), 3 * ROUNDS);
    assert_eq!(ball.load(Ordering::Relaxed), 2 * ROUNDS);
    assert!(HANDLED.load(Ordering::Relaxed) > 0);
    [&to_one, &to_other, &never].into_iter().for_each(Cond::destroy);
}
