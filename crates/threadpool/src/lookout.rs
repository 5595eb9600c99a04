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

use core::fmt;
use core::time::Duration;
use std::io;

use machine::asymmetric;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::clock::{self, Deadline, Ticks};
use machine::presence::{self, Presence};
use machine::thread::JoinHandle;
use machine::watch::{Watch, Woken};
use stanchion_competitive::Mutex;

use crate::common::{Common, LENT, Seat, UNSEEN};
use crate::registry::Registry;
use crate::roster::Roster;
use crate::strategy::Strategy;

/// For how long a worker is seen blocked before a spare takes its place, in µs: a page fault that
/// is served from memory and a lock that is passed on are over by then; what takes longer is worth
/// a wake-up.
pub(crate) const BLOCKED_US: usize = 30;

/// How often the lookout looks where it is not told.
const HEARTBEAT: Duration = Duration::from_millis(2);

/// A worker that is back so soon, in µs, was compensated for nothing.
const BRIEF_US: usize = 50;

/// What a pool that compensates has beside its workers.
pub(crate) struct Lookout {
    watch: Watch,
    off: AtomicU32,
    ended: AtomicU32,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// What times are counted from.
    origin: Ticks,
    compensations: AtomicUsize,
    brief: AtomicUsize,
}

/// What others have seen of a worker.
pub(crate) struct Suspicion {
    /// How many reasons there are why its thread may sleep without being compensated. Written by
    /// its own thread.
    away: AtomicUsize,
    /// Since when it has been seen blocked, in µs and odd; 0 if it has not.
    since: AtomicUsize,
    /// How many tasks it had begun then.
    tasks: AtomicUsize,
    /// When a spare was lent, in µs.
    lent: AtomicUsize,
}

impl Suspicion {
    pub(crate) fn new() -> Self {
        Self {
            away: AtomicUsize::fresh(0),
            since: AtomicUsize::fresh(0),
            tasks: AtomicUsize::fresh(0),
            lent: AtomicUsize::fresh(0),
        }
    }

    /// Nobody has seen anything.
    fn forget(&self) {
        // Relaxed: a hint.
        self.since.store(0, Ordering::Relaxed);
    }

    /// It is blocked, or not, at `now`: for how long it has been, in the same task, as far as
    /// anybody has looked.
    fn seen(&self, blocked: bool, now: usize, tasks: usize) -> Option<usize> {
        // Relaxed, all: hints. Two who look at once may both begin a suspicion, or one of them a
        // little late.
        if !blocked {
            if self.since.load(Ordering::Relaxed) != 0 {
                self.since.store(0, Ordering::Relaxed);
            }
            return None;
        }
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || self.tasks.load(Ordering::Relaxed) != tasks {
            self.tasks.store(tasks, Ordering::Relaxed);
            self.since.store(now | 1, Ordering::Relaxed);
            return Some(0);
        }
        // The odd one may lie ahead.
        Some((now | 1).wrapping_sub(since))
    }
}

/// While this is alive the worker may sleep, and is not compensated for it.
pub(crate) struct Away<'s>(&'s AtomicUsize);

impl<'s> Away<'s> {
    pub(crate) fn from(seat: &'s Seat) -> Self {
        let away = &seat.suspicion.away;
        // Relaxed: a hint, written by this thread alone; Invariant 2 is the lock's.
        away.store(away.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Self(away)
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.store(self.0.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

impl Lookout {
    pub(crate) fn new() -> Self {
        Self {
            watch: Watch::new(),
            off: AtomicU32::fresh(0),
            ended: AtomicU32::fresh(0),
            thread: Mutex::new(None),
            origin: clock::now(),
            compensations: AtomicUsize::fresh(0),
            brief: AtomicUsize::fresh(0),
        }
    }

    fn micros(&self) -> usize {
        (clock::now().nanos_since(self.origin) / 1_000) as usize
    }

    /// A task was made ready, and nobody may be idle who would take it.
    #[inline]
    pub(crate) fn created(&self) {
        asymmetric::light();
        // Relaxed: see the head of the file. The exchange lets one of many call.
        if self.off.load(Ordering::Relaxed) != 0 && self.off.swap(0, Ordering::Relaxed) != 0 {
            self.watch.wake();
        }
    }

    /// A thread has begun to take part.
    pub(crate) fn joined(&self) {
        self.watch.wake();
    }

    /// The last worker has left.
    pub(crate) fn end(&self) {
        // Relaxed: the call is seen after it.
        self.ended.store(1, Ordering::Relaxed);
        self.watch.wake();
    }

    fn has_ended(&self) -> bool {
        // Relaxed: looked at after each wait; `wake` and `wait` order it.
        self.ended.load(Ordering::Relaxed) != 0
    }

    /// Waits until the thread has ended.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Compensations so far, and how many of them were for nothing.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // Relaxed: statistics.
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
        (of(&self.compensations), of(&self.brief))
    }
}

impl fmt::Debug for Lookout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (compensations, brief) = self.counts();
        f.debug_struct("Lookout")
            .field("refused", &self.watch.refused())
            .field("compensations", &compensations)
            .field("brief", &brief)
            .finish_non_exhaustive()
    }
}

impl Common {
    /// A worker that was compensated works again: the lease ends. Whoever sees it first does it.
    #[cold]
    pub(crate) fn come_back(&self, seat: usize) {
        let mut roster = self.roster.lock();
        self.settle(&mut roster, seat);
    }

