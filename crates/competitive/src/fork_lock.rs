//! A spin lock that the child of a fork finds unlocked. It reports that its data is the parent's.
//!
//! Its data is a queue of threads that sleep. In a child none of them exists, and the thread that
//! held the lock at the fork may not exist either. The child therefore starts with an empty queue
//! and a free lock, the first time it uses them.
//!
//! Why not a handler of `pthread_atfork` that repairs every queue: see [`stanchion_machine::fork`].
//!
//! | `word`, in the generation of the process | meaning | left by |
//! | --- | --- | --- |
//! | free | the queue is this process's | any thread, to held |
//! | held | a thread of this process uses the queue | that thread, to free |
//! | held + forgetting | a thread of this process empties the queue | that thread, to free |
//! | any, of an older generation | free; the queue is a parent's | any, to held + forgetting |
//!
//! The word of a new lock is 0: free, in the first generation. So a table of locks needs no
//! initialized data. A process that is not of the first generation empties an empty queue once.
//!
//! # Invariants
//!
//! 1. The word enters a held state of the current generation only by the compare-exchange of one
//!    thread, and that thread alone takes it back.
//! 2. `forget` runs once in each process that is not of the first generation: in its first hold.
//!
//! # Orderings
//!
//! The compare-exchange is Acquire and pairs with the Release store at the end of the last hold. In
//! a child the parent's last store needs no pair: the fork orders it.

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::fork;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion_spin::Backoff;

/// A thread of the generation holds the lock.
const HELD: u32 = 1;
/// It empties the queue.
const FORGETTING: u32 = 2;
/// One generation.
const GENERATION: u32 = 4;

/// The lock.
pub(crate) struct ForkLock {
    /// The generation, and the state in it. Written by the holder, and by the thread that becomes
    /// it.
    word: AtomicU32,
}

/// Returns the word of a free lock in the generation of this process.
#[inline]
fn free() -> u32 {
    (fork::generation() - 1).wrapping_mul(GENERATION)
}

impl ForkLock {
    /// Creates a free lock.
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Runs `body` with the lock held. Runs `forget` first, if the lock's data is a parent's.
    ///
    /// Neither may unwind.
    pub(crate) fn with<R>(&self, forget: impl FnOnce(), body: impl FnOnce() -> R) -> R {
        let free = free();
        // Acquire: see the header. Relaxed: only a guess at what to try next.
        let taken =
            self.word.compare_exchange(free, free | HELD, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() && self.take(free) {
            forget();
        }
        let result = body();
        // Release: pairs with the Acquire of the next hold.
        self.word.store(free, Ordering::Release);
        result
    }

    /// Acquires the lock, which was not free. Returns whether its queue is a parent's.
    #[cold]
    fn take(&self, free: u32) -> bool {
        let is_held = |word: u32| word == free | HELD || word == free | HELD | FORGETTING;
        let mut policy = <Patient>::start();
        let mut backoff = Backoff::new();
        loop {
            // Relaxed: the exchange below acquires.
            let seen =
                wait_until(&self.word, Ordering::Relaxed, |word| !is_held(word), &mut policy);
            let stale = seen != free;
            let held = if stale { free | HELD | FORGETTING } else { free | HELD };
            // Acquire: see the header. Relaxed: the loop looks again.
            if self.word.compare_exchange(seen, held, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return stale;
            }
            // Another thread was quicker.
            backoff.spin();
        }
    }

    /// Returns once the queue, and what belongs to it, is this process's.
    ///
    /// For a thread that is to change what belongs to the queue, and that `forget` resets, without
    /// holding the lock.
    #[inline]
    pub(crate) fn adopt(&self, forget: impl FnOnce()) {
        if !fork::POSSIBLE {
            return;
        }
        let free = free();
        // Acquire: pairs with the Release at the end of the hold that emptied the queue.
        let seen = self.word.load(Ordering::Acquire);
        if seen != free && seen != free | HELD {
            self.with(forget, || ());
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The number of times that `forget` ran in a hold.
    fn forgotten(lock: &ForkLock) -> u32 {
        let count = Cell::new(0);
        lock.with(|| count.set(count.get() + 1), || count.get())
    }

    #[test]
    fn a_word_of_an_older_generation_is_free_and_stale() {
        // As a child finds the words of its parent: this process's are newer.
        let older = free().wrapping_sub(GENERATION);
        for word in [older, older | HELD, older | HELD | FORGETTING] {
            let lock = ForkLock { word: AtomicU32::new(word) };
            assert_eq!(forgotten(&lock), 1, "{word}");
            assert_eq!(forgotten(&lock), 0, "emptied once");
            let lock = ForkLock { word: AtomicU32::new(word) };
            let count = Cell::new(0);
            lock.adopt(|| count.set(count.get() + 1));
            lock.adopt(|| count.set(count.get() + 1));
            assert_eq!(count.get(), 1, "{word}");
        }
    }

    #[test]
    fn a_thread_waits_for_the_holder() {
        static LOCK: ForkLock = ForkLock::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        LOCK.with(
                            || (),
                            || {
                                let count = COUNT.load(Ordering::Relaxed);
                                std::hint::black_box(count);
                                COUNT.store(count + 1, Ordering::Relaxed);
                            },
                        );
                    }
                });
            }
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 8_000);
    }
}
