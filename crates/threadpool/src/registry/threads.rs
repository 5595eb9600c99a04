//! How the threads of a registry are hired, told to go, and waited for.
//!
//! ```text
//! resize up    a seat with a thread: LEAVE is taken back, or, if the thread has left already, it begins again of itself
//!              a free seat: its name is asked for, without the lock; then a thread is started
//! resize down  LEAVE
//! lend         a spare that sleeps: SERVE; else a new one; else the next that would stop
//! close        LEAVE to all, which they follow when all is over
//! ```
//!
//! # Invariants
//!
//! 1. Those of `roster.rs`: a new thread's name, which the user gives, is asked for without the
//!    lock. What was decided before that is decided anew.
//! 2. `Closing` counts a thread from the moment that somebody decides, under the roster's lock,
//!    that it takes part.

use std::io;
use std::sync::Arc;

use super::Registry;
use crate::strategy::Strategy;
use crate::threads::custom::{Done, Thread, ThreadBuilder};
use crate::threads::table::Roster;
use crate::workers::worker::Worker;

impl<S: Strategy> Registry<S> {
    /// A thread has done its last task. Whether its seat is a member's again, so that it goes on;
    /// otherwise the seat is free from here on, and if the pool is closed, nobody's.
    pub(super) fn begins_again(&self, worker: &Worker) -> bool {
        let (common, seat) = (&self.common, worker.index());
        let mut roster = common.roster.lock();
        common.settle(&mut roster, seat);
        if roster.closed {
            let again = core::mem::take(&mut roster.again[seat]);
            if again {
                common.reset(seat);
                common.dismiss(seat);
            }
            return again;
        }
        let stays = seat < roster.target;
        if stays || common.has_mail(worker) {
            common.reset(seat);
            if !stays {
                common.dismiss(seat);
            }
            common.closing.enlist();
            return true;
        }
        let handle = roster.handles[seat].take();
        // The one before that has ended long ago: it had nothing left to do when this one was
        // started.
        let _before = core::mem::replace(&mut roster.past[seat], handle);
        false
    }

    /// Starts a thread on a seat that has none. The roster is the registry's own, locked.
    pub(super) fn hire(
        &self,
        roster: &mut Roster,
        seat: usize,
        name: Option<String>,
    ) -> io::Result<()> {
        if self.common.behaviour.foreign {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the program's spawn handler has started this pool's threads when it was built, and is gone",
            ));
        }
        self.common.reset(seat);
        if roster.closed {
            self.common.dismiss(seat);
        }
        let Some(me) = self.me.upgrade() else {
            return Err(io::Error::other("the pool is being dropped"));
        };
        self.common.ending.hire();
        self.common.closing.enlist();
        let unhired = Unhired(self);
        // SAFETY: the seat has no thread (Invariant 1 of the registry): whoever calls this has the
        // roster and has seen to that.
        let started = roster.start(seat, name, move || unsafe { me.work(seat) });
        if started.is_ok() {
            core::mem::forget(unhired);
        }
        started
    }

    /// Has `start` start the members of a pool that is being built. Returns how many there are,
    /// also if it fails.
    pub(crate) fn hire_foreign(
        &self,
        members: usize,
        start: &mut dyn FnMut(ThreadBuilder) -> io::Result<()>,
    ) -> (usize, io::Result<()>) {
        // A thread may leave before the next one is hired. It must not end the pool.
        self.common.ending.hire();
        let _building = Building(self);
        loop {
            let (seat, stack_size) = {
                let roster = self.common.roster.lock();
                (roster.target, roster.stack_size)
            };
            if seat == members {
                return (seat, Ok(()));
            }
            let name = match self.common.name(seat) {
                Ok(name) => name,
                Err(error) => return (seat, Err(error)),
            };
            let Some(me) = self.me.upgrade() else {
                return (seat, Err(io::Error::other("the pool is being dropped")));
            };
            let done = Arc::new(Done::new());
            {
                let mut roster = self.common.roster.lock();
                self.common.ending.hire();
                self.common.closing.enlist();
                roster.handles[seat] = Some(Thread::Foreign(done.clone()));
                roster.target += 1;
            }
            self.strategy.resize(seat + 1);
            let body = move |works: bool| {
                if works {
                    // SAFETY: the seat has no other thread (Invariant 1 of the registry): it was
                    // free, and its handle says that it has this one from here on.
                    unsafe { me.work(seat) };
                } else {
                    me.never_works(seat);
                }
                drop(me);
                done.set();
            };
            let body: Option<Box<dyn FnOnce(bool) + Send>> = Some(Box::new(body));
            if let Err(error) = start(ThreadBuilder { index: seat, name, stack_size, body }) {
                return (seat, Err(error));
            }
        }
    }

    /// A foreign thread was hired for that seat, and will not come.
    pub(super) fn never_works(&self, seat: usize) {
        self.common.abandon(seat);
        if self.common.closing.release() {
            self.common.sleeping.tell_all();
        }
        self.left();
    }

    /// Makes the pool `target` members large, and says how large it is. A member that is to go ends
    /// its task first.
    pub(crate) fn resize(&self, target: usize) -> (usize, io::Result<()>) {
        let mut named: Option<(usize, io::Result<Option<String>>)> = None;
        let mut roster = self.common.roster.lock();
        let mut hired = Ok(());
        while roster.target < target && !roster.closed {
            let seat = roster.target;
            if roster.handles[seat].is_some() {
                // If it has left already it begins again (Invariant 4 of the roster).
                let _ = self.common.retain(seat);
            } else {
                let Some((_, name)) = named.take_if(|(whose, _)| *whose == seat) else {
                    // What another resize does meanwhile is seen afterwards.
                    drop(roster);
                    named = Some((seat, self.common.name(seat)));
                    roster = self.common.roster.lock();
                    continue;
                };
                hired = name.and_then(|name| self.hire(&mut roster, seat, name));
                if hired.is_err() {
                    break;
                }
            }
            roster.target += 1;
        }
        while roster.target > target {
            roster.target -= 1;
            self.common.dismiss(roster.target);
        }
        self.strategy.resize(roster.target.max(1));
        (roster.target, hired)
    }
}

/// Threads of a pool are still to be hired. Counted among the threads that `ending.rs` waits for.
struct Building<'r, S: Strategy>(&'r Registry<S>);

impl<S: Strategy> Drop for Building<'_, S> {
    fn drop(&mut self) {
        self.0.left();
    }
}

/// A thread was hired, and did not start.
struct Unhired<'r, S: Strategy>(&'r Registry<S>);

impl<S: Strategy> Drop for Unhired<'_, S> {
    fn drop(&mut self) {
        if self.0.common.closing.release() {
            self.0.common.sleeping.tell_all();
        }
        // The last only if it was the first: then nothing has been created.
        let _ = self.0.common.ending.leave();
    }
}
