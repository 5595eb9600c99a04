//! Threads asleep, first come, first woken, each on a word of its own.
//!
//! Why not the kernel's futex on one word for all: threads that sleep there cannot be told apart.
//! So a waker neither knows how many it has woken, nor whether a thread that gave up meanwhile was
//! counted. And every wake-up is a system call until the woken thread has reported that it is up.
//! Here a waker takes sleepers out of a queue. It wakes those that it has taken, the rest sleep on,
//! and an empty queue costs nothing.
//!
//! | `state` of a sleeper | in the queue | left by |
//! | --- | --- | --- |
//! | asleep | yes | a waker, which takes it out; or its own thread at the deadline |
//! | woken | no | |
//!
//! # Invariants
//!
//! 1. The queue, and the links of the sleepers in it, are touched under its lock only.
//! 2. `state` becomes woken under the lock, in the step that takes the sleeper out. So at its
//!    deadline a thread that has the lock knows for certain: either it is still in the queue, and
//!    goes, or it was woken. No wake-up is given to a thread that returns that it has timed out.
//! 3. A sleeper lies on its thread's stack, and the thread does not go on before it is out of the
//!    queue.
//! 4. Once woken, a sleeper may be gone. Wakers then use its address only.
//!
//! # Orderings
//!
//! `state` is stored with Release and loaded with Acquire. So the woken thread sees everything that
//! the waker did before. Under the lock it is Relaxed.
//!
//! # The cost of blocking
//!
//! A waker writes down when it woke a sleeper. The sleeper reports the gap to
//! [`cost`](crate::cost).

use core::ptr;

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::{self, Deadline};
use stanchion_machine::park;

use crate::cost::WakeUp;
use crate::fork_lock::ForkLock;
use crate::list::{Link, Linked, List};

const ASLEEP: u32 = 0;
const WOKEN: u32 = 1;

/// The name of a sleeper without a name.
const ANYONE: usize = usize::MAX;

/// The number of sleepers that are taken out under one hold of the lock. The system calls that wake
/// them come after it.
const BATCH: usize = 16;

/// The end of a [`Sleepers::sleep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// It did not: the thread was not to join.
    Refused,
    /// A waker has taken it out, and has counted it.
    Woken,
    /// The deadline has passed, and no waker has counted this thread.
    TimedOut,
}

/// A queue of sleepers. Must not be moved while there are any, which a borrow by each of them sees
/// to.
pub(crate) struct Sleepers {
    /// The lock of the queue.
    lock: ForkLock,
    /// Touched under the lock only (Invariant 1).
    queue: UnsafeCell<Queue>,
}

struct Queue {
    /// The sleepers, the one that has slept longest first.
    sleepers: List<Sleeper>,
    /// The number of sleepers.
    length: usize,
}

/// An entry of the queue. It lies on the stack of the thread that waits, alone on its cache lines.
#[repr(align(128))]
struct Sleeper {
    /// Asleep or woken. Written by the waker, under the lock.
    state: AtomicU32,
    /// The sleeper's name, for [`Sleepers::wake_only`].
    name: usize,
    /// The wake-up. Written by the waker before the state.
    wake_up: UnsafeCell<WakeUp>,
    /// The links in the queue.
    link: Link<Self>,
}

// SAFETY: its own link, which only the list uses.
unsafe impl Linked for Sleeper {
    fn link(&self) -> &Link<Self> {
        &self.link
    }
}

// SAFETY: the queue is touched under the lock only (Invariant 1), and its pointers are to sleepers
// that live as long as they are in it (Invariant 3).
unsafe impl Send for Sleepers {}
// SAFETY: as above.
unsafe impl Sync for Sleepers {}

// No code of a caller runs under the lock. So no panic leaves the queue half changed.
impl core::panic::UnwindSafe for Sleepers {}
impl core::panic::RefUnwindSafe for Sleepers {}

impl Sleepers {
    pub(crate) const fn new() -> Self {
        Self { lock: ForkLock::new(), queue: UnsafeCell::new(Queue::EMPTY) }
    }

