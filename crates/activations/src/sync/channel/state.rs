//! The state that the two sides of a channel share: the messages, the operations that wait, and the
//! steps under the lock.
//!
//! # Invariants
//!
//! 1. A channel of capacity `n` holds at most `n` messages. A send waits only if `n` messages are
//!    held.
//! 2. A receive waits only if no message is held and no send waits. So messages are received in the
//!    order in which they were sent, and sends and receives end in the order in which they came.
//! 3. Each step that could end a wait ends it: a send serves the first receive that waits, a
//!    receive takes what the first send that waits offers, and the last handle of one side serves
//!    all that wait.
//! 4. No message is dropped under the lock, and no thread is called under it.

use std::collections::VecDeque;

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;

use super::clock::Clock;
use super::error::{TryRecvError, TrySendError};
use super::wait::Entries;
use crate::sync::mutex::Mutex;
use crate::sync::queue::{BATCH, notify_all};
use crate::thread::handle::Thread;
use crate::thread::panics::{self, Payload};
use crate::worker::context;

/// The state that the handles of a channel share.
pub(super) struct ChannelCore<T> {
    /// Changed by senders and receivers.
    pub(super) state: Mutex<ChannelState<T>>,
    /// The number of senders. Changed by their clones and drops.
    pub(super) senders: AtomicUsize,
    /// The number of receivers. Changed by their clones and drops.
    pub(super) receivers: AtomicUsize,
    /// The most messages that the channel holds; `None` if there is no bound.
    pub(super) capacity: Option<usize>,
}

/// The state that the lock of a channel protects.
pub(super) struct ChannelState<T> {
    /// The messages that are held, first sent first.
    messages: VecDeque<T>,
    /// The sends that wait. They are not empty only if the channel is full.
    sends: Entries<T>,
    /// The receives that wait. They are not empty only if the channel is.
    receives: Entries<T>,
    /// Where messages come from that no sender sends: the channels of `after` and `tick`.
    clock: Option<Clock<T>>,
    /// Cleared when one side has no handles left. A channel with a clock stays open.
    is_open: bool,
}

// SAFETY: the pointers in the queues are to entries that stay as long as they are in them. Their
// messages may be sent to other threads.
unsafe impl<T: Send> Send for ChannelState<T> {}

impl<T> ChannelCore<T> {
    pub(super) fn new(capacity: Option<usize>, clock: Option<Clock<T>>) -> Arc<Self> {
        let state = ChannelState {
            messages: VecDeque::new(),
            sends: Entries::new(),
            receives: Entries::new(),
            clock,
            is_open: true,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            senders: AtomicUsize::fresh(1),
            receivers: AtomicUsize::fresh(1),
            capacity,
        })
    }

    /// Drops one handle of a side; returns whether it was the last one.
    pub(super) fn release(count: &AtomicUsize) -> bool {
        // AcqRel: what the other handles of this side did is before the end that the last one
        // declares; as for any count of references.
        count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Declares the end of one side, and serves all operations that wait. They find no message that
    /// moved, and so know that the channel is closed.
    pub(super) fn close(&self) {
        loop {
            let mut batch = [const { None }; BATCH];
            let mut state = self.state.lock();
            state.is_open = false;
            let is_last = batch.iter_mut().any(|place| {
                *place = state.close_first();
                place.is_none()
            });
            drop(state);
            notify_all(&mut batch);
            if is_last {
                return context::give_way();
            }
        }
    }

    /// Drops the messages that are held, each also if others panic. Returns what the first panic
    /// carried.
    pub(super) fn discard_messages(&self) -> Option<Payload> {
        let messages = core::mem::take(&mut self.state.lock().messages);
        let mut first = None;
        for panic in messages.into_iter().filter_map(panics::catch_drop) {
            if first.is_none() {
                first = Some(panic);
            } else {
                panics::discard(panic);
            }
        }
        first
    }

    /// Returns the number of messages that are held.
    pub(super) fn len(&self) -> usize {
        let state = self.state.lock();
        let is_due = state.clock.as_ref().is_some_and(Clock::is_due);
        state.messages.len() + usize::from(is_due)
    }

    /// Returns whether a send would have to wait for a receive.
    pub(super) fn is_full(&self) -> bool {
        self.capacity.is_some_and(|capacity| self.len() >= capacity)
    }
}

