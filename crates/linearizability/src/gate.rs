//! A barrier at which the threads of a trial sleep until all have come.
//!
//! A thread that has slept gets a processor as soon as it is woken, before threads that compute all
//! the time. A thread that spins or yields has used up its share by then. On a busy computer that
//! decides whether two of them ever run at the same time. So they sleep here every few histories.
//!
//! Why not `std::sync::Barrier`: if one thread panics, the others would wait in it for ever.

use std::sync::{Condvar, Mutex, PoisonError};

pub(crate) struct Gate {
    /// The number of threads for which it opens.
    threads: usize,
    /// Written by each thread that comes, and by one that will not.
    state: Mutex<State>,
    /// Wakes the threads that wait, when the last one has come.
    opened: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of threads that wait now.
    here: usize,
    /// The number of times that it has opened.
    round: u64,
    /// A thread will not come any more.
    broken: bool,
}

impl Gate {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, state: Mutex::default(), opened: Condvar::new() }
    }

    /// Waits until all threads are here; not at all once one has gone.
    pub(crate) fn wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.here += 1;
        if state.here == self.threads {
            state.here = 0;
            state.round += 1;
            self.opened.notify_all();
            return;
        }
        let round = state.round;
        let closed = |state: &mut State| state.round == round && !state.broken;
        drop(self.opened.wait_while(state, closed).unwrap_or_else(PoisonError::into_inner));
    }

    /// Opens it for good.
    fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).broken = true;
        self.opened.notify_all();
    }
}

/// A thread that comes to the gate; if it unwinds, the others do not wait for it.
pub(crate) struct Comer<'g>(pub(crate) &'g Gate);

impl Drop for Comer<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.open();
        }
    }
}
