//! Channels: messages from any number of senders to any number of receivers, each to one of them.
//!
//! Names and meanings are those of `crossbeam-channel`, and of the standard library's where those
//! agree.
//!
//! | channel | holds | `len` | `is_full` |
//! | --- | --- | --- | --- |
//! | [`unbounded`] | as many messages as there is memory for | those held | never |
//! | [`bounded(n)`](bounded) | `n` messages | those held | with `n` |
//! | [`bounded(0)`](bounded) | none: a send and a receive wait for each other | 0 | always |
//! | [`after`], [`at`], [`tick`] | a moment, once it has come | 0 or 1 | with 1 |
//! | [`never`](never()) | none | 0 | always |
//!
//! Order: first come, first served, strictly. A receive takes the message that was sent first, and
//! the receive that came first takes it. Of the sends that wait, the first one goes on. A thread
//! that is woken has its message, or has sent it: none overtakes it, and it wakes once.
//!
//! A user-level thread that tries without waiting, and finds nothing to do, yields: `try_send`,
//! `try_recv`, `try_iter` at its end, [`try_select`], and `select!` with `default`. So a thread
//! that polls in a loop lets the thread that it polls for run. An operation that is done at once
//! does not yield: a thread that sends without end on an unbounded channel keeps its processor.
//!
//! [`select!`](crate::select) does one of several operations, [`select`](select()) one of a slice
//! of them.
//!
//! What differs from `crossbeam-channel`: a receiver drops all messages that are left, also if some
//! panic. `select!` evaluates messages first. There is no `Select`, which reserves a place for a
//! message that is made afterwards: a receiver that was promised such a message would wait for code
//! of the sender's, which may panic or wait in turn.
//!
//! # Messages that panic when they are dropped
//!
//! When the last receiver is dropped, it drops every message that is left. The first panic goes on
//! when all are dropped; further ones are discarded. If the thread unwinds already, all are: a
//! second panic that leaves a destructor would end the process.
//!
//! # How it works
//!
//! A mutex protects the messages, and two queues of operations that wait, on the stacks of their
//! threads. Why not a queue without locks: a user-level thread that finds the mutex held lets
//! others run, and with one owner at a time the order of messages, the bound and the end are what
//! they seem. Why not condition variables: a thread that is notified has to take the mutex again,
//! and may find that another thread was faster. A rendezvous also has to know its partner.
//!
//! ```
//! use stanchion_activations::{Runtime, spawn, sync::channel};
//!
//! let sum = Runtime::new(2)?.run(|| {
//!     let (sender, receiver) = channel::bounded(4);
//!     for part in 0..10_u32 {
//!         let sender = sender.clone();
//!         spawn(move || sender.send(part).unwrap());
//!     }
//!     drop(sender);
//!     receiver.iter().sum::<u32>()
//! });
//! assert_eq!(sum, 45);
//! # Ok::<(), stanchion_activations::BuildError>(())
//! ```

mod clock;
mod error;
mod iter;
mod select;
mod select_macro;
mod state;
pub(crate) mod wait;

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;

use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::{Deadline, Instant};
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;

use crate::thread::handle::Thread;
use crate::thread::panics;
use crate::worker::context;
use state::ChannelCore;

#[doc(inline)]
pub use crate::select;
pub use clock::{after, at, never, tick};
pub use error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
pub use iter::{IntoIter, Iter, TryIter};
pub use select::{
    Operation, Receiving, Selectable, Sending, select, select_deadline, select_timeout, try_select,
};

/// A channel that holds at most `capacity` messages. With 0, a message goes from hand to hand: a
/// send waits for a receive.
///
/// ```
/// let (sender, receiver) = stanchion_activations::sync::channel::bounded(1);
/// sender.send("one").unwrap();
/// assert!(sender.try_send("two").is_err());
/// assert_eq!(receiver.recv(), Ok("one"));
/// ```
#[must_use]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel(Some(capacity))
}

/// A channel that holds as many messages as there is memory for.
///
/// ```
/// let (sender, receiver) = stanchion_activations::sync::channel::unbounded();
/// sender.send(1).unwrap();
/// drop(sender);
/// assert_eq!(receiver.iter().collect::<Vec<_>>(), [1]);
/// ```
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(None)
}

fn channel<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let core = ChannelCore::new(capacity, None);
    (Sender { core: core.clone() }, Receiver { core })
}

/// Calls the thread that an operation has served, after the lock is released.
fn call(thread: Option<Thread>) {
    if let Some(thread) = thread {
        thread.notify();
        context::give_way();
    }
}

/// Lets other threads run after an attempt that found nothing to do. A user-level thread that tries
/// again and again would keep from its processor the thread that it tries for.
fn polled_in_vain() {
    if !thread::panicking() {
        context::yield_thread();
    }
}

/// The side of a channel that messages are sent from. When the last sender is dropped, receivers
/// have what is left and then see the end.
///
/// ```
/// use std::time::Duration;
/// use stanchion_activations::sync::channel::{self, SendTimeoutError, TrySendError};
///
/// let (sender, receiver) = channel::bounded(1);
/// sender.send(1).unwrap();
/// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
/// assert_eq!(sender.send_timeout(3, Duration::from_millis(1)), Err(SendTimeoutError::Timeout(3)));
/// drop(receiver);
/// assert_eq!(sender.send(4).unwrap_err().0, 4, "the message comes back");
/// ```
pub struct Sender<T> {
    core: Arc<ChannelCore<T>>,
}

