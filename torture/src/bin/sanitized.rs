//! What ThreadSanitizer runs: `sanitized LOCK`, two threads, a plain counter under a fence-free lock.
//!
//! ThreadSanitizer understands atomic operations but no fences, and without a rebuilt std it does not see into it. So: a plain `main`
//! (libtest reports through a channel), `thread::spawn` and `join` (whose ordering its runtime knows from pthreads), no std
//! lock, channel, `scope` or `park`, and only locks whose correctness rests on their own atomics. The mutex is not here: its sleepers rest on a
//! barrier of the kernel's, and in a program that links it the broken locks below went unreported.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use lock_api::RawMutex;
use stanchion_spin::contention::{Exchange, Polling, Read};
use stanchion_spin::{Anderson, Clh, Mcs, TestAndSet, Ticket};
use torture::busted::{RawBusted, RawBustedUnlock};

/// Sections of each thread. ThreadSanitizer slows them some ten times.
const SECTIONS: u32 = 20_000;
/// One thread a processor at most machines: FIFO locks crawl beyond that.
const THREADS: u32 = 2;

struct Counter<R> {
    lock: R,
    /// Plain memory on purpose: ThreadSanitizer is to judge the accesses.
    count: UnsafeCell<u32>,
    here: AtomicU32,
}

// SAFETY: `count` is touched only while `lock` is held. (For the broken locks that is untrue, which is what is to be reported.)
unsafe impl<R: Sync> Sync for Counter<R> {}

fn race<R: RawMutex + Send + Sync + 'static>() -> u32 {
    let counter =
        Arc::new(Counter { lock: R::INIT, count: UnsafeCell::new(0), here: AtomicU32::new(0) });
    let work = |counter: Arc<Counter<R>>| {
        // All at once: threads that run one after the other are ordered by accident, in the allocator or the loader. Relaxed, so
        // that the gate itself orders nothing.
        counter.here.fetch_add(1, Relaxed);
        while counter.here.load(Relaxed) < THREADS {
            thread::yield_now();
        }
        for section in 0..SECTIONS {
            if section % 64 == 0 {
                thread::yield_now();
            }
            let tried = if section % 8 == 0 { counter.lock.try_lock() } else { None };
            let guard = tried.unwrap_or_else(|| counter.lock.lock());
            let count = counter.count.get();
            // SAFETY: the lock is held.
            unsafe { *count += 1 };
            // SAFETY: held since above.
            unsafe { counter.lock.unlock(guard) };
        }
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || work(counter))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    // SAFETY: all threads have been joined.
    unsafe { *counter.count.get() }
}

type Race = (&'static str, fn() -> u32);

/// The broken ones come last and must be reported.
const RACES: &[Race] = &[
    ("test-and-set", race::<TestAndSet>),
    ("test-and-set-exchange", race::<TestAndSet<Exchange>>),
    ("test-and-set-read", race::<TestAndSet<Read>>),
    ("test-and-set-polling", race::<TestAndSet<Polling>>),
    ("ticket", race::<Ticket>),
    ("anderson", race::<Anderson>),
    ("clh", race::<Clh>),
    ("mcs", race::<Mcs>),
    ("busted", race::<RawBusted>),
    ("busted-unlock", race::<RawBustedUnlock>),
];

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    match RACES.iter().find(|(known, _)| *known == name) {
        Some((_, race)) => {
            let count = race();
            println!("{name}: {count} of {}", THREADS * SECTIONS);
            if count != THREADS * SECTIONS {
                std::process::exit(1);
            }
        }
        None => RACES.iter().for_each(|(known, _)| println!("{known}")),
    }
}
