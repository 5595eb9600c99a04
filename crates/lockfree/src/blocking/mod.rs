//! Queues in which threads sleep until there is a value or room, and which can be closed.
//!
//! Why this stands beside the queues and not in them: each queue would have to answer anew whether
//! a thread may sleep. A push to a queue in which no thread waits pays for two counts on a line of
//! its own, and for a look at one word.
//!
//! # No wake-up is lost
//!
//! A popper that finds nothing registers with the [`EventCount`] and looks once more before it
//! sleeps. A push notifies after its value is in. The event count makes one of the two notice the
//! other. Each push wakes one sleeper if there is any, so k pushes wake k. A woken popper looks
//! until it finds a value or nothing. If the queue panics then, the popper passes the notification
//! on.
//!
//! # Closing
//!
//! | | after [`Blocking::close`] |
//! | --- | --- |
//! | pushes | fail, and give the value back |
//! | pops | take what is left; then, when no push is on its way any more, fail for good |
//!
//! So each value that was pushed with success can be popped before a pop says that the queue is
//! closed. A thread that is stopped in a push while the queue closes delays that answer.
//!
//! # Invariants
//!
//! 1. A value is in the queue before its push leaves the `gate`. A popper is notified after that.
//! 2. A popper that says that the queue is closed has seen the closed gate empty, and after that no
//!    value.
//! 3. After each notification a thread looks into the queue, or no thread was waiting.

mod channel;
mod error;
mod gate;
mod iter;
mod search;

use core::fmt;
use core::time::Duration;

use stanchion_competitive::EventCount;
use stanchion_machine::clock::{Deadline, Instant};
use stanchion_machine::wait::{WaitPolicy, retry_while_awake};

pub use channel::{
    IntoIter, Receiver, Sender, SyncReceiver, SyncSender, channel, channel_with_queue, sync_channel,
};
pub use error::SendTimeoutError;
pub use iter::{Iter, TryIter};
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use crate::{ConcurrentQueue, Full};
use gate::{Gate, Pass};
use search::Search;

/// A queue `Q` in which threads wait for values, and for room if it is bounded.
///
/// | | takes a value | puts one in |
/// | --- | --- | --- |
/// | does not wait | [`try_pop`](Self::try_pop) | [`try_push`](Self::try_push) |
/// | waits | [`pop`](Self::pop) | [`push`](Self::push) |
/// | for a while | [`pop_timeout`](Self::pop_timeout) | [`push_timeout`](Self::push_timeout) |
/// | until a time | [`pop_deadline`](Self::pop_deadline) | [`push_deadline`](Self::push_deadline) |
///
/// The errors are those of [`std::sync::mpsc`]. `Disconnected` means that the queue is closed.
///
/// A thread that waits, and a closed queue, are [`Blocking`](crate::Progress::Blocking). As long as
/// no thread sleeps, `try_push` and `try_pop` of an open queue have `Q`'s progress.
///
/// | | |
/// | --- | --- |
/// | cost | the queue's; a push besides two counts on a line that few other threads use |
/// | waiting | pauses briefly, yields until C is over, then sleeps and uses no processor |
/// | order of waking | first asleep, first woken; a late thread at the right moment may be first |
///
/// C is what a sleep costs, 500 to 50,000 ns: see [`cost`](stanchion_competitive::cost).
///
/// ```
/// use std::sync::mpsc::SendError;
/// use stanchion_lockfree::{Blocking, queue::LockedQueue};
///
/// static JOBS: Blocking<LockedQueue<u32>> = Blocking::new(LockedQueue::new());
///
/// let worker = std::thread::spawn(|| {
///     let mut sum = 0;
///     while let Ok(job) = JOBS.pop() {
///         sum += job;
///     }
///     sum
/// });
/// for job in 1..=4 {
///     JOBS.push(job).unwrap();
/// }
/// JOBS.close();
/// assert_eq!(JOBS.push(5), Err(SendError(5)));
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
    /// The queue of the values.
    queue: Q,
    /// The gate that pushes pass, for closing.
    gate: Gate,
    /// The threads that wait for a value.
    values: EventCount,
    /// The threads that wait for room.
    room: EventCount,
}

impl<Q> Blocking<Q> {
    /// Returns a queue over `queue`, which may have values already.
    #[must_use]
    pub const fn new(queue: Q) -> Self {
        Self { queue, gate: Gate::new(), values: EventCount::new(), room: EventCount::new() }
    }

    /// Returns the queue, with what is in it.
    #[must_use]
    pub fn into_inner(self) -> Q {
        self.queue
    }

