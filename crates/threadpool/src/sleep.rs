//! The sleep of idle workers, and the choice of workers that a producer wakes.
//! [`SLEEPING.md`](../SLEEPING.md), beside this crate's sources, has the protocol and its proof.
//!
//! An [`EventCount`] loses no wake-up. But it would wake a thread for each task that is pushed
//! while one sleeps. Under a fine-grained program that is a system call for each task. So a
//! producer first asks whether a worker is awake and searching, which will find the task. Four
//! numbers in one word answer that.
//!
//! ```text
//! state    | monitor | dozing | waking | asleep | searching |
//!          16 bits each where words have 64, else 8 (monitor is one bit, taken from dozing)
//!
//!        start_searching          sleep           (its wait returns)           stop_searching
//!   busy ──────────────► searching ───► asleep ──────────────────► searching ───────────────► busy
//!                                          ▲ waking: a producer has claimed a sleeper,
//!                                            which has not come back yet
//! ```
//!
//! | count | workers |
//! | --- | --- |
//! | searching | have found nothing, and look on |
//! | asleep | sleep, are about to, or were woken and have not run yet |
//! | waking | those asleep for which a wake-up is on its way |
//! | dozing | the one of those asleep that comes back by itself after a while |
//!
//! Some workers do not look for tasks: they wait for one thing, or are spares that are not needed.
//! They sleep on an event count of their own. On the same one such a worker could be woken in place
//! of a worker that looks, and the task would lie there.
//!
//! # Dozing
//!
//! A task that is alone in its creator's queue is most likely what the creator runs next. A worker
//! that is woken for it comes in vain, again and again where tasks create tasks one after the
//! other. But the task must not lie there for long either if its creator goes on for long. So a
//! worker that has searched in vain while others work *dozes*: it looks again after a time that
//! doubles from 100 µs to 10 ms. Meanwhile no worker is woken for such a task. When no worker has
//! work there is nothing to doze for.
//!
//! # Invariants
//!
//! 1. `waking <= asleep`: `waking` is raised only after that check, in the same exchange. A worker
//!    that leaves `asleep` takes one from each.
//! 2. If a task is ready and its producer has come through [`notify`](Sleep::notify), then a worker
//!    searches, is waking, or has its last look before it, or no worker is asleep. A lone task may
//!    wait for the dozing worker instead.
//! 3. The last searcher to find something wakes another worker before it goes to work, if there is
//!    more to do: producers left tasks to it.
//! 4. A worker that sleeps on `events` is counted in `asleep`, and searches when it is woken.
//!
//! # Orderings
//!
//! All accesses are Relaxed. The order of the word is that of its read-modify-writes. [`IDLE`]
//! orders the word against the queues. Its light side: both functions that notify, each fork push,
//! and [`stop_searching`](Sleep::stop_searching). Its heavy side: [`EventCount::prepare`] and the
//! last searcher.
//!
//! Source: the searchers are tokio's, the event count is Vyukov's. The count of wake-ups on their
//! way is what lets a burst of k tasks wake k workers.

use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;
use stanchion_competitive::EventCount;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::handshake::{Handshake, Reach};

/// Ready work against a worker that goes to sleep. The heavy fence of a sleeper is that of
/// [`EventCount::prepare`].
pub(crate) const IDLE: Handshake = Handshake::new("the queues", "Sleep::state", Reach::AllThreads);

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

/// The monitor wants to be woken when a fork is made. The highest bit: at most one worker dozes.
const MONITOR: usize = 1 << (usize::BITS - 1);

/// The count of idle workers, and the event counts on which they sleep.
pub struct Sleep {
    /// The counts above. Written by workers that go idle or come back, by producers that claim a
    /// sleeper, and by the monitor.
    state: CachePadded<AtomicUsize>,
    /// Workers that look for tasks sleep here (Invariant 4).
    events: EventCount,
    /// Workers that wait for one thing sleep here. They are woken by index only.
    named: EventCount,
}

impl Sleep {
    /// Creates the state of a pool without workers.
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub fn new() -> Self {
        Self {
            state: CachePadded::new(AtomicUsize::fresh(0)),
            events: EventCount::new(),
            named: EventCount::new(),
        }
    }

    /// Says whether the monitor wants to be woken when a fork is made.
    pub fn watch_forks(&self, wanted: bool) {
        // Relaxed, both. If it is wanted, `heavy` follows; else this is a hint.
        if wanted {
            self.state.fetch_or(MONITOR, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!MONITOR, Ordering::Relaxed);
        }
    }

