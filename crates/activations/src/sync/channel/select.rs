//! One of several operations, on one channel or on several: the first that can be done.
//!
//! A selection holds the locks of all of its channels while it tries its operations and queues
//! them. So no operation of another thread comes between, and two operations of one selection never
//! serve each other. From then on the thread that serves the waiter first decides, see `wait.rs`.
//!
//! Why not as `crossbeam-channel`, which queues at one channel after the other: it has to look
//! again after that, and to take its own waiter back before it serves another one. With all locks
//! the first try decides.
//!
//! # Invariants
//!
//! 1. A thread waits for a lock only while it holds none: of the other locks it takes those that
//!    are free, or else releases all and begins with the one that is not. So selections do not wait
//!    for each other in a circle, and a thread that waits keeps no channel from others.
//! 2. An operation is queued only inside [`run`], which takes it out before it returns, or ends the
//!    process.
//! 3. Of the operations on one channel, one holds the lock for all.

use core::cell::Cell;
use core::fmt;
use core::time::Duration;

use lock_api::RawMutex as _;
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::{Deadline, Instant};
use stanchion_machine::hint;

use super::error::{RecvError, SendError, TryRecvError, TrySendError};
use super::state::{ChannelCore, ChannelState};
use super::wait::{Content, Entry, Waiter};
use super::{Receiver, Sender, call, polled_in_vain};
use crate::thread::handle::Thread;

/// The steps of a selection, for each of its operations.
trait Steps {
    /// Returns the address of the channel.
    fn address(&self) -> usize;

    /// Takes the channel's lock, which [`unlock`](Self::unlock) releases.
    fn lock(&self);

    /// Takes the channel's lock if it is free; returns whether this operation has the lock now.
    fn try_lock(&self) -> bool;

    /// Returns whether this operation has taken the channel's lock.
    fn holds_lock(&self) -> bool;

    /// Releases the channel's lock if this operation has taken it.
    fn unlock(&self);

    /// Does the operation if that takes no wait. Returns the thread to call after the locks are
    /// released.
    ///
    /// # Safety
    ///
    /// The caller holds the lock.
    unsafe fn attempt(&self) -> Option<Option<Thread>>;

    /// Puts the operation into its channel's queue. Returns when the waiter should look again.
    ///
    /// # Safety
    ///
    /// The caller holds the lock. The operation is in no queue. Both stay until
    /// [`remove`](Self::remove) is called, or the operation is served.
    unsafe fn queue(&self, waiter: &Waiter) -> Deadline;

    /// Takes the operation out of its channel's queue, under the channel's lock.
    fn remove(&self);

    /// Returns whether the operation was done. No other thread may be about to do it.
    fn is_done(&mut self) -> bool;
}

/// An operation that takes part in a [`select`], see [`Operation::selectable`].
pub struct Selectable<'o>(&'o mut dyn Steps);

impl fmt::Debug for Selectable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Selectable").finish_non_exhaustive()
    }
}

/// An operation on a channel, to be chosen by a [`select`]: a [`Sending`] or a [`Receiving`].
pub struct Operation<'c, T, const SENDS: bool> {
    core: &'c ChannelCore<T>,
    entry: Entry<T>,
    /// Set while this operation holds the lock of its channel.
    holds_lock: Cell<bool>,
}

/// A receive, to be chosen by a [`select`].
///
/// ```
/// use stanchion_activations::sync::channel::{self, Receiving};
///
/// let (senders, receivers): (Vec<_>, Vec<_>) = (0..3).map(|_| channel::unbounded()).unzip();
/// senders[1].send("one").unwrap();
///
/// let mut operations: Vec<_> = receivers.iter().map(Receiving::new).collect();
/// let mut selectable: Vec<_> = operations.iter_mut().map(Receiving::selectable).collect();
/// channel::select(&mut selectable);
/// let results: Vec<_> = operations.into_iter().map(Receiving::into_result).collect();
/// assert_eq!(results, [None, Some(Ok("one")), None]);
/// ```
pub type Receiving<'c, T> = Operation<'c, T, false>;

