//! A queue whose poppers sleep until there is something, and which can be closed.
//!
//! Why beside the queues and not in them: whether a thread may sleep is another question than how values are passed on, and each queue would have to
//! answer it anew. A push to a queue in which nobody waits pays for two counts on a line of its own and a look at one word.
//!
//! # No wake-up is lost
//!
//! A popper that finds nothing announces itself to the [`EventCount`] and looks once more before it sleeps; a push notifies after its value is in.
//! The event count sees to it that one of the two notices the other. Every push wakes one sleeper if there is any, so k pushes wake k.
//! A popper that was woken looks until it finds a value or nothing; if the queue panics under it, it passes the notification on.
//!
//! # Closing
//!
//! | | after [`Blocking::close`] |
//! | --- | --- |
//! | pushes | fail, and give the value back |
//! | pops | take what is left; then, when no push is on its way any more, fail for good |
//!
//! So a value whose push has succeeded comes out of a pop, if there are enough of them, before any pop says that the queue is closed. A thread that
//! is stopped in a push while the queue closes delays that answer.
//!
//! # Invariants
//!
//! 1. A value is in the queue before the push that brought it leaves the `gate`, and a popper is notified after that.
//! 2. A popper that says the queue is closed has seen nobody inside the closed gate, and after that no value.
//! 3. Of each notification, somebody looks into the queue after it, or nobody was waiting.

mod gate;

use core::fmt;

use machine::clock::Deadline;
use machine::wait::retry_for;
use stanchion_competitive::{EventCount, cost};

use crate::{ConcurrentQueue, Full};
use gate::{Gate, Pass};

/// The pauses of a search before a thread goes to sleep, in nanoseconds: they double from the first to the second.
const PAUSES: core::ops::Range<u64> = 50..1_000;

/// A queue `Q` in which threads wait for values, and for room if it is bounded.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](crate::Progress::Blocking) for who waits and after [`close`](Self::close); [`try_push`](Self::try_push) and [`pop`](Self::pop) of an open queue are `Q`'s as long as nobody sleeps |
/// | cost | the queue's; a push besides two counts on a line that few other threads use |
/// | waiting | searches for C ([`cost::current`], 500 to 50,000 ns), then sleeps: an idle queue uses no processor |
/// | order of waking | first asleep, first woken; a thread that comes at the right moment may be first |
///
/// ```
/// use stanchion_lockfree::{Blocking, Closed, queue::LockedQueue};
///
/// static JOBS: Blocking<LockedQueue<u32>> = Blocking::new(LockedQueue::new());
///
/// let worker = std::thread::spawn(|| {
///     let mut sum = 0;
///     while let Ok(job) = JOBS.pop_wait() {
///         sum += job;
///     }
///     sum
/// });
/// for job in 1..=4 {
///     JOBS.try_push(job).unwrap();
/// }
/// JOBS.close();
/// assert_eq!(JOBS.push_wait(5), Err(Closed(5)));
/// assert_eq!(worker.join().unwrap(), 10);
/// ```
///
/// It is shared as its queue can be, so what is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// use stanchion_lockfree::{Blocking, queue::LockedQueue};
/// fn shared<T: Sync>(_: &T) {}
/// shared(&Blocking::new(LockedQueue::<std::rc::Rc<()>>::new()));
/// ```
pub struct Blocking<Q> {
    queue: Q,
    gate: Gate,
    /// Those who wait for a value.
    values: EventCount,
    /// Those who wait for room.
    room: EventCount,
}

/// The queue is closed; the value that was to be pushed comes back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed")]
pub struct Closed<T = ()>(
    /// What was to be pushed.
    pub T,
);

/// Why a value could not be pushed; it comes back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// There was no room, until the deadline if there was one.
    #[error("the queue is full")]
    Full(T),
    /// The queue is closed.
    #[error("the queue is closed")]
    Closed(T),
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// There was none, until the deadline if there was one.
    #[error("the queue is empty")]
    Empty,
    /// The queue is closed and empty: none will come.
    #[error("the queue is closed")]
    Closed,
}

