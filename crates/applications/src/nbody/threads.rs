//! Kernel threads: each fork makes one.
//!
//! What the paper's program does over Topaz: a thread of the system for each piece of work, made,
//! switched to and joined by the system. Why not `std::thread::scope`: it is not on every machine.
//!
//! # Invariants
//!
//! 1. `join` does not return, nor unwind, before the thread that it has made has ended. So that
//!    thread may borrow from the caller.

use super::fork::Fork;
use stanchion_machine::atomic::{AtomicUsize, Ordering::Relaxed};
use stanchion_machine::thread::Builder;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A thread of the system for each fork, as long as there are not too many.
///
/// It costs the time that the system takes to make a thread, to switch to it and to join it: tens
/// of microseconds. If there would be too many threads, or the system refuses another, the caller
/// does both.
///
/// ```
/// use stanchion_applications::nbody::{Fork, Threads};
///
/// let threads = Threads::new(2);
/// let nested = threads.join(|| threads.join(|| 1, || 2), || threads.join(|| 3, || 4));
/// assert_eq!(nested, ((1, 2), (3, 4)));
/// ```
#[derive(Debug)]
pub struct Threads {
    /// Made and not joined.
    live: AtomicUsize,
    /// The number of threads made so far.
    made: AtomicUsize,
    /// The most threads that live at a time.
    most: usize,
}

impl Threads {
    /// At most so many threads at a time beside the caller's.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { live: AtomicUsize::new(0), made: AtomicUsize::new(0), most }
    }

    /// Threads made so far.
    #[must_use]
    pub fn made(&self) -> usize {
        self.made.load(Relaxed)
    }

    /// Calls `work` on a thread of its own and `here` meanwhile; neither if there may not be
    /// another.
    fn beside<R>(&self, work: &mut (dyn FnMut() + Send), here: impl FnOnce() -> R) -> Option<R> {
        // Relaxed, both: a count and nothing else.
        if self.live.fetch_add(1, Relaxed) >= self.most {
            self.live.fetch_sub(1, Relaxed);
            return None;
        }
        // SAFETY: only the lifetime changes, and the thread has ended when this returns, by
        // invariant 1.
        let work = unsafe {
            core::mem::transmute::<&mut (dyn FnMut() + Send), &'static mut (dyn FnMut() + Send)>(
                work,
            )
        };
        let Ok(thread) = Builder::new().name("fork".to_owned()).spawn(work) else {
            self.live.fetch_sub(1, Relaxed);
            return None;
        };
        self.made.fetch_add(1, Relaxed);
        let here = catch_unwind(AssertUnwindSafe(here));
        let there = thread.join();
        self.live.fetch_sub(1, Relaxed);
        match (here, there) {
            (Ok(here), Ok(())) => Some(here),
            (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
        }
    }
}

impl Fork for Threads {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let (mut one, mut other, mut result) = (Some(one), Some(other), None);
        let mut work = || result = other.take().map(|other| other());
        let here = self.beside(&mut work, || one.take().map(|one| one())).flatten();
        match (here, result) {
            (Some(here), Some(there)) => (here, there),
            // None was called.
            _ => {
                let both = one.zip(other).expect("neither was called");
                (both.0(), both.1())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{ThreadId, current};

    fn ids(threads: &Threads) -> (ThreadId, ThreadId) {
        threads.join(|| current().id(), || current().id())
    }

    #[test]
    fn a_fork_is_a_thread_until_there_are_too_many() {
        let threads = Threads::new(1);
        let (here, there) = ids(&threads);
        assert!(here == current().id() && there != here);
        assert_eq!(threads.made(), 1);
        let ((inner, deeper), _) = threads.join(|| ids(&threads), || ());
        assert_eq!(inner, deeper, "a second one would be too many");
        let (here, there) = ids(&Threads::new(0));
        assert_eq!(here, there);
    }

    #[test]
    fn a_panic_of_either_goes_on_when_both_have_ended() {
        let threads = Threads::new(4);
        for first in [true, false] {
            let mut done = 0;
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let (mut ran, panics) = (|| done += 1, || panic!("of a half"));
                match first {
                    true => drop(threads.join(panics, &mut ran)),
                    false => drop(threads.join(&mut ran, panics)),
                }
            }));
            let panic = panicked.expect_err("it goes on");
            assert_eq!(panic.downcast_ref(), Some(&"of a half"));
            assert_eq!(done, 1);
            assert_eq!(threads.live.load(Relaxed), 0);
        }
    }
}
