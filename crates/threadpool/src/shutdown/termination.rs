//! Termination detection: when a closed pool has nothing more to do.
//!
//! That is when no task is ready and no thread runs a task that could create one. Why not let each
//! thread end as soon as it finds nothing: a long task that forks now and then would run alone from
//! then on. A task that waits for what it has just created, without telling the pool, would wait
//! for ever.
//!
//! | a thread of a closed pool | counted as |
//! | --- | --- |
//! | runs a task, or is about to take one | registered |
//! | has found nothing, and sleeps until a task is ready or the pool is done | registered, idle |
//! | is a spare that is not needed, and sleeps until it is or the pool is done | neither |
//! | waits in `shutdown`, called by a task of the pool, and creates nothing | registered, idle |
//!
//! A thread decides in three steps: are all registered threads idle, is no task ready, are all
//! still idle? The third step is needed. Between the first two, another idle thread may resume and
//! take the ready task: then no task is ready, but one runs. That thread may even be idle again
//! before the third step, after its task has created another. So the word counts how often a thread
//! has resumed. Why one word for all of it: two counts that are read one after the other may look
//! equal without ever having been equal.
//!
//! ```text
//! state    | resumed | done | closed | registered | idle |
//!          the counts have 17 bits each where words have 64, else 9
//!
//!              set_idle                  declare_done, if all are idle and no task is ready
//!   busy ───────────────────► idle ─────────────────────────────────────► done
//!     ▲                        │
//!     └────────────────────────┘ set_busy: resumed + 1
//! ```
//!
//! # Invariants
//!
//! 1. A thread is busy before it takes a task. So if all registered threads are idle, no thread has
//!    a task.
//! 2. `registered` counts members and spares from the moment of the decision that they take part.
//!    In a closed pool only a registered thread that is not idle raises it.
//! 3. `done` is set when all registered threads are idle and nothing that they have created is
//!    ready. This stays so. A thread outside of the pool may create a task at any time
//!    (`drain.rs`).
//! 4. The thread that makes the two counts equal decides afterwards itself, or wakes all sleepers.
//! 5. A thread that deregisters or becomes idle before the pool is closed is seen by each thread
//!    that becomes idle afterwards: it is one word.
//!
//! # Orderings
//!
//! All changes are read-modify-writes. So a load of any later value with Acquire sees what was
//! before a Release change.
//!
//! | operation | ordering | pairs with |
//! | --- | --- | --- |
//! | `set_idle`, `deregister` | Release | the Acquire of `all_idle`: sees what they made ready |
//! | `declare_done` | Release | the Acquire of `set_busy`, see below |
//! | all others | Relaxed | the order of the one word |
//!
//! `declare_done` and `set_busy`: a task that is taken after `set_busy` was not missing when the
//! other thread looked before `declare_done`. These are loads before a store, which no model shows.
//!
//! `resumed` wraps: after 2^28 times with words of 64 bits, after 2^12 with 32. To be wrong, a
//! decision would have to see exactly so many pass.

use core::fmt;

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

/// Bits of a count, for twice as many threads as a pool can have. A thread that leaves a pool and
/// starts again is counted twice for a moment.
const BITS: u32 = usize::BITS / 4 + 1;
const IDLE: usize = 1;
const REGISTERED: usize = 1 << BITS;
/// The largest count.
pub(crate) const COUNT: usize = (1 << BITS) - 1;
const CLOSED: usize = 1 << (2 * BITS);
const DONE: usize = CLOSED << 1;
const RESUMED: usize = DONE << 1;

/// The word from which the end of a closed pool is known. All threads write it.
pub struct Termination(AtomicUsize);

/// The proof that all registered threads were idle when it was returned.
#[derive(Clone, Copy, Debug)]
pub struct AllIdle(usize);

fn all_idle(state: usize) -> bool {
    state & COUNT == (state >> BITS) & COUNT
}

impl Termination {
    /// Creates the word of an open pool without threads.
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub fn new() -> Self {
        Self(AtomicUsize::fresh(0))
    }

    /// Counts a thread that is to take part.
    pub fn register(&self) {
        // Relaxed: the thread is told to take part with Release, and cannot be idle before.
        self.0.fetch_add(REGISTERED, Ordering::Relaxed);
    }

    /// Counts a thread out that does not take part any more. Returns whether the pool is closed. If
    /// so, the caller must wake the idle threads (Invariant 4).
    #[must_use]
    pub fn deregister(&self) -> bool {
        // Release: pairs with the Acquire of `all_idle`.
        self.0.fetch_sub(REGISTERED, Ordering::Release) & CLOSED != 0
    }

    /// Closes the pool: its threads end when it is done.
    pub fn close(&self) {
        // Relaxed: a thread is told to end with Release.
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Returns whether the pool has been closed.
    pub fn is_closed(&self) -> bool {
        // Relaxed: it publishes only what is in the same word (Invariant 5).
        self.0.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Counts the calling thread as idle. It has found nothing, and takes nothing before
    /// [`set_busy`](Self::set_busy).
    pub fn set_idle(&self) {
        // Release: pairs with the Acquire of `all_idle`.
        self.0.fetch_add(IDLE, Ordering::Release);
    }

    /// Counts the calling thread as busy. It may take a task again.
    pub fn set_busy(&self) {
        // It is idle, so nothing is borrowed from `registered`. `resumed` may wrap.
        // Acquire: pairs with the Release of `declare_done`.
        self.0.fetch_add(RESUMED - IDLE, Ordering::Acquire);
    }

    /// Returns whether the pool is done.
    pub fn is_done(&self) -> bool {
        // Relaxed: it publishes nothing.
        self.0.load(Ordering::Relaxed) & DONE != 0
    }

    /// Returns a proof if all registered threads are idle. What they have made ready is seen after
    /// this.
    pub fn all_idle(&self) -> Option<AllIdle> {
        // Acquire: pairs with the Release of `set_idle` and `deregister`.
        let state = self.0.load(Ordering::Acquire);
        (state & DONE != 0 || all_idle(state)).then_some(AllIdle(state))
    }

    /// Declares the pool done, as no task was ready after all were idle (Invariant 3). Returns
    /// false if a thread has resumed meanwhile.
    pub fn declare_done(&self, rested: AllIdle) -> bool {
        let AllIdle(state) = rested;
        if state & DONE != 0 {
            return true;
        }
        // Release: pairs with the Acquire of `set_busy`. Relaxed on failure: the caller looks
        // again.
        let over =
            self.0.compare_exchange(state, state | DONE, Ordering::Release, Ordering::Relaxed);
        over.is_ok()
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: out of date when it is printed.
        let state = self.0.load(Ordering::Relaxed);
        f.debug_struct("Termination")
            .field("closed", &(state & CLOSED != 0))
            .field("registered", &((state >> BITS) & COUNT))
            .field("idle", &(state & COUNT))
            .field("done", &(state & DONE != 0))
            .finish()
    }
}
