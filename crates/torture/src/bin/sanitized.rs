//! A program for ThreadSanitizer: `sanitized LOCK` runs two threads that increment a plain counter
//! under a lock without fences.
//!
//! ThreadSanitizer understands atomic operations but no fences, and without a rebuilt std it does
//! not see into std. So the program avoids std where it can:
//!
//! - It has a plain `main`, because libtest reports through a channel.
//! - It uses `thread::spawn` and `join`. ThreadSanitizer knows their ordering from pthreads.
//! - It uses no lock, channel, `scope` or `park` of std.
//! - Its locks are only those that are correct by their own atomics.
//!
//! The mutex is not here: its sleepers depend on a barrier in the kernel. In a program that links
//! it, the broken locks below went unreported.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use lock_api::RawMutex;
use torture::busted::{RawBusted, RawBustedUnlock};

/// Critical sections of each thread. ThreadSanitizer slows them some ten times.
const SECTIONS: u32 = 20_000;
/// The number of threads: on most machines at most one for each processor. FIFO locks crawl beyond
/// that.
const THREADS: u32 = 2;

/// A counter and its lock.
struct Counter<R> {
    /// The lock under test.
    lock: R,
    /// The number of sections so far. It is plain memory on purpose, so that ThreadSanitizer judges
    /// the accesses. The holder writes it.
    count: UnsafeCell<u32>,
    /// The number of threads that have begun. Each thread adds one.
    here: AtomicU32,
}

// SAFETY: `count` is touched only while `lock` is held. For the broken locks that is untrue, and
// ThreadSanitizer must report it.
unsafe impl<R: Sync> Sync for Counter<R> {}

/// Runs the threads with one kind of lock and returns the count.
fn race<R: RawMutex + Send + Sync + 'static>() -> u32 {
    let counter =
        Arc::new(Counter { lock: R::INIT, count: UnsafeCell::new(0), here: AtomicU32::new(0) });
    let work = |counter: Arc<Counter<R>>| {
        // All threads start together: threads that run one after the other are ordered by accident,
        // in the allocator or the loader. Relaxed, so that this wait itself orders nothing.
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

/// A lock's name and its run.
type Race = (&'static str, fn() -> u32);

/// Expands to the races of the locks that ThreadSanitizer judges, then the others.
macro_rules! races {
    ([$($others:tt)*] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: $public:tt,
        guard: $guard:ident,
        deadline: $deadline:ident,
        preemptions: $preemptions:literal,
        sanitizer: [$($race:ident)?],
        $($rest:tt)*
    })+) => {
        &[$($(($command, $race::<$lock>),)?)+ $($others)*]
    };
}

/// The locks. ThreadSanitizer must report the broken ones, which come last.
const RACES: &[Race] = stanchion_spin::__locks! {
    races [("busted", race::<RawBusted>), ("busted-unlock", race::<RawBustedUnlock>)]
};

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
