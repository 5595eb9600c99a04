//! A virtual thread: its activity, its processor, and their times.

use crate::Time;
use crate::statistics::{Activity, ThreadStatistics};
use core::fmt;

/// A thread of a run: a small number, 0 for the one that runs the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u32);

impl ThreadId {
    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer threads than that fit into a run's memory"))
    }

    /// Its position in the order in which the run's threads were made.
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

/// Counts the changes of what a thread does: an event that was announced for an earlier one is
/// stale.
pub(crate) type Stretch = u64;

/// The state of a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// On its processor.
    Running,
    /// On its processor, looking at a word that does not change. No event runs it.
    Spinning,
    /// Waits for a processor.
    Ready,
    /// Could go on, and waits until its address space resumes it.
    Stopped,
    /// Waits for something else; see [`Wait`].
    Blocked,
    Ended,
}

/// The thing that a thread waits for.
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

/// The number of accesses of its own that a thread remembers. A loop that waits for one word may
/// read so many less one others beside it.
const LOOKS: usize = 4;

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Woken,
    TimedOut,
}

/// The requests of a thread not to be preempted, and the answer; see
/// [`os::keep`](crate::os::keep).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep {
    /// The number of open requests.
    pub(crate) depth: u32,
    /// Set if the slice has ended meanwhile.
    pub(crate) warned: bool,
}

/// The computation of a thread that an interrupt can end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Computation {
    /// Nothing of that kind.
    None,
    /// The thread has done this since its own time.
    Open(Activity),
    /// The thread did, for so long: an interrupt ended it.
    Ended(Time),
}

pub(crate) struct Thread {
    /// The name, if it has one.
    pub(crate) name: Option<String>,
    /// The state of its life.
    pub(crate) status: Status,
    /// Its own moment: how far it has run ahead of the events. Meaningless while it is not on a
    /// processor.
    pub(crate) time: Time,
    /// Since when it has been in `status`.
    pub(crate) since: Time,
    /// The thing that it waits for.
    pub(crate) wait: Wait,
    /// The end of its last wait.
    pub(crate) outcome: Outcome,
    /// The number of its present stretch. Each change of status begins a new one.
    pub(crate) stretch: Stretch,
    /// The processor that it runs on, or ran on last.
    pub(crate) processor: usize,
    /// The processor that it stays on, if it is pinned.
    pub(crate) pinned: Option<usize>,
    /// The threads that wait for its end.
    pub(crate) joiners: Vec<ThreadId>,
    /// The words of the watches of its next switch; see `os::watch`.
    pub(crate) watchers: Vec<u64>,
    /// Set if it waited for something else than a processor when it last lost one.
    pub(crate) waited: bool,
    /// The time when it last lost or got a processor; `None` if it has had none yet.
    pub(crate) switched: Option<Time>,
    /// The number of times that it has gone to sleep on a word.
    pub(crate) sleeps: u64,
    /// The words that it accessed last, and how many accesses the run had seen then, the oldest to
    /// be replaced next; see `SharedMemory::watch`.
    looks: [(u64, u64); LOOKS],
    /// The index of the oldest look.
    oldest: usize,
    /// The time when it last called something that takes no time, and the number of such calls
    /// since anything took some; see `Threads::glance`.
    pub(crate) glances: (Time, u32),
    /// The number of accesses that it may still make; see `os::freeze`.
    pub(crate) accesses_left: u64,
    /// Set if it never runs again.
    pub(crate) frozen: bool,
    /// Its requests not to be preempted.
    pub(crate) keep: Keep,
    /// The computation that an interrupt can end.
    pub(crate) computation: Computation,
    /// Its entry in the matrix of gangs: slot and processor, if it has one.
    pub(crate) entry: Option<(usize, usize)>,
    /// Its address space, if it is an activation.
    pub(crate) space: Option<usize>,
    /// Set if the space may resume it: it is stopped, and no handler has asked for it yet.
    pub(crate) resumable: bool,
    /// Its counts.
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
            computation: Computation::None,
            entry: None,
            space: None,
            resumable: false,
            statistics: ThreadStatistics::default(),
        }
    }

    /// It has accessed the word of this identity, as the run's access number `seen`.
    #[inline]
    pub(crate) fn looked_at(&mut self, word: u64, seen: u64) {
        self.looks[self.oldest] = (word, seen);
        self.oldest = (self.oldest + 1) % LOOKS;
    }

    /// Returns the number of accesses that the run had seen when this thread last accessed a word;
    /// `None` if that is too long ago to be known.
    pub(crate) fn last_look(&self, word: u64) -> Option<u64> {
        self.looks.iter().filter(|(other, _)| *other == word).map(|(_, seen)| *seen).max()
    }

    /// Returns whether it may not do anything more; see `os::freeze`.
    #[inline]
    pub(crate) fn is_to_freeze(&self) -> bool {
        self.accesses_left == 0
    }

    /// Returns whether it is on a processor.
    pub(crate) fn is_on_processor(&self) -> bool {
        matches!(self.status, Status::Running | Status::Spinning)
    }

    /// Begins to wait; the end of the wait is open.
    pub(crate) fn wait_for(&mut self, wait: Wait) {
        (self.wait, self.outcome) = (wait, Outcome::Open);
    }

    /// Returns whether it is an activation that has not run yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.space.is_some() && self.stretch == 0
    }

    pub(crate) fn may_run_on(&self, processor: usize) -> bool {
        self.pinned.is_none_or(|pinned| pinned == processor)
    }
}
