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
//! who creates a task            the monitor
//! ------------------            -----------
//! (a) makes it ready            (1) off = 1
//! (b) light                     (2) heavy
//! (c) off? calls the monitor    (3) is anything ready? Then it is on duty again; else it sleeps until it is called
//! ```
//!
//! A worker that makes a fork does likewise, but it looks at the word of idle workers
//! (`Sleep::watch_forks`) for (c), which it looks at anyway. Forks come and go by the
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
//! 1. [`COMPENSATED`] is set, and its lease added, in one step under the roster's lock; whoever takes the
//!    bit away takes the lease away, under that lock. So each compensation ends once.
//! 2. It is set for a seat with a thread that takes part and is not [`Excused`], as the lock's holder
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
use crate::workers::monitor::{BLOCKED_US, HEARTBEAT, Monitor};
use crate::workers::signals::COMPENSATED;
use crate::workers::worker_info::UNSEEN;

impl<S: Strategy> Registry<S> {
    /// Looks for workers that have blocked, and for such as are back. Says whether one is
    /// suspected, and to be looked at again soon.
    pub(super) fn check_for_blocked(&self, monitor: &Monitor, closely: bool) -> bool {
        let pool = self.pool();
        let now = monitor.micros();
        let mut suspected = false;
        for number in 0..pool.num_slots() {
            let slot = pool.info(number);
            // Relaxed: hints; decided under the roster's lock.
            let lent = slot.signals.load(Ordering::Relaxed) & COMPENSATED != 0;
            if slot.presence.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let blocked = pool.is_blocked(slot, closely);
            if lent {
                // Where only a close look tells, who does not look closely knows nothing.
                let told = closely || !monitor.is_blind(slot);
                if !blocked && told {
                    pool.come_back(number);
                }
                continue;
            }
            let tasks = slot.counters.tasks.get() as usize;
            let Some(since) = slot.observed.observe(blocked, now, tasks) else { continue };
            suspected = true;
            if since >= BLOCKED_US && self.has_ready() {
                self.compensate(monitor, number);
            }
        }
        suspected
    }

    /// The worker of that seat has been blocked for long, and tasks are ready.
    pub(super) fn compensate(&self, monitor: &Monitor, number: usize) {
        let pool = self.pool();
        if pool.sleep.idle() > 0 {
            // Somebody is there, and may have been left asleep for a task that its creator was to
            // run.
            pool.sleep.notify(1);
            return;
        }
        let slot = pool.info(number);
        // Relaxed: a number. A stopped thread (SIGSTOP, a debugger) has a record like a blocked
        // one: then all are stopped, and none is to be lent.
        let index = slot.presence.load(Ordering::Relaxed).wrapping_sub(1);
        if presence::examine(index) != Presence::Blocked {
            return;
        }
        self.lease_spare_if(|table| {
            // Invariants 1 and 2. Relaxed: the lock is held.
            let takes_part = slot.presence.load(Ordering::Relaxed) == index.wrapping_add(1)
                && slot.observed.excuses.load(Ordering::Relaxed) == 0
                && !table.idle_spares.contains(&number);
            if !takes_part || slot.signals.load(Ordering::Relaxed) & COMPENSATED != 0 {
                return false;
            }
            // Relaxed: statistics.
            slot.observed.lent.store(monitor.micros(), Ordering::Relaxed);
            monitor.compensations.fetch_add(1, Ordering::Relaxed);
            // It is told, should it have gone idle meanwhile.
            pool.signal(number, COMPENSATED);
            true
        });
    }

    /// Starts the lookout's thread, if the pool is to have one.
    pub(crate) fn start_monitor(&self) -> io::Result<()> {
        let (Some(monitor), Some(me)) = (&self.pool().monitor, self.upgrade()) else {
            return Ok(());
        };
        let builder = machine::thread::Builder::new().name("monitor".to_owned());
        let affinity = machine::topology::affinity();
        let thread = builder.spawn(move || {
            affinity.adopt();
            machine::thread::wake_politely();
            me.monitor_loop();
        })?;
        *monitor.thread.lock() = Some(thread);
        Ok(())
    }

    /// The lookout's life.
    pub(super) fn monitor_loop(&self) {
        let pool = self.pool();
        let Some(monitor) = &pool.monitor else { return };
        let mut armed = Vec::new();
        let mut quota = Quota::new();
        while !monitor.has_ended() {
            if !self.has_ready() {
                for index in armed.drain(..) {
                    monitor.watch.disarm(index);
                }
                // Nobody sees from now on that they run.
                for number in 0..pool.num_slots() {
                    pool.info(number).observed.clear();
                }
                // Relaxed: see the head of the file.
                monitor.off_duty.store(1, Ordering::Relaxed);
                pool.sleep.watch_forks(true);
                asymmetric::heavy();
                let waits = !self.has_ready() && !monitor.has_ended();
                if waits {
                    monitor.watch.wait(Deadline::NEVER);
                }
                pool.sleep.watch_forks(false);
                if waits {
                    // Forks may come and go all the time: they call it each `HEARTBEAT` at most.
                    if !self.has_ready() && !monitor.has_ended() {
                        monitor.off_duty.store(1, Ordering::Relaxed);
                        asymmetric::heavy();
                        if self.strategy().len() == 0 {
                            monitor.watch.wait(Deadline::after(HEARTBEAT));
                        }
                    }
                }
                monitor.off_duty.store(0, Ordering::Relaxed);
                continue;
            }
            armed.clear();
            let mut blind = false;
            for number in 0..pool.num_slots() {
                // Relaxed: a hint.
                match pool.info(number).presence.load(Ordering::Relaxed) {
                    0 => {}
                    UNSEEN => blind = true,
                    index if monitor.watch.arm(index - 1) => armed.push(index - 1),
                    _ => blind = true,
                }
            }
            // After they were armed: what happens from now on ends the wait.
            let suspected = self.check_for_blocked(monitor, blind);
            let deadline = match (blind, suspected) {
                (true, _) => Deadline::after(HEARTBEAT),
                (false, true) => Deadline::after(Duration::from_micros(BLOCKED_US as u64)),
                (false, false) => Deadline::NEVER,
            };
            let woken = monitor.watch.wait(deadline);
            // A worker was switched, and none is blocked: it was preempted, or is back.
            if woken == Woken::Switched
                && !self.check_for_blocked(monitor, blind)
                && let Some(rest) = quota.take()
            {
                for index in armed.drain(..) {
                    monitor.watch.disarm(index);
                }
                monitor.watch.wait(rest);
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