    /// The same, with the roster's lock held; Invariant 1.
    pub(crate) fn settle(&self, roster: &mut Roster, seat: usize) {
        let Some(lookout) = &self.lookout else { return };
        let one = self.seat(seat);
        // Relaxed: the roster's lock is held.
        if one.orders.fetch_and(!LENT, Ordering::Relaxed) & LENT == 0 {
            return;
        }
        roster.leases -= 1;
        self.note_surplus(roster);
        // Relaxed: statistics.
        let lent = one.suspicion.lent.load(Ordering::Relaxed);
        if lookout.micros().wrapping_sub(lent) < BRIEF_US {
            lookout.brief.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the thread of a seat that can be seen is blocked in a task. `closely`, where records
    /// are refused: by the process table.
    fn is_blocked(&self, seat: &Seat, closely: bool) -> bool {
        // Relaxed: hints.
        let number = seat.presence.load(Ordering::Relaxed);
        if number == 0 || number == UNSEEN || seat.suspicion.away.load(Ordering::Relaxed) != 0 {
            return false;
        }
        match presence::of(number - 1) {
            Presence::Unknown => closely && presence::examine(number - 1) == Presence::Blocked,
            seen => seen == Presence::Blocked,
        }
    }
}

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
    fn compensate(&self, lookout: &Lookout, number: usize) {
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
    fn keep_watch(&self) {
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

    fn new() -> Self {
        Self(clock::now())
    }

    /// Takes one. Returns until when the lookout is to rest, if there is none left.
    fn take(&mut self) -> Option<Deadline> {
        let price = HEARTBEAT.as_nanos() as u64;
        let now = clock::now();
        self.0 = self.0.max(now).plus_nanos(price);
        let ahead = self.0.nanos_since(now);
        let rest = ahead.checked_sub(Self::BURST * price).filter(|rest| *rest > 0)?;
        Some(Deadline::after(Duration::from_nanos(rest)))
    }
}

impl Lookout {
    /// Whether the records do not tell of the seat's thread.
    fn is_blind(&self, seat: &Seat) -> bool {
        // Relaxed: a hint.
        let number = seat.presence.load(Ordering::Relaxed);
        self.watch.refused().is_some()
            || number == UNSEEN
            || presence::of(number.wrapping_sub(1)) == Presence::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_allows_a_burst_and_then_one_in_a_while() {
        let begin = clock::now();
        let mut quota = Quota::new();
        for _ in 0..Quota::BURST {
            assert!(quota.take().is_none());
        }
        let free = (0..1_000).filter(|_| quota.take().is_none()).count() as u64;
        let passed = clock::now().nanos_since(begin);
        assert!(free <= passed / HEARTBEAT.as_nanos() as u64, "{free} in {passed} ns");
    }

    #[test]
    fn a_suspicion_is_of_one_task_and_ends_when_the_thread_is_seen_to_run() {
        let suspicion = Suspicion::new();
        assert_eq!(suspicion.seen(false, 10, 1), None);
        assert_eq!(suspicion.seen(true, 10, 1), Some(0));
        assert_eq!(suspicion.seen(true, 40, 1), Some(30));
        assert_eq!(suspicion.seen(true, 50, 2), Some(0), "another task");
        assert_eq!(suspicion.seen(false, 60, 2), None);
        assert_eq!(suspicion.seen(true, 100, 2), Some(0), "another block");
        assert_eq!(suspicion.seen(true, usize::MAX, 3), Some(0));
        assert_eq!(suspicion.seen(true, 20, 3), Some(22), "over the end of the count");
    }
}