impl<Q> Blocking<Q> {
    /// Returns a queue over `queue`, which may have values already.
    #[must_use]
    pub const fn new(queue: Q) -> Self {
        Self { queue, gate: Gate::new(), values: EventCount::new(), room: EventCount::new() }
    }

    /// The queue, with what is in it.
    #[must_use]
    pub fn into_inner(self) -> Q {
        self.queue
    }

    /// Whether [`close`](Self::close) has been called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.gate.is_open()
    }

    /// How many threads sleep until there is a value, or are about to. A hint.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.values.registered()
    }

    /// Lets no more values in, and wakes all who wait. Says whether this call was the first; when it returns, it is done in any case.
    ///
    /// Costs a few microseconds.
    pub fn close(&self) -> bool {
        let first = self.gate.close();
        self.values.notify_all();
        self.room.notify_all();
        first
    }
}

impl<Q: ConcurrentQueue> Blocking<Q> {
    /// Puts `value` at the end.
    ///
    /// # Errors
    ///
    /// With the value, if the queue is closed, or bounded and full.
    pub fn try_push(&self, value: Q::Item) -> Result<(), PushError<Q::Item>> {
        let mut inside = Inside { queue: self, pass: Some(self.gate.enter()), pushed: false };
        if !self.gate.is_open() {
            return Err(PushError::Closed(value));
        }
        // If it panics, the value may be in it or not: then somebody had better look; and another must look for room in our place.
        inside.pushed = true;
        let in_our_place = NotifyOne(&self.room);
        let outcome = self.queue.try_push(value);
        core::mem::forget(in_our_place);
        inside.pushed = outcome.is_ok();
        outcome.map_err(|Full(value)| PushError::Full(value))
    }

    /// Puts `value` at the end; waits for room if the queue is bounded and full.
    ///
    /// # Errors
    ///
    /// With the value, if the queue is closed, now or while this waits.
    pub fn push_wait(&self, mut value: Q::Item) -> Result<(), Closed<Q::Item>> {
        loop {
            match self.push_until(value, Deadline::NEVER) {
                Ok(()) => return Ok(()),
                Err(PushError::Closed(value)) => return Err(Closed(value)),
                // A deadline that never comes has not passed.
                Err(PushError::Full(back)) => value = back,
            }
        }
    }

    /// [`push_wait`](Self::push_wait), but gives up when the deadline has passed.
    ///
    /// # Errors
    ///
    /// With the value, if the queue is closed or there was no room until then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use machine::clock::Deadline;
    /// use stanchion_lockfree::{Blocking, queue::LockedQueue};
    ///
    /// let queue = Blocking::new(LockedQueue::<_>::new());
    /// let soon = Deadline::after(Duration::from_millis(1));
    /// assert!(queue.push_until("there is always room", soon).is_ok());
    /// ```
    pub fn push_until(&self, value: Q::Item, deadline: Deadline) -> Result<(), PushError<Q::Item>> {
        let mut outcome = Err(PushError::Full(value));
        let _ = wait(&self.room, deadline, || {
            if let Err(PushError::Full(value)) = core::mem::replace(&mut outcome, Ok(())) {
                outcome = self.try_push(value);
            }
            (!matches!(outcome, Err(PushError::Full(_)))).then_some(())
        });
        outcome
    }

    /// Takes the oldest value, if there is one.
    ///
    /// # Errors
    ///
    /// If there was none at some moment during the call, or none will come.
    pub fn pop(&self) -> Result<Q::Item, PopError> {
        if let Some(value) = self.take() {
            return Ok(value);
        }
        if !self.gate.is_drained() {
            return Err(PopError::Empty);
        }
        // What was pushed before the last one left the gate is found now (Invariant 2).
        self.take().ok_or(PopError::Closed)
    }

