//! The end of work that makes more work: nothing is left in the pool, and no thread holds a piece
//! from which more could come.
//!
//! Why not until the pool is empty: it is empty, too, while the only piece of work is in the hands
//! of a thread that is about to cut it in two. Why not a barrier: a thread that finds nothing would
//! have to come back from it whenever another thread puts a piece in.
//!
//! A piece of work is *outstanding* from before it is put into the pool until a thread has done it,
//! or has replaced it by others.
//!
//! ```text
//! word       moved by                                            meaning
//! count      a thread that replaces a piece by n: + n - 1        pieces outstanding
//!            a thread that gives up: | BROKEN                    a thread has panicked
//! signal     a thread that has put a piece in, if one waits: + 2 look again
//!            a thread that did the last, or gives up: | OVER     no more pieces will come
//! waiting    a thread that finds the pool empty: + 1, later - 1  threads that wait: a hint
//! ```
//!
//! # Invariants
//!
//! 1. Pieces are counted before they are put in, and a piece is discounted after it was taken out.
//!    So the count is never less than the number of outstanding pieces, and 0 is final.
//! 2. A thread waits only after the pool was empty for it since its own last put. So if all wait,
//!    the thread that put last has seen the pool empty after all puts: nothing is outstanding, and
//!    the signal says `OVER`. A missed change of the signal costs parallel work, and never the end.
//!
//! # Orderings
//!
//! All are `Relaxed`. A piece of work comes through the pool, and results come through the joining
//! of the threads. The words only tell when to look and when to end. A piece is counted before it
//! is discounted. That follows from the pool: a thread that takes a piece out comes after the
//! thread that put it in, so the two changes of the one word `count` are in that order. The model
//! is `crates/loom/applications/tests/together/outstanding.rs`.
//!
//! Source: the count of work in the system is folklore of branch and bound. The 1997 paper (M.
//! Michael, M. Scott, *Relative performance of preemption-safe locking and non-blocking
//! synchronization*) does not say how its programs know that they are done.

use core::fmt;
use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Ordering};
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};

/// Set in the count once a thread has panicked.
const BROKEN: usize = 1 << (usize::BITS - 1);

/// Set in the signal when nothing more will come.
const OVER: u32 = 1;

/// An error: a thread has panicked. The piece that it had in hand will never be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// A word on a line of its own: the signal is watched while the count changes.
#[repr(align(128))]
struct Line<W>(W);

/// Counts the pieces of work that are not done.
///
/// ```
/// use stanchion_applications::outstanding::Outstanding;
/// use std::cell::RefCell;
///
/// // Cut a rope of 8 into pieces of 1.
/// let (pool, outstanding) = (RefCell::new(vec![8]), Outstanding::new(1));
/// let mut pieces = 0;
/// while let Some(rope) = outstanding.next(|| pool.borrow_mut().pop()) {
///     if rope == 1 {
///         pieces += 1;
///         outstanding.replace(0).unwrap();
///     } else {
///         outstanding.replace(2).unwrap();
///         pool.borrow_mut().extend([rope / 2, rope / 2]);
///         outstanding.notify();
///     }
/// }
/// assert_eq!(pieces, 8);
/// ```
pub struct Outstanding {
    /// The number of outstanding pieces. Written by every thread.
    count: Line<AtomicUsize>,
    /// The word that waiting threads sleep on. Written by threads that put a piece in, and at the
    /// end.
    signal: Line<AtomicU32>,
    /// The number of threads that wait. Written by those threads.
    waiting: Line<AtomicU32>,
}

impl fmt::Debug for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outstanding").finish_non_exhaustive()
    }
}

impl Outstanding {
    /// With `pieces` in the pool. To be made before the threads are.
    #[must_use]
    pub fn new(pieces: usize) -> Self {
        Self {
            count: Line(AtomicUsize::new(pieces)),
            signal: Line(AtomicU32::new(if pieces == 0 { OVER } else { 0 })),
            waiting: Line(AtomicU32::new(0)),
        }
    }

    /// Returns the piece that `take` takes out of the pool, and waits for one if need be. Returns
    /// `None` when all is done, or if a thread has [given up](Self::give_up).
    ///
    /// If `take` returns `None`, the pool must have been empty at some moment during the call.
    pub fn next<W>(&self, mut take: impl FnMut() -> Option<W>) -> Option<W> {
        if let Some(work) = take() {
            return Some(work);
        }
        // Relaxed, here and below: see the header.
        self.waiting.0.fetch_add(1, Ordering::Relaxed);
        let found = loop {
            let seen = self.signal.0.load(Ordering::Relaxed);
            if seen & OVER != 0 {
                break None;
            }
            if let Some(work) = take() {
                break Some(work);
            }
            let changed = |signal: u32| signal != seen;
            wait_until(&self.signal.0, Ordering::Relaxed, changed, &mut <Patient>::start());
        };
        self.waiting.0.fetch_sub(1, Ordering::Relaxed);
        found
    }

    /// Says that a piece that [`next`](Self::next) returned is done, and `pieces` others are there
    /// instead, which the caller puts into the pool only *after* this call, and then
    /// [notifies](Self::notify).
    ///
    /// # Errors
    ///
    /// [`Broken`] if the caller need not go on.
    pub fn replace(&self, pieces: usize) -> Result<(), Broken> {
        let before = match pieces {
            0 => {
                let before = self.count.0.fetch_sub(1, Ordering::Relaxed);
                if before == 1 {
                    self.signal.0.fetch_or(OVER, Ordering::Relaxed);
                }
                before
            }
            1 => return Ok(()),
            more => self.count.0.fetch_add(more - 1, Ordering::Relaxed),
        };
        if before & BROKEN == 0 { Ok(()) } else { Err(Broken) }
    }

    /// Wakes waiting threads, because the caller has put a piece into the pool.
    pub fn notify(&self) {
        if self.waiting.0.load(Ordering::Relaxed) != 0 {
            // The last bit stays as it is.
            self.signal.0.fetch_add(2, Ordering::Relaxed);
        }
    }

    /// Stops all threads soon, instead of letting them wait for ever: the piece that the caller has
    /// in hand will never be done.
    pub fn give_up(&self) {
        self.count.0.fetch_or(BROKEN, Ordering::Relaxed);
        self.signal.0.fetch_or(OVER, Ordering::Relaxed);
    }
}
