//! The monitor: a kernel thread that sleeps until a worker blocks, when nobody else would see it.
//!
//! Running workers look at each other at their scheduling points. If each of them is blocked, or
//! computes without ever coming to one, nobody looks, and with one processor there is nobody else.
//! The monitor sleeps on a [`Watch`] that the kernel wakes when a worker is switched out. It
//! carries no threads. Times that threads wait for are work as well (`timers.rs`), once they have
//! come; until then, if nobody else watches the clock, it does for the workers that are blocked.
//!
//! Why not a thread that looks every so often: it is late, or burns a processor. Why it is not
//! woken whenever something is ready: that costs more than most threads run for. Instead whoever
//! makes a thread ready for which no slot is free **arms** the watch on the workers, a microsecond
//! each, and again only after one of them has been switched: the runtime is *on guard*
//! (`guard.rs`). A worker that goes to sleep for want of work takes itself out.
//!
//! While slots of the overcommit are open (`overcommit.rs`), workers block all the time, and to be told
//! of each block would cost as much as the blocks themselves. Then the monitor looks every
//! [`ROUND`] to [`LONGEST_ROUND`], the oftener the more there is for it to do: whether a worker is
//! wanted, and whether there are too many. When all of these have closed, or nothing is ready, that
//! ends.
//!
//! Where the kernel's records are refused there is nothing to be armed: the monitor is woken when
//! something is ready that finds no slot free, and looks every [`HEARTBEAT`], further and further
//! apart while it finds nothing, as long as threads are ready; see
//! [`Capabilities`](crate::Capabilities).
//!
//! # Orderings
//!
//! Those of `guard.rs`. A worker is armed first and looked at then, so that no switch falls in
//! between.

use core::time::Duration;
use std::sync::Arc;

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;
use machine::presence::Presence;
use machine::watch::Watch;

use crate::processors::worker_record::WorkerRecord;
use crate::detection::watch_state::WatchState;
use crate::upcalls::handoff::{Found, Looks};
use crate::runtime::state::RuntimeState;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// How far apart the looks are where nobody tells, at first and at most.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(2);
const MOST: Duration = Duration::from_millis(10);

/// How far apart its rounds are while slots of the overcommit are open, at first and at most.
const ROUND: Duration = Duration::from_micros(50);
const LONGEST_ROUND: Duration = Duration::from_micros(800);

/// After so many it decides whether there are too many slots.
const ROUNDS: u32 = 8;

/// Where the monitor sleeps.
pub(crate) struct Monitor {
    /// None if there is no monitor.
    watch: Option<Watch>,
    /// Who would notice that a worker is stuck.
    guard: WatchState,
    /// Where it sleeps if nobody can be armed.
    word: AtomicU32,
}

impl Monitor {
    /// One that has not been started, if there is to be one.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { watch: wanted.then(Watch::new), guard: WatchState::new(), word: AtomicU32::fresh(AWAKE) }
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Whether it is of use to call it.
    #[inline]
    fn is_off_guard(&self) -> bool {
        self.guard.is_nobody() && self.watch.is_some()
    }

    /// A worker has got a slot, or wakes up on it. If it cannot be armed, the monitor has to look
    /// at it every so often, and may know only of others that can.
    pub(crate) fn begin(&self, worker: &WorkerRecord) {
        if self.guard.has_begun() && !self.arm(worker) && worker.presence_index().is_some() {
            self.wake();
        }
    }

    /// A worker goes to sleep on its slot.
    pub(crate) fn pause(&self, worker: &WorkerRecord) {
        if self.guard.is_told()
            && let (Some(watch), Some(index)) = (&self.watch, worker.presence_index())
        {
            watch.disarm(index);
        }
    }

    fn arm(&self, worker: &WorkerRecord) -> bool {
        match (&self.watch, worker.presence_index()) {
            (Some(watch), Some(index)) => watch.arm(index),
            _ => false,
        }
    }

    /// Wakes it wherever it sleeps.
    #[cold]
    pub(crate) fn wake(&self) {
        // Release: pairs with the Acquire in `sleep`.
        self.word.store(AWAKE, Ordering::Release);
        park::wake_one(&self.word);
        if let Some(watch) = &self.watch {
            watch.wake();
        }
    }

    /// Sleeps until it is called, unless `needed`.
    fn sleep(&self, needed: impl Fn() -> bool) {
        // Relaxed: the fence of `leave` orders it.
        self.word.store(ASLEEP, Ordering::Relaxed);
        self.guard.leave();
        if needed() {
            self.word.store(AWAKE, Ordering::Relaxed);
            return;
        }
        // Acquire: pairs with the Release in `wake`.
        while self.word.load(Ordering::Acquire) == ASLEEP {
            park::wait(&self.word, ASLEEP, Deadline::NEVER);
        }
    }
}

impl RuntimeState {
    /// Something is ready, and no slot was free for it. After a fence.
    #[inline]
    pub(crate) fn guard(&self) {
        if self.monitor().is_off_guard() {
            self.arm_workers();
        }
    }

