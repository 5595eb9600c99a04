//! The queue in which the threads of all of `sync` wait: parked, first come, first served.
//!
//! Why not a queue of [`Thread`]s in a vector: a wait must not allocate, and a thread that gives up
//! leaves from the middle. Why not the queues of `stanchion_competitive`: their threads sleep on
//! words in the kernel, and a user-level thread must leave its processor to others.
//!
//! - `WAITING`. In the queue: yes. Changed by: a server, which takes the waiter out. At the
//!   deadline the waiter takes itself out, and leaves the word as it is.
//! - `GO`, `SERVED`. Not in the queue. Final.
//!
//! # Invariants
//!
//! 1. The line, the links of its waiters, and their `thread` and `note` are used under the lock
//!    only. Once there is an answer, `note` belongs to the waiter.
//! 2. An answer is given under the lock, in the step that takes the waiter out. So at its deadline
//!    a thread that has the lock knows for certain whether it is still in the line, and leaves, or
//!    was answered. No answer is lost on a thread that returns that it has timed out.
//! 3. A waiter lies on its thread's stack, and the thread does not continue before it is out of the
//!    line.
//! 4. Once answered, a waiter may be gone. Its thread's handle was taken out before. A late
//!    notification does no harm, because every wait and every park looks again.
//! 5. The lock is a spin lock: nothing parks, allocates or drops a thread under it.
//! 6. Threads that are answered are notified, not unparked: an unpark that comes while a thread
//!    waits here is for its next park.
//!
//! # Orderings
//!
//! `answer` is stored with Release and loaded with Acquire, so the waiter sees what its server did
//! before. Under the lock it is Relaxed.

use lock_api::RawMutex as _;
use stanchion_competitive::list::{Link, Linked, List};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_spin::TestAndSet;

use crate::thread::handle::Thread;
use crate::worker::context;
use crate::worker::wait::wait_until;

const WAITING: u32 = 0;
const GO: u32 = 1;
const SERVED: u32 = 2;

/// The most waiters that are taken out under one hold of the lock. They are notified after it.
pub(super) const BATCH: usize = 16;

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The deadline passed before an answer.
    TimedOut,
    /// Look again.
    Go,
    /// It has what it waited for.
    Served,
}

/// An entry of the queue, on the stack of the thread that waits.
pub(super) struct Waiter {
    /// See the table above. Written by the server.
    answer: AtomicU32,
    /// A word from the waiter to the server, then one from the server to the waiter.
    note: UnsafeCell<u64>,
    /// The waiter's thread, until the server takes it.
    thread: UnsafeCell<Option<Thread>>,
    link: Link<Self>,
}

// SAFETY: its own link, which only the list uses.
unsafe impl Linked for Waiter {
    fn link(&self) -> &Link<Self> {
        &self.link
    }
}

impl Waiter {
    /// Returns the entry of the calling thread, with a word for the server.
    pub(super) fn new(note: u64) -> Self {
        Self {
            answer: AtomicU32::fresh(WAITING),
            note: UnsafeCell::new(note),
            thread: UnsafeCell::new(Some(context::current())),
            link: Link::new(),
        }
    }

    /// Returns the server's word, once there is an answer.
    pub(super) fn note(&self) -> u64 {
        // SAFETY: answered, so no other thread uses it (Invariant 1).
        self.note.with(|note| unsafe { *note })
    }
}

/// A queue of waiters.
pub(super) struct Queue {
    /// Held while `line` is used.
    lock: TestAndSet,
    /// Used by the thread that holds `lock`.
    line: UnsafeCell<Line>,
}

/// The waiters, under the lock.
pub(super) struct Line {
    /// The entries, the next to be served first.
    waiters: List<Waiter>,
    /// The number of waiters.
    length: usize,
}

