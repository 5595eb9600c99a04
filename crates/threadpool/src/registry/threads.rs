//! How the threads of a registry are hired, told to go, and waited for.
//!
//! ```text
//! resize up    a slot with a thread: STOP is taken back, or, if the thread has left already, it begins again of itself
//!              a free slot: its name is asked for, without the lock; then a thread is started
//! resize down  STOP
//! lend         a spare that sleeps: START; else a new one; else the next that would stop
//! close        STOP to all, which they follow when all is over
//! ```
//!
//! # Invariants
//!
//! 1. Those of `table.rs`: a new thread's name, which the user gives, is asked for without the
//!    lock. What was decided before that is decided anew.
//! 2. `Termination` counts a thread from the moment that somebody decides, under the roster's lock,
//!    that it takes part.

use std::io;
use std::sync::Arc;

use super::Registry;
use crate::strategy::Strategy;
use crate::threads::custom::{ThreadBuilder, ThreadDone, ThreadHandle};
use crate::threads::table::ThreadTable;
use crate::workers::worker::Worker;

impl<S: Strategy> Registry<S> {
    /// A thread has done its last task. Whether its seat is a member's again, so that it goes on;
    /// otherwise the seat is free from here on, and if the pool is closed, nobody's.
    pub(super) fn restarts(&self, worker: &Worker) -> bool {
        let (pool, slot) = (&self.pool, worker.index());
        let mut table = pool.threads.lock();
        pool.settle(&mut table, slot);
        if table.closed {
            let again = core::mem::take(&mut table.restarts[slot]);
            if again {
                pool.reset_signals(slot);
                pool.request_stop(slot);
            }
            return again;
        }
        let stays = slot < table.members;
        if stays || pool.has_calls(worker) {
            pool.reset_signals(slot);
            if !stays {
                pool.request_stop(slot);
            }
            pool.termination.register();
            return true;
        }
        let handle = table.handles[slot].take();
        // The one before that has ended long ago: it had nothing left to do when this one was
        // started.
        let _before = core::mem::replace(&mut table.ended[slot], handle);
        false
    }

    /// Starts a thread on a seat that has none. The roster is the registry's own, locked.
    pub(super) fn spawn_thread(
        &self,
        table: &mut ThreadTable,
        slot: usize,
        name: Option<String>,
    ) -> io::Result<()> {
        if self.pool.config.custom_threads {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the program's spawn handler has started this pool's threads when it was built, and is gone",
            ));
        }
        self.pool.reset_signals(slot);
        if table.closed {
            self.pool.request_stop(slot);
        }
        let Some(me) = self.weak.upgrade() else {
            return Err(io::Error::other("the pool is being dropped"));
        };
        self.pool.drain.register();
        self.pool.termination.register();
        let unhired = Unhired(self);
        // SAFETY: the seat has no thread (Invariant 1 of the registry): whoever calls this has the
        // roster and has seen to that.
        let started = table.start(slot, name, move || unsafe { me.main_loop(slot) });
        if started.is_ok() {
            core::mem::forget(unhired);
        }
        started
    }

    /// Has `start` start the members of a pool that is being built. Returns how many there are,
    /// also if it fails.
    pub(crate) fn spawn_custom_threads(
        &self,
        members: usize,
        start: &mut dyn FnMut(ThreadBuilder) -> io::Result<()>,
    ) -> (usize, io::Result<()>) {
        // A thread may leave before the next one is hired. It must not end the pool.
        self.pool.drain.register();
        let _building = Building(self);
        loop {
            let (slot, stack_size) = {
                let table = self.pool.threads.lock();
                (table.members, table.stack_size)
            };
            if slot == members {
                return (slot, Ok(()));
            }
            let name = match self.pool.name(slot) {
                Ok(name) => name,
                Err(error) => return (slot, Err(error)),
            };
            let Some(me) = self.weak.upgrade() else {
                return (slot, Err(io::Error::other("the pool is being dropped")));
            };
            let done = Arc::new(ThreadDone::new());
            {
                let mut table = self.pool.threads.lock();
                self.pool.drain.register();
                self.pool.termination.register();
                table.handles[slot] = Some(ThreadHandle::Custom(done.clone()));
                table.members += 1;
            }
            self.strategy.resize(slot + 1);
            let body = move |works: bool| {
                if works {
                    // SAFETY: the seat has no other thread (Invariant 1 of the registry): it was
                    // free, and its handle says that it has this one from here on.
                    unsafe { me.main_loop(slot) };
                } else {
                    me.thread_never_started(slot);
                }
                drop(me);
                done.set();
            };
            let body: Option<Box<dyn FnOnce(bool) + Send>> = Some(Box::new(body));
            if let Err(error) = start(ThreadBuilder { index: slot, name, stack_size, body }) {
                return (slot, Err(error));
            }
        }
    }

    /// A foreign thread was hired for that seat, and will not come.
    pub(super) fn thread_never_started(&self, slot: usize) {
        self.pool.abandon(slot);
        if self.pool.termination.deregister() {
            self.pool.sleep.notify_all();
        }
        self.thread_left();
    }

    /// Makes the pool `target` members large, and says how large it is. A member that is to go ends
    /// its task first.
    pub(crate) fn resize(&self, target: usize) -> (usize, io::Result<()>) {
        let mut named: Option<(usize, io::Result<Option<String>>)> = None;
        let mut table = self.pool.threads.lock();
        let mut hired = Ok(());
        while table.members < target && !table.closed {
            let slot = table.members;
            if table.handles[slot].is_some() {
                // If it has left already it begins again (Invariant 4 of the roster).
                let _ = self.pool.withdraw_stop(slot);
            } else {
                let Some((_, name)) = named.take_if(|(whose, _)| *whose == slot) else {
                    // What another resize does meanwhile is seen afterwards.
                    drop(table);
                    named = Some((slot, self.pool.name(slot)));
                    table = self.pool.threads.lock();
                    continue;
                };
                hired = name.and_then(|name| self.spawn_thread(&mut table, slot, name));
                if hired.is_err() {
                    break;
                }
            }
            table.members += 1;
        }
        while table.members > target {
            table.members -= 1;
            self.pool.request_stop(table.members);
        }
        self.strategy.resize(table.members.max(1));
        (table.members, hired)
    }
}

/// Threads of a pool are still to be hired. Counted among the threads that `ending.rs` waits for.
struct Building<'r, S: Strategy>(&'r Registry<S>);

impl<S: Strategy> Drop for Building<'_, S> {
    fn drop(&mut self) {
        self.0.thread_left();
    }
}

/// A thread was hired, and did not start.
struct Unhired<'r, S: Strategy>(&'r Registry<S>);

impl<S: Strategy> Drop for Unhired<'_, S> {
    fn drop(&mut self) {
        if self.0.pool.termination.deregister() {
            self.0.pool.sleep.notify_all();
        }
        // The last only if it was the first: then nothing has been created.
        let _ = self.0.pool.drain.deregister();
    }
}
