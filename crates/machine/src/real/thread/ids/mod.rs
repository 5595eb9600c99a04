//! Dense thread numbers: a bitmap of those in use.
//!
//! Why not [`std::thread::ThreadId`]: it is never reused, so a table indexed by it grows for ever;
//! and not the kernel's number, which is not dense. Why a bitmap and no free list: the *smallest*
//! free number is wanted, so that tables stay short and their scans too, and a bitmap has no ABA
//! problem.
//!
//! A number must outlive everything of its thread that may hold a lock under it: a guard in a
//! thread-local, say. [`exit`] calls back when the thread ends, as late as the system allows.
//!
//! # Invariants
//!
//! 1. A set bit belongs to exactly one live thread, the one with the thread-local [`MINE`] that
//!    says so.
//! 2. A bit is cleared only by that thread in [`thread_ends`], after whatever was kept under the
//!    number is gone.

use crate::thread::INDICES;
use core::cell::Cell;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

#[cfg(unix)]
mod exit;
#[cfg(not(unix))]
#[path = "exit_elsewhere.rs"]
mod exit;

/// The numbers of this process.
static NUMBERS: Bitmap<{ INDICES / 64 }> = Bitmap::new();

#[derive(Clone, Copy)]
enum Mine {
    /// The thread has not asked, or all numbers were taken when it did.
    NotYet,
    Claimed(usize),
    /// None now: the number is being claimed, which code that interrupts it must not do again, or
    /// it has been given back.
    Without,
}

std::thread_local! {
    /// The calling thread's number. Has no destructor, so it can be read while the thread ends.
    static MINE: Cell<Mine> = const { Cell::new(Mine::NotYet) };
}

#[inline]
pub(crate) fn index() -> Option<usize> {
    // Asked first and alone: a match of all would be a jump through a table.
    if let Mine::Claimed(index) = MINE.get() { Some(index) } else { first_index() }
}

#[cold]
fn first_index() -> Option<usize> {
    match MINE.get() {
        Mine::NotYet => claim(),
        Mine::Claimed(_) | Mine::Without => None,
    }
}

fn claim() -> Option<usize> {
    MINE.set(Mine::Without);
    // Where the system ends thread-locals early, `MINE` is new, and the number is kept elsewhere.
    let index = exit::kept().or_else(|| {
        // Asks for the call first: a number that is not given back would be lost.
        exit::call_when_thread_ends().then(|| NUMBERS.claim()).flatten().inspect(|index| {
            exit::keep(*index);
        })
    });
    MINE.set(index.map_or(Mine::NotYet, Mine::Claimed));
    index
}

/// Gives the calling thread's number back. Called by [`exit`], once for each thread that asked.
fn thread_ends(index: Option<usize>) {
    // `MINE` itself may have ended.
    let _ = MINE.try_with(|mine| mine.set(Mine::Without));
    if let Some(index) = index {
        run_before_reuse(index);
        NUMBERS.give_back(index);
    }
}

/// The function that runs before a number is given back, or null. It is a `fn(usize)`.
static BEFORE_REUSE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Names the function that runs for a number before the number is given back, on the thread that
/// ends. There is one such function in a process: that of [`presence`](crate::presence), which a
/// thread names before it keeps anything under its number.
///
/// Only 64-bit Linux has switch records to keep.
#[cfg_attr(not(all(target_os = "linux", target_pointer_width = "64", not(miri))), allow(dead_code))]
pub(crate) fn before_reuse(run: fn(usize)) {
    // Relaxed: the value is always the same, and the thread that needs it has stored it.
    BEFORE_REUSE.store(run as *mut (), Ordering::Relaxed);
}

fn run_before_reuse(index: usize) {
    // Relaxed: see `before_reuse`.
    let run = BEFORE_REUSE.load(Ordering::Relaxed);
    if !run.is_null() {
        // SAFETY: `before_reuse` has stored it, which takes functions of this type only.
        let run = unsafe { mem::transmute::<*mut (), fn(usize)>(run) };
        run(index);
    }
}