    fn with<R>(&self, body: impl FnOnce(&mut Queue) -> R) -> R {
        // The threads of a parent do not sleep in this process.
        // SAFETY: Invariant 1.
        let forget = || self.queue.with_mut(|queue| unsafe { *queue = Queue::EMPTY });
        // SAFETY: Invariant 1. `body` is ours and does not unwind.
        let locked = || self.queue.with_mut(|queue| body(unsafe { &mut *queue }));
        self.lock.with(forget, locked)
    }

    /// Joins the queue, does `then`, and sleeps until woken or until the deadline.
    ///
    /// `joins` is asked under the lock and must not unwind; if it says no, nothing is done. A waker
    /// that comes after it finds this thread in the queue.
    pub(crate) fn sleep(
        &self,
        joins: impl FnOnce() -> bool,
        then: impl FnOnce(),
        deadline: Deadline,
    ) -> Slept {
        self.sleep_as(ANYONE, joins, then, deadline)
    }

    /// [`sleep`](Self::sleep) under a name, by which [`wake_only`](Self::wake_only) wakes it.
    pub(crate) fn sleep_as(
        &self,
        name: usize,
        joins: impl FnOnce() -> bool,
        then: impl FnOnce(),
        deadline: Deadline,
    ) -> Slept {
        let sleeper = Sleeper::new(name);
        // Invariant 3.
        let bomb = AbortOnUnwind::armed("a thread panicked while it was in a queue of sleepers");
        let joined = self.with(|queue| {
            let joins = joins();
            if joins {
                // SAFETY: not in the queue until now; the bomb keeps the thread from going on
                // before it is out (Invariant 3).
                unsafe { queue.push(&sleeper) };
            }
            joins
        });
        let slept = if joined {
            then();
            self.wait(&sleeper, deadline)
        } else {
            Slept::Refused
        };
        bomb.defuse();
        slept
    }

    fn wait(&self, sleeper: &Sleeper, deadline: Deadline) -> Slept {
        let mut slept = false;
        // Acquire: pairs with the waker's Release.
        while sleeper.state.load(Ordering::Acquire) == ASLEEP {
            match park::wait(&sleeper.state, ASLEEP, deadline) {
                park::Woken::Woken => slept = true,
                park::Woken::Changed => {}
                park::Woken::TimedOut => return self.time_out(sleeper),
            }
        }
        if slept {
            // SAFETY: written before the state that this thread has seen, and not again.
            sleeper.wake_up.with(|wake_up| unsafe { *wake_up }).observe();
        }
        Slept::Woken
    }

    #[cold]
    fn time_out(&self, sleeper: &Sleeper) -> Slept {
        self.with(|queue| {
            // Relaxed: stored under the lock that is held here (Invariant 2).
            if sleeper.state.load(Ordering::Relaxed) == WOKEN {
                return Slept::Woken;
            }
            // SAFETY: not woken, so still in the queue (Invariant 2).
            unsafe { queue.remove(sleeper) };
            Slept::TimedOut
        })
    }

    /// Wakes the threads that have slept longest, at most `most`, of those that were asleep when it
    /// was called. Returns how many.
    ///
    /// `taken` is called under the lock with the number of sleepers that are being taken out: once
    /// for each batch, at least once, and before any of them can know.
    pub(crate) fn wake(&self, most: usize, mut taken: impl FnMut(usize)) -> usize {
        let mut left = None;
        let mut woken = 0;
        loop {
            let mut batch = [ptr::null::<AtomicU32>(); BATCH];
            let (count, more) = self.with(|queue| {
                let left = left.get_or_insert_with(|| most.min(queue.length));
                let count = BATCH.min(*left).min(queue.length);
                *left -= count;
                taken(count);
                for (place, slot) in batch[..count].iter_mut().enumerate() {
                    // The others of a batch also wait for the calls that wake those before them.
                    *slot = queue.pop(|| match place {
                        0 => WakeUp::since(clock::now()),
                        _ => WakeUp::NONE,
                    });
                }
                (count, *left > 0 && queue.length > 0)
            });
            for &state in &batch[..count] {
                // Invariant 4.
                park::wake_at(state, 1);
            }
            woken += count;
            if !more {
                return woken;
            }
        }
    }

