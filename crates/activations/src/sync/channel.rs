//! Channels: messages from any number of senders to any number of receivers, each to one of them.
//!
//! Names and meanings are those of `crossbeam-channel`, and of the standard library's where those agree.
//!
//! Why a mutex and a `VecDeque`, not a queue without locks: a user-level thread that finds the mutex held lets others run, and with one holder at a
//! time the order of messages, the bound and the end are what they seem. A section is some 20 ns.
//!
//! A channel of capacity 0 takes a message when there is a receiver that waits for it and has none yet.
//!
//! # Invariants
//!
//! 1. A channel of capacity `n` holds at most `n` messages; one of capacity 0 no more than there are receivers that wait. A receiver that waits and
//!    finds a message takes it, also at its deadline, so none is left when they have gone.
//! 2. A condition is notified after each change that could end a wait for it: once for each message, and for each place; all when the last of the other
//!    side has gone.
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

mod error;

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use machine::atomic::{AtomicUsize, Fresh, Ordering};
use machine::clock::{Instant, moment_after};
use machine::sync::Arc;

use super::condvar::Condvar;
use super::mutex::{Mutex, MutexGuard};

pub use error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};

/// A channel that holds at most `capacity` messages; with 0, a message goes from hand to hand.
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
    let shared = Arc::new(Shared {
        state: Mutex::new(State { messages: VecDeque::new(), receiving: 0, open: true }),
        filled: Condvar::new(),
        freed: Condvar::new(),
        senders: AtomicUsize::fresh(1),
        receivers: AtomicUsize::fresh(1),
        capacity,
    });
    (Sender { shared: shared.clone() }, Receiver { shared })
}

struct State<T> {
    messages: VecDeque<T>,
    /// Receivers that wait.
    receiving: usize,
    /// There are both senders and receivers.
    open: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    freed: Condvar,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    capacity: Option<usize>,
}

impl<T> State<T> {
    fn has_room(&self, capacity: Option<usize>) -> bool {
        match capacity {
            None => true,
            Some(0) => self.messages.len() < self.receiving,
            Some(capacity) => self.messages.len() < capacity,
        }
    }
}

impl<T> Shared<T> {
    /// One side has gone.
    fn close(&self) {
        self.state.lock().open = false;
        self.filled.notify_all();
        self.freed.notify_all();
    }

    /// One of one side has gone; whether it was the last.
    fn gone(count: &AtomicUsize) -> bool {
        // AcqRel: what the others of this side did is before the end that the last one declares; as for any count of references.
        count.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// Waits on `condition` until it is notified or `until` has come, of which the latter is `false`.
fn wait<T>(
    condition: &Condvar,
    state: &mut MutexGuard<'_, State<T>>,
    until: Option<Instant>,
) -> bool {
    match until {
        None => {
            condition.wait(state);
            true
        }
        Some(instant) => !condition.wait_until(state, instant).timed_out(),
    }
}

/// The side of a channel that messages are sent from. When the last is dropped, receivers have what is left and then see the end.
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
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Sends a message; waits for a place.
    ///
    /// # Errors
    ///
    /// The message, if no receiver is left.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match self.send_until(message, None) {
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
    /// The message, if there was no place in that time, or no receiver is left.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, moment_after(timeout))
    }

    /// [`send`](Self::send), but gives up at `instant`.
    ///
    /// # Errors
    ///
    /// As [`send_timeout`](Self::send_timeout).
    pub fn send_deadline(&self, message: T, instant: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, Some(instant))
    }

    /// Sends a message if there is a place for it.
    ///
    /// # Errors
    ///
    /// The message, if there is no place, or no receiver is left.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let state = self.shared.state.lock();
        if !state.open {
            return Err(TrySendError::Disconnected(message));
        }
        if !state.has_room(self.shared.capacity) {
            return Err(TrySendError::Full(message));
        }
        self.put(state, message);
        Ok(())
    }

    fn send_until(&self, message: T, until: Option<Instant>) -> Result<(), SendTimeoutError<T>> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let mut in_time = true;
        loop {
            if !state.open {
                return Err(SendTimeoutError::Disconnected(message));
            }
            if state.has_room(shared.capacity) {
                self.put(state, message);
                return Ok(());
            }
            if !in_time {
                return Err(SendTimeoutError::Timeout(message));
            }
            in_time = wait(&shared.freed, &mut state, until);
        }
    }

    fn put(&self, mut state: MutexGuard<'_, State<T>>, message: T) {
        state.messages.push_back(message);
        drop(state);
        // Invariant 2.
        self.shared.filled.notify_one();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if Shared::<T>::gone(&self.shared.senders) {
            self.shared.close();
        }
    }
}

