//! Channels: a [`Blocking`] queue with two kinds of handles, which closes when all handles of one
//! kind are gone.
//!
//! Why counts of its own beside the `Arc`'s: that counts both kinds together.
//!
//! # Messages without a receiver
//!
//! The last receiver drops the messages that are left, as those of std do: a message may own a
//! sender of the same channel, which would keep itself alive. A send that passed the open gate may
//! put its message in after that. So each send that succeeds looks whether the channel is closed,
//! and then drops what is left itself.
//!
//! ```text
//! send                                    drop of the last receiver
//! ----                                    -------------------------
//! put the message in                      close, with a heavy fence
//! leave the gate, with a light fence      drop what is left
//! closed? drop what is left
//! ```
//!
//! The fences are those of the gate's handshake. A message counts as written before the send leaves
//! the gate, so either the send sees that the channel is closed, or the receiver finds the message.
//!
//! # Orderings
//!
//! Handles are counted in and out with Relaxed, which has no partner: only the number matters. The
//! gate orders the messages, and the `Arc` the memory.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::clock::Instant;
use stanchion_machine::sync::Arc;

use super::{Blocking, Iter, SendTimeoutError, TryIter};
use crate::ConcurrentQueue;
use crate::dropping::drop_each;
use crate::queue::{LockedRing, SegmentedQueue};

/// Returns the two halves of an unbounded channel.
///
/// Both can be cloned and shared. When all senders are dropped, receivers take what is left and
/// then fail; when all receivers are dropped, sends fail and what is left is dropped.
///
/// The messages are in a [`SegmentedQueue`]. A send never waits for room, and may allocate. A
/// thread that stops in a send holds up other sends, and the receivers that find no message.
///
/// ```
/// use stanchion_lockfree::channel;
///
/// let (sender, receiver) = channel();
/// let worker = std::thread::spawn(move || receiver.iter().sum::<u32>());
/// for number in 1..=4 {
///     sender.send(number).unwrap();
/// }
/// drop(sender);
/// assert_eq!(worker.join().unwrap(), 10);
/// ```
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    channel_with_queue(SegmentedQueue::new())
}

/// Returns the two halves of a channel with room for `bound` messages: a send waits for room.
///
/// # Panics
///
/// If `bound` is 0, or more than memory can hold. Unlike std's, this channel does not hand messages
/// over without room for one.
///
/// ```
/// use std::sync::mpsc::TrySendError;
/// use stanchion_lockfree::sync_channel;
///
/// let (sender, receiver) = sync_channel(1);
/// sender.send("first").unwrap();
/// assert_eq!(sender.try_send("second"), Err(TrySendError::Full("second")));
/// assert_eq!(receiver.recv(), Ok("first"));
/// ```
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, SyncReceiver<T>) {
    channel_with_queue(LockedRing::with_capacity(bound))
}

/// Returns the two halves of a channel over `queue`, with the messages that are in it.
///
/// ```
/// use stanchion_lockfree::{channel_with_queue, queue::FaaArrayQueue};
///
/// let (sender, receiver) = channel_with_queue(FaaArrayQueue::new());
/// sender.send("by a queue without locks").unwrap();
/// assert_eq!(receiver.try_iter().count(), 1);
/// ```
#[must_use]
pub fn channel_with_queue<Q: ConcurrentQueue>(
    queue: Q,
) -> (Sender<Q::Item, Q>, Receiver<Q::Item, Q>) {
    let shared = Arc::new(Shared {
        queue: Blocking::new(queue),
        senders: AtomicUsize::fresh(1),
        receivers: AtomicUsize::fresh(1),
    });
    (
        Sender { shared: shared.clone(), messages: PhantomData },
        Receiver { shared, messages: PhantomData },
    )
}

/// The sending half of a channel: see [`channel`].
///
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// sent(stanchion_lockfree::channel::<std::rc::Rc<()>>().0);
/// ```
pub struct Sender<T, Q: ConcurrentQueue<Item = T> = SegmentedQueue<T>> {
    /// The queue and the counts, shared by all handles.
    shared: Arc<Shared<Q>>,
    /// Tells the compiler that messages of this type go in.
    messages: PhantomData<fn() -> T>,
}