    /// Returns the queue. What is pushed or popped through it wakes no thread.
    ///
    /// ```
    /// use stanchion_lockfree::{Blocking, queue::LockedQueue};
    ///
    /// let numbers: LockedQueue<_> = [1, 2].into_iter().collect();
    /// let queue = Blocking::new(numbers);
    /// assert_eq!(queue.get_ref().len(), 2);
    /// ```
    #[must_use]
    pub const fn get_ref(&self) -> &Q {
        &self.queue
    }

    /// Returns the queue, in which no thread waits now. A push through it succeeds also if the
    /// queue is closed.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// Returns whether [`close`](Self::close) has been called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.gate.is_open()
    }

    /// Returns how many threads sleep until there is a value, or are about to. A hint.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.values.registered()
    }

    /// Lets no more values in, and wakes all threads that wait. Returns whether this call was the
    /// first. The queue is closed when any call returns.
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
    /// Puts `value` at the end, if there is room now.
    ///
    /// # Errors
    ///
    /// With the value: [`Full`](TrySendError::Full), or
    /// [`Disconnected`](TrySendError::Disconnected) if the queue is closed.
    ///
    /// ```
    /// use std::sync::mpsc::TrySendError;
    /// use stanchion_lockfree::{Blocking, queue::LockedRing};
    ///
    /// let queue = Blocking::new(LockedRing::with_capacity(1));
    /// assert_eq!(queue.try_push("first"), Ok(()));
    /// assert_eq!(queue.try_push("second"), Err(TrySendError::Full("second")));
    /// ```
    pub fn try_push(&self, value: Q::Item) -> Result<(), TrySendError<Q::Item>> {
        let mut inside = Inside { queue: self, pass: Some(self.gate.enter()), pushed: false };
        if !self.gate.is_open() {
            return Err(TrySendError::Disconnected(value));
        }
        // If the queue panics, the value may be in it or not. Then a popper must look, and another
        // pusher must look for room in place of this one.
        inside.pushed = true;
        let in_our_place = NotifyOne(&self.room);
        let outcome = self.queue.try_push(value);
        core::mem::forget(in_our_place);
        inside.pushed = outcome.is_ok();
        outcome.map_err(|Full(value)| TrySendError::Full(value))
    }

    /// Puts `value` at the end. Waits for room if the queue is bounded and full.
    ///
    /// # Errors
    ///
    /// With the value, if the queue is closed, now or while this waits.
    pub fn push(&self, mut value: Q::Item) -> Result<(), SendError<Q::Item>> {
        loop {
            match self.push_until(value, Deadline::NEVER) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Disconnected(value)) => return Err(SendError(value)),
                // A deadline that never comes has not passed.
                Err(SendTimeoutError::Timeout(back)) => value = back,
            }
        }
    }

    /// [`push`](Self::push), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// With the value: [`Timeout`](SendTimeoutError::Timeout) if there was no room until then,
    /// [`Disconnected`](SendTimeoutError::Disconnected) if the queue is closed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stanchion_lockfree::{Blocking, SendTimeoutError, queue::LockedRing};
    ///
    /// let queue = Blocking::new(LockedRing::with_capacity(1));
    /// queue.push("first").unwrap();
    /// let late = queue.push_timeout("second", Duration::from_millis(1));
    /// assert_eq!(late, Err(SendTimeoutError::Timeout("second")));
    /// ```
    pub fn push_timeout(
        &self,
        value: Q::Item,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<Q::Item>> {
        self.push_until(value, Deadline::after(timeout))
    }

    /// [`push`](Self::push), but gives up at `deadline`.
    ///
    /// # Errors
    ///
    /// As [`push_timeout`](Self::push_timeout).
    pub fn push_deadline(
        &self,
        value: Q::Item,
        deadline: Instant,
    ) -> Result<(), SendTimeoutError<Q::Item>> {
        self.push_until(value, Deadline::at(deadline))
    }

    fn push_until(
        &self,
        value: Q::Item,
        deadline: Deadline,
    ) -> Result<(), SendTimeoutError<Q::Item>> {
        let mut outcome = Err(TrySendError::Full(value));
        let _ = wait(&self.room, deadline, || {
            if let Err(TrySendError::Full(value)) = core::mem::replace(&mut outcome, Ok(())) {
                outcome = self.try_push(value);
            }
            (!matches!(outcome, Err(TrySendError::Full(_)))).then_some(())
        });
        outcome.map_err(|refused| match refused {
            TrySendError::Full(value) => SendTimeoutError::Timeout(value),
            TrySendError::Disconnected(value) => SendTimeoutError::Disconnected(value),
        })
    }

    /// Takes the oldest value, if there is one now.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty) if there was none at some moment during the call,
    /// [`Disconnected`](TryRecvError::Disconnected) if the queue is closed and empty, so that none
    /// will come.
    pub fn try_pop(&self) -> Result<Q::Item, TryRecvError> {
        if let Some(value) = self.take() {
            return Ok(value);
        }
        if !self.gate.is_drained() {
            return Err(TryRecvError::Empty);
        }
        // What was pushed before the last push left the gate is found now (Invariant 2).
        self.take().ok_or(TryRecvError::Disconnected)
    }

    /// Takes the oldest value. Waits for one.
    ///
    /// # Errors
    ///
    /// If the queue is closed and empty.
    pub fn pop(&self) -> Result<Q::Item, RecvError> {
        loop {
            match self.pop_until(Deadline::NEVER) {
                Ok(value) => return Ok(value),
                Err(RecvTimeoutError::Disconnected) => return Err(RecvError),
                // A deadline that never comes has not passed.
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// [`pop`](Self::pop), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// [`Timeout`](RecvTimeoutError::Timeout) if there was no value until then,
    /// [`Disconnected`](RecvTimeoutError::Disconnected) if the queue is closed and empty.
    ///
    /// ```
    /// use std::sync::mpsc::RecvTimeoutError;
    /// use std::time::Duration;
    /// use stanchion_lockfree::{Blocking, queue::LockedQueue};
    ///
    /// let queue = Blocking::new(LockedQueue::<u32>::new());
    /// assert_eq!(queue.pop_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
    /// ```
    pub fn pop_timeout(&self, timeout: Duration) -> Result<Q::Item, RecvTimeoutError> {
        self.pop_until(Deadline::after(timeout))
    }

    /// [`pop`](Self::pop), but gives up at `deadline`.
    ///
    /// # Errors
    ///
    /// As [`pop_timeout`](Self::pop_timeout).
    pub fn pop_deadline(&self, deadline: Instant) -> Result<Q::Item, RecvTimeoutError> {
        self.pop_until(Deadline::at(deadline))
    }

    fn pop_until(&self, deadline: Deadline) -> Result<Q::Item, RecvTimeoutError> {
        let outcome = wait(&self.values, deadline, || match self.try_pop() {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
            Ok(value) => Some(Ok(value)),
        });
        outcome.unwrap_or(Err(RecvTimeoutError::Timeout))
    }

    /// Returns an iterator that waits for each value, and ends when the queue is closed and empty.
    ///
    /// ```
    /// use stanchion_lockfree::{Blocking, queue::LockedQueue};
    ///
    /// let numbers: LockedQueue<_> = [1, 2].into_iter().collect();
    /// let queue = Blocking::new(numbers);
    /// queue.close();
    /// assert!(queue.iter().eq([1, 2]));
    /// ```
    pub const fn iter(&self) -> Iter<'_, Q> {
        Iter { queue: self }
    }

    /// Returns an iterator that takes the values that are there, and never waits.
    ///
    /// ```
    /// use stanchion_lockfree::{Blocking, queue::LockedQueue};
    ///
    /// let numbers: LockedQueue<_> = [1, 2].into_iter().collect();
    /// let queue = Blocking::new(numbers);
    /// assert!(queue.try_iter().eq([1, 2]));
    /// ```
    pub const fn try_iter(&self) -> TryIter<'_, Q> {
        TryIter { queue: self }
    }

    /// Returns whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the most that it can hold, and `None` if only memory limits it.
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        self.queue.capacity()
    }

    /// Takes a value, if there is one, and notifies a thread that waits for room.
    fn take(&self) -> Option<Q::Item> {
        // If the queue panics, another sleeper must look in place of this thread (Invariant 3).
        let in_our_place = NotifyOne(&self.values);
        let value = self.queue.pop();
        core::mem::forget(in_our_place);
        if value.is_some() && self.queue.capacity().is_some() {
            self.room.notify_one();
        }
        value
    }
}

/// Repeats `attempt` until it yields something, or the deadline has passed. Searches for a while,
/// then sleeps until there is a notification.
fn wait<R>(
    events: &EventCount,
    deadline: Deadline,
    mut attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    loop {
        let found = retry_while_awake(&mut attempt, &mut Search::start(), deadline);
        if found.is_some() {
            return found;
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

/// A push that is inside the gate. Its drop leaves the gate and notifies the threads that wait.
struct Inside<'q, Q> {
    /// The queue that is pushed to.
    queue: &'q Blocking<Q>,
    /// The pass to give back at the gate; `None` once it is given back.
    pass: Option<Pass>,
    /// Set when a value may be in the queue.
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

/// Notifies one more thread when it is dropped.
struct NotifyOne<'e>(&'e EventCount);

impl Drop for NotifyOne<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl<'q, Q: ConcurrentQueue> IntoIterator for &'q Blocking<Q> {
    type Item = Q::Item;
    type IntoIter = Iter<'q, Q>;

    fn into_iter(self) -> Iter<'q, Q> {
        self.iter()
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
