//! When threads that make work for each other are done: nothing is left in the pool, and nobody has
//! anything in hand from which more could come.
//!
//! Why not until the pool is empty: it is empty, too, while the only piece of work is in the hands
//! of a thread that is about to cut it in two. Why not a barrier: a thread that finds nothing would
//! have to come back from it whenever another puts something in.
//!
//! A piece of work is *outstanding* from before it is put into the pool until a thread has done it,
//! or has replaced it by others.
//!
//! ```text
//! word       who moves it                                 meaning
//! count      who replaces a piece by n: + n - 1           pieces outstanding
//!            who gives up: | BROKEN                       somebody has panicked
//! bell       who has put something in, if one waits: + 2  look again
//!            who did the last, who gives up: | OVER       nothing more will come
//! waiting    who finds the pool empty: + 1, later - 1     how many wait: a hint
//! ```
//!
//! # Invariants
//!
//! 1. Pieces are counted before they are put in, and a piece is discounted after it was taken out;
//!    so the count is never less than what is outstanding, and 0 is final.
//! 2. A thread waits only after the pool was empty for it since its own last put. So if all wait,
//!    the one that put last has seen the pool empty after all puts: nothing is outstanding, and the
//!    bell says `OVER`. A ring that is missed costs parallel work, and never the end.
//!
//! # Orderings
//!
//! All are `Relaxed`. What a piece of work is comes through the pool, and what was done comes
//! through the joining of the threads; the words say only when to look and when to end. That a
//! piece is counted before it is discounted follows from the pool: who takes a piece out comes
//! after who put it in, so the two changes of the one word `count` are in that order. The model is
//! `twins/loom/applications/tests/outstanding.rs`.
//!
//! Source: the count of work in the system is folklore of branch and bound; the 1997 paper (M.
//! Michael, M. Scott, *Relative performance of preemption-safe locking and non-blocking
//! synchronization*) does not say how its programs know that they are done.

use core::fmt;
use machine::atomic::{AtomicU32, AtomicUsize, Ordering};
use machine::wait::{Patient, WaitPolicy, wait_until};

/// Set in the count once a thread has panicked.
const BROKEN: usize = 1 << (usize::BITS - 1);

/// Set in the bell when nothing more will come.
const OVER: u32 = 1;

/// A thread has panicked: what it had in hand will never be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// A word on a line of its own: the bell is watched while the count changes.
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
///         outstanding.ring();
///     }
/// }
/// assert_eq!(pieces, 8);
/// ```
pub struct Outstanding {
    count: Line<AtomicUsize>,
    bell: Line<AtomicU32>,
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
            bell: Line(AtomicU32::new(if pieces == 0 { OVER } else { 0 })),
            waiting: Line(AtomicU32::new(0)),
        }
    }

    /// What `take` takes out of the pool, waiting for it if need be; `None` when all is done, or
    /// somebody has [given up](Self::give_up).
    ///
    /// `take` returning `None` must mean that the pool was empty at some moment during the call.
    pub fn next<W>(&self, mut take: impl FnMut() -> Option<W>) -> Option<W> {
        if let Some(work) = take() {
            return Some(work);
        }
        // Relaxed, here and below: see the header.
        self.waiting.0.fetch_add(1, Ordering::Relaxed);
        let found = loop {
            let heard = self.bell.0.load(Ordering::Relaxed);
            if heard & OVER != 0 {
                break None;
            }
            if let Some(work) = take() {
                break Some(work);
            }
            let rung = |bell: u32| bell != heard;
            wait_until(&self.bell.0, Ordering::Relaxed, rung, &mut <Patient>::start());
        };
        self.waiting.0.fetch_sub(1, Ordering::Relaxed);
        found
    }

    /// Says that a piece that [`next`](Self::next) returned is done, and `pieces` others are there
    /// instead, which the caller puts into the pool only *after* this call, and then
    /// [rings](Self::ring).
    ///
    /// # Errors
    ///
    /// [`Broken`] if the caller need not go on.
    pub fn replace(&self, pieces: usize) -> Result<(), Broken> {
        let before = match pieces {
            0 => {
                let before = self.count.0.fetch_sub(1, Ordering::Relaxed);
                if before == 1 {
                    self.bell.0.fetch_or(OVER, Ordering::Relaxed);
                }
                before
            }
            1 => return Ok(()),
            more => self.count.0.fetch_add(more - 1, Ordering::Relaxed),
        };
        if before & BROKEN == 0 { Ok(()) } else { Err(Broken) }
    }

    /// Tells those who wait that the caller has put something into the pool.
    pub fn ring(&self) {
        if self.waiting.0.load(Ordering::Relaxed) != 0 {
            // The last bit stays as it is.
            self.bell.0.fetch_add(2, Ordering::Relaxed);
        }
    }

    /// Says that what the caller has in hand will never be done: all others stop soon instead of
    /// waiting for ever.
    pub fn give_up(&self) {
        self.count.0.fetch_or(BROKEN, Ordering::Relaxed);
        self.bell.0.fetch_or(OVER, Ordering::Relaxed);
    }
}
