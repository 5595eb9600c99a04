//! Locks in a process that is refused `membarrier` while threads contend: no thread panics, and no
//! wake-up is lost. Only fences are left then; see `stanchion_machine::asymmetric`.
#![cfg(all(target_os = "linux", not(miri)))]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use stanchion_alone::{alone, filter, refusal};
use stanchion_competitive::{Condvar, EventCount, Mutex, PolicyMutex, RwLock, policy::AlwaysBlock};
use stanchion_machine::asymmetric;
use stanchion_machine::clock::Deadline;

mod common;
use common::within;

/// Makes the kernel refuse `membarrier` to all threads of the process from now on. Returns whether
/// the system has filters: an emulator has none.
fn refuse_membarrier() -> bool {
    filter(libc::SYS_membarrier, refusal(libc::EPERM))
}

/// Each kind of sleeper once.
#[derive(Default)]
struct Locks {
    /// A mutex of the default policy.
    mutex: Mutex<u32>,
    /// A mutex that always blocks.
    blocking: PolicyMutex<u32, AlwaysBlock>,
    /// A reader-writer lock.
    table: RwLock<u32>,
    /// The mutex of the condition variable.
    turn: Mutex<u32>,
    /// The condition variable.
    turned: Condvar,
    /// The number of tasks to take.
    tasks: AtomicU32,
    /// The event count of threads that find no task.
    events: EventCount,
    /// The number of rounds so far.
    rounds: AtomicU32,
    /// Set when the test is over.
    over: AtomicBool,
}

impl Locks {
    /// Takes every lock, sometimes for long enough that others sleep.
    fn contend(&self) {
        while !self.over.load(SeqCst) {
            let round = self.rounds.fetch_add(1, SeqCst);
            let linger = || {
                if round.is_multiple_of(16) {
                    std::thread::yield_now();
                }
            };
            let mut count = self.mutex.lock();
            *count += 1;
            linger();
            drop(count);
            let mut count = self.blocking.lock();
            *count += 1;
            linger();
            drop(count);
            if round.is_multiple_of(4) {
                *self.table.write() += 1;
            } else {
                let read = self.table.read();
                linger();
                drop(read);
            }
        }
    }

    /// Passes the turn to and fro with another thread.
    fn alternate(&self, mine: u32) {
        let mut turn = self.turn.lock();
        while !self.over.load(SeqCst) {
            if *turn % 2 == mine {
                *turn += 1;
                self.turned.notify_all();
            } else {
                self.turned.wait(&mut turn);
            }
        }
        self.turned.notify_all();
    }

    /// Sleeps until there are tasks, and takes them, as a worker of a pool does.
    fn work(&self) {
        while !self.over.load(SeqCst) {
            let key = self.events.prepare();
            let taken =
                self.tasks.fetch_update(Relaxed, Relaxed, |tasks| tasks.checked_sub(1)).is_ok();
            if taken || self.over.load(SeqCst) {
                self.events.cancel(key);
            } else {
                self.events.wait_until(key, Deadline::NEVER);
            }
        }
    }

    /// Makes a task and waits, without a lock, until a worker has taken it.
    fn produce(&self) {
        while !self.over.load(SeqCst) {
            self.tasks.store(1, Relaxed);
            self.events.notify_one();
            while self.tasks.load(Relaxed) != 0 && !self.over.load(SeqCst) {
                std::thread::yield_now();
            }
            self.rounds.fetch_add(1, SeqCst);
        }
        self.events.notify_all();
    }

    /// Waits until the threads have gone on for so many rounds.
    fn more(&self, rounds: u32) {
        let (begin, turns) = (self.rounds.load(SeqCst), *self.turn.lock());
        while self.rounds.load(SeqCst) < begin + rounds || *self.turn.lock() < turns + rounds / 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn contend_and_be_refused() {
    let locks = Locks::default();
    asymmetric::heavy();
    let granted = asymmetric::is_free();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| locks.contend());
            scope.spawn(|| locks.work());
        }
        scope.spawn(|| locks.alternate(0));
        scope.spawn(|| locks.alternate(1));
        scope.spawn(|| locks.produce());
        locks.more(500);
        // While barriers are too many, both sides fence, and there is nothing to refuse. These
        // threads make many. So the filter may also come then, and a later try finds it.
        for _ in 0..100 {
            if granted && !asymmetric::is_free() {
                std::thread::sleep(Duration::from_millis(1));
                asymmetric::heavy();
            }
        }
        let filtered = refuse_membarrier();
        locks.more(500);
        // A heavy fence may be the one that tries barriers again; then the next one is refused.
        let noticed = (0..1_000).any(|_| {
            asymmetric::heavy();
            !asymmetric::is_free()
        });
        assert!(!filtered || noticed, "no thread has noticed");
        locks.more(2_000);
        locks.over.store(true, SeqCst);
    });
    assert_eq!(*locks.mutex.lock(), *locks.blocking.lock());
}

/// A filter stays for good, so it gets a process of its own.
#[test]
fn locks_survive_a_filter_that_takes_the_barrier_away() {
    alone("locks_survive_a_filter_that_takes_the_barrier_away", || {
        within(Duration::from_secs(120), contend_and_be_refused);
    });
}