/// The receiving half of a channel: see [`channel`]. Each message comes out of one receiver.
///
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// sent(stanchion_lockfree::channel::<std::rc::Rc<()>>().1);
/// ```
pub struct Receiver<T, Q: ConcurrentQueue<Item = T> = SegmentedQueue<T>> {
    /// The queue and the counts, shared by all handles.
    shared: Arc<Shared<Q>>,
    /// Tells the compiler that messages of this type come out.
    messages: PhantomData<fn() -> T>,
}

/// The sending half of a bounded channel: see [`sync_channel`].
pub type SyncSender<T> = Sender<T, LockedRing<T>>;

/// The receiving half of a bounded channel: see [`sync_channel`].
pub type SyncReceiver<T> = Receiver<T, LockedRing<T>>;

/// The queue and the counts that the handles of a channel share.
struct Shared<Q> {
    /// The queue of the messages.
    queue: Blocking<Q>,
    /// Senders that have not been dropped.
    senders: AtomicUsize,
    /// Receivers that have not been dropped.
    receivers: AtomicUsize,
}

impl<Q> Shared<Q> {
    /// Closes the queue, unless the other half has.
    fn close(&self) {
        if !self.queue.is_closed() {
            self.queue.close();
        }
    }
}

impl<Q: ConcurrentQueue> Shared<Q> {
    /// Drops the messages that are left in a channel without receivers.
    #[cold]
    fn discard(&self) {
        // No thread sleeps in a closed queue, so none is notified.
        drop_each(|| self.queue.queue.pop());
    }

    /// Drops what was sent if no receiver is left: see the [module](self).
    #[inline]
    fn after_send<E>(&self, outcome: Result<(), E>) -> Result<(), E> {
        // While there is a sender, only the last receiver closes the queue.
        if outcome.is_ok() && self.queue.is_closed() {
            self.discard();
        }
        outcome
    }
}

impl<T, Q: ConcurrentQueue<Item = T>> Sender<T, Q> {
    /// Sends `message`. Waits for room if the channel is bounded and full.
    ///
    /// # Errors
    ///
    /// With the message, if no receiver is left. That it was sent does not say that it will be
    /// received.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.shared.after_send(self.shared.queue.push(message))
    }

    /// Sends `message`, if there is room now.
    ///
    /// # Errors
    ///
    /// With the message: [`Full`](TrySendError::Full), or
    /// [`Disconnected`](TrySendError::Disconnected) if no receiver is left.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.shared.after_send(self.shared.queue.try_push(message))
    }

    /// [`send`](Self::send), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// With the message: [`Timeout`](SendTimeoutError::Timeout) if there was no room until then,
    /// [`Disconnected`](SendTimeoutError::Disconnected) if no receiver is left.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.shared.after_send(self.shared.queue.push_timeout(message, timeout))
    }

    /// [`send`](Self::send), but gives up at `deadline`.
    ///
    /// # Errors
    ///
    /// As [`send_timeout`](Self::send_timeout).
    pub fn send_deadline(&self, message: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.shared.after_send(self.shared.queue.push_deadline(message, deadline))
    }
}

