//! Single waits of a recording: when each began, which thread waited, which thread woke it, and
//! what that thread did meanwhile.
//!
//! A recording counts all waits. Of single waits it keeps a sample that fits a limit: `seen` is the
//! number of all, and the waits here are those that were kept.

/// Single waits of a recording.
///
/// ```
/// use stanchion_competitive::waits::events::{Event, Events, Meanwhile, Thread};
///
/// let name = String::from("worker");
/// let thread = |thread| Thread { process: 7, thread, name: name.clone() };
/// let wait = Event {
///     start_ns: 1_000,
///     length_ns: 90_000,
///     thread: 0,
///     lock: Some(0),
///     path: None,
///     waker: Some(1),
///     meanwhile: Some(Meanwhile { ran_ns: 10_000, preempted_ns: 0, blocked_ns: 80_000 }),
/// };
/// let events = Events { seen: 1, threads: vec![thread(7), thread(8)], waits: vec![wait] };
/// assert_eq!(events.share_kept(), 1.0);
/// assert_eq!(events.waker_of(&events.waits[0]).map(|waker| waker.thread), Some(8));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The number of waits that were seen. Those that are not in [`waits`](Self::waits) were left
    /// out at random, so that the recording fits its limit.
    pub seen: u64,
    /// The threads that waited, and those that woke them.
    pub threads: Vec<Thread>,
    /// The waits, in the order of their beginnings.
    pub waits: Vec<Event>,
}

/// A thread of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// The system's number of its process.
    pub process: u32,
    /// The system's number of the thread.
    pub thread: u32,
    /// Its name, or nothing if that is not known.
    pub name: String,
}

/// One wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time from the recording's beginning to the wait's, in nanoseconds.
    pub start_ns: u64,
    /// The length of the wait, in nanoseconds. It ends with the wake-up, if that is known.
    pub length_ns: u64,
    /// The index of the thread that waited in [`Events::threads`].
    pub thread: u32,
    /// The index of the lock in [`Recording::locks`](super::Recording::locks), if the thread waited
    /// for a lock.
    pub lock: Option<u32>,
    /// The index of the path of calls in the file's `paths`, if it has any.
    pub path: Option<u32>,
    /// The index of the thread that ended the wait in [`Events::threads`], if that is known.
    pub waker: Option<u32>,
    /// The waker's times during the wait, if switch records tell them.
    pub meanwhile: Option<Meanwhile>,
}

/// The times that a waker spent during a wait which it ended. They add up to the wait's length, or
/// to less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meanwhile {
    /// The time for which it was on a processor, in nanoseconds.
    pub ran_ns: u64,
    /// The time for which it could have run, and had no processor.
    pub preempted_ns: u64,
    /// The time for which it waited in the kernel itself.
    pub blocked_ns: u64,
}

impl Events {
    /// A file with more threads is refused.
    pub const MOST_THREADS: usize = 1 << 20;
    /// A file with more waits is refused.
    pub const MOST_WAITS: usize = 1 << 24;

    /// Returns the share of the waits that were kept: 1 without any.
    #[must_use]
    pub fn share_kept(&self) -> f64 {
        if self.seen == 0 { 1.0 } else { self.waits.len() as f64 / self.seen as f64 }
    }

    /// Returns the thread that waited, or `None` if the wait is not one of these.
    #[must_use]
    pub fn thread_of(&self, wait: &Event) -> Option<&Thread> {
        self.threads.get(wait.thread as usize)
    }

    /// Returns the thread that ended the wait, if that is known.
    #[must_use]
    pub fn waker_of(&self, wait: &Event) -> Option<&Thread> {
        self.threads.get(wait.waker? as usize)
    }
}