    /// Takes the oldest value; waits for one.
    ///
    /// # Errors
    ///
    /// If the queue is closed and empty.
    pub fn pop_wait(&self) -> Result<Q::Item, Closed> {
        loop {
            match self.pop_until(Deadline::NEVER) {
                Ok(value) => return Ok(value),
                Err(PopError::Closed) => return Err(Closed(())),
                // A deadline that never comes has not passed.
                Err(PopError::Empty) => {}
            }
        }
    }

    /// [`pop_wait`](Self::pop_wait), but gives up when the deadline has passed.
    ///
    /// # Errors
    ///
    /// If there was no value until then, or the queue is closed and empty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use machine::clock::Deadline;
    /// use stanchion_lockfree::{Blocking, PopError, queue::LockedQueue};
    ///
    /// let queue = Blocking::new(LockedQueue::<u32>::new());
    /// let soon = Deadline::after(Duration::from_millis(1));
    /// assert_eq!(queue.pop_until(soon), Err(PopError::Empty));
    /// ```
    pub fn pop_until(&self, deadline: Deadline) -> Result<Q::Item, PopError> {
        let outcome = wait(&self.values, deadline, || match self.pop() {
            Err(PopError::Empty) => None,
            outcome => Some(outcome),
        });
        outcome.unwrap_or(Err(PopError::Empty))
    }

    /// Whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The most that it can hold; `None` if only memory limits it.
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        self.queue.capacity()
    }

    /// A value, if there is one; then there is room.
    fn take(&self) -> Option<Q::Item> {
        // If the queue panics, another sleeper must look in our place (Invariant 3).
        let in_our_place = NotifyOne(&self.values);
        let value = self.queue.pop();
        core::mem::forget(in_our_place);
        if value.is_some() && self.queue.capacity().is_some() {
            self.room.notify_one();
        }
        value
    }
}

/// Repeats `attempt` until it yields something, or the deadline has passed: searches for a while, then sleeps until there is a notification.
fn wait<R>(
    events: &EventCount,
    deadline: Deadline,
    mut attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    loop {
        let mut left = cost::current();
        let mut pause = PAUSES.start;
        let again = || {
            left = left.saturating_sub(pause);
            pause = (pause * 2).min(PAUSES.end);
            left > 0 && !deadline.passed()
        };
        if let Some(outcome) = retry_for(&mut attempt, PAUSES, again) {
            return Some(outcome);
        }
        let key = events.prepare();
        if let Some(outcome) = attempt() {
            return Some(outcome);
        }
        if !events.wait_until(key, deadline) {
            return attempt();
        }
    }
}

/// A push that is inside the gate: when it is over, it leaves, and tells those who wait.
struct Inside<'q, Q> {
    queue: &'q Blocking<Q>,
    pass: Option<Pass>,
    pushed: bool,
}

impl<Q> Drop for Inside<'_, Q> {
    fn drop(&mut self) {
        let Blocking { gate, values, .. } = self.queue;
        let closes = self.pass.take().is_some_and(|pass| gate.leave(pass));
        if closes {
            values.notify_all();
        } else if self.pushed {
            values.notify_one();
        }
    }
}

/// Notifies one more, unless it is forgotten.
struct NotifyOne<'e>(&'e EventCount);

impl Drop for NotifyOne<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl<Q: Default> Default for Blocking<Q> {
    fn default() -> Self {
        Self::new(Q::default())
    }
}

impl<Q> From<Q> for Blocking<Q> {
    fn from(queue: Q) -> Self {
        Self::new(queue)
    }
}

impl<Q: fmt::Debug> fmt::Debug for Blocking<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("queue", &self.queue)
            .field("closed", &self.is_closed())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Closed").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Full(_) => "Full",
            Self::Closed(_) => "Closed",
        };
        f.debug_tuple(name).finish_non_exhaustive()
    }
}
