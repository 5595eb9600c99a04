//! The monitor: a kernel thread that sleeps until a worker blocks, when no other thread would see
//! it. (Go's `sysmon`.)
//!
//! Running workers look at each other at their scheduling points. If each of them is blocked, or
//! computes without ever coming to one, no worker looks. With one processor there is no other
//! worker. The monitor sleeps on a [`Watch`](stanchion_machine::presence::watch::Watch), which the
//! kernel wakes when a worker is switched out. It runs no user-level threads. Times that threads
//! wait for are work as well (`queues/timers.rs`), once they have come. Until then, if no worker
//! watches the clock, the monitor does so for the workers that are blocked.
//!
//! Why not a thread that looks every so often: it is late, or burns a processor. Why the monitor
//! is not woken whenever a thread is ready: that costs more than most threads run for. Instead, a
//! thread that makes work ready for which no slot is free **arms** the watch on the workers, a
//! microsecond each, and again only after one of them has been switched
//! (`detection/watch_state.rs`). A worker that goes to sleep for want of work disarms itself.
//!
//! While overcommitted slots are open (`processors/overcommit.rs`), workers block all the time. A
//! wake-up for each block would cost as much as the blocks themselves. Then the monitor polls every
//! [`ROUND`] to [`LONGEST_ROUND`], the oftener the more there is for it to do. It looks whether a
//! worker is wanted, and whether there are too many. Polling ends when all these slots have closed,
//! or no thread is ready.
//!
//! Where the kernel's records are refused there is nothing to arm. The monitor is woken when a
//! thread is ready for which no slot is free. It looks every [`HEARTBEAT`], further and further
//! apart while it finds nothing, as long as threads are ready. See
//! [`Capabilities`](crate::Capabilities).
//!
//! # Orderings
//!
//! Those of `detection/watch_state.rs`. A worker is armed first and looked at then, so that no
//! switch falls in between.

use core::time::Duration;
use std::sync::Arc;

use stanchion_machine::clock::Deadline;
use stanchion_machine::presence::Presence;

use super::{look, lost_time};
use crate::detection::monitor::{Found, Looker, Monitored, MonitoredWorker as _};
use crate::processors::overcommit::Overcommit;
use crate::runtime::state::RuntimeState;

/// The first time between two looks where the kernel records no switches.
const HEARTBEAT: Duration = Duration::from_millis(2);

/// The longest such time.
const LONGEST_HEARTBEAT: Duration = Duration::from_millis(10);

/// The first time between two rounds while overcommitted slots are open.
const ROUND: Duration = Duration::from_micros(50);

/// The longest such time.
const LONGEST_ROUND: Duration = Duration::from_micros(800);

/// The rounds after which the monitor decides whether there are too many slots.
const ROUNDS: u32 = 8;

/// The rest of a runtime that the monitor's loop uses. A trait, so that a model can have a small
/// runtime of its own.
pub trait MonitoredRuntime: Monitored {
    /// Returns whether all has ended.
    fn is_over(&self) -> bool;

    /// Returns whether a thread is ready, or a time has come.
    fn has_work(&self) -> bool;

    /// Returns whether a time has come.
    fn is_time(&self) -> bool;

    /// Returns whether threads wait for times that no worker watches.
    fn is_time_unwatched(&self) -> bool;

    /// Returns the time until which the monitor may sleep. `for_times` says whether it wakes up for
    /// times.
    fn timer_deadline(&self, for_times: bool) -> Deadline;

    /// Returns the number of slots that the runtime may use.
    fn allowed(&self) -> usize;

    /// Returns the slots beyond the processors.
    fn overcommit(&self) -> &Overcommit;

    /// Returns whether a processor would be idle for want of a worker that can run.
    fn lacks_runners(&self) -> bool;

    /// Looks at the owner of a slot by the kernel's records. Takes the slot if the owner is
    /// blocked, another worker could use it, and the delay is over.
    fn look_at(self: &Arc<Self>, slot: usize) -> Found;

    /// Does the same without records.
    fn examine(self: &Arc<Self>, slot: usize) -> Found;

    /// Records that no thread is ready, so that no processor time is lost.
    fn no_work(&self);
}

impl MonitoredRuntime for RuntimeState {
    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn has_work(&self) -> bool {
        self.has_work()
    }

    fn is_time(&self) -> bool {
        self.ready.timers.is_due()
    }

    fn is_time_unwatched(&self) -> bool {
        self.is_time_unwatched()
    }

    fn timer_deadline(&self, for_times: bool) -> Deadline {
        self.ready.timers.monitor_deadline(for_times)
    }

    fn allowed(&self) -> usize {
        self.processors.limit.allowed()
    }

    fn overcommit(&self) -> &Overcommit {
        &self.processors.overcommit
    }

    fn lacks_runners(&self) -> bool {
        self.lacks_runners()
    }

    fn look_at(self: &Arc<Self>, slot: usize) -> Found {
        look::look_at(self, slot, Looker::WokenMonitor)
    }

    fn examine(self: &Arc<Self>, slot: usize) -> Found {
        look::examine(self, slot)
    }