/// A send, to be chosen by a [`select`]. It owns its message meanwhile.
///
/// ```
/// use stanchion_activations::sync::channel::{self, Sending};
///
/// let (full, _kept) = channel::bounded(0);
/// let (free, receiver) = channel::bounded(1);
/// let (mut one, mut other) = (Sending::new(&full, 1), Sending::new(&free, 2));
/// channel::select(&mut [one.selectable(), other.selectable()]);
/// assert!(other.into_result().is_ok_and(|result| result.is_ok()));
/// assert_eq!(one.into_result(), Err(1), "it was not chosen: the message comes back");
/// assert_eq!(receiver.recv(), Ok(2));
/// ```
pub type Sending<'c, T> = Operation<'c, T, true>;

impl<'c, T> Receiving<'c, T> {
    /// A receive that waits to be chosen.
    #[must_use]
    pub fn new(receiver: &'c Receiver<T>) -> Self {
        Self::of(&receiver.core, None)
    }

    /// Returns what it received, if it was chosen.
    #[must_use]
    pub fn into_result(self) -> Option<Result<T, RecvError>> {
        let content = self.entry.into_content();
        content.is_done.then(|| content.message.ok_or(RecvError))
    }
}

impl<'c, T> Sending<'c, T> {
    /// A send of that message, which waits to be chosen.
    #[must_use]
    pub fn new(sender: &'c Sender<T>, message: T) -> Self {
        Self::of(&sender.core, Some(message))
    }

    /// Returns what became of it, if it was chosen.
    ///
    /// # Errors
    ///
    /// The message, if it was not chosen.
    pub fn into_result(self) -> Result<Result<(), SendError<T>>, T> {
        match self.entry.into_content() {
            Content { is_done: false, message: Some(message), .. } => Err(message),
            Content { message, .. } => {
                Ok(message.map_or(Ok(()), |message| Err(SendError(message))))
            }
        }
    }
}

impl<'c, T, const SENDS: bool> Operation<'c, T, SENDS> {
    fn of(core: &'c ChannelCore<T>, message: Option<T>) -> Self {
        Self { core, entry: Entry::new(message), holds_lock: Cell::new(false) }
    }

    /// Returns what a [`select`] takes.
    pub fn selectable(&mut self) -> Selectable<'_> {
        Selectable(self)
    }

    /// Calls `body` with what the lock protects and the content of the entry.
    ///
    /// # Safety
    ///
    /// The calling thread holds the lock. `body` uses neither in another way.
    unsafe fn with<R>(&self, body: impl FnOnce(&mut ChannelState<T>, &mut Content<T>) -> R) -> R {
        // SAFETY: the caller's promise.
        let state = unsafe { &mut *self.core.state.data_ptr() };
        // SAFETY: the caller's promise.
        unsafe { self.entry.with(|content| body(state, content)) }
    }
}

