//! How idle workers sleep, and who wakes them. The protocol with its proof is in
//! [`SLEEPING.md`](../SLEEPING.md), beside this crate's sources.
//!
//! An [`EventCount`] loses no wake-up, but it wakes a thread for each task that is pushed while one
//! sleeps: with the tasks of a fine-grained program, a system call each. So a producer first asks
//! whether somebody is awake and searching, who will find the task. Four numbers in one word answer
//! that.
//!
//! ```text
//! state    | call | dozing | waking | asleep | searching |      16 bits each where words have 64, else 8
//!                                                               (call, the monitor's, is 1 of dozing's)
//!
//!   busy --begin--> searching --sleep--> asleep --(wait returns)--> searching --found--> busy
//!                                          ^ waking: a producer has claimed one of them, index has not come yet
//! ```
//!
//! | who | counts |
//! | --- | --- |
//! | a worker that found nothing and looks on | searching |
//! | one that sleeps, is about to, or was woken and has not run yet | asleep |
//! | those asleep for whom a wake-up is on its way | waking |
//! | one of those asleep who comes back by itself after a while | dozing |
//!
//! A worker that does not look for tasks (it waits for one thing, or is a spare that is not needed)
//! sleeps on an event count of its own. On the same one it could be woken in place of a worker that
//! looks, and the task would lie there.
//!
//! # Dozing
//!
//! A task that is alone in its creator's queue is most likely what the creator runs next: a worker
//! that is woken for it comes in vain, again and again where tasks create tasks one after the
//! other. It is not to lie there for long either, if its creator goes on for long. So a worker that
//! has searched in vain while others work *dozes*: it looks again after a time that doubles from
//! 100 µs to 10 ms. Meanwhile nobody is woken for such a task. When nobody works any more there is
//! nothing to doze for.
//!
//! # Invariants
//!
//! 1. `waking <= asleep`: they are raised together with that checked, and a worker that leaves
//!    `asleep` takes one from each.
//! 2. If a task is ready that no busy worker will look for, somebody is searching, or waking, or
//!    nobody is asleep, or its producer has not yet come to [`tell`](Sleep::notify).
//! 3. The last searcher to find something wakes another before it goes to work, if there is more to
//!    do: producers left tasks to it.
//! 4. Who sleeps on `events` is counted in `asleep`, and searches when it is woken.
//!
//! # Orderings
//!
//! All Relaxed: the word's order is that of its read-modify-writes; against the queues it is
//! ordered by `light` in [`tell`](Sleep::notify) and `heavy` in [`EventCount::prepare`].
//!
//! Source: the searchers are tokio's, the event count Vyukov's; the count of those who are on their
//! way is what lets a burst of k tasks wake k.

use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;
use machine::asymmetric;
use machine::atomic::{AtomicUsize, Fresh, Ordering};
use machine::clock::Deadline;
use stanchion_competitive::EventCount;

const BITS: u32 = usize::BITS / 4;
const ONE: usize = 1;
const SEARCHING: usize = ONE;
const ASLEEP: usize = ONE << BITS;
const WAKING: usize = ONE << (2 * BITS);
const DOZING: usize = ONE << (3 * BITS);
const FIELD: usize = (ONE << BITS) - 1;

/// The most workers that can be counted.
pub(crate) const MOST_WORKERS: usize = if FIELD > 4_095 { 4_095 } else { FIELD };

fn searching(state: usize) -> usize {
    state & FIELD
}

fn asleep(state: usize) -> usize {
    (state >> BITS) & FIELD
}

fn waking(state: usize) -> usize {
    (state >> (2 * BITS)) & FIELD
}

fn dozing(state: usize) -> usize {
    (state >> (3 * BITS)) & (FIELD >> 1)
}

/// The lookout wants to be called when a fork is made. The highest bit: one worker dozes at most.
const MONITOR: usize = 1 << (usize::BITS - 1);

/// Where idle workers are counted, and sleep.
pub struct Sleep {
    state: CachePadded<AtomicUsize>,
    /// Invariant 4.
    events: EventCount,
    /// Where those sleep who are told by name only.
    named: EventCount,
}

impl Sleep {
    /// One without workers.
    pub fn new() -> Self {
        Self {
            state: CachePadded::new(AtomicUsize::fresh(0)),
            events: EventCount::new(),
            named: EventCount::new(),
        }
    }

    /// The lookout wants to be called when a fork is made, or does not any more.
    pub fn watch_forks(&self, wanted: bool) {
        // Relaxed, both: `heavy` follows, if it is wanted; else a hint.
        if wanted {
            self.state.fetch_or(MONITOR, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!MONITOR, Ordering::Relaxed);
        }
    }

    /// Whether some worker has nothing to do, or the lookout wants to be called. A hint, one load
    /// of a word that changes only when a worker goes idle or comes back.
    #[inline]
    pub fn is_watched(&self) -> bool {
        // Relaxed: a hint.
        self.state.load(Ordering::Relaxed) != 0
    }

    /// The calling worker has found nothing and begins to search.
    pub fn start_searching(&self) {
        // Relaxed, as all that follows: see the head of the file.
        self.state.fetch_add(SEARCHING, Ordering::Relaxed);
    }

