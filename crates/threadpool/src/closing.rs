//! When a closed pool has nothing more to do: nothing is ready, and no thread runs a task that could create more.
//!
//! Why not let each thread go as soon as it finds nothing: a task that runs for long, and forks now and then, would run alone from then on; and one
//! that waits for what it has just created, without telling the pool, would wait for ever.
//!
//! | a thread of a closed pool | `resting` |
//! | --- | --- |
//! | runs a task, or is about to take one | not counted |
//! | has found nothing, and sleeps until something is ready or all is over | counted |
//! | is a spare that is not needed: it sleeps until it is, or all is over | neither resting nor serving |
//! | waits in `shutdown`, called by one of the pool's own tasks, for the others | counted: it creates nothing meanwhile |
//!
//! # Invariants
//!
//! 1. A thread stops resting before it takes a task. So if as many rest as serve, no thread has a task.
//! 2. `serving` counts members and spares that take part, from the moment that somebody decides so. Only a thread that serves and does not rest
//!    raises it in a closed pool.
//! 3. `over` is set when as many rest as serve, and nothing is ready: this stays so.
//! 4. Who makes `resting` and `serving` equal looks afterwards himself, or tells all who sleep.
//!
//! # Orderings
//!
//! The exchanges of `resting` and `serving` are `AcqRel`, and looking at them an Acquire load: who sees all others rest has what they made ready. A
//! thread that leaves a pool which is being closed passes `light` before it asks whether that is so; who rests passes `heavy` before it sleeps.

use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};

pub(crate) struct Closing {
    serving: AtomicUsize,
    resting: AtomicUsize,
    over: AtomicU32,
}

impl Closing {
    pub(crate) fn new() -> Self {
        Self {
            serving: AtomicUsize::fresh(0),
            resting: AtomicUsize::fresh(0),
            over: AtomicU32::fresh(0),
        }
    }

    /// A thread is to take part.
    pub(crate) fn enlist(&self) {
        // AcqRel: see the head of the file; so below.
        self.serving.fetch_add(1, Ordering::AcqRel);
    }

    /// A thread does not take part any more. Those who rest must be told, if the pool is closed.
    pub(crate) fn release(&self) {
        self.serving.fetch_sub(1, Ordering::AcqRel);
    }

    /// The calling thread has found nothing, and will not take anything before [`go_on`](Self::go_on).
    pub(crate) fn rest(&self) {
        self.resting.fetch_add(1, Ordering::AcqRel);
    }

    /// The calling thread may take a task again.
    pub(crate) fn go_on(&self) {
        self.resting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether all is over.
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release of `declare`.
        self.over.load(Ordering::Acquire) != 0
    }

    /// Whether all is over, or would be if nothing is ready.
    pub(crate) fn may_be_over(&self) -> bool {
        // Acquire: pairs with the exchanges.
        self.is_over()
            || self.resting.load(Ordering::Acquire) == self.serving.load(Ordering::Acquire)
    }

    /// All is over (Invariant 3).
    pub(crate) fn declare(&self) {
        // Release: pairs with the Acquire of `is_over`.
        self.over.store(1, Ordering::Release);
    }
}
