//! How a pool ends: the last thread leaves nothing behind, and neither does whoever comes after it.
//!
//! A closed pool's threads leave when all have nothing to do (`closing.rs`). A waker of a future
//! may be anywhere, and may create a task at any time: when the last thread has just looked for the
//! last time, or a year later. Such a task would lie in the queue for ever, with what it owns; and
//! what it owns may own the queue.
//!
//! Why not count those who create tasks from outside, and have the last thread wait for them: two
//! exchanges for each, of one word, while the pool lives. Here they pay a load.
//!
//! ```text
//! who creates a task from outside     the last thread, after its last look
//! -------------------------------     ------------------------------------
//! (a) makes it ready                  (1) ended = 1
//! (b) light                           (2) heavy
//! (c) has the pool ended?             (3) takes out what is ready, and drops it
//!     then takes out what is ready,
//!     and drops it
//! ```
//!
//! If (c) does not see (1), (2) makes (3) see what (a) made ready. If it does, (c) takes it out
//! itself. Threads of the pool need none of this: what they create they find, or the last thread
//! does in (3), after them.
//!
//! # One at a time
//!
//! Taking out needs a place, and there may be one of a number. So one does it for all who come:
//! `requests` counts those who asked. Who takes it from 0 does it, and again, until nobody has asked
//! meanwhile. What is dropped may create tasks in turn: that only adds a round, and the stack does
//! not grow.
//!
//! What it costs whoever comes late: a thread that wakes a future of a pool which ends or has ended
//! may have to drop that future, and others, itself, inside of `wake`: what their destructors do
//! happens there, perhaps under a lock that the waking thread holds. There is nobody else left to
//! do it.
//!
//! # Invariants
//!
//! 1. `threads` counts those that were hired and have not left. It reaches 0 once: the first seat
//!    of an open pool has a thread, and a closed one hires none. If the program starts the threads,
//!    the first one may never run. So `threads` counts the thread that hires them as well, until
//!    all are hired.
//! 2. `requests > 0`: one thread is taking out, and looks after the last that has asked.
//!
//! # Orderings
//!
//! `deregister`, AcqRel: the last thread has what the others did at their places. `ended`, Release, and
//! Acquire in (c): so has who sees it. `requests`: who takes out sees what was made ready by those
//! who asked (their Release, its Acquire), and has the place after the one before (that one's
//! Release when it sets 0). `light` would not do: it orders nothing but against `heavy`.

use machine::asymmetric;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};

/// How a pool ends.
pub struct Drain {
    threads: AtomicUsize,
    ended: AtomicU32,
    requests: AtomicUsize,
}

impl Drain {
    /// One of a pool without threads.
    pub fn new() -> Self {
        Self {
            threads: AtomicUsize::fresh(0),
            ended: AtomicU32::fresh(0),
            requests: AtomicUsize::fresh(0),
        }
    }

    /// A thread is about to be started.
    pub fn register(&self) {
        // Relaxed: nothing is published with it.
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread does not touch its place any more. True, if it was the last.
    #[must_use]
    pub fn deregister(&self) -> bool {
        // AcqRel: see the head of the file.
        self.threads.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The last thread has left: takes out what is ready.
    pub fn finish(&self, take_out: impl FnMut()) {
        // Release: pairs with the Acquire below.
        self.ended.store(1, Ordering::Release);
        asymmetric::heavy();
        self.drain(take_out);
    }

    /// A task was made ready by who is no thread of the pool.
    #[inline]
    pub fn after_injection(&self, take_out: impl FnMut()) {
        asymmetric::light();
        // Acquire: pairs with the Release above.
        if self.ended.load(Ordering::Acquire) != 0 {
            self.drain(take_out);
        }
    }

    /// Takes out what is ready, or leaves it to who is at it.
    #[cold]
    pub fn drain(&self, mut take_out: impl FnMut()) {
        // AcqRel: see the head of the file.
        if self.requests.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut asked = 1;
        loop {
            take_out();
            // Release: the place goes to whoever is next. Acquire: what they made ready is seen who
            // asked meanwhile.
            match self.requests.compare_exchange(asked, 0, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => asked = now,
            }
        }
    }
}
