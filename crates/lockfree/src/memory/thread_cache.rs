//! Per-thread caches: the things that a thread keeps in a structure between its operations.
//!
//! Why not in a thread-local: a structure would have to find its own cache among those of all
//! structures. A thread that ends would have to bring its things back. An operation within another
//! one, as when comparing two keys uses the heap, would find the outer one's cache. So a cache
//! belongs to the structure. A thread takes the cache of its own number for the length of an
//! operation, so its lines stay with its processor. The next thread with that number finds the
//! cache as the last one left it.
//!
//! A thread can find its own cache taken, because the operation is one within another. Or it has no
//! number, because it is ending. Then it takes any guests' cache that is free. Why not the next
//! thread's cache: then no cache would be used by one thread alone, and taking one would cost an
//! atomic exchange.
//!
//! A closure that calls the operation that calls it could nest operations until the stack
//! overflows. So a thread nests at most [`NESTED`], and panics before the next one.
//!
//! # Invariants
//!
//! 1. Only the thread that has its number takes one of `own`, and only when it finds `users` 0.
//! 2. Only the thread that takes a cache touches its content, until it gives the cache back.
//! 3. `users` of one of `own` is the number of operations that its thread is in.
//!
//! # Orderings
//!
//! - **Count an operation of the thread** (load, store): Relaxed, without a partner. The writes of
//!   the last holder of a number happened before the next holder begins
//!   ([`stanchion_machine::thread::index`]).
//! - **Take a guests' cache** (swap): Acquire. The partner is the Release store of its last user.

use core::ops::{Deref, DerefMut};

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering, signal_fence};
use stanchion_machine::cell::UnsafeCell;

use super::segments::Segments;

/// Segments for a cache for each thread that has a number, and for as many guests.
const SEGMENTS: usize = stanchion_machine::sized(14, 3);

type Row<S> = Segments<CachePadded<ThreadCache<S>>, SEGMENTS>;

/// The caches of one structure. Each holds an `S`.
pub(crate) struct ThreadCaches<S> {
    /// The caches of the threads, by their numbers.
    own: Row<S>,
    /// The caches for threads without a number and for nested operations.
    guests: Row<S>,
}

/// The most operations that a thread nests: far fewer than fill a stack, and far more than a
/// program needs that nests them on purpose.
pub(crate) const NESTED: u32 = 64;

/// The cache of one thread, or of one guest.
struct ThreadCache<S> {
    /// In a guests' cache: 1 if it is taken, written by the guest. In a thread's own cache: see
    /// Invariant 3, written by that thread.
    users: AtomicU32,
    /// The things that are kept, while no operation has taken them.
    content: UnsafeCell<S>,
}

// SAFETY: only the one thread that has taken the cache touches its content (Invariant 2).
unsafe impl<S: Send> Sync for ThreadCache<S> {}

impl<S: Default> ThreadCaches<S> {
    /// Returns a set without caches.
    pub(crate) const fn new() -> Self {
        Self { own: Segments::new(), guests: Segments::new() }
    }

    /// Returns a cache for one operation.
    ///
    /// # Panics
    ///
    /// If the thread is in [`NESTED`] operations already.
    #[inline]
    pub(crate) fn take(&self) -> CacheGuard<'_, S> {
        let Some(index) = stanchion_machine::thread::index() else {
            return CacheGuard::at(self.guest(), None);
        };
        let own = self.own.get_or_make(index, ThreadCache::new);
        // Relaxed, both: only this thread writes it, and a signal handler that interrupts the
        // thread leaves it as it was (Invariant 1).
        let users = own.users.load(Ordering::Relaxed);
        if users == 0 {
            own.users.store(1, Ordering::Relaxed);
            signal_fence();
            return CacheGuard::at(own, None);
        }
        assert!(
            users < NESTED,
            "more than {NESTED} operations of one thread on one object are nested"
        );
        own.users.store(users + 1, Ordering::Relaxed);
        signal_fence();
        CacheGuard::at(self.guest(), Some(own))
    }

    /// Takes the first guests' cache that is free.
    #[cold]
    fn guest(&self) -> &ThreadCache<S> {
        let free = (0..Row::<S>::CAPACITY).find_map(|number| {
            let cache = self.guests.get_or_make(number, ThreadCache::new);
            // Acquire: pairs with the Release of the operation that had it before.
            (cache.users.swap(1, Ordering::Acquire) == 0).then_some(&**cache)
        });
        free.expect("there are more caches than operations at a time")
    }
}

