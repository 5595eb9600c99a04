//! A worker's bound_threads, the threads that have begun on it and wait or are ready, and the turns of
//! its threads (`history.rs`).

use core::cell::Cell;

use machine::clock::{self, Ticks};

use crate::thread::kind::{ThreadKind, QUICK_NS, REPORT, SAMPLE};
use crate::thread::header::Thread;

use super::scheduler_loop::Worker;

/// What a worker notes of a thread: none of its bound_threads, one of a quick kind, or one of another.
const NOT_BOUND: u8 = 0;
const QUICK: u8 = 1;
const SLOW: u8 = 2;

/// How many bound_threads a worker has: all in the lower half of the word, and in the upper half those
/// whose kind was not quick when they became bound_threads.
#[derive(Default)]
pub(super) struct BoundThreads(Cell<u64>);

impl BoundThreads {
    /// What a bound counts.
    #[inline]
    fn weight(bound: u8) -> u64 {
        1 | u64::from(bound == SLOW) << 32
    }

    /// Whether there is any.
    pub(super) fn has_any(&self) -> bool {
        self.0.get() != 0
    }

    /// Whether all are of quick kinds.
    fn are_quick(&self) -> bool {
        self.0.get() >> 32 == 0
    }

    #[inline]
    fn add(&self, thread: &Thread, is_quick: bool) {
        let bound = if is_quick { QUICK } else { SLOW };
        thread.header().set_bound(bound);
        self.0.set(self.0.get() + Self::weight(bound));
    }

    /// It goes on, and is no bound until it waits again. Returns what it was.
    #[inline]
    fn remove(&self, thread: &Thread) -> u8 {
        let bound = thread.header().bound();
        if bound != NOT_BOUND {
            thread.header().set_bound(NOT_BOUND);
            self.0.set(self.0.get() - Self::weight(bound));
        }
        bound
    }
}

/// The turn that a worker's thread has, or the last one.
pub(super) struct CurrentTurn {
    number: Cell<u32>,
    kind: Cell<ThreadKind>,
    /// Its kind was quick when it began.
    is_quick: Cell<bool>,
    /// When it began, if it is timed.
    began: Cell<Option<Ticks>>,
    /// The quick turns that the thread had before and that were not counted yet, if it is timed.
    before: Cell<u8>,
    /// The kind that was last found to be quick.
    known: Cell<ThreadKind>,
}

impl CurrentTurn {
    pub(super) fn new() -> Self {
        Self {
            number: Cell::new(0),
            kind: Cell::new(ThreadKind::from_bits(0)),
            is_quick: Cell::new(false),
            began: Cell::new(None),
            before: Cell::new(0),
            known: Cell::new(ThreadKind::from_bits(0)),
        }
    }
}

impl Worker {
    /// A thread begins here.
    #[inline]
    pub(super) fn turn_begins(&self, thread: &Thread) {
        let kind = ThreadKind::of(thread);
        self.next_turn(thread, kind, self.turn.known.get() == kind);
    }

    /// A thread that has begun goes on here.
    #[inline]
    pub(super) fn turn_goes_on(&self, thread: &Thread) {
        let bound = self.bound_threads.remove(thread);
        self.next_turn(thread, ThreadKind::of(thread), bound == QUICK);
    }

    /// If its kind was quick lately, that is looked at again only when the turn is timed.
    #[inline]
    fn next_turn(&self, thread: &Thread, kind: ThreadKind, was_quick: bool) {
        let turn = &self.turn;
        let number = turn.number.get().wrapping_add(1);
        turn.number.set(number);
        turn.kind.set(kind);
        self.worker().begins_turn(number, kind);
        if was_quick && !number.is_multiple_of(SAMPLE) {
            turn.is_quick.set(true);
        } else {
            self.look_at_kind(thread, kind, number);
        }
    }

    #[inline(never)]
    fn look_at_kind(&self, thread: &Thread, kind: ThreadKind, number: u32) {
        let turn = &self.turn;
        let is_quick = kind.is_quick();
        turn.is_quick.set(is_quick);
        turn.known.set(if is_quick { kind } else { ThreadKind::from_bits(0) });
        if !is_quick || number.is_multiple_of(SAMPLE) {
            turn.before.set(thread.header().turns());
            turn.began.set(Some(clock::now()));
        }
    }

    /// The thread that ran here has left its stack, and is there; or it has ended.
    #[inline]
    pub(super) fn turn_ends(&self, thread: Option<&Thread>) {
        if let Some(began) = self.turn.began.get() {
            self.count_turn(thread, began);
        }
    }

    #[cold]
    fn count_turn(&self, thread: Option<&Thread>, began: Ticks) {
        let CurrentTurn { kind, before, .. } = &self.turn;
        self.turn.began.set(None);
        let is_quick = clock::now().nanos_since(began) <= QUICK_NS;
        let turns = if is_quick { before.get() + 1 } else { 0 };
        if !is_quick {
            kind.get().has_been_slow();
        }
        let is_due = thread.is_none() || turns >= REPORT;
        if is_due {
            kind.get().has_been_quick(turns);
        }
        if let Some(thread) = thread {
            thread.header().keep_turns(if is_due { 0 } else { turns });
        }
    }

    /// The thread that runs here has said that it will block.
    pub(super) fn will_block(&self) {
        self.turn.kind.get().has_blocked();
    }

    /// The thread whose turn has ended has been laid aside: a bound, if it is bound to this
    /// worker.
    #[inline]
    pub(super) fn receive(&self, thread: &Thread) {
        if thread.header().bound_to().is_some() {
            self.bound_threads.add(thread, self.turn.is_quick.get());
        }
    }

    /// Returns whether this worker may run that thread: a bound, or one that its bound_threads bear.
    ///
    /// A worker without bound_threads may have been sent another thread. That one waits here, so no other
    /// thread begins before it.
    #[inline]
    pub(super) fn may_run(&self, thread: &Thread) -> bool {
        !self.bound_threads.has_any() && self.local_queue.borrow().is_empty()
            || thread.header().bound() != NOT_BOUND
            || self.bound_threads.has_any() && self.bound_threads.are_quick() && self.is_of_quick_kind(thread)
            || !self.runtime.activations()
    }

    #[inline]
    fn is_of_quick_kind(&self, thread: &Thread) -> bool {
        let kind = ThreadKind::of(thread);
        let is_quick = kind.is_quick();
        self.turn.known.set(if is_quick { kind } else { ThreadKind::from_bits(0) });
        is_quick
    }
}
