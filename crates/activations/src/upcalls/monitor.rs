//! The lookout: a kernel thread that sleeps until a carrier blocks, when nobody else would see it.
//!
//! Running carriers look at each other at their scheduling points. If each of them is blocked, or
//! computes without ever coming to one, nobody looks, and with one processor there is nobody else.
//! The lookout sleeps on a [`Watch`] that the kernel wakes when a carrier is switched out. It
//! carries no threads. Times that threads wait for are work as well (`timers.rs`), once they have
//! come; until then, if nobody else watches the clock, it does for the carriers that are blocked.
//!
//! Why not a thread that looks every so often: it is late, or burns a processor. Why it is not
//! woken whenever something is ready: that costs more than most threads run for. Instead whoever
//! makes a thread ready for which no seat is free **arms** the watch on the carriers, a microsecond
//! each, and again only after one of them has been switched: the runtime is *on guard*
//! (`guard.rs`). A carrier that goes to sleep for want of work takes itself out.
//!
//! While seats of the surplus are open (`surplus.rs`), carriers block all the time, and to be told
//! of each block would cost as much as the blocks themselves. Then the lookout looks every
//! [`ROUND`] to [`LONGEST_ROUND`], the oftener the more there is for it to do: whether a carrier is
//! wanted, and whether there are too many. When all of these have closed, or nothing is ready, that
//! ends.
//!
//! Where the kernel's records are refused there is nothing to be armed: the lookout is woken when
//! something is ready that finds no seat free, and looks every [`HEARTBEAT`], further and further
//! apart while it finds nothing, as long as threads are ready; see
//! [`Capabilities`](crate::Capabilities).
//!
//! # Orderings
//!
//! Those of `guard.rs`. A carrier is armed first and looked at then, so that no switch falls in
//! between.

use core::time::Duration;
use std::sync::Arc;

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;
use machine::presence::Presence;
use machine::watch::Watch;

use crate::processors::worker_record::Carrier;
use crate::detection::watch_state::Guard;
use crate::upcalls::handoff::{Found, Looks};
use crate::runtime::state::Shared;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// How far apart the looks are where nobody tells, at first and at most.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(2);
const MOST: Duration = Duration::from_millis(10);

/// How far apart its rounds are while seats of the surplus are open, at first and at most.
const ROUND: Duration = Duration::from_micros(50);
const LONGEST_ROUND: Duration = Duration::from_micros(800);

/// After so many it decides whether there are too many seats.
const ROUNDS: u32 = 8;

/// Where the lookout sleeps.
pub(crate) struct Lookout {
    /// None if there is no lookout.
    watch: Option<Watch>,
    /// Who would notice that a carrier is stuck.
    guard: Guard,
    /// Where it sleeps if nobody can be armed.
    word: AtomicU32,
}

impl Lookout {
    /// One that has not been started, if there is to be one.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { watch: wanted.then(Watch::new), guard: Guard::new(), word: AtomicU32::fresh(AWAKE) }
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Whether it is of use to call it.
    #[inline]
    fn is_off_guard(&self) -> bool {
        self.guard.is_nobody() && self.watch.is_some()
    }

    /// A carrier has got a seat, or wakes up on it. If it cannot be armed, the lookout has to look
    /// at it every so often, and may know only of others that can.
    pub(crate) fn begin(&self, carrier: &Carrier) {
        if self.guard.has_begun() && !self.arm(carrier) && carrier.seen_as().is_some() {
            self.wake();
        }
    }

    /// A carrier goes to sleep on its seat.
    pub(crate) fn pause(&self, carrier: &Carrier) {
        if self.guard.is_told()
            && let (Some(watch), Some(index)) = (&self.watch, carrier.seen_as())
        {
            watch.disarm(index);
        }
    }