    /// Returns whether a worker has nothing to do, or the monitor wants to be woken. A hint: one
    /// load of a word that changes only when a worker goes idle or comes back.
    #[inline]
    pub fn is_watched(&self) -> bool {
        // Relaxed: a hint.
        self.state.load(Ordering::Relaxed) != 0
    }

    /// Counts the calling worker as searching: it has found nothing.
    pub fn start_searching(&self) {
        // Relaxed, as all that follow: see the head of the file.
        self.state.fetch_add(SEARCHING, Ordering::Relaxed);
    }

    /// Counts the calling worker, which was searching, as busy. If it was the last searcher, and
    /// `more` says that there is more to do, it wakes another worker to search on. Returns how many
    /// it woke.
    pub fn stop_searching(&self, more: impl Fn() -> bool) -> usize {
        // What the caller has moved is seen by each worker that searches on.
        IDLE.light();
        let now = self.state.fetch_sub(SEARCHING, Ordering::Relaxed) - SEARCHING;
        if searching(now) > 0 || waking(now) > 0 || asleep(now) == 0 {
            return 0;
        }
        // Invariant 3. If there seems to be nothing more, that must be certain: a producer may have
        // seen this searcher before its task became visible here.
        let more = more() || {
            IDLE.heavy();
            more()
        };
        if more { self.wake(1) } else { 0 }
    }

    /// Puts the calling worker, which was searching, to sleep until it is notified, unless `look`
    /// finds something after all. Afterwards it is searching again. Returns whether it slept.
    ///
    /// With `doze` it also comes back after so many nanoseconds, unless another worker dozes. Then
    /// `look` is told that it may skip a task that is alone in its creator's queue.
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
        // The wake-up on its way may be for this worker: a notifier that raised `waking` before
        // this look may not find this worker in the queue of sleepers.
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

    /// Wakes workers for `ready` tasks in the queue of the last one: as many as that asks for
    /// beyond those that search already. Returns how many.
    #[inline]
    pub fn notify(&self, ready: usize) -> usize {
        IDLE.light();
        let state = self.state.load(Ordering::Relaxed);
        if asleep(state) <= waking(state) || searching(state) + waking(state) >= ready {
            return 0;
        }
        self.wake(ready)
    }

    /// Does what [`notify`](Self::notify) does for one task that its creator will most likely run
    /// next: it wakes no worker while one dozes.
    #[inline]
    pub fn notify_lone(&self) -> usize {
        IDLE.light();
        let state = self.state.load(Ordering::Relaxed);
        if asleep(state) <= waking(state) || searching(state) + waking(state) + dozing(state) > 0 {
            return 0;
        }
        self.wake(1)
    }

    /// Puts a worker to sleep that does not look for tasks and is not counted, until
    /// [`notify_worker`](Self::notify_worker) names it. `may` is the last look: whether it may.
    pub fn sleep_until_named(&self, index: usize, may: impl FnOnce() -> bool) {
        let key = self.named.prepare();
        if may() {
            self.named.wait_as(key, index, Deadline::NEVER);
        }
    }

    /// Wakes this worker, wherever it sleeps. Returns whether it slept.
    pub fn notify_worker(&self, index: usize) -> bool {
        let searched = self.events.notify_only(index);
        // Both, always: a worker that is about to sleep on one of them is let through by a
        // notification that finds no sleeper.
        let waited = self.named.notify_only(index);
        searched || waited
    }

    /// Wakes all workers.
    pub fn notify_all(&self) {
        self.events.notify_all();
        self.named.notify_all();
    }

    /// Raises `waking` until searching and waking workers are `ready`, as far as there are
    /// sleepers. Wakes as many.
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

    /// Returns how many workers have nothing to do. A hint.
    pub fn idle(&self) -> usize {
        let state = self.state.load(Ordering::Relaxed);
        searching(state) + asleep(state)
    }

    /// Returns how many of them sleep. A hint.
    pub fn asleep(&self) -> usize {
        asleep(self.state.load(Ordering::Relaxed))
    }
}

/// The last look of a worker before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastCheck {
    /// The worker looks at all that is ready.
    All,
    /// The worker skips tasks that are alone in their creators' queues: it dozes itself, or another
    /// worker does.
    SkipLone,
}

/// Takes a worker from `asleep` to `searching`, even if its last look unwinds.
struct WakeGuard<'s> {
    sleep: &'s Sleep,
    /// The counts in which the worker is: `ASLEEP`, perhaps with `DOZING`.
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
        f.debug_struct("Sleep")
            .field("searching", &searching(state))
            .field("asleep", &asleep(state))
            .field("waking", &waking(state))
            .field("dozing", &dozing(state))
            .finish()
    }
}
