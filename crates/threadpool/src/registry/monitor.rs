//! Tasks that block without a word: seen by the kernel's records, and made good by a spare thread,
//! as if they had said [`blocking`](crate::blocking).
//!
//! A worker whose thread has been off its processor for [`BLOCKED_US`], waiting, in the middle of a
//! task, while others are ready and no worker is idle, is *compensated*: a spare is lent for it.
//! When it works again it gives the spare back, or whoever sees it first does.
//!
//! | who looks | when |
//! | --- | --- |
//! | every worker | between two tasks, at most every [`BLOCKED_US`] |
//! | the lookout, a thread of its own | tasks are ready, and a worker has been switched since it last looked: it sleeps in a [`Watch`] meanwhile |
//! | the lookout, where switch records are refused | tasks are ready, every [`HEARTBEAT`] |
//!
//! Why both: a worker in a long task looks at nothing, and a lookout is woken some 40 µs late.
//!
//! The lookout does not preempt workers where the system lets it (`wake_politely`): if a worker has
//! blocked, its processor is idle, and if all processors are busy, nothing need be made good. What
//! wakes it in vain all the same is bounded ([`Quota`]).
//!
//! # The lookout's duty
//!
//! While nothing is ready there is nothing to make good. The lookout is *off* then: no thread is
//! armed, and it sleeps until who makes a task ready, and sees no idle worker, calls it.
//!
//! ```text
//! who creates a task            the lookout
//! ------------------            -----------
//! (a) makes it ready            (1) off = 1
//! (b) light                     (2) heavy
//! (c) off? calls the lookout    (3) is anything ready? Then it is on duty again; else it sleeps until it is called
//! ```
//!
//! A worker that makes a fork does likewise, but it looks at the word of idle workers
//! (`Sleeping::call_for_forks`) for (c), which it looks at anyway. Forks come and go by the
//! million, so the lookout has them call it once in a [`HEARTBEAT`] at most.
//!
//! Who takes a task does (b) and (c) as well, if others are ready: a strategy that moves several at
//! once counts none of them on the way.
//!
//! If (c) does not see (1), (2) makes (3) see what (a) made ready. Else it is called, and a call
//! that comes before the sleep is not lost.
//!
//! # Invariants
//!
//! 1. [`LENT`] is set, and its lease added, in one step under the roster's lock; whoever takes the
//!    bit away takes the lease away, under that lock. So each compensation ends once.
//! 2. It is set for a seat with a thread that takes part and is not [`Away`], as the lock's holder
//!    sees it: a thread leaves its seat under that lock, and looks for the bit there.
//! 3. The lookout ends after the last worker has left, and creates nothing.

use core::time::Duration;
use std::io;

use machine::asymmetric;
use machine::atomic::Ordering;
use machine::clock::{self, Deadline, Ticks};
use machine::presence::{self, Presence};
use machine::watch::Woken;

use super::Registry;
use crate::strategy::Strategy;
use crate::workers::monitor::{BLOCKED_US, HEARTBEAT, Lookout};
use crate::workers::signals::LENT;
use crate::workers::worker_info::UNSEEN;

impl<S: Strategy> Registry<S> {
    /// Looks for workers that have blocked, and for such as are back. Says whether one is
    /// suspected, and to be looked at again soon.
    pub(super) fn look_out(&self, lookout: &Lookout, closely: bool) -> bool {
        let common = self.common();
        let now = lookout.micros();
        let mut suspected = false;
        for number in 0..common.seats() {
            let seat = common.seat(number);
            // Relaxed: hints; decided under the roster's lock.
            let lent = seat.orders.load(Ordering::Relaxed) & LENT != 0;
            if seat.presence.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let blocked = common.is_blocked(seat, closely);
            if lent {
                // Where only a close look tells, who does not look closely knows nothing.
                let told = closely || !lookout.is_blind(seat);
                if !blocked && told {
                    common.come_back(number);
                }
                continue;
            }
            let tasks = seat.counters.tasks.get() as usize;
            let Some(since) = seat.suspicion.seen(blocked, now, tasks) else { continue };
            suspected = true;
            if since >= BLOCKED_US && self.has_ready() {
                self.compensate(lookout, number);
            }
        }
        suspected
    }

    /// The worker of that seat has been blocked for long, and tasks are ready.
    pub(super) fn compensate(&self, lookout: &Lookout, number: usize) {
        let common = self.common();
        if common.sleeping.idle() > 0 {
            // Somebody is there, and may have been left asleep for a task that its creator was to
            // run.
            common.sleeping.tell(1);
            return;
        }
        let seat = common.seat(number);
        // Relaxed: a number. A stopped thread (SIGSTOP, a debugger) has a record like a blocked
        // one: then all are stopped, and none is to be lent.
        let index = seat.presence.load(Ordering::Relaxed).wrapping_sub(1);
        if presence::examine(index) != Presence::Blocked {
            return;
        }
        self.lend_spare_if(|roster| {
            // Invariants 1 and 2. Relaxed: the lock is held.
            let takes_part = seat.presence.load(Ordering::Relaxed) == index.wrapping_add(1)
                && seat.suspicion.away.load(Ordering::Relaxed) == 0
                && !roster.idle_spares.contains(&number);
            if !takes_part || seat.orders.load(Ordering::Relaxed) & LENT != 0 {
                return false;
            }
            // Relaxed: statistics.
            seat.suspicion.lent.store(lookout.micros(), Ordering::Relaxed);
            lookout.compensations.fetch_add(1, Ordering::Relaxed);
            // It is told, should it have gone idle meanwhile.
            common.order(number, LENT);
            true
        });
    }

