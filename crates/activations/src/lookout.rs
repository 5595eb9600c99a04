//! The lookout: a kernel thread that sleeps until a carrier blocks, when nobody else would see it.
//!
//! Running carriers look at each other at their scheduling points. If each of them is blocked, or computes without ever coming to one, nobody looks,
//! and with one processor there is nobody else. The lookout sleeps on a [`Watch`] that the kernel wakes when a carrier is switched out. It carries no
//! threads.
//!
//! Why not a thread that looks every so often: it is late, or burns a processor. It sleeps on the watch only while threads are ready and all seats are
//! busy; otherwise on a word, where switches do not wake it.
//!
//! Where the kernel's records are refused it looks every [`HEARTBEAT`], twice as far apart each time that it finds nothing, as long as threads are
//! ready; see [`Capabilities`](crate::Capabilities).
//!
//! # Orderings
//!
//! It says that it sleeps, then a fence, then looks whether there is work; who makes work ready has a fence (`sleeping.rs`), then looks whether it
//! sleeps. One of the two sees the other.

use core::time::Duration;
use std::sync::Arc;

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};
use machine::clock::Deadline;
use machine::park;
use machine::watch::Watch;

use crate::handover::Found;
use crate::shared::Shared;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// How far apart the looks are where nobody tells, at first and at most.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(2);
const MOST: Duration = Duration::from_millis(10);

/// Where the lookout sleeps.
pub(crate) struct Lookout {
    word: AtomicU32,
    /// None if there is no lookout.
    watch: Option<Watch>,
}

impl Lookout {
    /// One that has not been started, if there is to be one.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { word: AtomicU32::fresh(AWAKE), watch: wanted.then(Watch::new) }
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Something is ready, and all seats are busy. After a fence.
    #[inline]
    pub(crate) fn call(&self) {
        // Relaxed: after the caller's fence.
        if self.word.load(Ordering::Relaxed) == ASLEEP {
            self.wake();
        }
    }

    /// A seat has another holder.
    pub(crate) fn look_again(&self) {
        if let Some(watch) = &self.watch {
            watch.wake();
        }
    }

    /// Wakes it wherever it sleeps.
    #[cold]
    pub(crate) fn wake(&self) {
        // Release: pairs with the Acquire in `sleep`.
        self.word.store(AWAKE, Ordering::Release);
        park::wake_one(&self.word);
        self.look_again();
    }

    /// Sleeps until it is called, unless `needed`.
    fn sleep(&self, needed: impl Fn() -> bool) {
        // Relaxed: the fence orders it.
        self.word.store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
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

/// The lookout's body.
pub(crate) fn look_out(shared: &Arc<Shared>) {
    let Some(watch) = shared.lookout().watch() else { return };
    let needed = || shared.is_over() || shared.has_work();
    let mut interval = HEARTBEAT;
    while !shared.is_over() {
        if !needed() {
            shared.lookout().sleep(needed);
            interval = HEARTBEAT;
            continue;
        }
        let mut soonest = None;
        for seat in 0..shared.seats() {
            let holder = shared.carrier(shared.seat(seat).holder());
            // First armed, then looked at: a switch in between wakes it.
            let told = holder.seen_as().is_some_and(|index| watch.arm(index));
            let found = if told { shared.look_at(seat) } else { shared.examine(seat) };
            let after = match found {
                Found::Fine => (!told).then_some(interval),
                Found::Blocked(nanos) => Some(Duration::from_nanos(nanos)),
                Found::Taken => Some(Duration::ZERO),
            };
            soonest = after.into_iter().chain(soonest).min();
        }
        let deadline = soonest.map_or(Deadline::NEVER, Deadline::after);
        watch.wait(deadline);
        if soonest == Some(interval) {
            interval = (interval * 2).min(MOST);
        }
    }
}