impl<T, const SENDS: bool> Steps for Operation<'_, T, SENDS> {
    fn address(&self) -> usize {
        core::ptr::from_ref(self.core).addr()
    }

    fn lock(&self) {
        core::mem::forget(self.core.state.lock());
        self.holds_lock.set(true);
    }

    fn try_lock(&self) -> bool {
        if !self.holds_lock.get() {
            let guard = self.core.state.try_lock();
            self.holds_lock.set(guard.is_some());
            core::mem::forget(guard);
        }
        self.holds_lock.get()
    }

    fn holds_lock(&self) -> bool {
        self.holds_lock.get()
    }

    fn unlock(&self) {
        if self.holds_lock.replace(false) {
            // SAFETY: it is released only once, below.
            let raw = unsafe { self.core.state.raw() };
            // SAFETY: `lock` has taken it, and has forgotten the guard.
            unsafe { raw.unlock(lock_api::GuardNoSend::new()) };
        }
    }

    unsafe fn attempt(&self) -> Option<Option<Thread>> {
        let step = |state: &mut ChannelState<T>, content: &mut Content<T>| {
            let thread = if SENDS {
                match state.send(content.message.take()?, self.core.capacity) {
                    Ok(thread) => thread,
                    Err(TrySendError::Disconnected(message)) => {
                        content.message = Some(message);
                        None
                    }
                    Err(TrySendError::Full(message)) => {
                        content.message = Some(message);
                        return None;
                    }
                }
            } else {
                match state.receive() {
                    Ok((message, thread)) => {
                        content.message = Some(message);
                        thread
                    }
                    Err(TryRecvError::Disconnected) => None,
                    Err(TryRecvError::Empty) => return None,
                }
            };
            content.is_done = true;
            Some(thread)
        };
        // SAFETY: the caller's promise.
        unsafe { self.with(step) }
    }

    unsafe fn queue(&self, waiter: &Waiter) -> Deadline {
        // SAFETY: the caller holds the lock.
        let state = unsafe { &mut *self.core.state.data_ptr() };
        // SAFETY: the caller's promise.
        unsafe { state.entries::<SENDS>().push(&self.entry, waiter) };
        if SENDS { Deadline::NEVER } else { state.next_tick() }
    }

    fn remove(&self) {
        let mut state = self.core.state.lock();
        // SAFETY: the lock is held, and `queue` has put it into this queue if it is in one.
        unsafe { state.entries::<SENDS>().remove(&self.entry) };
    }

    fn is_done(&mut self) -> bool {
        // SAFETY: borrowed mutably outside of `run`, or at its beginning, so in no queue (Invariant
        // 2).
        unsafe { self.entry.with(|content| content.is_done) }
    }
}

impl<T, const SENDS: bool> fmt::Debug for Operation<'_, T, SENDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if SENDS { "Sending(..)" } else { "Receiving(..)" })
    }
}

/// The operations of a selection while it holds their locks.
struct Locked<'s, 'o>(&'s mut [Selectable<'o>]);

impl<'s, 'o> Locked<'s, 'o> {
    /// Takes the locks, and brings the operations into a random order.
    fn new(operations: &'s mut [Selectable<'o>]) -> Self {
        let locked = Self(operations);
        let mut first = 0;
        while let Some(busy) = locked.lock_all(first) {
            // Invariant 1.
            locked.unlock_all();
            first = busy;
        }
        locked.shuffle()
    }

    /// Waits for the lock of the operation `first`, and takes the others if they are free. Returns
    /// the first that is not.
    fn lock_all(&self, first: usize) -> Option<usize> {
        if let Some(first) = self.0.get(first) {
            first.0.lock();
        }
        (0..self.0.len()).find(|&index| !self.try_lock(index))
    }

    /// Takes the lock of the operation `index` if it is free. Returns whether that operation or
    /// another one on its channel has the lock now (Invariant 3).
    fn try_lock(&self, index: usize) -> bool {
        let Selectable(operation) = &self.0[index];
        let holds = |Selectable(other): &Selectable<'_>| {
            other.holds_lock() && other.address() == operation.address()
        };
        operation.try_lock() || self.0.iter().any(holds)
    }

    fn unlock_all(&self) {
        self.0.iter().for_each(|operation| operation.0.unlock());
    }

    /// Brings the operations into a random order.
    fn shuffle(self) -> Self {
        let mut random = hint::entropy() ^ stanchion_machine::clock::now().to_bits();
        for end in (1..self.0.len()).rev() {
            // A step of Knuth's generator; its upper bits are the random ones.
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            self.0.swap(end, (random >> 33) as usize % (end + 1));
        }
        self
    }

    /// Does the first operation that takes no wait. Returns the thread to call after the locks are
    /// released.
    fn attempt(&self) -> Option<Option<Thread>> {
        // SAFETY: the locks are held.
        self.0.iter().find_map(|operation| unsafe { operation.0.attempt() })
    }

    /// Puts all operations into the queues. Returns when the waiter should look again.
    ///
    /// # Safety
    ///
    /// As for [`Steps::queue`], for each.
    unsafe fn queue(&self, waiter: &Waiter) -> Deadline {
        // SAFETY: the locks are held; the rest is the caller's promise.
        let ticks = self.0.iter().map(|operation| unsafe { operation.0.queue(waiter) });
        ticks.min_by_key(|tick| tick.to_bits()).unwrap_or(Deadline::NEVER)
    }
}

