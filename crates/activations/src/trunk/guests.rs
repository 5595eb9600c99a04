//! A carrier's guests, the threads that have begun on it and wait or are ready, and the turns of its threads (`history.rs`).

use core::cell::Cell;

use machine::clock::{self, Ticks};

use crate::history::{Kind, QUICK_NS, REPORT, SAMPLE};
use crate::thread::Thread;

use super::Local;

/// What a carrier notes of a thread: none of its guests, one of a quick kind, or one of another.
const NONE: u8 = 0;
const QUICK: u8 = 1;
const SLOW: u8 = 2;

/// How many guests a carrier has.
#[derive(Default)]
pub(super) struct Guests {
    all: Cell<usize>,
    /// Those of them whose kind was not quick when they became guests.
    slow: Cell<usize>,
}

impl Guests {
    /// Whether there is any.
    pub(super) fn has_any(&self) -> bool {
        self.all.get() > 0
    }

    /// Whether a thread may run here that may run elsewhere.
    #[inline]
    fn bear(&self, thread: &Thread) -> bool {
        !self.has_any() || self.slow.get() == 0 && Kind::of(thread).is_quick()
    }

    #[inline]
    fn add(&self, thread: &Thread, is_quick: bool) {
        thread.inner().be_guest(if is_quick { QUICK } else { SLOW });
        self.all.set(self.all.get() + 1);
        self.slow.set(self.slow.get() + usize::from(!is_quick));
    }

    /// It goes on, and is no guest until it waits again.
    #[inline]
    fn remove(&self, thread: &Thread) {
        let guest = thread.inner().guest();
        if guest != NONE {
            thread.inner().be_guest(NONE);
            self.all.set(self.all.get() - 1);
            self.slow.set(self.slow.get() - usize::from(guest == SLOW));
        }
    }
}

/// The turn that a carrier's thread has, or the last one.
pub(super) struct Turn {
    number: Cell<u32>,
    kind: Cell<Kind>,
    /// Its kind was quick when it began.
    is_quick: Cell<bool>,
    /// When it began, if it is timed.
    began: Cell<Option<Ticks>>,
    /// The quick turns that the thread had before and that were not counted yet, if it is timed.
    before: Cell<u32>,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self {
            number: Cell::new(0),
            kind: Cell::new(Kind::from_bits(0)),
            is_quick: Cell::new(false),
            began: Cell::new(None),
            before: Cell::new(0),
        }
    }
}

impl Local {
    /// A thread goes on here, or begins.
    #[inline]
    pub(super) fn turn_begins(&self, thread: &Thread) {
        let (turn, of) = (&self.turn, Kind::of(thread));
        turn.kind.set(of);
        let number = turn.number.get().wrapping_add(1);
        turn.number.set(number);
        self.carrier().begins_turn(number, of);
        let is_quick = of.is_quick();
        turn.is_quick.set(is_quick);
        if !is_quick || number.is_multiple_of(SAMPLE) {
            turn.before.set(thread.inner().turns());
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
        let Turn { kind, before, .. } = &self.turn;
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
            thread.inner().keep_turns(if is_due { 0 } else { turns });
        }
    }

    /// The thread that runs here has said that it will block.
    pub(super) fn will_block(&self) {
        self.turn.kind.get().has_blocked();
    }

    /// The thread whose turn has ended has been laid aside: a guest, if it is bound to this carrier.
    #[inline]
    pub(super) fn receive(&self, thread: &Thread) {
        if thread.inner().bound_to().is_some() {
            self.guests.add(thread, self.turn.is_quick.get());
        }
    }

    /// A thread that has begun goes on here.
    #[inline]
    pub(super) fn take_leave(&self, thread: &Thread) {
        self.guests.remove(thread);
    }

    /// Whether this carrier may run that thread: a guest, or one that its guests bear.
    #[inline]
    pub(super) fn may_run(&self, thread: &Thread) -> bool {
        self.guests.bear(thread)
            || !self.shared.activations()
            || thread.inner().bound_to() == Some(self.index)
    }
}
