//! The threads that are bound to a worker, and the turns of the thread that runs
//! (`thread/kind.rs`).

use stanchion_machine::clock::{self, Ticks};

use super::state::Worker;
use super::turns::{NOT_BOUND, QUICK};
use crate::thread::handle::Thread;
use crate::thread::kind::{QUICK_NS, REPORT, SAMPLE, ThreadKind};

impl Worker {
    /// Begins the turn of a thread that begins.
    #[inline]
    pub(super) fn turn_begins(&self, thread: &Thread) {
        let kind = ThreadKind::of(thread);
        self.next_turn(thread, kind, self.turn.known_quick.get() == kind);
    }

    /// Begins the turn of a thread that continues.
    #[inline]
    pub(super) fn turn_continues(&self, thread: &Thread) {
        let class = self.bound_threads.remove(thread);
        self.next_turn(thread, ThreadKind::of(thread), class == QUICK);
    }

    #[inline]
    fn next_turn(&self, thread: &Thread, kind: ThreadKind, was_quick: bool) {
        let turn = &self.turn;
        let number = turn.number.get().wrapping_add(1);
        turn.number.set(number);
        turn.kind.set(kind);
        self.record().begin_turn(number, kind);
        // A kind that was quick lately is looked at again only when the turn is timed.
        if was_quick && !number.is_multiple_of(SAMPLE) {
            turn.is_quick.set(true);
        } else {
            self.look_at_kind(thread, kind, number);
        }
    }

    #[inline(never)]
    fn look_at_kind(&self, thread: &Thread, kind: ThreadKind, number: u32) {
        let turn = &self.turn;
        let is_quick = self.is_quick(kind);
        turn.is_quick.set(is_quick);
        if !is_quick || number.is_multiple_of(SAMPLE) {
            turn.before.set(thread.header().quick_turns());
            turn.began.set(Some(clock::now()));
        }
    }

    /// Returns whether the kind is quick, and remembers it if it is.
    #[inline]
    fn is_quick(&self, kind: ThreadKind) -> bool {
        let is_quick = kind.is_quick();
        let known = if is_quick { kind } else { ThreadKind::from_bits(0) };
        self.turn.known_quick.set(known);
        is_quick
    }

    /// Ends the turn of a thread that has left its stack; `None` if it has ended.
    #[inline]
    pub(super) fn turn_ends(&self, thread: Option<&Thread>) {
        if let Some(began) = self.turn.began.get() {
            self.count_turn(thread, began);
        }
    }

    #[cold]
    fn count_turn(&self, thread: Option<&Thread>, began: Ticks) {
        let kind = self.turn.kind.get();
        self.turn.began.set(None);
        let is_quick = clock::now().nanos_since(began) <= QUICK_NS;
        let turns = if is_quick { self.turn.before.get() + 1 } else { 0 };
        if !is_quick {
            kind.count_slow();
        }
        let is_due = thread.is_none() || turns >= REPORT;
        if is_due {
            kind.count_quick(turns);
        }
        if let Some(thread) = thread {
            thread.header().set_quick_turns(if is_due { 0 } else { turns });
        }
    }

    /// Counts a thread that is laid aside after its turn, if it is bound to this worker.
    #[inline]
    pub(super) fn count_bound(&self, thread: &Thread) {
        if thread.header().bound_to().is_some() {
            self.bound_threads.add(thread, self.turn.is_quick.get());
        }
    }

    /// Returns whether this worker may run the thread without keeping bound threads waiting.
    #[inline]
    pub(super) fn may_run(&self, thread: &Thread) -> bool {
        // No thread is bound to it. It may have been sent another thread, which waits in its queue,
        // and begins first.
        !self.bound_threads.any() && self.local_queue.borrow().is_empty()
            // The thread is bound to it.
            || thread.header().bound_class() != NOT_BOUND
            // The bound threads and the new one are all of quick kinds.
            || self.bound_threads.any()
                && self.bound_threads.are_quick()
                && self.is_quick(ThreadKind::of(thread))
            // No thread would notice a block anyway.
            || !self.runtime.detection.is_on
    }
}