impl Drop for Locked<'_, '_> {
    fn drop(&mut self) {
        self.unlock_all();
    }
}

/// Does one of the operations; waits until one can be done or the deadline. Returns whether one was
/// done.
pub(super) fn run(operations: &mut [Selectable<'_>], deadline: Deadline) -> bool {
    if operations.iter_mut().any(|operation| operation.0.is_done()) {
        return true;
    }
    loop {
        let locked = Locked::new(operations);
        if let Some(thread) = locked.attempt() {
            drop(locked);
            call(thread);
            return true;
        }
        if deadline.passed() {
            drop(locked);
            polled_in_vain();
            return false;
        }
        let waiter = Waiter::new();
        let bomb = AbortOnUnwind::armed("a thread unwound while it waited at a channel");
        // SAFETY: below they are taken out again, or the process ends.
        let tick = unsafe { locked.queue(&waiter) };
        drop(locked);
        let is_late_first = deadline.to_bits() <= tick.to_bits();
        let is_served = waiter.wait(if is_late_first { deadline } else { tick });
        // The one that was served is in no queue.
        if !is_served || operations.len() > 1 {
            operations.iter().for_each(|operation| operation.0.remove());
        }
        bomb.defuse();
        if is_served || is_late_first {
            return is_served;
        }
    }
}

/// Does one of the operations; waits until one can be done. Of those that can be done at once,
/// chooses one at random.
///
/// The slice is brought into another order. Ask each operation afterwards whether it was chosen. If
/// one of them was chosen before, nothing is done. For a number of operations that is known,
/// [`select!`](crate::select) is easier to write.
///
/// The cost is that of each operation, with the lock of its channel. An operation looks at the
/// whole slice if another thread or another operation of the slice has taken that lock.
///
/// # Panics
///
/// If there are no operations, for which it would wait for ever.
///
/// ```
/// use stanchion_activations::sync::channel::{self, Receiving, Sending};
///
/// let (requests, served) = channel::bounded(1);
/// let (answers, received) = channel::bounded::<u32>(1);
/// let mut sends = Sending::new(&requests, "request");
/// let mut receives = Receiving::new(&received);
/// channel::select(&mut [sends.selectable(), receives.selectable()]);
/// assert_eq!(sends.into_result(), Ok(Ok(())));
/// assert_eq!(receives.into_result(), None);
/// # drop((served, answers));
/// ```
pub fn select(operations: &mut [Selectable<'_>]) {
    assert!(!operations.is_empty(), "a selection without operations never ends");
    run(operations, Deadline::NEVER);
}

/// Does one of the operations if that takes no wait. Returns whether one was done. See [`select`].
///
/// ```
/// use stanchion_activations::sync::channel::{self, Receiving};
/// let (_sender, receiver) = channel::unbounded::<u32>();
/// assert!(!channel::try_select(&mut [Receiving::new(&receiver).selectable()]));
/// ```
pub fn try_select(operations: &mut [Selectable<'_>]) -> bool {
    run(operations, Deadline::PAST)
}

/// [`select`], but gives up after `timeout`. Returns whether an operation was done.
///
/// ```
/// use std::time::Duration;
/// use stanchion_activations::sync::channel::{self, Receiving};
///
/// let (_sender, receiver) = channel::unbounded::<u32>();
/// let mut receives = Receiving::new(&receiver);
/// assert!(!channel::select_timeout(&mut [receives.selectable()], Duration::from_millis(1)));
/// ```
pub fn select_timeout(operations: &mut [Selectable<'_>], timeout: Duration) -> bool {
    run(operations, Deadline::after(timeout))
}

/// [`select`], but gives up at `instant`. Returns whether an operation was done.
///
/// ```
/// use std::time::Instant;
/// use stanchion_activations::sync::channel::{self, Receiving};
///
/// let (_sender, receiver) = channel::unbounded::<u32>();
/// let mut receives = Receiving::new(&receiver);
/// assert!(!channel::select_deadline(&mut [receives.selectable()], Instant::now()));
/// ```
pub fn select_deadline(operations: &mut [Selectable<'_>], instant: Instant) -> bool {
    run(operations, Deadline::at(instant))
}
