//! Histories: the calls that threads made, when each call began and ended, and its outcome.

use core::fmt::Debug;

/// One call of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<O, R> {
    /// The number of the thread that made it. A thread makes one call at a time.
    pub thread: usize,
    /// The operation, with its arguments.
    pub operation: O,
    /// Its outcome; `None` if it was never seen to return.
    pub outcome: Option<R>,
    /// When it began. Moments are numbers that grow; they need not be times.
    pub begin: u64,
    /// When it ended: later than it began; `u64::MAX` if it was never seen to.
    pub end: u64,
}

/// Something that happened, for histories written by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<O, R> {
    /// The thread of this number calls this operation.
    Begin(usize, O),
    /// The call that this thread has made returns this outcome.
    End(usize, R),
}

/// The calls of several threads on one structure, in the order of their beginnings.
///
/// A call comes *before* another if it ended before the other began. Two calls overlap if neither
/// comes before the other. They may have taken effect in either order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History<O, R> {
    calls: Vec<Call<O, R>>,
}

/// Calls that no threads could have made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A call ended before it began.
    #[error(
        "{call} of thread {thread} begins at {begin} and ends at {end}: a call ends after it begins"
    )]
    Backwards {
        /// The number of the thread.
        thread: usize,
        /// The call, as text.
        call: String,
        /// When it began.
        begin: u64,
        /// When it ended.
        end: u64,
    },
    /// A thread made two calls at once.
    #[error(
        "thread {thread} calls {second} while its {first} has not returned: a thread makes one call at a time; give one of them another thread's number"
    )]
    TwoAtOnce {
        /// The number of the thread.
        thread: usize,
        /// The call that goes on.
        first: String,
        /// The call inside it.
        second: String,
    },
    /// A call with an outcome but no end, or an end but no outcome.
    #[error(
        "{call} of thread {thread} has {what}: a call that returned has both an outcome and an end, one that did not has `None` and `u64::MAX`"
    )]
    Half {
        /// The number of the thread.
        thread: usize,
        /// The call, as text.
        call: String,
        /// The one of the two that it has.
        what: &'static str,
    },
    /// An end without a beginning.
    #[error(
        "event {place}: thread {thread} returns {outcome}, but has called nothing; put an `Event::Begin` before it"
    )]
    NothingCalled {
        /// The index of the event.
        place: usize,
        /// The number of the thread.
        thread: usize,
        /// The outcome that the event gives, as text.
        outcome: String,
    },
}

impl<O: Debug, R: Debug> History<O, R> {
    /// Makes a history of these calls, which may come in any order.
    ///
    /// # Errors
    ///
    /// [`Malformed`], if no threads could have made them.
    pub fn new(mut calls: Vec<Call<O, R>>) -> Result<Self, Malformed> {
        let shown = |call: &Call<O, R>| format!("{:?}", call.operation);
        for call in &calls {
            let thread = call.thread;
            if call.end <= call.begin {
                let (begin, end) = (call.begin, call.end);
                return Err(Malformed::Backwards { thread, call: shown(call), begin, end });
            }
            let what = match (&call.outcome, call.end) {
                (Some(_), u64::MAX) => "an outcome and no end",
                (None, end) if end != u64::MAX => "an end and no outcome",
                _ => continue,
            };
            return Err(Malformed::Half { thread, call: shown(call), what });
        }
        calls.sort_by_key(|call| (call.thread, call.begin));
        for pair in calls.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            if first.thread == second.thread && first.end > second.begin {
                let thread = first.thread;
                return Err(Malformed::TwoAtOnce {
                    thread,
                    first: shown(first),
                    second: shown(second),
                });
            }
        }
        calls.sort_by_key(|call| call.begin);
        Ok(Self { calls })
    }

    /// Makes the history of these events, in the order in which they happened. A call without an
    /// end is unfinished.
    ///
    /// ```
    /// use stanchion_linearizability::specification::Operation::{Pop, Push};
    /// use stanchion_linearizability::specification::Outcome::{Popped, Pushed};
    /// use stanchion_linearizability::specification::Queue;
    /// use stanchion_linearizability::{Event::{Begin, End}, History, check};
    ///
    /// // Two pushes at the same time, and the pop of either is right.
    /// for value in ['x', 'y'] {
    ///     let history = History::from_events([
    ///         Begin(0, Push('x')),
    ///         Begin(1, Push('y')),
    ///         End(1, Pushed),
    ///         End(0, Pushed),
    ///         Begin(0, Pop),
    ///         End(0, Popped(Some(value))),
    ///     ])?;
    ///     assert!(check(&Queue::new(), &history).is_ok());
    /// }
    /// # Ok::<(), stanchion_linearizability::Malformed>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Malformed`], if a thread calls before its last call has returned, or returns from nothing.
    pub fn from_events(events: impl IntoIterator<Item = Event<O, R>>) -> Result<Self, Malformed> {
        let mut calls: Vec<Call<O, R>> = Vec::new();
        for (place, event) in events.into_iter().enumerate() {
            let moment = place as u64;
            match event {
                Event::Begin(thread, operation) => {
                    calls.push(Call {
                        thread,
                        operation,
                        outcome: None,
                        begin: moment,
                        end: u64::MAX,
                    });
                }
                Event::End(thread, outcome) => {
                    let open =
                        |call: &&mut Call<O, R>| call.thread == thread && call.outcome.is_none();
                    let Some(call) = calls.iter_mut().rev().find(open) else {
                        let outcome = format!("{outcome:?}");
                        return Err(Malformed::NothingCalled { place, thread, outcome });
                    };
                    call.outcome = Some(outcome);
                    call.end = moment;
                }
            }
        }
        Self::new(calls)
    }
}

impl<O, R> History<O, R> {
    /// The calls, in the order of their beginnings.
    #[must_use]
    pub fn calls(&self) -> &[Call<O, R>] {
        &self.calls
    }

    /// Returns whether two calls of different threads overlap. If none do, only one order is
    /// possible, and there is little to check.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        let mut latest = None;
        self.calls.iter().any(|call| {
            let overlaps = latest.is_some_and(|end| end > call.begin);
            latest = latest.max(Some(call.end));
            overlaps
        })
    }
}

impl<O, R> History<O, R> {
    /// Makes a history of calls that a [`Recorder`](crate::Recorder) has seen.
    pub(crate) fn recorded(mut calls: Vec<Call<O, R>>) -> Self {
        calls.sort_by_key(|call| call.begin);
        Self { calls }
    }
}

impl<O: Clone, R: Clone> History<O, R> {
    /// Returns the history as it was at the moment `until`. A call that ended later is unfinished.
    /// A call that began later is left out.
    pub(crate) fn until(&self, until: u64) -> Self {
        let seen = self.calls.iter().filter(|call| call.begin <= until).cloned();
        let cut = |call: Call<O, R>| {
            if call.end > until { Call { outcome: None, end: u64::MAX, ..call } } else { call }
        };
        Self { calls: seen.map(cut).collect() }
    }

    /// The calls for which `keeps` is true, by position.
    pub(crate) fn only(&self, keeps: &[bool]) -> Self {
        let kept = self.calls.iter().zip(keeps).filter(|(_, keep)| **keep);
        Self { calls: kept.map(|(call, _)| call.clone()).collect() }
    }
}
