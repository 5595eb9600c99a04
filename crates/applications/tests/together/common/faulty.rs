//! A lock that panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Inside = parking_lot::RawMutex;

/// One of a set of locks of which one panics, once: the others have to find their way out without a
/// second panic.
pub(crate) struct Faulty {
    /// The lock proper.
    inside: Inside,
    /// The number of acquisitions until one panics, if it is to.
    left: Option<Arc<AtomicU32>>,
}

impl Faulty {
    /// Makes locks that panic at their `count`th attempt, all together.
    pub(crate) fn after(count: u32) -> impl Fn(&str) -> Self {
        let left = Arc::new(AtomicU32::new(count));
        move |_| Self { left: Some(left.clone()), ..<Self as lock_api::RawMutex>::INIT }
    }

    fn one_more(&self) {
        if self.left.as_ref().is_some_and(|left| left.fetch_sub(1, Relaxed) == 1) {
            panic!("the lock is out of order");
        }
    }
}

// SAFETY: exclusion is that of the lock inside; a panic comes before the acquisition.
unsafe impl lock_api::RawMutex for Faulty {
    const INIT: Self = Self { inside: <Inside as lock_api::RawMutex>::INIT, left: None };
    type Guard = <Inside as lock_api::RawMutex>::Guard;

    fn lock(&self) -> Self::Guard {
        self.one_more();
        self.inside.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard> {
        self.one_more();
        self.inside.try_lock()
    }

    unsafe fn unlock(&self, guard: Self::Guard) {
        // SAFETY: the caller holds the lock, and `guard` is of the lock inside.
        unsafe { self.inside.unlock(guard) }
    }

    fn is_locked(&self) -> bool {
        self.inside.is_locked()
    }
}
