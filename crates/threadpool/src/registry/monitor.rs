//! Compensation: a worker that blocks without saying so gets a spare thread in its place, as if its
//! task had said [`blocking`](crate::blocking).
//!
//! A worker is *compensated* if its thread has been off its processor for [`BLOCKED_US`], waiting,
//! in the middle of a task, while tasks are ready and no worker is idle. Then a spare is leased for
//! it. The lease ends when the worker runs again, and the first thread that sees it ends it.
//!
//! | observer | when it looks |
//! | --- | --- |
//! | every worker | between two tasks, at most every [`BLOCKED_US`] |
//! | the monitor, a thread of its own | while tasks are ready, when a worker is switched |
//! | the monitor, where switch records are refused | while tasks are ready, every [`HEARTBEAT`] |
//!
//! Between two looks the monitor sleeps in a [`Watch`](stanchion_machine::presence::watch::Watch).
//! Why both observers: a worker in a long task looks at nothing, and the monitor is woken some 40
//! µs late.
//!
//! Where the system lets it, the monitor does not preempt workers (`wake_politely`). If a worker
//! has blocked, its processor is idle. If all processors are busy, nothing need be compensated. The
//! wake-ups in vain that remain are bounded by [`Quota`].
//!
//! While no task is ready there is nothing to compensate, and the monitor is *off duty*:
//! [`Monitor::go_off_duty`].
//!
//! # Invariants
//!
//! 1. [`COMPENSATED`] is set, and its lease added, in one step under the lock of the thread table.
//!    The thread that clears the bit ends the lease, under that lock. So each compensation ends
//!    once.
//! 2. It is set for a slot with a thread that takes part and is not excused, as the lock's holder
//!    sees it. A thread leaves its slot under that lock, and looks for the bit there.
//! 3. The monitor ends after the last worker has left, and creates nothing.

use core::time::Duration;
use std::io;

use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::presence::watch::Woken;
use stanchion_machine::presence::{self, Presence};

use super::Registry;
use crate::strategy::Strategy;
use crate::workers::{BLOCKED_US, COMPENSATED, HEARTBEAT, Monitor, UNSEEN};

impl<S: Strategy> Registry<S> {
    /// Looks for workers that have blocked, and for compensated ones that run again. Returns
    /// whether some worker seems blocked, and should be looked at again soon.
    pub(super) fn check_for_blocked(&self, monitor: &Monitor, closely: bool) -> bool {
        let pool = self.pool();
        let now = monitor.micros();
        let mut suspected = false;
        for number in 0..pool.num_slots() {
            let slot = pool.info(number);
            // Relaxed: hints. The decision is made under the lock of the thread table.
            let lent = slot.signals.load(Ordering::Relaxed) & COMPENSATED != 0;
            // The slot has no thread.
            if slot.presence.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let blocked = pool.is_blocked(slot, closely);
            if lent {
                // Compensated. Where only a close look tells, another look knows nothing.
                let told = closely || !monitor.is_blind(slot);
                if !blocked && told {
                    pool.come_back(number);
                }
                continue;
            }
            let tasks = slot.counters.tasks.get() as usize;
            let Some(since) = slot.observed.observe(blocked, now, tasks) else { continue };
            suspected = true;
            // Blocked for long enough, and work waits for it.
            if since >= BLOCKED_US && self.has_ready() {
                self.compensate(monitor, number);
            }
        }
        suspected
    }

    /// Compensates the worker of a slot, which has been blocked for long while tasks are ready.
    pub(super) fn compensate(&self, monitor: &Monitor, number: usize) {
        let pool = self.pool();
        if pool.sleep.idle() > 0 {
            // A worker is idle. It may have been left asleep for a task that its creator was to
            // run.
            pool.sleep.notify(1);
            return;
        }
        let slot = pool.info(number);
        // Relaxed: a number. A stopped thread (SIGSTOP, a debugger) has a record like a blocked
        // one. Then all threads are stopped, and no spare is to be leased.
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
            // Notifies the worker as well, in case it has gone idle meanwhile.
            pool.signal(number, COMPENSATED);
            true
        });
    }

    /// Starts the monitor's thread, if the pool is to have one.
    pub(crate) fn start_monitor(&self) -> io::Result<()> {
        let (Some(monitor), Some(me)) = (&self.pool().monitor, self.upgrade()) else {
            return Ok(());
        };
        let builder = stanchion_machine::thread::Builder::new().name("monitor".to_owned());
        let affinity = stanchion_machine::topology::affinity();
        let thread = builder.spawn(move || {
            affinity.adopt();
            stanchion_machine::thread::wake_politely();
            me.monitor_loop();
        })?;
        *monitor.thread.lock() = Some(thread);
        Ok(())
    }

    /// Runs the monitor's thread.
    pub(super) fn monitor_loop(&self) {
        let pool = self.pool();
        let Some(monitor) = &pool.monitor else { return };
        let mut armed = Vec::new();
        let mut quota = Quota::new();
        while !monitor.has_ended() {
            // Nothing is ready: go off duty.
            if !self.has_ready() {
                for index in armed.drain(..) {
                    monitor.watch.disarm(index);
                }
                // From now on no thread sees that the workers run.
                for number in 0..pool.num_slots() {
                    pool.info(number).observed.clear();
                }
                monitor.go_off_duty(&pool.sleep, || self.has_ready(), || self.strategy().len() > 0);
                continue;
            }
            armed.clear();
            let mut blind = false;
            for number in 0..pool.num_slots() {
                // Relaxed: a hint. Arm each worker, and note whether the records tell of all.
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
            // A worker was switched, and none is blocked: it was preempted, or runs again.
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

/// The bound of wake-ups in vain.
///
/// A monitor that wakes on the processor of a worker preempts it. That is a switch of the worker,
/// which wakes the monitor again. Without a bound, workers that never block are preempted thousands
/// of times a second.
struct Quota(Ticks);

impl Quota {
    /// So many wake-ups in a row are allowed, and one in a [`HEARTBEAT`] on average.
    const BURST: u64 = 8;

    pub(super) fn new() -> Self {
        Self(clock::now())
    }

    /// Takes one wake-up. If none is left, returns the time until which the monitor rests.
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
