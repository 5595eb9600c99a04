//! The counts that a worker keeps of turns and of bound threads. The decisions are in `order.rs`
//! and `bound_threads.rs`.
//!
//! A *turn* is the time from when a thread starts or continues until it waits, yields or ends.

use core::cell::Cell;

use stanchion_machine::clock::Ticks;

use crate::thread::handle::Thread;
use crate::thread::kind::ThreadKind;

/// The turns that a worker has given to threads.
pub(super) struct TurnCounts {
    /// Turns of bound threads since the last turn of a new one, at most `BOUND_IN_A_ROW`.
    pub(super) bound: Cell<u32>,
    /// The value of `Worker::looks` when the tenure began.
    pub(super) tenure_looks: Cell<u32>,
    /// The time at which the tenure began.
    pub(super) tenure_began: Cell<Ticks>,
}

impl TurnCounts {
    pub(super) fn new() -> Self {
        Self {
            bound: Cell::new(0),
            tenure_looks: Cell::new(0),
            tenure_began: Cell::new(Ticks::from_bits(0)),
        }
    }
}

/// The turn of the thread that runs, or the last one.
pub(super) struct CurrentTurn {
    pub(super) number: Cell<u32>,
    pub(super) kind: Cell<ThreadKind>,
    /// Set if its kind was quick when it began.
    pub(super) is_quick: Cell<bool>,
    /// The time at which it began, if it is timed.
    pub(super) began: Cell<Option<Ticks>>,
    /// The quick turns that the thread had before and that are not counted yet, if it is timed.
    pub(super) before: Cell<u8>,
    /// The kind that was last found to be quick.
    pub(super) known_quick: Cell<ThreadKind>,
}

impl CurrentTurn {
    pub(super) fn new() -> Self {
        Self {
            number: Cell::new(0),
            kind: Cell::new(ThreadKind::from_bits(0)),
            is_quick: Cell::new(false),
            began: Cell::new(None),
            before: Cell::new(0),
            known_quick: Cell::new(ThreadKind::from_bits(0)),
        }
    }
}

/// The class of a thread that its worker does not count as bound.
pub(super) const NOT_BOUND: u8 = 0;
/// The class of a bound thread of a quick kind.
pub(super) const QUICK: u8 = 1;
/// The class of a bound thread of another kind.
const SLOW: u8 = 2;

/// The number of threads bound to a worker: all in the lower half of the word, and in the upper
/// half those of a kind that was not quick at the count.
#[derive(Default)]
pub(super) struct BoundThreads(Cell<u64>);

impl BoundThreads {
    #[inline]
    fn weight(class: u8) -> u64 {
        1 | u64::from(class == SLOW) << 32
    }

    /// Returns whether any thread is bound.
    pub(super) fn any(&self) -> bool {
        self.0.get() != 0
    }

    /// Returns whether all are of quick kinds.
    pub(super) fn are_quick(&self) -> bool {
        self.0.get() >> 32 == 0
    }

    #[inline]
    pub(super) fn add(&self, thread: &Thread, is_quick: bool) {
        let class = if is_quick { QUICK } else { SLOW };
        thread.header().set_bound_class(class);
        self.0.set(self.0.get() + Self::weight(class));
    }

    /// Takes out a thread that continues, until it waits again. Returns its class.
    #[inline]
    pub(super) fn remove(&self, thread: &Thread) -> u8 {
        let class = thread.header().bound_class();
        if class != NOT_BOUND {
            thread.header().set_bound_class(NOT_BOUND);
            self.0.set(self.0.get() - Self::weight(class));
        }
        class
    }
}