impl<T> Sender<T> {
    /// Sends a message; waits for room, or with capacity 0 for a receive.
    ///
    /// # Errors
    ///
    /// The message, if no receiver is left.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match self.send_until(message, || Deadline::NEVER) {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Timeout(message) | SendTimeoutError::Disconnected(message)) => {
                Err(SendError(message))
            }
        }
    }

    /// [`send`](Self::send), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// The message, if there was no room in that time, or no receiver is left.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, || Deadline::after(timeout))
    }

    /// [`send`](Self::send), but gives up at `instant`.
    ///
    /// # Errors
    ///
    /// As [`send_timeout`](Self::send_timeout).
    pub fn send_deadline(&self, message: T, instant: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, || Deadline::at(instant))
    }

    /// Sends a message if there is room for it, or with capacity 0 if a receive waits.
    ///
    /// # Errors
    ///
    /// The message, if there is no room, or no receiver is left.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let sent = self.send_now(message);
        if matches!(sent, Err(TrySendError::Full(_))) {
            polled_in_vain();
        }
        sent
    }

    fn send_now(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut state = self.core.state.lock();
        let sent = state.send(message, self.core.capacity);
        drop(state);
        sent.map(call)
    }

    fn send_until(
        &self,
        message: T,
        deadline: impl FnOnce() -> Deadline,
    ) -> Result<(), SendTimeoutError<T>> {
        let message = match self.send_now(message) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(message)) => {
                return Err(SendTimeoutError::Disconnected(message));
            }
            Err(TrySendError::Full(message)) => message,
        };
        let mut sending = Sending::new(self, message);
        select::run(&mut [sending.selectable()], deadline());
        match sending.into_result() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(SendError(message))) => Err(SendTimeoutError::Disconnected(message)),
            Err(message) => Err(SendTimeoutError::Timeout(message)),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if ChannelCore::<T>::release(&self.core.senders) {
            self.core.close();
        }
    }
}

/// The side of a channel that messages are received at. When the last receiver is dropped, the
/// messages that are left are dropped and senders fail.
///
/// ```
/// use std::time::Duration;
/// use stanchion_activations::sync::channel::{self, RecvError, RecvTimeoutError, TryRecvError};
///
/// let (sender, receiver) = channel::unbounded();
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
/// assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
/// sender.send("last").unwrap();
/// drop(sender);
/// assert_eq!((receiver.recv(), receiver.recv()), (Ok("last"), Err(RecvError)));
/// ```
pub struct Receiver<T> {
    core: Arc<ChannelCore<T>>,
}

impl<T> Receiver<T> {
    /// Receives the message that was sent first; waits for one.
    ///
    /// # Errors
    ///
    /// If there is none, and no sender is left.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_until(|| Deadline::NEVER).map_err(|_| RecvError)
    }

    /// [`recv`](Self::recv), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// If no message came in that time, or there is none and no sender is left.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_until(|| Deadline::after(timeout))
    }

    /// [`recv`](Self::recv), but gives up at `instant`.
    ///
    /// # Errors
    ///
    /// As [`recv_timeout`](Self::recv_timeout).
    pub fn recv_deadline(&self, instant: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(|| Deadline::at(instant))
    }

    /// Receives a message if there is one, or a send waits that offers one.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let received = self.receive_now();
        if matches!(received, Err(TryRecvError::Empty)) {
            polled_in_vain();
        }
        received
    }

    fn receive_now(&self) -> Result<T, TryRecvError> {
        let mut state = self.core.state.lock();
        let received = state.receive();
        drop(state);
        let (message, thread) = received?;
        call(thread);
        Ok(message)
    }

    fn recv_until(&self, deadline: impl FnOnce() -> Deadline) -> Result<T, RecvTimeoutError> {
        match self.receive_now() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {}
        }
        let mut receiving = Receiving::new(self);
        select::run(&mut [receiving.selectable()], deadline());
        match receiving.into_result() {
            Some(Ok(message)) => Ok(message),
            Some(Err(RecvError)) => Err(RecvTimeoutError::Disconnected),
            None => Err(RecvTimeoutError::Timeout),
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if !ChannelCore::<T>::release(&self.core.receivers) {
            return;
        }
        self.core.close();
        if let Some(panic) = self.core.discard_messages() {
            if thread::panicking() {
                panics::discard(panic);
            } else {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Implements the methods that both sides have.
macro_rules! sides {
    ($($side:ident counted in $count:ident;)*) => {$(
        impl<T> $side<T> {
            /// Returns how many messages wait to be received. A send that waits is not counted, so
            /// this is 0 at capacity 0.
            #[must_use]
            pub fn len(&self) -> usize {
                self.core.len()
            }

            /// Returns whether no message waits to be received.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns whether as many messages wait as the channel holds at most: always at
            /// capacity 0.
            #[must_use]
            pub fn is_full(&self) -> bool {
                self.core.is_full()
            }

            /// Returns how many messages the channel holds at most; `None` if as many as come.
            #[must_use]
            pub fn capacity(&self) -> Option<usize> {
                self.core.capacity
            }

            /// Returns whether `other` is a handle of the same channel.
            #[must_use]
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.core, &other.core)
            }
        }

        impl<T> Clone for $side<T> {
            fn clone(&self) -> Self {
                // Relaxed: this handle cannot go before the new one is returned.
                self.core.$count.fetch_add(1, Ordering::Relaxed);
                Self { core: self.core.clone() }
            }
        }

        impl<T> fmt::Debug for $side<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let name = stringify!($side);
                f.debug_struct(name).field("capacity", &self.capacity()).finish_non_exhaustive()
            }
        }

        // A panic leaves a channel as it is between two operations.
        impl<T> UnwindSafe for $side<T> {}
        impl<T> RefUnwindSafe for $side<T> {}
    )*};
}

sides! {
    Sender counted in senders;
    Receiver counted in receivers;
}
