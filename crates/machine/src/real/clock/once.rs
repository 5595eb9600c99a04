//! A value made at its first use, without a lock and without memory from an allocator.
//!
//! Why not `OnceLock`: a fork while one thread makes the value would lock it for ever in the child,
//! which has no such thread. Why not a leaked box: a lock that guards an allocator reads the clock
//! while it waits. Here several threads may make a value at the same time. The first to publish
//! wins, and the others use their own until they see it.
//!
//! | `state` | `value` | next |
//! | --- | --- | --- |
//! | `EMPTY` | is not there | `WRITING`, by the first thread that has made one |
//! | `WRITING` | is being written by that thread | `READY`, or never in a child of a fork |
//! | `READY` | is there | |

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const WRITING: u8 = 1;
const READY: u8 = 2;

/// A place for a value that any thread's result will do for.
pub(super) struct Once<T> {
    /// `EMPTY`, `WRITING` or `READY`.
    state: AtomicU8,
    /// Written by the one thread that changes `state` from `EMPTY`, read by those that saw `READY`.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: `value` is written once, by one thread, before any other reads it; see the table above.
unsafe impl<T: Copy + Send + Sync> Sync for Once<T> {}

impl<T: Copy> Once<T> {
    pub(super) const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Returns the value, if it has been published.
    #[inline]
    pub(super) fn get(&self) -> Option<T> {
        // Acquire: pairs with the Release store of `READY`.
        if self.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: after `READY` it is not written any more.
        let value = unsafe { &*self.value.get() };
        // SAFETY: it was written before `READY`.
        Some(unsafe { value.assume_init() })
    }

    /// Returns the value, made now if none has been published. Another thread may publish its own
    /// meanwhile; then that one is returned, if it is there already.
    #[inline]
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> T) -> T {
        match self.get() {
            Some(value) => value,
            None => self.publish(make()),
        }
    }

    #[cold]
    fn publish(&self, mine: T) -> T {
        // Relaxed: decides which thread writes; `READY` publishes what it writes.
        let first =
            self.state.compare_exchange(EMPTY, WRITING, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            return self.get().unwrap_or(mine);
        }
        let value = self.value.get();
        // SAFETY: only the thread that made the exchange writes, and none reads before `READY`.
        unsafe { value.write(MaybeUninit::new(mine)) };
        // Release: pairs with the Acquire load in `get`.
        self.state.store(READY, Ordering::Release);
        mine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_thread_that_is_held_up_while_making_holds_up_no_other() {
        static ONCE: Once<u32> = Once::new();
        let (making, is_making) = channel();
        let (go_on, told) = channel();
        let slow = thread::spawn(move || {
            ONCE.get_or_make(|| {
                making.send(()).unwrap();
                told.recv().unwrap();
                1
            })
        });
        is_making.recv().unwrap();
        // As in a child that is forked now: the thread that makes the value does not go on.
        assert_eq!(ONCE.get(), None);
        assert_eq!(ONCE.get_or_make(|| 2), 2);
        go_on.send(()).unwrap();
        assert_eq!(slow.join().unwrap(), 2, "the first to publish wins");
        assert_eq!(ONCE.get_or_make(|| 3), 2);
    }

    #[test]
    fn a_thread_uses_its_own_value_while_another_writes() {
        static ONCE: Once<u32> = Once::new();
        // As in a child that was forked while a thread of the parent wrote.
        ONCE.state.store(WRITING, Ordering::Relaxed);
        assert_eq!(ONCE.get_or_make(|| 5), 5);
        assert_eq!(ONCE.get(), None);
        assert_eq!(ONCE.get_or_make(|| 6), 6);
    }
}
