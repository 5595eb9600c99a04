//! Tasks that begin in the order in which they were created, whichever workers run them.
//!
//! A strategy's queues have several ends, and thieves move tasks between them. So the order does
//! not come from the strategy. What a task is to do lies in a queue of its own, and the strategy
//! gets a *ticket* for it, a task like any other. A worker that runs a ticket does what is first in
//! the queue, whichever ticket it has.
//!
//! A scope has one such queue, each worker has one for what it creates elsewhere, and the threads
//! outside of the pool share one.
//!
//! Why not take from the strategy's queue at the other end: two kinds of tasks would lie in one
//! queue, and each thief, each worker that helps, and each rule against starvation would have to
//! know both. rayon's scopes do the same as these.
//!
//! # Invariants
//!
//! 1. A ticket is made ready after its closure has been put in. So there are never fewer closures
//!    than tickets, and a ticket finds one.

use std::collections::VecDeque;

use stanchion_competitive::Mutex;

/// A queue of closures for which tickets are ready.
pub(crate) struct Fifo<F>(Mutex<VecDeque<F>>);

impl<F> Fifo<F> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// Puts a closure in. The caller makes a ticket ready afterwards.
    pub(crate) fn push(&self, closure: F) {
        self.0.lock().push_back(closure);
    }

    /// Takes the oldest closure out, for a ticket.
    pub(crate) fn pop(&self) -> F {
        self.0.lock().pop_front().expect("each ticket has a closure (Invariant 1)")
    }
}