impl<S: Default> ThreadCache<S> {
    fn new() -> CachePadded<Self> {
        let content = UnsafeCell::new(S::default());
        CachePadded::new(Self { users: AtomicU32::fresh(0), content })
    }
}

/// A cache that is taken, with its content in hand. `Drop` gives it back.
pub(crate) struct CacheGuard<'d, S> {
    /// The cache that the operation uses.
    cache: &'d ThreadCache<S>,
    /// The thread's own cache, if `cache` is a guests' cache for a nested operation.
    own: Option<&'d ThreadCache<S>>,
    /// The content of the cache while it is taken. Written by the operation.
    content: S,
}

impl<'d, S: Default> CacheGuard<'d, S> {
    /// Takes the content of a cache that the calling thread has taken.
    #[inline]
    fn at(cache: &'d ThreadCache<S>, own: Option<&'d ThreadCache<S>>) -> Self {
        let mut cache = CacheGuard { cache, own, content: S::default() };
        cache.swap();
        cache
    }
}

impl<S> CacheGuard<'_, S> {
    /// Exchanges the content of the cache for the content in hand.
    #[inline]
    fn swap(&mut self) {
        self.cache.content.with_mut(|content| {
            // SAFETY: this thread has taken the cache (Invariant 2).
            let content = unsafe { &mut *content };
            core::mem::swap(content, &mut self.content);
        });
    }
}

impl<S> Deref for CacheGuard<'_, S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.content
    }
}

impl<S> DerefMut for CacheGuard<'_, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        &mut self.content
    }
}

impl<S> Drop for CacheGuard<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.swap();
        // Release: pairs with the Acquire of the next guest.
        self.cache.users.store(0, Ordering::Release);
        if let Some(own) = self.own {
            // Relaxed, both: as in `take`. The operations within this one are over.
            own.users.store(own.users.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_finds_what_it_left() {
        let caches: ThreadCaches<Vec<u32>> = ThreadCaches::new();
        caches.take().push(1);
        let mut outer = caches.take();
        outer.push(2);
        caches.take().push(9);
        assert_eq!(*outer, [1, 2]);
        drop(outer);
        assert_eq!(*caches.take(), [1, 2]);
    }

    #[test]
    fn nested_operations_find_the_same_cache_again() {
        let caches: ThreadCaches<Vec<u32>> = ThreadCaches::new();
        let outer = caches.take();
        for number in 0..3 {
            let mut inner = caches.take();
            assert_eq!(inner.len(), number);
            inner.push(7);
            assert!(caches.take().is_empty(), "the first one is taken");
        }
        assert!(outer.is_empty());
        assert_eq!(caches.guests.iter().count(), 2);
    }

    /// Its number is asked for last, so its destructor would be the first of all.
    #[test]
    fn an_ending_thread_takes_its_own_cache() {
        static CACHES: ThreadCaches<Vec<u32>> = ThreadCaches::new();
        struct Last;
        impl Drop for Last {
            fn drop(&mut self) {
                CACHES.take().push(2);
            }
        }
        std::thread_local! {
            static LAST: Last = const { Last };
        }
        let user = std::thread::spawn(|| {
            LAST.with(|_| ());
            CACHES.take().push(1);
        });
        user.join().expect("no panic");
        let on = |row: &Row<Vec<u32>>| -> Vec<u32> {
            // SAFETY: the only thread that sat at a cache has ended.
            row.iter()
                .flat_map(|cache| cache.content.with(|content| unsafe { (*content).clone() }))
                .collect()
        };
        assert_eq!((on(&CACHES.own), on(&CACHES.guests)), (vec![1, 2], vec![]));
    }
}
