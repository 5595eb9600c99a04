//! When a closed pool has nothing more to do: nothing is ready, and no thread runs a task that could create more.
//!
//! Why not let each thread go as soon as it finds nothing: a task that runs for long, and forks now and then, would run alone from then on; and one
//! that waits for what it has just created, without telling the pool, would wait for ever.
//!
//! | a thread of a closed pool | counted as |
//! | --- | --- |
//! | runs a task, or is about to take one | serving |
//! | has found nothing, and sleeps until something is ready or all is over | serving, resting |
//! | is a spare that is not needed: it sleeps until it is, or all is over | neither |
//! | waits in `shutdown`, called by one of the pool's own tasks, for the others | serving, resting: it creates nothing meanwhile |
//!
//! Who looks whether all is over looks at three things one after the other: whether all rest, whether something is ready, whether all still rest. The
//! third is needed. Between the first two, another that rests too may go on and take what was ready: then nothing is ready, and somebody runs it. And
//! it may have come back to rest before the third, and have made something ready meanwhile; so the word counts who went on. Why one word for it
//! all: two counts that are read one after the other may look equal and never have been.
//!
//! ```text
//! state    | went on | over | closed | serving | resting |      the counts have 17 bits each where words have 64, else 9
//! ```
//!
//! # Invariants
//!
//! 1. A thread stops resting before it takes a task. So if as many rest as serve, no thread has a task.
//! 2. `serving` counts members and spares that take part, from the moment that somebody decides so. Only a thread that serves and does not rest
//!    raises it in a closed pool.
//! 3. `over` is set when as many rest as serve, and nothing that those have made is ready: this stays so. What somebody else makes ready, who is no
//!    thread of the pool, may come at any time (`ending.rs`).
//! 4. Who makes the two counts equal looks afterwards himself, or tells all who sleep.
//! 5. Who leaves, or comes to rest, before the pool is closed is seen by whoever rests after that: it is one word.
//!
//! # Orderings
//!
//! All changes are read-modify-writes, so a Release one is seen by whoever loads any later value with Acquire.
//!
//! | | | pairs with |
//! | --- | --- | --- |
//! | `set_idle`, `deregister` | Release | the Acquire of `all_idle`: who sees all rest sees what they have made ready |
//! | `declare_done` | Release | the Acquire of `set_busy`: what is taken after that was not missing when `declare_done` was called. Loads before a store: no model shows it |
//! | all others | Relaxed | the order of the one word |
//!
//! `went on` wraps, after 2^28 times with words of 64 bits, after 2^12 with 32: who looks would have to see exactly so many pass.

use core::fmt;

use machine::atomic::{AtomicUsize, Fresh, Ordering};

/// For twice as many threads as a pool can have: one that leaves a pool and is to begin again is counted twice for a moment.
const BITS: u32 = usize::BITS / 4 + 1;
const IDLE: usize = 1;
const REGISTERED: usize = 1 << BITS;
pub(crate) const COUNT: usize = (1 << BITS) - 1;
const CLOSED: usize = 1 << (2 * BITS);
const DONE: usize = CLOSED << 1;
const RESUMED: usize = DONE << 1;

/// Finds out when a closed pool has nothing more to do.
pub struct Termination(AtomicUsize);

/// That all rested when this was returned.
#[derive(Clone, Copy, Debug)]
pub struct AllIdle(usize);

fn all_idle(state: usize) -> bool {
    state & COUNT == (state >> BITS) & COUNT
}

impl Termination {
    /// One of an open pool without threads.
    pub fn new() -> Self {
        Self(AtomicUsize::fresh(0))
    }

    /// A thread is to take part.
    pub fn register(&self) {
        // Relaxed: who is told to take part is told with Release, and cannot rest before.
        self.0.fetch_add(REGISTERED, Ordering::Relaxed);
    }

    /// A thread does not take part any more. Says whether the pool is closed: then those who rest must be told (Invariant 4).
    #[must_use]
    pub fn deregister(&self) -> bool {
        // Release: pairs with the Acquire of `all_idle`.
        self.0.fetch_sub(REGISTERED, Ordering::Release) & CLOSED != 0
    }

    /// From now on threads end when all is over.
    pub fn close(&self) {
        // Relaxed: whoever is told to end is told with Release.
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Whether it has been closed.
    pub fn is_closed(&self) -> bool {
        // Relaxed: nothing is published with it but what is in the same word (Invariant 5).
        self.0.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// The calling thread has found nothing, and will not take anything before [`set_busy`](Self::set_busy).
    pub fn set_idle(&self) {
        // Release: pairs with the Acquire of `all_idle`.
        self.0.fetch_add(IDLE, Ordering::Release);
    }

    /// The calling thread may take a task again.
    pub fn set_busy(&self) {
        // It rests, so nothing is borrowed from `serving`; `went on` may wrap.
        // Acquire: pairs with the Release of `declare_done`.
        self.0.fetch_add(RESUMED - IDLE, Ordering::Acquire);
    }

    /// Whether all is over.
    pub fn is_done(&self) -> bool {
        // Relaxed: nothing is published with it.
        self.0.load(Ordering::Relaxed) & DONE != 0
    }

    /// Whether all is over, or would be if nothing is ready: what they have made ready is seen after this.
    pub fn all_idle(&self) -> Option<AllIdle> {
        // Acquire: pairs with the Release of `set_idle` and `deregister`.
        let state = self.0.load(Ordering::Acquire);
        (state & DONE != 0 || all_idle(state)).then_some(AllIdle(state))
    }

    /// Nothing was ready after all rested: all is over (Invariant 3). False, if somebody has gone on meanwhile.
    pub fn declare_done(&self, rested: AllIdle) -> bool {
        let AllIdle(state) = rested;
        if state & DONE != 0 {
            return true;
        }
        // Release: pairs with the Acquire of `set_busy`. Relaxed on failure: who fails looks again.
        let over =
            self.0.compare_exchange(state, state | DONE, Ordering::Release, Ordering::Relaxed);
        over.is_ok()
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: out of date when it is printed.
        let state = self.0.load(Ordering::Relaxed);
        f.debug_struct("Closing")
            .field("closed", &(state & CLOSED != 0))
            .field("serving", &((state >> BITS) & COUNT))
            .field("resting", &(state & COUNT))
            .field("over", &(state & DONE != 0))
            .finish()
    }
}
