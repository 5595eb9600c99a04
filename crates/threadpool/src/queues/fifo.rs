//! A queue of closures that begin in their order of creation, whichever workers run them.
//!
//! A strategy's queues have several ends, and thieves move tasks between them. So the order does
//! not come from the strategy. The closures lie in a queue of their own, and the strategy gets a
//! *ticket* for each, a task like any other. A worker that runs a ticket runs the first closure of
//! the queue, whichever ticket it has.
//!
//! A scope has one such queue. Each worker has one for closures that it creates elsewhere. The
//! threads outside of the pool share one.
//!
//! Why not take from the strategy's queue at the other end: two kinds of tasks would lie in one
//! queue. Each thief, each waiting worker, and each rule against starvation would have to know
//! both. rayon's scopes use tickets as well.
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
    /// Creates an empty queue.
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