/// The side of a channel that messages are received at. When the last is dropped, the messages that are left are dropped and senders fail.
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
    shared: Arc<Shared<T>>,
}

impl<T> Receiver<T> {
    /// Receives the message that was sent first; waits for one.
    ///
    /// # Errors
    ///
    /// If there is none, and no sender is left.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// [`recv`](Self::recv), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// If no message came in that time, or there is none and no sender is left.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_until(moment_after(timeout))
    }

    /// [`recv`](Self::recv), but gives up at `instant`.
    ///
    /// # Errors
    ///
    /// As [`recv_timeout`](Self::recv_timeout).
    pub fn recv_deadline(&self, instant: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(instant))
    }

    /// Receives a message if there is one.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut state = self.shared.state.lock();
        match state.messages.pop_front() {
            Some(message) => {
                drop(state);
                self.freed();
                Ok(message)
            }
            None if state.open => Err(TryRecvError::Empty),
            None => Err(TryRecvError::Disconnected),
        }
    }

    fn recv_until(&self, until: Option<Instant>) -> Result<T, RecvTimeoutError> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let mut in_time = true;
        loop {
            if let Some(message) = state.messages.pop_front() {
                drop(state);
                self.freed();
                return Ok(message);
            }
            if !state.open {
                return Err(RecvTimeoutError::Disconnected);
            }
            if !in_time {
                return Err(RecvTimeoutError::Timeout);
            }
            state.receiving += 1;
            if shared.capacity == Some(0) {
                // Invariant 2: there is a place now.
                shared.freed.notify_one();
            }
            in_time = wait(&shared.filled, &mut state, until);
            state.receiving -= 1;
        }
    }

    /// A message has been taken out.
    fn freed(&self) {
        // With capacity 0 places are made by receivers that come to wait.
        if self.shared.capacity.is_some_and(|capacity| capacity > 0) {
            self.shared.freed.notify_one();
        }
    }

    /// What comes, until there is nothing left and no sender either.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// What is there, without waiting.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if Shared::<T>::gone(&self.shared.receivers) {
            self.shared.close();
            // Nobody will have them: what their destructors do, they do without the lock.
            let left = core::mem::take(&mut self.shared.state.lock().messages);
            drop(left);
        }
    }
}

/// What both sides have alike.
macro_rules! sides {
    ($($side:ident counted in $count:ident;)*) => {$(
        impl<T> $side<T> {
            /// How many messages wait to be received.
            #[must_use]
            pub fn len(&self) -> usize {
                self.shared.state.lock().messages.len()
            }

            /// Whether none does.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// How many messages the channel holds at most; `None` if as many as come.
            #[must_use]
            pub fn capacity(&self) -> Option<usize> {
                self.shared.capacity
            }
        }

        impl<T> Clone for $side<T> {
            fn clone(&self) -> Self {
                // Relaxed: this one cannot go before it is returned.
                self.shared.$count.fetch_add(1, Ordering::Relaxed);
                Self { shared: self.shared.clone() }
            }
        }

        impl<T> fmt::Debug for $side<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let name = stringify!($side);
                f.debug_struct(name).field("capacity", &self.capacity()).finish_non_exhaustive()
            }
        }
    )*};
}

sides! {
    Sender counted in senders;
    Receiver counted in receivers;
}

/// What [`Receiver::iter`] returns.
#[derive(Debug)]
pub struct Iter<'r, T> {
    receiver: &'r Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

/// What [`Receiver::try_iter`] returns.
#[derive(Debug)]
pub struct TryIter<'r, T> {
    receiver: &'r Receiver<T>,
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

/// What a [`Receiver`] that is iterated over as a value turns into.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
}

impl<'r, T> IntoIterator for &'r Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'r, T>;

    fn into_iter(self) -> Iter<'r, T> {
        self.iter()
    }
}