// SAFETY: the line is used under the lock only (Invariant 1), and its pointers are to waiters that
// live as long as they are in it (Invariant 3).
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    pub(super) const fn new() -> Self {
        let line = Line { waiters: List::new(), length: 0 };
        Self { lock: TestAndSet::new(), line: UnsafeCell::new(line) }
    }

    /// Calls `body` under the lock. It must keep Invariant 5, and not unwind.
    pub(super) fn with<R>(&self, body: impl FnOnce(&mut Line) -> R) -> R {
        let guard = self.lock.lock();
        // SAFETY: Invariant 1. `body` is ours and does not unwind.
        let result = self.line.with_mut(|line| body(unsafe { &mut *line }));
        // SAFETY: locked above, released once.
        unsafe { self.lock.unlock(guard) };
        result
    }

    /// Waits until `waiter`, which was put into this line, is answered, or until the deadline.
    /// Then it is out of the line. If it took itself out, `left` is called under the same hold of
    /// the lock.
    ///
    /// Ends the process if it unwinds (Invariant 3).
    pub(super) fn wait(
        &self,
        waiter: &Waiter,
        deadline: Deadline,
        left: impl FnOnce(&mut Line),
    ) -> Answer {
        let bomb = AbortOnUnwind::armed("a thread unwound while it was in a queue");
        // Acquire: pairs with the server's Release.
        let word = || waiter.answer.load(Ordering::Acquire);
        let answer = if wait_until(deadline, || word() != WAITING) {
            Answer::from_word(word())
        } else {
            self.leave(waiter, left)
        };
        bomb.defuse();
        answer
    }

    #[cold]
    fn leave(&self, waiter: &Waiter, left: impl FnOnce(&mut Line)) -> Answer {
        self.with(|line| {
            // Relaxed: stored under the lock that is held here (Invariant 2).
            let answer = waiter.answer.load(Ordering::Relaxed);
            if answer == WAITING {
                // SAFETY: not answered, so still in the line (Invariant 2).
                unsafe { line.waiters.remove(waiter) };
                line.length -= 1;
                left(line);
            }
            Answer::from_word(answer)
        })
    }

    /// Answers [`Go`](Answer::Go) to the threads that have waited longest, at most to `most`, of
    /// those that waited at the call. Returns their number.
    ///
    /// `taken` is called under the lock with the number that is being taken out: once for each
    /// batch, at least once, and before any of them can know.
    pub(super) fn send_on(&self, most: usize, mut taken: impl FnMut(usize)) -> usize {
        let mut left = None;
        let mut sent = 0;
        loop {
            let mut batch = [const { None }; BATCH];
            let more = self.with(|line| {
                let left = left.get_or_insert_with(|| most.min(line.length));
                let count = BATCH.min(*left).min(line.length);
                *left -= count;
                taken(count);
                for place in &mut batch[..count] {
                    *place = line.answer_first(Answer::Go, 0);
                }
                sent += count;
                *left > 0 && line.length > 0
            });
            notify_all(&mut batch);
            if !more {
                context::give_way();
                return sent;
            }
        }
    }
}

/// Notifies the threads of a batch. After the last batch the caller [gives way](context::give_way).
pub(super) fn notify_all(batch: &mut [Option<Thread>]) {
    for thread in batch.iter_mut().filter_map(Option::take) {
        thread.notify();
    }
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Puts `waiter` at the end, or before all others.
    ///
    /// # Safety
    ///
    /// It is in no line, and its thread goes on only through [`Queue::wait`] (Invariant 3).
    pub(super) unsafe fn put(&mut self, waiter: &Waiter, first: bool) {
        if first {
            // SAFETY: the caller's promise.
            unsafe { self.waiters.push_first(waiter) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.waiters.push(waiter) };
        }
        self.length += 1;
    }

    /// Returns the note of the first in line.
    pub(super) fn first_note(&self) -> Option<u64> {
        // SAFETY: under the lock (Invariant 1).
        self.waiters.iter().next().map(|first| first.note.with(|note| unsafe { *note }))
    }

    /// Takes the first waiter out and answers it, with a word to it. Returns its thread, which the
    /// caller notifies when it has released the lock.
    pub(super) fn answer_first(&mut self, answer: Answer, note: u64) -> Option<Thread> {
        // SAFETY: taken out but not answered yet, so it is still there (Invariant 3).
        let first = unsafe { self.waiters.pop().as_ref() }?;
        self.length -= 1;
        // SAFETY: under the lock, and not answered (Invariant 1).
        let thread = first.thread.with_mut(|thread| unsafe { (*thread).take() });
        // SAFETY: as above.
        first.note.with_mut(|place| unsafe { *place = note });
        // Release: pairs with the waiter's Acquire. From here on it may be gone (Invariant 4).
        first.answer.store(answer.to_word(), Ordering::Release);
        thread
    }

    /// Takes all waiters out, unanswered, into a line of their own.
    pub(super) fn take_all(&mut self) -> Self {
        let waiters = core::mem::replace(&mut self.waiters, List::new());
        Self { waiters, length: core::mem::take(&mut self.length) }
    }
}

impl Answer {
    fn from_word(word: u32) -> Self {
        match word {
            WAITING => Self::TimedOut,
            GO => Self::Go,
            _ => Self::Served,
        }
    }

    fn to_word(self) -> u32 {
        match self {
            Self::TimedOut => WAITING,
            Self::Go => GO,
            Self::Served => SERVED,
        }
    }
}
