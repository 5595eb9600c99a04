//! The interface between a measurement and a lock, with its implementations for each crate's locks.
//!
//! The interface takes one closure per acquisition, because all of the locks can run one:
//! `mcslock`'s raw lock has no guard, and the guard of a `lock_api` 0.5 lock carries a state of its
//! own type. Every closure is inlined into a monomorphic loop, so a measurement pays for no
//! indirection.
//!
//! The data behind every lock start on a cache line of their own, because [`Shared`] is aligned. So
//! a comparison of locks of one byte and of a hundred shows how they wait, and not what happens to
//! share their line.

use std::hint::black_box;

/// A mutual-exclusion lock around [`Shared`].
pub trait Contender: Send + Sync {
    /// Makes a free lock.
    fn new() -> Self;

    /// Runs `section` in the critical section.
    fn with<R>(&self, section: impl FnOnce(&mut Shared) -> R) -> R;
}

/// The data that the locks guard: a counter, and words that the other work of a section touches.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Shared {
    /// The counter that each critical section increments.
    pub counter: u64,
    /// Words that the other work of a section writes, under the lock.
    words: [u64; 15],
}

impl Shared {
    /// Works on the shared data for `steps` steps of about a nanosecond, each a multiplication and
    /// a store.
    pub fn work(&mut self, steps: u32) {
        for step in 0..steps {
            let word = &mut self.words[step as usize % 15];
            *word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
        }
    }
}

/// A mutex of any raw lock of `lock_api` 0.5: all of ours, and `parking_lot`'s.
pub type Raw<R> = lock_api::Mutex<R, Shared>;

impl<R: lock_api::RawMutex + Send + Sync> Contender for Raw<R> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        section(&mut self.lock())
    }
}

impl Contender for std::sync::Mutex<Shared> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        // No section of the study panics, so a poisoned lock cannot occur; its data would be sound
        // if it did.
        section(&mut self.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Contender for peer_spin::mutex::SpinMutex<Shared> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        section(&mut self.lock())
    }
}

impl Contender for usync::Mutex<Shared> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        section(&mut self.lock())
    }
}

impl Contender for peer_spin::mutex::TicketMutex<Shared> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        section(&mut self.lock())
    }
}

impl Contender for mcslock::raw::spins::Mutex<Shared> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        self.lock_then(section)
    }
}

impl Contender for mcslock::barging::spins::Mutex<Shared> {
    fn new() -> Self {
        Self::new(Shared::default())
    }

    #[inline(always)]
    fn with<T>(&self, section: impl FnOnce(&mut Shared) -> T) -> T {
        section(&mut self.lock())
    }
}

/// The same work without a lock: one atomic instruction increments the counter. It is a lower bound
/// for one thread, and for a line that moves between caches.
///
/// It is not a lock: with more than one thread, only the counter is right. So no section with other
/// work may run under it, and none does.
pub(crate) struct Unlocked(std::sync::atomic::AtomicU64);

impl Unlocked {
    /// Returns a counter of 0.
    pub(crate) fn new() -> Self {
        Self(std::sync::atomic::AtomicU64::new(0))
    }

    /// Adds 1.
    #[inline(always)]
    pub(crate) fn increment(&self) {
        // AcqRel: pairs with itself in other threads, and orders the same as a lock's acquisition
        // and release together. On x86 it is the same instruction as Relaxed.
        self.0.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
    }
}