    /// The calling worker, which was searching, goes to work. If it was the last that searched, and
    /// `more` says that there is more to do, it wakes another to search on. Returns how many it
    /// woke.
    pub fn stop_searching(&self, more: impl Fn() -> bool) -> usize {
        // What the caller has moved is seen by whoever searches on.
        asymmetric::light();
        let now = self.state.fetch_sub(SEARCHING, Ordering::Relaxed) - SEARCHING;
        if searching(now) > 0 || waking(now) > 0 || asleep(now) == 0 {
            return 0;
        }
        // Invariant 3. If there seems to be nothing more, that must be certain: a producer may have
        // seen this searcher, and its task not be seen yet.
        let more = more() || {
            asymmetric::heavy();
            more()
        };
        if more { self.wake(1) } else { 0 }
    }

    /// The calling worker, which was searching, sleeps until it is told, unless `look` says that
    /// there is something after all. It is searching again afterwards. Says whether it slept.
    ///
    /// With `doze` it also comes back after so many nanoseconds, unless another one dozes. Then
    /// `look` is told so, and need not mind a task that is alone in its creator's queue.
    pub fn sleep(
        &self,
        index: usize,
        doze: Option<u64>,
        look: impl FnOnce(LastCheck) -> bool,
    ) -> bool {
        let mut added = ASLEEP;
        let mut looks = LastCheck::All;
        let _ = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            let dozes = doze.is_some() && dozing(state) == 0;
            added = if dozes { ASLEEP + DOZING } else { ASLEEP };
            looks = if doze.is_some() { LastCheck::SkipLone } else { LastCheck::All };
            Some(state - SEARCHING + added)
        });
        let back = WakeGuard { sleep: self, added };
        let key = self.events.prepare();
        // Somebody on the way may be me: who raised `waking` before this look may not find me in
        // the queue of sleepers.
        let slept = waking(self.state.load(Ordering::Relaxed)) == 0 && !look(looks);
        if slept {
            let deadline = match doze {
                Some(nanos) if added != ASLEEP => Deadline::after(Duration::from_nanos(nanos)),
                _ => Deadline::NEVER,
            };
            self.events.wait_as(key, index, deadline);
        }
        drop(back);
        slept
    }

    /// There are `ready` tasks where one was just put, for any worker: wakes as many as that asks
    /// for beyond those who search already. Returns how many.
    #[inline]
    pub fn notify(&self, ready: usize) -> usize {
        asymmetric::light();
        let state = self.state.load(Ordering::Relaxed);
        if asleep(state) <= waking(state) || searching(state) + waking(state) >= ready {
            return 0;
        }
        self.wake(ready)
    }

    /// [`tell`](Self::notify) of one task that its creator will most likely run next: nobody is woken
    /// while somebody dozes.
    #[inline]
    pub fn notify_lone(&self) -> usize {
        asymmetric::light();
        let state = self.state.load(Ordering::Relaxed);
        if asleep(state) <= waking(state) || searching(state) + waking(state) + dozing(state) > 0 {
            return 0;
        }
        self.wake(1)
    }

    /// Sleeps until [`notify_worker`](Self::notify_worker) names this worker, if `may` says that there is
    /// nothing yet: for a worker that does not look for tasks and is not counted.
    pub fn sleep_until_named(&self, index: usize, may: impl FnOnce() -> bool) {
        let key = self.named.prepare();
        if may() {
            self.named.wait_as(key, index, Deadline::NEVER);
        }
    }

    /// There is something for this worker only, wherever it sleeps. Says whether it did.
    pub fn notify_worker(&self, index: usize) -> bool {
        let searched = self.events.notify_only(index);
        // Both, always: a worker that is about to sleep in one of them is let through by a
        // notification that finds nobody.
        let waited = self.named.notify_only(index);
        searched || waited
    }

    /// Something concerns all.
    pub fn notify_all(&self) {
        self.events.notify_all();
        self.named.notify_all();
    }

    /// Raises `waking` until those who search and those who come are `ready`, as far as there are
    /// sleepers; wakes as many.
    #[cold]
    #[inline(never)]
    fn wake(&self, ready: usize) -> usize {
        let mut claimed = 0;
        let _ = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            let coming = searching(state) + waking(state);
            let sleepers = asleep(state) - waking(state);
            claimed = ready.saturating_sub(coming).min(sleepers);
            (claimed > 0).then(|| state + claimed * WAKING)
        });
        self.events.notify_many(claimed);
        claimed
    }

    /// How many workers have nothing to do. A hint.
    pub fn idle(&self) -> usize {
        let state = self.state.load(Ordering::Relaxed);
        searching(state) + asleep(state)
    }

    /// How many of them sleep. A hint.
    pub fn asleep(&self) -> usize {
        asleep(self.state.load(Ordering::Relaxed))
    }
}

/// At what a worker looks before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastCheck {
    /// At all that is ready.
    All,
    /// Not at tasks that are alone in their creators' queues: somebody dozes.
    SkipLone,
}

/// Takes a worker from `asleep` to `searching`, also if its last look unwinds.
struct WakeGuard<'s> {
    sleep: &'s Sleep,
    /// As what it was counted.
    added: usize,
}

impl Drop for WakeGuard<'_> {
    fn drop(&mut self) {
        let state = &self.sleep.state;
        let _ = state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            // Invariant 1.
            let waking = if waking(state) > 0 { WAKING } else { 0 };
            Some(state - self.added - waking + SEARCHING)
        });
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("Sleeping")
            .field("searching", &searching(state))
            .field("asleep", &asleep(state))
            .field("waking", &waking(state))
            .field("dozing", &dozing(state))
            .finish()
    }
}
