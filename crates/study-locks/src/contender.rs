//! What a measurement asks of a lock, and how each crate's locks answer.
//!
//! One closure per acquisition, because that is what all of them can do: `mcslock`'s raw lock has
//! no guard, and the guard of a `lock_api` 0.5 lock carries a state of its own type. Every closure
//! is inlined into a monomorphic loop, so a measurement pays for no indirection.
//!
//! The data behind every lock start on a cache line of their own ([`Shared`] is aligned), so locks
//! of one byte and of a hundred are compared by how they wait and not by what happens to share
//! their line.

use std::hint::black_box;

/// A mutual-exclusion lock around [`Shared`].
pub trait Contender: Send + Sync {
    /// Makes one that is free.
    fn new() -> Self;

    /// Runs `section` in the critical section.
    fn with<R>(&self, section: impl FnOnce(&mut Shared) -> R) -> R;
}

/// What the locks guard: a counter, and words that the other work of a section touches.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Shared {
    /// The counter that each critical section increments.
    pub counter: u64,
    words: [u64; 15],
}

impl Shared {
    /// Some work on shared data: `steps` of about a nanosecond, each a multiplication and a store.
    pub fn work(&mut self, steps: u32) {
        for step in 0..steps {
            let word = &mut self.words[step as usize % 15];
            *word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
        }
    }
}

/// Any raw lock of `lock_api` 0.5: all of ours, and `parking_lot`'s.
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

/// What the same work costs without any lock, one atomic instruction for the counter: a floor for
/// one thread and for a line that moves between caches.
///
/// Not a lock: with more than one thread only the counter is right, so no section with other work
/// may run under it, and none does.
pub(crate) struct Unlocked(std::sync::atomic::AtomicU64);

impl Unlocked {
    /// Returns a counter of 0.
    pub(crate) fn new() -> Self {
        Self(std::sync::atomic::AtomicU64::new(0))
    }

    /// Adds 1.
    #[inline(always)]
    pub(crate) fn increment(&self) {
        // AcqRel: what a lock's acquisition and release together order; on x86 the same instruction
        // as Relaxed.
        self.0.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
    }
}