    fn no_work(&self) {
        lost_time::stop_all(self);
    }
}

/// Runs the monitor until the runtime has ended.
pub fn run(runtime: &Arc<impl MonitoredRuntime>) {
    let monitor = runtime.monitor();
    let Some(watch) = monitor.watch() else { return };
    // A worker that is preempted wakes the monitor, and must not be preempted by that once more.
    stanchion_machine::thread::wake_politely();
    let needed = || runtime.is_over() || runtime.has_work() || runtime.is_time_unwatched();
    let has_records = watch.refused().is_none();
    let mut interval = HEARTBEAT;
    let mut rounds = Rounds::new();
    while !runtime.is_over() {
        let mut soonest = None;
        let (mut is_blocked, mut is_unneeded) = (false, false);
        // Before the looks: a time that comes during them ends the wait at once.
        let is_time = runtime.is_time();
        // Overcommitted slots are open, and it polls.
        if runtime.is_overcommitted()
            && let Some(after) = rounds.look(runtime, needed())
        {
            soonest = Some(after);
        // There is work: it arms the workers and looks at each.
        } else if needed() {
            monitor.watch_state.arm();
            for slot in runtime.slots_in_use() {
                let owner = runtime.owner_of(slot);
                let is_armed = monitor.arm(owner);
                let found = if is_armed { runtime.look_at(slot) } else { runtime.examine(slot) };
                is_blocked |= is_armed && owner.is_blocked();
                is_unneeded |= found == Found::Unneeded;
                let after = match found {
                    Found::Fine | Found::Unneeded => (!is_armed).then_some(interval),
                    Found::Blocked(nanos) => Some(Duration::from_nanos(nanos)),
                    Found::Taken => Some(Duration::ZERO),
                };
                soonest = after.into_iter().chain(soonest).min();
            }
            let is_heartbeat = soonest == Some(interval);
            interval = if is_heartbeat { (interval * 2).min(LONGEST_HEARTBEAT) } else { HEARTBEAT };
            // The work was taken during the looks. A blocked worker that they passed over does not
            // wake the monitor again. So the next thread that makes work ready has to.
            if is_unneeded && soonest.is_none() {
                monitor.watch_state.leave();
                if needed() {
                    continue;
                }
            }
        // There is none: it sleeps until a worker is armed and switched.
        } else if has_records {
            runtime.no_work();
            monitor.watch_state.leave();
            if needed() {
                continue;
            }
        // There is none, and no worker can be armed: it sleeps until it is called.
        } else {
            runtime.no_work();
            monitor.sleep(needed);
            continue;
        }
        let due = runtime.timer_deadline(is_blocked && !is_time);
        watch.wait(soonest.map_or(Deadline::NEVER, Deadline::after).min(due));
    }
}

/// The polling while overcommitted slots are open.
struct Rounds {
    /// The time until the next round.
    interval: Duration,
    /// The rounds since the last decision.
    count: u32,
    /// The fewest workers that could run in a round since then.
    running: usize,
    /// The most workers that could not.
    blocked: usize,
}

impl Rounds {
    fn new() -> Self {
        Self { interval: ROUND, count: 0, running: usize::MAX, blocked: 0 }
    }

    /// Does one round. Returns the time until the next one, if one is due.
    fn look(&mut self, runtime: &Arc<impl MonitoredRuntime>, needed: bool) -> Option<Duration> {
        let (overcommit, allowed) = (runtime.overcommit(), runtime.allowed());
        let all = runtime.slots_in_use().count();
        let is_running = |&slot: &usize| runtime.owner_of(slot).presence() != Presence::Blocked;
        let running = runtime.slots_in_use().filter(is_running).count();
        self.count += 1;
        self.running = self.running.min(running);
        // A worker may have come to a slot between the two counts. It runs.
        self.blocked = self.blocked.max(all.saturating_sub(running));
        if self.count == ROUNDS {
            if self.blocked == 0 {
                overcommit.allow(0);
            } else if self.running > 2 * allowed {
                let excess = self.running - 2 * allowed;
                overcommit.allow(overcommit.count_open().saturating_sub(excess));
            }
            *self = Self { interval: self.interval, ..Self::new() };
        }
        let mut is_taken = false;
        // There is work: it looks at each slot.
        if needed {
            // Threads that make work ready leave the rest to the monitor.
            runtime.monitor().watch_state.poll();
            for slot in runtime.slots_in_use() {
                let owner = runtime.owner_of(slot);
                let is_unseen =
                    owner.presence() == Presence::Unknown && owner.presence_index().is_some();
                let found = if is_unseen {
                    // Without switch records it counts as running, even when it is blocked.
                    runtime.examine(slot)
                } else if runtime.lacks_runners() {
                    runtime.look_at(slot)
                } else {
                    Found::Fine
                };
                is_taken |= found == Found::Taken;
            }
        // There is none, and not too many workers run: polling ends.
        } else if running <= allowed {
            self.interval = ROUND;
            return None;
        }
        self.interval = if is_taken { ROUND } else { (self.interval * 2).min(LONGEST_ROUND) };
        Some(self.interval)
    }
}
