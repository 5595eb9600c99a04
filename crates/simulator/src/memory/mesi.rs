//! The states of a line in caches that own the lines that they write, common to a bus and a
//! directory.
//!
//! # States
//!
//! | state | copies | a read is answered by |
//! | --- | --- | --- |
//! | untouched | none | memory |
//! | shared | any number | memory |
//! | exclusive | one, as memory has it | memory on a bus; its owner under a directory |
//! | modified | one, newer than memory | its owner |
//!
//! A directory cannot know that an exclusive line is unwritten.
//!
//! # Invariants
//!
//! 1. A line that is exclusive or modified has exactly one copy, the owner's.
//! 2. A line that is untouched has none.
//! 3. After a write or an exchange that was no hit the line is modified, and its copy is the
//!    writer's.
//!
//! # Lines that are leaving
//!
//! A request takes effect when it is issued. So the state is that of the *last* request, and the
//! line may still be somewhere else. Its owner goes on using it until the request arrives there.
//! [`leaves`](Entry::leaves) records until when. Accesses of the owner before that are hits that
//! change no state. Without that, two processors that fight for a lock would hand its line over at
//! every access. Caches do not: the owner gets some accesses done each time. A plain store that is
//! on its way is no such request: the owner would see the stored value before it can have arrived.
//!
//! Caches have no bound, so a copy goes only when another processor writes.

use super::processors::Processors;
use super::{Kind, Line};
use crate::Time;

/// The state of a line in all caches together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Untouched,
    Shared,
    Exclusive,
    Modified,
}

/// One line.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The state.
    pub(crate) state: State,
    /// The processors with a copy.
    pub(crate) copies: Processors,
    /// The time when the transaction that last moved it is over: the next one finds it no earlier.
    pub(crate) free: Time,
    /// The processors that still have the line though it was asked for, and until when.
    leaving: Vec<(usize, Time)>,
}

impl Entry {
    /// Returns whether this access needs no transaction. A write makes the line modified.
    pub(crate) fn hit(&mut self, at: Time, processor: usize, kind: Kind) -> bool {
        self.owned(processor, kind) || self.still_here(at, processor)
    }

    fn owned(&mut self, processor: usize, kind: Kind) -> bool {
        let present = self.copies.contains(processor);
        match (kind, self.state) {
            (Kind::Read, _) => present,
            (Kind::Write | Kind::Exchange, State::Exclusive | State::Modified) if present => {
                self.state = State::Modified;
                true
            }
            _ => false,
        }
    }

    /// Returns whether a read at `at` would be a hit.
    pub(crate) fn readable(&self, at: Time, processor: usize) -> bool {
        self.copies.contains(processor) || self.still_here(at, processor)
    }

    fn still_here(&self, at: Time, processor: usize) -> bool {
        self.leaving.iter().any(|&(owner, until)| owner == processor && at < until)
    }

    /// Records that a request made `at` takes the line from its owner. It reaches the owner later.
    pub(crate) fn leaves(&mut self, at: Time, owner: usize, reached: Time) {
        self.leaving.retain(|&(other, until)| at < until && other != owner);
        self.leaving.push((owner, reached));
    }

    /// Returns the processor that alone has it.
    pub(crate) fn owner(&self) -> Option<usize> {
        match self.state {
            State::Exclusive | State::Modified => self.copies.first(),
            State::Untouched | State::Shared => None,
        }
    }

    /// Makes of the line what an access does that is not a hit. How many copies it invalidated.
    pub(crate) fn moved(&mut self, processor: usize, kind: Kind) -> u32 {
        let invalidated = match kind {
            Kind::Read => {
                let alone = self.copies.is_empty();
                self.state = if alone { State::Exclusive } else { State::Shared };
                0
            }
            Kind::Write | Kind::Exchange => {
                self.state = State::Modified;
                self.copies.drop_others(processor)
            }
        };
        self.copies.insert(processor);
        invalidated
    }

    /// Counts a write of `processor` while its line leaves for a reader as a write before that, if
    /// written lines migrate: it keeps no copy. Does nothing if it has none or the line is its own.
    pub(crate) fn written_in_leaving(&mut self, processor: usize) {
        if self.state == State::Shared && self.copies.others(processor) > 0 {
            self.copies.remove(processor);
            if self.copies.len() == 1 {
                self.state = State::Exclusive;
            }
        }
    }

    /// Gives the line to a reader, which can write it without asking. Returns how many copies that
    /// invalidated.
    pub(crate) fn migrated(&mut self, processor: usize) -> u32 {
        let invalidated = self.copies.drop_others(processor);
        self.state = State::Exclusive;
        self.copies.insert(processor);
        invalidated
    }

    /// # Panics
    ///
    /// If an invariant is broken.
    pub(crate) fn check(&self, line: Line) {
        let copies = self.copies.len();
        let sound = match self.state {
            State::Untouched => copies == 0,
            State::Shared => copies > 0,
            State::Exclusive | State::Modified => copies == 1,
        };
        let holders = || self.copies.iter().collect::<Vec<_>>();
        assert!(sound, "{line:?} is {:?}, and these have copies: {:?}", self.state, holders());
    }
}
