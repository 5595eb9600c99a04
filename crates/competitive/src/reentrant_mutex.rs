//! The mutex that its holder may lock again.
//!
//! `lock_api` counts how often the holder has locked it. This file tells threads apart for that.

use core::num::NonZeroUsize;
use core::ptr;

use lock_api::GetThreadId;

use crate::names::RawMutex;

stanchion_machine::thread_local! {
    /// A byte of each thread. Only its address is used.
    static MARKER: u8 = 0;
}

/// The identity of the calling thread, for [`ReentrantMutex`].
///
/// Two live threads have different ones. A thread that is ending, or has no
/// [number](stanchion_machine::thread::index), has one too. It is an address in the thread's own
/// memory, so the identity of a thread that has ended may be used again.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawThreadId;

// SAFETY: the thread-local of a live thread lies at an address of its own, has a size, and stays.
unsafe impl GetThreadId for RawThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        let address = MARKER.with(|marker| ptr::from_ref(marker).addr());
        NonZeroUsize::new(address).expect("a reference is never null")
    }
}

/// A mutex that the thread which holds it may lock again.
///
/// It is free when as many guards have been dropped as were made. Guards give shared access only,
/// because several of one thread exist at a time. Data that changes goes into a `Cell` or
/// `RefCell`.
///
/// | | |
/// | --- | --- |
/// | locking it first | a [`Mutex`](crate::Mutex), and four stores |
/// | locking it again | two loads and a store |
/// | size | that of the mutex and three words |
///
/// Another thread waits as at a [`Mutex`](crate::Mutex). A user-level thread must not move to
/// another kernel thread while it holds a guard, which is not `Send`.
///
/// # Panics
///
/// Locking panics if the count of guards overflows, which only forgetting guards can do.
///
/// ```
/// use std::cell::RefCell;
/// use stanchion_competitive::ReentrantMutex;
///
/// let log = ReentrantMutex::new(RefCell::new(Vec::new()));
/// let outer = log.lock();
/// log.lock().borrow_mut().push("inner");
/// outer.borrow_mut().push("outer");
/// assert_eq!(*outer.borrow(), ["inner", "outer"]);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// The guard of a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A guard of a part of what a [`ReentrantMutex`] protects.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Creates a free [`ReentrantMutex`].
///
/// It is [`ReentrantMutex::new`], under the name that `parking_lot` has for it.
#[must_use]
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::new(value)
}