    /// Starts the lookout's thread, if the pool is to have one.
    pub(crate) fn post_lookout(&self) -> io::Result<()> {
        let (Some(lookout), Some(me)) = (&self.common().lookout, self.itself()) else {
            return Ok(());
        };
        let builder = machine::thread::Builder::new().name("lookout".to_owned());
        let affinity = machine::topology::affinity();
        let thread = builder.spawn(move || {
            affinity.adopt();
            machine::thread::wake_politely();
            me.keep_watch();
        })?;
        *lookout.thread.lock() = Some(thread);
        Ok(())
    }

    /// The lookout's life.
    pub(super) fn keep_watch(&self) {
        let common = self.common();
        let Some(lookout) = &common.lookout else { return };
        let mut armed = Vec::new();
        let mut quota = Quota::new();
        while !lookout.has_ended() {
            if !self.has_ready() {
                for index in armed.drain(..) {
                    lookout.watch.disarm(index);
                }
                // Nobody sees from now on that they run.
                for number in 0..common.seats() {
                    common.seat(number).suspicion.forget();
                }
                // Relaxed: see the head of the file.
                lookout.off.store(1, Ordering::Relaxed);
                common.sleeping.call_for_forks(true);
                asymmetric::heavy();
                let waits = !self.has_ready() && !lookout.has_ended();
                if waits {
                    lookout.watch.wait(Deadline::NEVER);
                }
                common.sleeping.call_for_forks(false);
                if waits {
                    // Forks may come and go all the time: they call it each `HEARTBEAT` at most.
                    if !self.has_ready() && !lookout.has_ended() {
                        lookout.off.store(1, Ordering::Relaxed);
                        asymmetric::heavy();
                        if self.strategy().len() == 0 {
                            lookout.watch.wait(Deadline::after(HEARTBEAT));
                        }
                    }
                }
                lookout.off.store(0, Ordering::Relaxed);
                continue;
            }
            armed.clear();
            let mut blind = false;
            for number in 0..common.seats() {
                // Relaxed: a hint.
                match common.seat(number).presence.load(Ordering::Relaxed) {
                    0 => {}
                    UNSEEN => blind = true,
                    index if lookout.watch.arm(index - 1) => armed.push(index - 1),
                    _ => blind = true,
                }
            }
            // After they were armed: what happens from now on ends the wait.
            let suspected = self.look_out(lookout, blind);
            let deadline = match (blind, suspected) {
                (true, _) => Deadline::after(HEARTBEAT),
                (false, true) => Deadline::after(Duration::from_micros(BLOCKED_US as u64)),
                (false, false) => Deadline::NEVER,
            };
            let woken = lookout.watch.wait(deadline);
            // A worker was switched, and none is blocked: it was preempted, or is back.
            if woken == Woken::Switched
                && !self.look_out(lookout, blind)
                && let Some(rest) = quota.take()
            {
                for index in armed.drain(..) {
                    lookout.watch.disarm(index);
                }
                lookout.watch.wait(rest);
            }
        }
    }
}

/// How often the lookout may be woken in vain.
///
/// A lookout that wakes on the processor of a worker preempts it. That is a switch of the worker,
/// which wakes the lookout again: without a bound, workers that never block are preempted thousands
/// of times a second.
struct Quota(Ticks);

impl Quota {
    /// So many times in a row, and once in [`HEARTBEAT`] on average.
    const BURST: u64 = 8;

    pub(super) fn new() -> Self {
        Self(clock::now())
    }

    /// Takes one. Returns until when the lookout is to rest, if there is none left.
    pub(super) fn take(&mut self) -> Option<Deadline> {
        let price = HEARTBEAT.as_nanos() as u64;
        let now = clock::now();
        self.0 = self.0.max(now).plus_nanos(price);
        let ahead = self.0.nanos_since(now);
        let rest = ahead.checked_sub(Self::BURST * price).filter(|rest| *rest > 0)?;
        Some(Deadline::after(Duration::from_nanos(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    pub(super) fn a_quota_allows_a_burst_and_then_one_in_a_while() {
        let begin = clock::now();
        let mut quota = Quota::new();
        for _ in 0..Quota::BURST {
            assert!(quota.take().is_none());
        }
        let free = (0..1_000).filter(|_| quota.take().is_none()).count() as u64;
        let passed = clock::now().nanos_since(begin);
        assert!(free <= passed / HEARTBEAT.as_nanos() as u64, "{free} in {passed} ns");
    }
}
