//! Threads of a pool: how they are started, restarted and told to stop.
//!
//! ```text
//! grow     a slot with a thread: STOP is withdrawn; if the thread has stopped already, it restarts
//!          a free slot: its name is asked for, without the lock; then a thread is started
//! shrink   STOP
//! lease    an idle spare: START; else a new one; else the next spare that would go to sleep
//! close    STOP to all, which they follow when the pool is done
//! ```
//!
//! # Invariants
//!
//! 1. Those of `table.rs`. The user's function gives a new thread its name, and is called without
//!    the lock. What was decided before that call is decided anew.
//! 2. `Termination` counts a thread from the moment of the decision, under the lock of the thread
//!    table, that the thread takes part.

use std::io;
use std::sync::Arc;

use super::Registry;
use crate::strategy::Strategy;
use crate::threads::{ThreadBuilder, ThreadDone, ThreadHandle, ThreadTable};
use crate::workers::Worker;

impl<S: Strategy> Registry<S> {
    /// Returns whether a thread that has done its last task restarts, as its slot is a member's
    /// again. Otherwise the slot is free from here on, or abandoned if the pool is closed.
    pub(super) fn restarts(&self, worker: &Worker) -> bool {
        let (pool, slot) = (&self.pool, worker.index());
        let mut table = pool.threads.lock();
        pool.settle(&mut table, slot);
        // Closed: restart only if `terminate` has said so.
        if table.closed {
            let again = core::mem::take(&mut table.restarts[slot]);
            if again {
                pool.reset_signals(slot);
                pool.request_stop(slot);
            }
            return again;
        }
        let stays = slot < table.members;
        // Open: restart if the slot is a member's again, or has calls.
        if stays || pool.has_calls(worker) {
            pool.reset_signals(slot);
            if !stays {
                pool.request_stop(slot);
            }
            pool.termination.register();
            return true;
        }
        let handle = table.handles[slot].take();
        // The thread before this one has ended long ago: it had nothing left to do when this one
        // was started.
        let _before = core::mem::replace(&mut table.ended[slot], handle);
        false
    }

    /// Starts a thread on a free slot. The caller holds the lock of the thread table.
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
        // SAFETY: the slot has no thread (Invariant 1 of the registry): the caller has the table
        // and has made sure of that.
        let started = table.start(slot, name, move || unsafe { me.main_loop(slot) });
        if started.is_ok() {
            core::mem::forget(unhired);
        }
        started
    }

    /// Has `start` start the members of a pool that is being built. Returns how many there are,
    /// even if it fails.
    pub(crate) fn spawn_custom_threads(
        &self,
        members: usize,
        start: &mut dyn FnMut(ThreadBuilder) -> io::Result<()>,
    ) -> (usize, io::Result<()>) {
        // A thread may leave before the next one is started. It must not end the pool.
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
                    // SAFETY: the slot has no other thread (Invariant 1 of the registry): it was
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

    /// Counts out a thread that the program was to start for a slot, and has not.
    pub(super) fn thread_never_started(&self, slot: usize) {
        self.pool.abandon(slot);
        if self.pool.termination.deregister() {
            self.pool.sleep.notify_all();
        }
        self.thread_left();
    }

    /// Grows or shrinks the pool to `target` members. Returns how many there are then. A member
    /// that is to stop ends its task first.
    pub(crate) fn resize(&self, target: usize) -> (usize, io::Result<()>) {
        let mut named: Option<(usize, io::Result<Option<String>>)> = None;
        let mut table = self.pool.threads.lock();
        let mut hired = Ok(());
        while table.members < target && !table.closed {
            let slot = table.members;
            if table.handles[slot].is_some() {
                // If it has stopped already it restarts (Invariant 4 of `table.rs`).
                let _ = self.pool.withdraw_stop(slot);
            } else {
                let Some((_, name)) = named.take_if(|(whose, _)| *whose == slot) else {
                    // What another call of this does meanwhile is seen afterwards.
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

/// Keeps the pool from ending while its threads are being started: counts as one of them.
struct Building<'r, S: Strategy>(&'r Registry<S>);

impl<S: Strategy> Drop for Building<'_, S> {
    fn drop(&mut self) {
        self.0.thread_left();
    }
}

/// Counts a thread out again that was counted and did not start.
struct Unhired<'r, S: Strategy>(&'r Registry<S>);

impl<S: Strategy> Drop for Unhired<'_, S> {
    fn drop(&mut self) {
        if self.0.pool.termination.deregister() {
            self.0.pool.sleep.notify_all();
        }
        // The last only if it was the first: then no task has been created.
        let _ = self.0.pool.drain.deregister();
    }
}