/// `64 * WORDS` numbers, a set bit for each that is taken.
struct Bitmap<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Bitmap<WORDS> {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Takes the smallest number that was free at some moment during the call; `None` if each was
    /// taken when looked at.
    fn claim(&self) -> Option<usize> {
        for (at, word) in self.0.iter().enumerate() {
            // Relaxed: only a guess, which the compare-exchange below verifies.
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = taken.trailing_ones();
                // Acquire pairs with the Release of `give_back`: the last holder's writes happened
                // before ours. Relaxed on failure: again only a guess.
                match word.compare_exchange_weak(
                    taken,
                    taken | 1 << bit,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return Some(at * 64 + bit as usize),
                    Err(now) => taken = now,
                }
            }
        }
        None
    }

    fn give_back(&self, index: usize) {
        // Release pairs with the Acquire of `claim`.
        self.0[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier, Mutex};
    use std::vec::Vec;

    #[test]
    fn the_smallest_free_number_comes_next() {
        let numbers = Bitmap::<2>::new();
        for expected in 0..128 {
            assert_eq!(numbers.claim(), Some(expected));
        }
        assert_eq!(numbers.claim(), None, "all are taken");
        for back in [127, 64, 3] {
            numbers.give_back(back);
        }
        assert_eq!(
            [numbers.claim(), numbers.claim(), numbers.claim()],
            [Some(3), Some(64), Some(127)]
        );
        assert_eq!(numbers.claim(), None);
    }

    #[test]
    fn threads_that_want_more_numbers_than_there_are_share_none() {
        const THREADS: usize = 8;
        static NUMBERS: Bitmap<1> = Bitmap::new();
        static HELD: [std::sync::atomic::AtomicBool; 64] =
            [const { std::sync::atomic::AtomicBool::new(false) }; 64];
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                std::thread::spawn(|| {
                    let mut mine = Vec::new();
                    for _ in 0..2_000 {
                        match NUMBERS.claim() {
                            Some(number) => {
                                assert!(!HELD[number].swap(true, Ordering::Relaxed), "held twice");
                                mine.push(number);
                            }
                            None => {
                                for number in mine.drain(..) {
                                    HELD[number].store(false, Ordering::Relaxed);
                                    NUMBERS.give_back(number);
                                }
                            }
                        }
                    }
                    for number in mine {
                        HELD[number].store(false, Ordering::Relaxed);
                        NUMBERS.give_back(number);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(NUMBERS.claim(), Some(0), "all were given back");
    }

    #[test]
    #[cfg(all(unix, not(miri)))]
    fn a_number_is_kept_where_thread_locals_end_early() {
        // As on systems that end thread-locals before the keys' destructors run.
        let number = std::thread::spawn(|| {
            let number = index().unwrap();
            MINE.set(Mine::NotYet);
            assert_eq!(index(), Some(number), "the same again");
            MINE.set(Mine::NotYet);
            number
        })
        .join()
        .unwrap();
        // Another thread may have the number by now, but not for ever.
        while NUMBERS.0[number / 64].load(Ordering::Relaxed) & 1 << (number % 64) != 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn live_threads_have_different_numbers_and_dead_ones_give_theirs_back() {
        const THREADS: usize = 16;
        const ROUNDS: usize = 20;
        let mut largest = 0;
        for _ in 0..ROUNDS {
            let all_claimed = Arc::new(Barrier::new(THREADS));
            let seen = Arc::new(Mutex::new(Vec::new()));
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (all_claimed, seen) = (all_claimed.clone(), seen.clone());
                    std::thread::spawn(move || {
                        let mine = index().unwrap();
                        seen.lock().unwrap().push(mine);
                        all_claimed.wait();
                        assert_eq!(index(), Some(mine));
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            let mut seen = seen.lock().unwrap().clone();
            seen.sort_unstable();
            largest = largest.max(*seen.last().unwrap());
            seen.dedup();
            assert_eq!(seen.len(), THREADS);
        }
        assert!(largest < THREADS * ROUNDS, "numbers are not reused: {largest}");
    }

    #[test]
    fn a_thread_that_is_being_numbered_has_no_number_yet() {
        // As a signal handler sees it, or an allocator that the C library calls meanwhile.
        std::thread::spawn(|| {
            MINE.set(Mine::Without);
            assert_eq!(index(), None);
            MINE.set(Mine::NotYet);
            assert!(index().is_some());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_keeps_its_number_in_all_its_thread_local_destructors() {
        use std::sync::mpsc::{Sender, channel};

        struct Asks(Sender<Option<usize>>);
        impl Drop for Asks {
            fn drop(&mut self) {
                self.0.send(index()).unwrap();
            }
        }
        std::thread_local!(static FIRST: Cell<Option<Asks>> = const { Cell::new(None) });
        std::thread_local!(static LAST: Cell<Option<Asks>> = const { Cell::new(None) });

        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            // One is used before the number is claimed and one after it: whichever way the
            // destructors run, one of them runs after the number's if that is one of them.
            FIRST.set(Some(Asks(sender.clone())));
            sender.send(index()).unwrap();
            LAST.set(Some(Asks(sender)));
        })
        .join()
        .unwrap();
        let seen: Vec<_> = receiver.iter().collect();
        assert!(seen[0].is_some());
        assert_eq!(seen, [seen[0]; 3]);
    }
}