    /// Wakes a sleeper of this name, if there is one: the one that has slept longest. `taken` is
    /// called under the lock with the number of those, 0 or 1. Looks at all sleepers that have
    /// slept longer.
    pub(crate) fn wake_only(&self, name: usize, taken: impl FnOnce(usize)) -> bool {
        let state = self.with(|queue| {
            let state = queue.take(name, || WakeUp::since(clock::now()));
            taken(usize::from(!state.is_null()));
            state
        });
        if !state.is_null() {
            // Invariant 4.
            park::wake_at(state, 1);
        }
        !state.is_null()
    }
}

impl Sleeper {
    fn new(name: usize) -> Self {
        let wake_up = UnsafeCell::new(WakeUp::NONE);
        Self { state: AtomicU32::fresh(ASLEEP), name, wake_up, link: Link::new() }
    }

    /// Marks a sleeper as woken. Returns the word that its thread sleeps on.
    ///
    /// # Safety
    ///
    /// It must be alive and out of the queue, and the queue's lock be held.
    unsafe fn mark(sleeper: *const Self, wake_up: WakeUp) -> *const AtomicU32 {
        // SAFETY: the caller's promise. The borrow ends before the store below.
        let slot = unsafe { &(*sleeper).wake_up };
        // SAFETY: no other thread reads it before that store.
        slot.with_mut(|slot| unsafe { *slot = wake_up });
        // SAFETY: the caller's promise.
        let state = unsafe { &raw const (*sleeper).state };
        // A reference to the word alone, and for this call only: once it has stored, the sleeper
        // may be gone (Invariant 4).
        // Release: pairs with the sleeper's Acquire.
        // SAFETY: alive until it sees the store.
        unsafe { (*state).store(WOKEN, Ordering::Release) };
        state
    }
}

impl Queue {
    const EMPTY: Self = Self { sleepers: List::new(), length: 0 };

    /// # Safety
    ///
    /// `sleeper` must not be in the queue, and stay where it is until it is out of it.
    unsafe fn push(&mut self, sleeper: &Sleeper) {
        // SAFETY: the caller's promise.
        unsafe { self.sleepers.push(sleeper) };
        self.length += 1;
    }

    /// # Safety
    ///
    /// `sleeper` must be in the queue.
    unsafe fn remove(&mut self, sleeper: &Sleeper) {
        // SAFETY: the caller's promise.
        unsafe { self.sleepers.remove(sleeper) };
        self.length -= 1;
    }

    /// Takes the first sleeper out and marks it as woken. Returns the word that its thread sleeps
    /// on, null if there is none.
    fn pop(&mut self, wake_up: impl FnOnce() -> WakeUp) -> *const AtomicU32 {
        let first = self.sleepers.pop();
        if first.is_null() {
            return ptr::null();
        }
        self.length -= 1;
        // SAFETY: taken out, but not woken yet, so it is alive.
        unsafe { Sleeper::mark(first, wake_up()) }
    }

    /// As [`pop`](Self::pop), the first of this name.
    fn take(&mut self, name: usize, wake_up: impl FnOnce() -> WakeUp) -> *const AtomicU32 {
        let Some(found) = self.sleepers.iter().find(|sleeper| sleeper.name == name) else {
            return ptr::null();
        };
        let found = ptr::from_ref(found);
        // SAFETY: in the queue, so it is alive (Invariant 3).
        let sleeper = unsafe { &*found };
        // SAFETY: in the queue.
        unsafe { self.remove(sleeper) };
        // SAFETY: taken out, but not woken yet, so it is alive.
        unsafe { Sleeper::mark(found, wake_up()) }
    }
}