impl<T> ChannelState<T> {
    /// Sends a message if that takes no wait. Returns the thread to call after the lock is
    /// released.
    ///
    /// # Errors
    ///
    /// The message, if the channel is full or closed.
    pub(super) fn send(
        &mut self,
        message: T,
        capacity: Option<usize>,
    ) -> Result<Option<Thread>, TrySendError<T>> {
        if !self.is_open {
            return Err(TrySendError::Disconnected(message));
        }
        let message = if self.receives.is_empty() {
            message
        } else {
            match self.serve_receive(message) {
                Ok(thread) => return Ok(thread),
                Err(message) => message,
            }
        };
        if capacity.is_some_and(|capacity| self.messages.len() >= capacity) {
            return Err(TrySendError::Full(message));
        }
        self.messages.push_back(message);
        Ok(None)
    }

    /// Receives a message if that takes no wait. Returns it, and the thread to call after the lock
    /// is released.
    ///
    /// # Errors
    ///
    /// If there is no message.
    pub(super) fn receive(&mut self) -> Result<(T, Option<Thread>), TryRecvError> {
        if let Some(message) = self.messages.pop_front() {
            let offered = if self.sends.is_empty() { None } else { self.take_offered() };
            let Some((offered, thread)) = offered else { return Ok((message, None)) };
            // There is room now for what the first send offers.
            self.messages.push_back(offered);
            return Ok((message, thread));
        }
        // Nothing is held. If a send waits all the same, the capacity is 0.
        if let Some(received) = self.take_offered() {
            return Ok(received);
        }
        if let Some(moment) = self.clock.as_mut().and_then(Clock::take) {
            return Ok((moment, None));
        }
        Err(if self.is_open { TryRecvError::Empty } else { TryRecvError::Disconnected })
    }

    /// Gives a message to the first receive that waits. Returns the thread to call.
    ///
    /// # Errors
    ///
    /// The message, if no receive waits any more.
    #[cold]
    fn serve_receive(&mut self, message: T) -> Result<Option<Thread>, T> {
        let mut message = Some(message);
        // SAFETY: the caller borrows the state mutably, so it holds the lock.
        let served = unsafe { self.receives.serve_first(|place| *place = message.take()) };
        match message {
            None => Ok(served.and_then(|((), thread)| thread)),
            Some(message) => Err(message),
        }
    }

    /// Takes the message of the first send that waits. Returns it, and the thread to call.
    #[cold]
    fn take_offered(&mut self) -> Option<(T, Option<Thread>)> {
        // SAFETY: the caller borrows the state mutably, so it holds the lock.
        let (offered, thread) = unsafe { self.sends.serve_first(Option::take) }?;
        // A send that waits has a message.
        offered.map(|message| (message, thread))
    }

    /// Serves the first operation that waits, of a channel that is closed.
    fn close_first(&mut self) -> Option<Thread> {
        for entries in [&mut self.sends, &mut self.receives] {
            // SAFETY: the caller borrows the state mutably, so it holds the lock.
            if let Some(((), thread)) = unsafe { entries.serve_first(|_| ()) } {
                return thread;
            }
        }
        None
    }

    /// The queue of the sends that wait, or that of the receives.
    pub(super) fn entries<const SENDS: bool>(&mut self) -> &mut Entries<T> {
        if SENDS { &mut self.sends } else { &mut self.receives }
    }

    /// When a receive should look again although no message was sent.
    pub(super) fn next_tick(&self) -> Deadline {
        self.clock.as_ref().map_or(Deadline::NEVER, Clock::next)
    }
}
