//! Threads that wait, first come, first served, each parked: what all of `sync` waits in.
//!
//! Why not a queue of [`Thread`]s in a vector: to wait must not allocate, and who gives up leaves from the middle. Why not the queues of
//! `stanchion_competitive`: those sleep on words in the kernel, and a user-level thread must leave its processor to others.
//!
//! | `answer` | in the queue | left by |
//! | --- | --- | --- |
//! | `WAITING` | yes | a server, who takes it out; or its own thread at the deadline, which leaves it so |
//! | `GO`, `SERVED` | no | |
//!
//! # Invariants
//!
//! 1. The line, the links of those in it, and their `thread` and `note` are touched under the lock only; once there is an answer `note` is the waiter's.
//! 2. An answer is given under the lock, in the step that takes the waiter out. So at its deadline a thread that has the lock knows for certain: it is
//!    still in the line, and goes, or it was answered. No answer is lost on a thread that says it has timed out.
//! 3. A waiter lies on its thread's stack, and the thread does not go on before it is out of the line.
//! 4. Once answered, a waiter may be gone. Its thread's handle was taken out before; calling that late wakes nobody wrongly, because every wait and
//!    every park looks again.
//! 5. The lock is a spin lock: nothing parks, allocates or drops a thread under it.
//! 6. Those that are answered are called, not unparked: an unpark that comes while a thread waits here is for its next park.
//!
//! # Orderings
//!
//! `answer` is stored with Release and loaded with Acquire, so what a server did before is seen by whom it served. Under the lock it is Relaxed.

use lock_api::RawMutex as _;
use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::bomb::AbortOnUnwind;
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use stanchion_competitive::list::{Link, Linked, List};
use stanchion_spin::TestAndSet;

use crate::worker::context;
use crate::api::park;
use crate::thread::header::{self as thread, Thread};

const WAITING: u32 = 0;
const GO: u32 = 1;
const SERVED: u32 = 2;

/// How many are taken out under one hold of the lock; they are called after it.
pub(super) const BATCH: usize = 16;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nobody has answered before the deadline.
    TimedOut,
    /// Look again.
    Go,
    /// It has what it waited for.
    Served,
}

/// A place in the queue, on the stack of the thread that waits.
pub(super) struct Waiter {
    answer: AtomicU32,
    note: UnsafeCell<u64>,
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
    /// The calling thread's, with a word for the server.
    pub(super) fn new(note: u64) -> Self {
        Self {
            answer: AtomicU32::fresh(WAITING),
            note: UnsafeCell::new(note),
            thread: UnsafeCell::new(Some(thread::current())),
            link: Link::new(),
        }
    }

    /// The server's word to it, once it is answered.
    pub(super) fn note(&self) -> u64 {
        // SAFETY: answered, so nobody else touches it (Invariant 1).
        self.note.with(|note| unsafe { *note })
    }
}

/// A queue of waiters.
pub(super) struct Queue {
    lock: TestAndSet,
    line: UnsafeCell<Line>,
}

/// What the lock guards.
pub(super) struct Line {
    waiters: List<Waiter>,
    length: usize,
}

// SAFETY: the line is touched under the lock only (Invariant 1), and its pointers are to waiters that live as long as they are in it (Invariant 3).
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

    /// Waits until `waiter`, which was put into this line, is answered, or until the deadline. Then it is out of the line, and `left` is called under
    /// the lock that took it out if it was its own.
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
        let answer = if park::wait_until(deadline, || word() != WAITING) {
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

    /// Sends on those who have waited longest, at most `most`, of those who waited when it was called; says how many. `taken` is told under the lock
    /// how many are being taken out: once for each batch, at least once, and before any of them can know.
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
            call_all(&mut batch);
            if !more {
                context::give_way();
                return sent;
            }
        }
    }
}

/// Calls those of a batch. When all are called that are to be, the caller [gives way](context::give_way).
pub(super) fn call_all(batch: &mut [Option<Thread>]) {
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

    /// The note of the first in line.
    pub(super) fn first_note(&self) -> Option<u64> {
        // SAFETY: under the lock (Invariant 1).
        self.waiters.iter().next().map(|first| first.note.with(|note| unsafe { *note }))
    }

    /// Takes the first out and answers it, with a word to it. The caller calls its thread when it has released the lock.
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

    /// Takes all out, unanswered, into a line of their own.
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
