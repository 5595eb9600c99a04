//! A seat for something that its owner leaves there, which other threads read.
//!
//! # Orderings
//!
//! What is in a seat is taken down while no thread reads it. A reader counts itself in `readers`,
//! then looks at `owner`. The thread that takes something down changes `owner`, then looks at
//! `readers`. Both pass a SeqCst fence in between, so one of them sees the other: the reader
//! leaves, or the content stays.

use stanchion_machine::atomic::{AtomicU64, Ordering, fence};
use stanchion_machine::cell::UnsafeCell;

/// The thread of a seat with nothing in it.
pub(super) const FREE: u32 = 0;
/// The thread of a seat that is being changed. No thread has this number.
pub(super) const CHANGING: u32 = u32::MAX;

/// A seat. Owners are told by [`key`].
#[repr(align(64))]
pub(super) struct Seat<T> {
    /// The generation of the process in the upper half and the thread in the lower. The lower half
    /// is [`FREE`], or [`CHANGING`] while a thread fills or empties the seat.
    owner: AtomicU64,
    /// The generation in the upper half, and the number of threads that read in the lower.
    readers: AtomicU64,
    /// The content. The thread that changed `owner` to `CHANGING` writes it.
    content: UnsafeCell<Option<T>>,
}

// SAFETY: `content` is written by the one thread that made `owner` `CHANGING`, while no thread
// reads. What one thread leaves another one may drop, and several threads may read it.
unsafe impl<T: Send + Sync> Sync for Seat<T> {}

/// A seat that the calling thread has claimed. It stays claimed until it is [filled](Claim::fill).
#[must_use]
pub(super) struct Claim<'seat, T> {
    /// The seat.
    seat: &'seat Seat<T>,
    /// The generation of the process.
    generation: u32,
}

/// Returns the two numbers as one.
pub(super) const fn key(generation: u32, thread: u32) -> u64 {
    (generation as u64) << 32 | thread as u64
}

impl<T> Seat<T> {
    pub(super) const fn new() -> Self {
        Self {
            owner: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            content: UnsafeCell::new(None),
        }
    }

    /// Returns the owner at some moment.
    pub(super) fn owner(&self) -> u64 {
        // Relaxed: an exchange of the owner decides.
        self.owner.load(Ordering::Relaxed)
    }

    /// Claims the seat for a thread of that generation, if the seat is free, or a parent's.
    pub(super) fn claim(&self, generation: u32) -> Option<Claim<'_, T>> {
        let before = self.owner();
        let is_free = before as u32 == FREE || before >> 32 != u64::from(generation);
        let claimed = key(generation, CHANGING);
        // Acquire: pairs with the Release of `take_down`, after which nothing is there.
        let is_mine = is_free
            && self
                .owner
                .compare_exchange(before, claimed, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        is_mine.then_some(Claim { seat: self, generation })
    }

    /// Calls `body` with what is there, if its owner is `owner`. It stays there meanwhile.
    pub(super) fn read<R>(&self, owner: u64, body: impl FnOnce(&T) -> R) -> Option<R> {
        // A look beforehand.
        if self.owner() != owner {
            return None;
        }
        let mine = owner >> 32;
        // A child of a fork has none of its parent's readers.
        let enter = |bits: u64| Some((if bits >> 32 == mine { bits } else { mine << 32 }) + 1);
        let leave = |bits: u64| (bits >> 32 == mine && bits as u32 > 0).then(|| bits - 1);
        // Relaxed: the fence orders it.
        let _ = self.readers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter);
        // SeqCst: pairs with the fence of `take_down`.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `fill`, after which the content is there.
        let result = if self.owner.load(Ordering::Acquire) == owner {
            // SAFETY: the owner has filled the seat, and no thread writes while this one reads.
            self.content.with(|content| unsafe { (*content).as_ref().map(body) })
        } else {
            None
        };
        // Release: pairs with the Acquire of `take_down`. All has been read.
        let _ = self.readers.fetch_update(Ordering::Release, Ordering::Relaxed, leave);
        result
    }

    /// Drops what that owner left there, unless a thread reads it. Returns whether it is gone.
    pub(super) fn take_down(&self, owner: u64) -> bool {
        let mine = owner >> 32;
        let changing = key(mine as u32, CHANGING);
        // Relaxed: the fence orders it.
        let taken =
            self.owner.compare_exchange(owner, changing, Ordering::Relaxed, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        // SeqCst: pairs with the fence of `read`. It is an Acquire too, and pairs with the Release
        // of `fill`: the content that is dropped is there.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `read`.
        let readers = self.readers.load(Ordering::Acquire);
        let is_read = readers >> 32 == mine && readers as u32 > 0;
        if !is_read {
            // SAFETY: no thread reads, and those that come leave again.
            self.content.with_mut(|content| unsafe { *content = None });
        }
        let after = if is_read { owner } else { key(mine as u32, FREE) };
        // Release: pairs with the Acquire of `read` and `claim`.
        self.owner.store(after, Ordering::Release);
        !is_read
    }
}

impl<T> Claim<'_, T> {
    /// Leaves `content` for that thread, or nothing, and then the seat is free.
    pub(super) fn fill(self, thread: u32, content: Option<T>) {
        let thread = if content.is_some() { thread } else { FREE };
        // SAFETY: claimed by this thread, and readers leave a seat that is being changed.
        self.seat.content.with_mut(|place| unsafe { *place = content });
        // Release: pairs with the Acquire of `read` and the fence of `take_down`, and shows the
        // content.
        self.seat.owner.store(key(self.generation, thread), Ordering::Release);
    }
}