    fn arm(&self, carrier: &Carrier) -> bool {
        match (&self.watch, carrier.seen_as()) {
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

impl Shared {
    /// Something is ready, and no seat was free for it. After a fence.
    #[inline]
    pub(crate) fn guard(&self) {
        if self.lookout().is_off_guard() {
            self.go_on_guard();
        }
    }

    #[cold]
    fn go_on_guard(&self) {
        let lookout = self.lookout();
        if self.surplus().is_open() {
            lookout.guard.look();
            return lookout.wake();
        }
        // Whoever sees it early leaves it to this.
        lookout.guard.stand();
        let mut unseen = false;
        for seat in self.seats_in_use() {
            let carrier = self.carrier(self.seat(seat).holder());
            let armed = lookout.arm(carrier);
            // One that has not registered yet arms itself when it begins.
            unseen |= carrier.is_blocked();
            unseen |= !armed && carrier.seen_as().is_some();
        }
        if unseen {
            lookout.wake();
        }
    }
}

/// The lookout's body.
pub(crate) fn look_out(shared: &Arc<Shared>) {
    let lookout = shared.lookout();
    let Some(watch) = lookout.watch() else { return };
    // A carrier that is preempted wakes it, and must not be preempted by that once more.
    machine::thread::wake_politely();
    let needed = || shared.is_over() || shared.has_work() || shared.is_time_unwatched();
    let sees = watch.refused().is_none();
    let mut interval = HEARTBEAT;
    let mut rounds = Rounds::new();
    while !shared.is_over() {
        let mut soonest = None;
        let (mut blocked, mut unneeded) = (false, false);
        // Before the looks: a time that comes beside them ends the wait at once.
        let is_time = shared.is_time();
        if shared.surplus().is_open()
            && let Some(after) = rounds.look(shared, needed())
        {
            soonest = Some(after);
        } else if needed() {
            lookout.guard.stand();
            for seat in shared.seats_in_use() {
                let holder = shared.carrier(shared.seat(seat).holder());
                let told = lookout.arm(holder);
                let found =
                    if told { shared.look_at(seat, Looks::Woken) } else { shared.examine(seat) };
                blocked |= told && holder.is_blocked();
                unneeded |= found == Found::Unneeded;
                let after = match found {
                    Found::Fine | Found::Unneeded => (!told).then_some(interval),
                    Found::Blocked(nanos) => Some(Duration::from_nanos(nanos)),
                    Found::Taken => Some(Duration::ZERO),
                };
                soonest = after.into_iter().chain(soonest).min();
            }
            interval = if soonest == Some(interval) { (interval * 2).min(MOST) } else { HEARTBEAT };
            // The work was taken during the looks. A blocked carrier that they passed over does not
            // wake the lookout again. So the next thread that makes work ready has to.
            if unneeded && soonest.is_none() {
                lookout.guard.leave();
                if needed() {
                    continue;
                }
            }
        } else if sees {
            shared.is_short_of_none();
            lookout.guard.leave();
            if needed() {
                continue;
            }
        } else {
            shared.is_short_of_none();
            lookout.sleep(needed);
            continue;
        }
        let due = shared.look_out_until(blocked && !is_time);
        watch.wait(soonest.map_or(Deadline::NEVER, Deadline::after).min(due));
    }
}

/// What the lookout does while seats of the surplus are open: it looks every so often, since blocks
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
    fn look(&mut self, shared: &Arc<Shared>, needed: bool) -> Option<Duration> {
        let (surplus, allowed) = (shared.surplus(), shared.demand().allowed());
        let all = shared.seats_in_use().count();
        let running = shared.count_carriers(|carrier| carrier.presence() != Presence::Blocked);
        self.count += 1;
        self.running = self.running.min(running);
        // A carrier may have come to a seat between the two counts. It runs.
        self.blocked = self.blocked.max(all.saturating_sub(running));
        if self.count == ROUNDS {
            if self.blocked == 0 {
                surplus.allow(0);
            } else if self.running > 2 * allowed {
                surplus.allow(surplus.count_open().saturating_sub(self.running - 2 * allowed));
            }
            *self = Self { interval: self.interval, ..Self::new() };
        }
        let mut taken = false;
        if needed {
            // Who makes something ready leaves the rest to this.
            shared.lookout().guard.look();
            for seat in shared.seats_in_use() {
                let holder = shared.carrier(shared.seat(seat).holder());
                let unseen = holder.presence() == Presence::Unknown && holder.seen_as().is_some();
                let found = if unseen {
                    // Without switch records it counts as one that runs, also when it is blocked.
                    shared.examine(seat)
                } else if shared.lacks_runners() {
                    shared.look_at(seat, Looks::Woken)
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