impl<T, Q: ConcurrentQueue<Item = T>> Receiver<T, Q> {
    /// Receives the oldest message. Waits for one.
    ///
    /// # Errors
    ///
    /// If there is none and no sender is left.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.shared.queue.pop()
    }

    /// Receives the oldest message, if there is one now.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty), or [`Disconnected`](TryRecvError::Disconnected) if there is
    /// none and no sender is left.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.shared.queue.try_pop()
    }

    /// [`recv`](Self::recv), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// [`Timeout`](RecvTimeoutError::Timeout) if there was no message until then,
    /// [`Disconnected`](RecvTimeoutError::Disconnected) if there is none and no sender is left.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.shared.queue.pop_timeout(timeout)
    }

    /// [`recv`](Self::recv), but gives up at `deadline`.
    ///
    /// # Errors
    ///
    /// As [`recv_timeout`](Self::recv_timeout).
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.shared.queue.pop_deadline(deadline)
    }

    /// Returns an iterator that waits for each message, and ends when there is none and no sender
    /// is left.
    pub fn iter(&self) -> Iter<'_, Q> {
        self.shared.queue.iter()
    }

    /// Returns an iterator over the messages that are there, which never waits.
    ///
    /// ```
    /// let (sender, receiver) = stanchion_lockfree::channel();
    /// sender.send(1).unwrap();
    /// sender.send(2).unwrap();
    /// assert!(receiver.try_iter().eq([1, 2]));
    /// assert_eq!(receiver.try_iter().next(), None);
    /// ```
    pub fn try_iter(&self) -> TryIter<'_, Q> {
        self.shared.queue.try_iter()
    }
}

/// Implements the methods that both halves have.
macro_rules! halves {
    ($($half:ident, $count:ident, $name:literal;)+) => {$(
        impl<T, Q: ConcurrentQueue<Item = T>> $half<T, Q> {
            /// Returns whether there was no message in the channel at some moment during the call.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.shared.queue.is_empty()
            }

            /// Returns the most messages that the channel can hold, and `None` if only memory
            /// limits it.
            #[must_use]
            pub fn capacity(&self) -> Option<usize> {
                self.shared.queue.capacity()
            }

            /// Returns whether both belong to the same channel.
            #[must_use]
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.shared, &other.shared)
            }
        }

        impl<T, Q: ConcurrentQueue<Item = T>> Clone for $half<T, Q> {
            fn clone(&self) -> Self {
                // The `Arc` limits the number of handles. Relaxed: see the header.
                let shared = self.shared.clone();
                shared.$count.fetch_add(1, Ordering::Relaxed);
                Self { shared, messages: PhantomData }
            }
        }

        impl<T, Q: ConcurrentQueue<Item = T>> fmt::Debug for $half<T, Q> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let closed = self.shared.queue.is_closed();
                f.debug_struct($name).field("closed", &closed).finish_non_exhaustive()
            }
        }
    )+};
}

halves! {
    Sender, senders, "Sender";
    Receiver, receivers, "Receiver";
}

impl<T, Q: ConcurrentQueue<Item = T>> Drop for Sender<T, Q> {
    fn drop(&mut self) {
        // Relaxed: see the header.
        if self.shared.senders.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shared.close();
        }
    }
}

impl<T, Q: ConcurrentQueue<Item = T>> Drop for Receiver<T, Q> {
    fn drop(&mut self) {
        // Relaxed: see the header.
        if self.shared.receivers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shared.close();
            self.shared.discard();
        }
    }
}

impl<'r, T, Q: ConcurrentQueue<Item = T>> IntoIterator for &'r Receiver<T, Q> {
    type Item = T;
    type IntoIter = Iter<'r, Q>;

    fn into_iter(self) -> Iter<'r, Q> {
        self.iter()
    }
}

/// An iterator that owns a [`Receiver`]: it waits for each message, and ends when there is none and
/// no sender is left.
pub struct IntoIter<T, Q: ConcurrentQueue<Item = T> = SegmentedQueue<T>> {
    /// The receiver. Only the iterator has it.
    receiver: Receiver<T, Q>,
}

impl<T, Q: ConcurrentQueue<Item = T>> IntoIterator for Receiver<T, Q> {
    type Item = T;
    type IntoIter = IntoIter<T, Q>;

    fn into_iter(self) -> IntoIter<T, Q> {
        IntoIter { receiver: self }
    }
}

impl<T, Q: ConcurrentQueue<Item = T>> Iterator for IntoIter<T, Q> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T, Q: ConcurrentQueue<Item = T>> core::iter::FusedIterator for IntoIter<T, Q> {}

impl<T, Q: ConcurrentQueue<Item = T>> fmt::Debug for IntoIter<T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.receiver).finish()
    }
}
