//! A virtual thread: what it does, where, since when.

use crate::Time;
use crate::event::Stretch;
use crate::local::Locals;
use crate::os::interrupt;
use crate::os::keep::Keep;
use crate::statistics::ThreadStatistics;
use core::fmt;

/// A thread of a run: a small number, 0 for the one that runs the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u32);

impl ThreadId {
    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer threads than that fit into a run's memory"))
    }

    /// Its place in the order in which the run's threads were made.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}", self.0)
    }
}

/// Where a thread is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// On its processor.
    Running,
    /// On its processor, looking at a word that does not change. No event runs it.
    Spinning,
    /// Waits for a processor.
    Ready,
    /// Could go on, and waits until its address space says so.
    Stopped,
    /// Waits for something else; see [`Wait`].
    Blocked,
    Ended,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// Spins on the word of this identity.
    Word(u64),
    /// Is parked on it.
    Parked(u64),
    /// For the end of another thread.
    Join(ThreadId),
    /// For a time to pass.
    Sleep,
}

/// How many accesses of its own a thread remembers: a loop that waits for one word may read so many
/// less one others beside it.
const LOOKS: usize = 4;

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Woken,
    TimedOut,
}

pub(crate) struct Thread {
    pub(crate) name: Option<String>,
    pub(crate) status: Status,
    /// Its own moment: how far it has run ahead of the events. Meaningless while it is not on a
    /// processor.
    pub(crate) time: Time,
    /// Since when it has been in `status`.
    pub(crate) since: Time,
    pub(crate) wait: Wait,
    pub(crate) outcome: Outcome,
    pub(crate) stretch: Stretch,
    /// Where it runs, or ran last.
    pub(crate) processor: usize,
    pub(crate) pinned: Option<usize>,
    pub(crate) joiners: Vec<ThreadId>,
    /// The words of those who want to hear of its next switch; see `os::watch`.
    pub(crate) watchers: Vec<u64>,
    /// Whether it waited for something else than a processor when it last lost one.
    pub(crate) waited: bool,
    /// When it last lost or got a processor; `None` if it has had none yet.
    pub(crate) switched: Option<Time>,
    /// How often it has gone to sleep on a word.
    pub(crate) sleeps: u64,
    /// The words that it accessed last, and how many accesses the run had seen then, the oldest to
    /// be replaced next; see `State::watch`.
    looks: [(u64, u64); LOOKS],
    oldest: usize,
    /// When it last called something that takes no time, and how often since anything took some;
    /// see `State::glance`.
    pub(crate) glances: (Time, u32),
    /// How many accesses it may still make; see `os::freeze`.
    pub(crate) accesses_left: u64,
    /// Whether it never runs again.
    pub(crate) frozen: bool,
    pub(crate) keep: Keep,
    pub(crate) open: interrupt::Stretch,
    /// Its slot and processor, if it is in a gang.
    pub(crate) place: Option<(usize, usize)>,
    /// Its address space, if it is an activation.
    pub(crate) space: Option<usize>,
    /// Whether the space may resume it: it is stopped, and no handler has asked for it yet.
    pub(crate) resumable: bool,
    pub(crate) locals: Locals,
    pub(crate) statistics: ThreadStatistics,
}

impl Thread {
    pub(crate) fn new(name: Option<String>, pinned: Option<usize>, now: Time) -> Self {
        Self {
            name,
            status: Status::Blocked,
            time: now,
            since: now,
            wait: Wait::Nothing,
            outcome: Outcome::Open,
            stretch: 0,
            processor: pinned.unwrap_or(0),
            pinned,
            joiners: Vec::new(),
            watchers: Vec::new(),
            waited: false,
            switched: None,
            sleeps: 0,
            looks: [(u64::MAX, 0); LOOKS],
            oldest: 0,
            glances: (Time::ZERO, 0),
            accesses_left: u64::MAX,
            frozen: false,
            keep: Keep::default(),
            open: interrupt::Stretch::None,
            place: None,
            space: None,
            resumable: false,
            locals: Locals::default(),
            statistics: ThreadStatistics::default(),
        }
    }

    /// It has accessed the word of this identity, as the run's access number `seen`.
    #[inline]
    pub(crate) fn looked_at(&mut self, word: u64, seen: u64) {
        self.looks[self.oldest] = (word, seen);
        self.oldest = (self.oldest + 1) % LOOKS;
    }

    /// How many accesses the run had seen when this thread last accessed a word; `None` if that is
    /// too long ago to be known.
    pub(crate) fn last_look(&self, word: u64) -> Option<u64> {
        self.looks.iter().filter(|(other, _)| *other == word).map(|(_, seen)| *seen).max()
    }

    /// Whether it is an activation that has not run yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.space.is_some() && self.stretch == 0
    }

    pub(crate) fn may_run_on(&self, processor: usize) -> bool {
        self.pinned.is_none_or(|pinned| pinned == processor)
    }
}
