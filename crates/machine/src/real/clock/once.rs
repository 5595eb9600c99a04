//! A value made at its first use, without a lock.
//!
//! Why not `OnceLock`: a fork while one thread makes the value would lock it for ever in the child, which has no such thread. Here
//! several threads may make one at the same time, and the first to publish wins.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::boxed::Box;

/// For statics: what it holds is never freed.
pub(super) struct Once<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Once<T> {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value, if anybody has made it yet.
    #[inline]
    pub(super) fn get(&self) -> Option<&'static T> {
        // Acquire pairs with the Release in `get_or_make`.
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a leaked box that nobody writes.
        unsafe { value.as_ref() }
    }

    /// The value, made now if it is the first time. Who comes second gets the first one's.
    #[inline]
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        match self.get() {
            Some(value) => value,
            None => self.publish(make()),
        }
    }

    #[cold]
    fn publish(&self, value: T) -> &'static T {
        let mine = Box::into_raw(Box::new(value));
        // Release shows the value to whoever sees the pointer; Acquire, should another have been first, pairs with its Release.
        let published = match self.0.compare_exchange(
            ptr::null_mut(),
            mine,
            Ordering::Release,
            Ordering::Acquire,
        ) {
            Ok(_) => mine,
            Err(first) => {
                // SAFETY: from a box above, and nobody has seen it.
                drop(unsafe { Box::from_raw(mine) });
                first
            }
        };
        // SAFETY: a leaked box that nobody writes.
        unsafe { &*published }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn one_that_is_held_up_while_making_holds_up_nobody() {
        static ONCE: Once<u32> = Once::new();
        let (making, is_making) = channel();
        let (go_on, told) = channel();
        let slow = thread::spawn(move || {
            *ONCE.get_or_make(|| {
                making.send(()).unwrap();
                told.recv().unwrap();
                1
            })
        });
        is_making.recv().unwrap();
        // As a child would be, forked now: the thread that makes the value does not go on.
        assert_eq!(ONCE.get(), None);
        let (sender, made) = channel();
        thread::spawn(move || sender.send(*ONCE.get_or_make(|| 2)).unwrap());
        let mine = made.recv_timeout(core::time::Duration::from_secs(30));
        go_on.send(()).unwrap();
        assert_eq!(mine, Ok(2));
        assert_eq!(slow.join().unwrap(), 2, "the first to publish wins");
        assert_eq!(ONCE.get_or_make(|| 3), &2);
    }
}
