//! The end of a pool: tasks that arrive late are dropped by the last thread, or by their creator.
//!
//! The threads of a closed pool leave when all have nothing to do (`termination.rs`). A waker of a
//! future may be anywhere and may create a task at any time, even after the last thread has looked
//! for the last time. Such a task would lie in the queue for ever, with what it owns. What it owns
//! may own the queue.
//!
//! Why not count the creators outside of the pool and have the last thread wait for them: that
//! costs each of them two exchanges of one word, as long as the pool lives. Here they pay a load.
//!
//! ```text
//! creator outside of the pool         the last thread, after its last look
//! ---------------------------         ------------------------------------
//! (a) makes the task ready            (1) ended = 1
//! (b) light                           (2) heavy
//! (c) has the pool ended?             (3) takes out ready tasks, and drops them
//!     then takes out ready tasks,
//!     and drops them
//! ```
//!
//! If (c) does not see (1), then (2) makes (3) see the task of (a). If (c) sees (1), the creator
//! takes the task out itself. Threads of the pool need none of this. They find what they create, or
//! the last thread finds it in (3).
//!
//! # One at a time
//!
//! Taking tasks out needs a worker slot, and only one thread may use a slot. So one thread does it
//! for all that ask: `requests` counts them. The thread that raises it from 0 takes tasks out, and
//! repeats that until no other thread has asked meanwhile. A dropped task may create tasks in turn.
//! That only adds a round, and the stack does not grow.
//!
//! The price for a late creator: a thread that wakes a future of a pool which has ended may have to
//! drop that future, and others, inside of `wake`. Their destructors run there, perhaps under a
//! lock that the waking thread holds. No other thread is left to do it.
//!
//! # Invariants
//!
//! 1. `threads` counts the threads that were registered and have not left. It reaches 0 once: the
//!    first slot of an open pool has a thread, and a closed pool starts none. If the program starts
//!    the threads, the first one may never run. So `threads` also counts the thread that builds the
//!    pool, until all are started.
//! 2. While `requests > 0`, one thread takes tasks out, and looks again after the last request.
//!
//! # Orderings
//!
//! `deregister` is AcqRel: the last thread has what the others did at their slots. `ended` is
//! stored with Release and loaded in (c) with Acquire, so a creator that sees it has that too.
//! `requests`: the thread that takes out sees what the requesting threads made ready (their
//! Release, its Acquire). It has the slot after the thread before it, which stored 0 with Release.
//! `light` would not do for that: it orders nothing but against `heavy`.

use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use stanchion_machine::handshake::{Handshake, Reach};

/// A task from outside against the end of the pool.
const LATE: Handshake = Handshake::new("the queues", "Drain::ended", Reach::AllThreads);

/// The state of a pool's end.
pub struct Drain {
    /// Threads that may still use their slots (Invariant 1). Written by each of them.
    threads: AtomicUsize,
    /// 1 when the last thread has left. Written by that thread.
    ended: AtomicU32,
    /// Threads that want late tasks taken out (Invariant 2). Written by each of them.
    requests: AtomicUsize,
}

impl Drain {
    /// Creates the state of a pool without threads.
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub fn new() -> Self {
        Self {
            threads: AtomicUsize::fresh(0),
            ended: AtomicU32::fresh(0),
            requests: AtomicUsize::fresh(0),
        }
    }

    /// Counts a thread that is about to be started.
    pub fn register(&self) {
        // Relaxed: nothing is published with it.
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a thread out that does not touch its slot any more. Returns whether it was the last.
    #[must_use]
    pub fn deregister(&self) -> bool {
        // AcqRel: see the head of the file.
        self.threads.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Takes out what is ready, after the last thread has left.
    pub fn finish(&self, take_out: impl FnMut()) {
        // Release: pairs with the Acquire below.
        self.ended.store(1, Ordering::Release);
        LATE.heavy();
        self.drain(take_out);
    }

    /// Takes out what is ready if the pool has ended. Called after a thread outside of the pool has
    /// made a task ready.
    #[inline]
    pub fn after_injection(&self, take_out: impl FnMut()) {
        LATE.light();
        // Acquire: pairs with the Release above.
        if self.ended.load(Ordering::Acquire) != 0 {
            self.drain(take_out);
        }
    }

    /// Takes out what is ready, or leaves it to the thread that is doing so.
    #[cold]
    pub fn drain(&self, mut take_out: impl FnMut()) {
        // AcqRel: see the head of the file.
        if self.requests.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut asked = 1;
        loop {
            take_out();
            // Release: hands the slot to the next thread. Acquire: sees what the threads made ready
            // that have asked meanwhile.
            match self.requests.compare_exchange(asked, 0, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => asked = now,
            }
        }
    }
}
