//! The slot that a thread allocates from.

use core::cell::Cell;
use core::marker::PhantomData;

thread_local! {
    /// The slot that allocations of this thread come from, plus one; 0 is none. Without a
    /// destructor, so it can be read at any time.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The slot that allocations of this thread come from.
#[inline]
pub(super) fn current() -> Option<usize> {
    CURRENT.with(Cell::get).checked_sub(1)
}

/// Until it is dropped, the calling thread allocates elsewhere than before.
#[must_use = "allocations go back to where they came from when this is dropped"]
pub(crate) struct Scope {
    /// The slot that the thread allocated from before.
    before: usize,
    /// `CURRENT` is the thread's.
    _not_send: PhantomData<*const ()>,
}

impl Scope {
    #[inline]
    pub(super) fn enter(current: usize) -> Self {
        Self { before: CURRENT.replace(current), _not_send: PhantomData }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Until the result is dropped, allocations of this thread are the simulator's own, not the
/// simulated program's.
#[inline]
pub(crate) fn outside() -> Scope {
    Scope::enter(0)
}