    #[cold]
    fn arm_workers(&self) {
        let monitor = self.monitor();
        if self.overcommit().is_open() {
            monitor.guard.look();
            return monitor.wake();
        }
        // Whoever sees it early leaves it to this.
        monitor.guard.stand();
        let mut unseen = false;
        for slot in self.slots_in_use() {
            let worker = self.worker(self.slot(slot).owner());
            let armed = monitor.arm(worker);
            // One that has not registered yet arms itself when it begins.
            unseen |= worker.is_blocked();
            unseen |= !armed && worker.presence_index().is_some();
        }
        if unseen {
            monitor.wake();
        }
    }
}

/// The monitor's body.
pub(crate) fn watch_workers(runtime: &Arc<RuntimeState>) {
    let monitor = runtime.monitor();
    let Some(watch) = monitor.watch() else { return };
    // A worker that is preempted wakes it, and must not be preempted by that once more.
    machine::thread::wake_politely();
    let needed = || runtime.is_over() || runtime.has_work() || runtime.is_time_unwatched();
    let sees = watch.refused().is_none();
    let mut interval = HEARTBEAT;
    let mut rounds = Rounds::new();
    while !runtime.is_over() {
        let mut soonest = None;
        let (mut blocked, mut unneeded) = (false, false);
        // Before the looks: a time that comes beside them ends the wait at once.
        let is_time = runtime.is_time();
        if runtime.overcommit().is_open()
            && let Some(after) = rounds.look(runtime, needed())
        {
            soonest = Some(after);
        } else if needed() {
            monitor.guard.stand();
            for slot in runtime.slots_in_use() {
                let owner = runtime.worker(runtime.slot(slot).owner());
                let told = monitor.arm(owner);
                let found =
                    if told { runtime.look_at(slot, Looks::Woken) } else { runtime.examine(slot) };
                blocked |= told && owner.is_blocked();
                unneeded |= found == Found::Unneeded;
                let after = match found {
                    Found::Fine | Found::Unneeded => (!told).then_some(interval),
                    Found::Blocked(nanos) => Some(Duration::from_nanos(nanos)),
                    Found::Taken => Some(Duration::ZERO),
                };
                soonest = after.into_iter().chain(soonest).min();
            }
            interval = if soonest == Some(interval) { (interval * 2).min(MOST) } else { HEARTBEAT };
            // The work was taken during the looks. A blocked worker that they passed over does not
            // wake the monitor again. So the next thread that makes work ready has to.
            if unneeded && soonest.is_none() {
                monitor.guard.leave();
                if needed() {
                    continue;
                }
            }
        } else if sees {
            runtime.stop_all_lost_time();
            monitor.guard.leave();
            if needed() {
                continue;
            }
        } else {
            runtime.stop_all_lost_time();
            monitor.sleep(needed);
            continue;
        }
        let due = runtime.monitor_deadline(blocked && !is_time);
        watch.wait(soonest.map_or(Deadline::NEVER, Deadline::after).min(due));
    }
}

/// What the monitor does while slots of the overcommit are open: it looks every so often, since blocks
/// are too many to be told of each.
struct Rounds {
    interval: Duration,
    count: u32,
    /// Carriers that could run, at least, and that could not, at most, in the last rounds.
    running: usize,
    blocked: usize,
}

impl Rounds {
    fn new() -> Self {
        Self { interval: ROUND, count: 0, running: usize::MAX, blocked: 0 }
    }

    /// One round; when the next one is due, if one is.
    fn look(&mut self, runtime: &Arc<RuntimeState>, needed: bool) -> Option<Duration> {
        let (overcommit, allowed) = (runtime.overcommit(), runtime.limit().allowed());
        let all = runtime.slots_in_use().count();
        let running = runtime.count_carriers(|worker| worker.presence() != Presence::Blocked);
        self.count += 1;
        self.running = self.running.min(running);
        // A worker may have come to a slot between the two counts. It runs.
        self.blocked = self.blocked.max(all.saturating_sub(running));
        if self.count == ROUNDS {
            if self.blocked == 0 {
                overcommit.allow(0);
            } else if self.running > 2 * allowed {
                overcommit.allow(overcommit.count_open().saturating_sub(self.running - 2 * allowed));
            }
            *self = Self { interval: self.interval, ..Self::new() };
        }
        let mut taken = false;
        if needed {
            // Who makes something ready leaves the rest to this.
            runtime.monitor().guard.look();
            for slot in runtime.slots_in_use() {
                let owner = runtime.worker(runtime.slot(slot).owner());
                let unseen = owner.presence() == Presence::Unknown && owner.presence_index().is_some();
                let found = if unseen {
                    // Without switch records it counts as one that runs, also when it is blocked.
                    runtime.examine(slot)
                } else if runtime.lacks_runners() {
                    runtime.look_at(slot, Looks::Woken)
                } else {
                    Found::Fine
                };
                taken |= found == Found::Taken;
            }
        } else if running <= allowed {
            self.interval = ROUND;
            return None;
        }
        self.interval = if taken { ROUND } else { (self.interval * 2).min(LONGEST_ROUND) };
        Some(self.interval)
    }
}
