//! The state of a future: one word that says which thread may touch the future, its output, and the
//! listener that waits for it.
//!
//! Wakers set a bit and leave. Only the waker that wakes an idle future must make it ready. Why not
//! a lock: a waker may run in a signal of another program's reactor, or inside the poll that it
//! wakes. Why not a count of wake-ups: one poll answers all that came before it.
//!
//! ```text
//!          wake: sets `woken`            begin
//!   idle ─────────────────────► scheduled ─────► running ──────► done
//!    ▲                              ▲             │   │  finish
//!    │ pause: no wake-up meanwhile  │             │   │
//!    └──────────────────────────────┼─────────────┘   │
//!                                   └─────────────────┘ pause: woken meanwhile
//!
//!   While it runs, `wake` only sets the bit. `pause` finds it, and it is scheduled again.
//! ```
//!
//! | state | `woken` | `running` | `done` | thread that may touch `body` |
//! | --- | --- | --- | --- | --- |
//! | idle | 0 | 0 | 0 | none |
//! | scheduled | 1 | 0 | 0 | the one that takes the task which runs it |
//! | running | any | 1 | 0 | the runner |
//! | done | any | any | 1 | the handle; the runner, if `detached` was set before `done` |
//!
//! | bit | set by | meaning |
//! | --- | --- | --- |
//! | `aborted` | any thread, for good | it is not polled any more |
//! | `listened` | the handle, which may clear it before `done` | `listener` is to be notified |
//! | `detached` | the handle, as its last act | no thread takes the output |
//!
//! # Invariants
//!
//! 1. `woken` without `running` and `done`: there is one task that runs it. The thread made it that
//!    set the bit, or that paused and found the bit.
//! 2. `listener` belongs to the handle while `listened` is clear. It belongs to the runner once
//!    `listened` and `done` are set.
//! 3. The output is dropped by the handle or by the runner. `done` and `detached` are set by
//!    exchanges, and the later one sees the other.
//!
//! # Orderings
//!
//! | exchange | pairs with |
//! | --- | --- |
//! | `wake`, `abort`: Release | `begin`: Acquire, so a poll sees what was before each wake-up |
//! | `pause`: Release | `begin`: Acquire, so a poll sees what the last one did |
//! | `finish`: Release | `listen`, `detach`, `is_done`: Acquire, for the output |
//! | `listen`: Release | `finish`: Acquire, for the listener |
//!
//! The poll sees all wake-ups before it, even if another waker had set the bit already: each waker
//! makes an exchange. Exchanges between a `pause` and the next `begin` pass on what they follow.
//!
//! Source: the bits are those of async-task and tokio. When their wakers find the bit set, the
//! first makes an exchange and the second only looks. This one makes an exchange.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

const WOKEN: u32 = 1;
const RUNNING: u32 = 2;
const DONE: u32 = 4;
const ABORTED: u32 = 8;
const LISTENED: u32 = 16;
const DETACHED: u32 = 32;

/// The state of a future. `B` is the future and then its output, `L` the type of its listener.
pub struct FutureState<B, L> {
    /// The bits above. Written by wakers, by the runner and by the handle.
    state: AtomicU32,
    /// The thing that is notified when it is done (Invariant 2).
    listener: UnsafeCell<Option<L>>,
    /// The future, and then its output. The first table names the thread that may touch it.
    body: UnsafeCell<B>,
}

/// The thing that is left to do when a future is done.
#[derive(Debug, PartialEq, Eq)]
pub enum Finished<L> {
    /// Nothing: the handle has not asked yet.
    NoListener,
    /// The handle's listener is to be notified.
    Listener(L),
    /// The handle is gone: the runner drops the output.
    Detached,
}

// SAFETY: the body is touched by one thread at a time (the table above), and so is the listener
// (Invariant 2).
unsafe impl<B: Send, L: Send> Sync for FutureState<B, L> {}

impl<B, L> FutureState<B, L> {
    /// Creates the state of a scheduled future: the caller owes it a task.
    pub fn new(body: B) -> Self {
        Self {
            state: AtomicU32::fresh(WOKEN),
            listener: UnsafeCell::new(None),
            body: UnsafeCell::new(body),
        }
    }

    /// Wakes the future. Returns whether the caller owes it a task now.
    #[must_use]
    pub fn wake(&self) -> bool {
        self.mark(WOKEN)
    }

    /// Lets the future not be polled any more. Returns whether the caller owes it a task now.
    #[must_use]
    pub fn abort(&self) -> bool {
        self.mark(WOKEN | ABORTED)
    }

    fn mark(&self, bits: u32) -> bool {
        // Release, and an exchange even where the bit is set already: pairs with `begin`.
        let before = self.state.fetch_or(bits, Ordering::Release);
        before & (WOKEN | RUNNING | DONE) == 0
    }

    /// Begins to run the future. Returns false if it is aborted.
    ///
    /// # Safety
    ///
    /// The caller has the task that was owed to it (Invariant 1).
    pub unsafe fn begin(&self) -> bool {
        // Exact: scheduled is `woken` without `running`, and only its task changes these two.
        // Acquire: pairs with `wake` and `pause`.
        let before = self.state.fetch_xor(WOKEN | RUNNING, Ordering::Acquire);
        before & ABORTED == 0
    }

    /// Calls `with` with the body.
    ///
    /// # Safety
    ///
    /// The caller may touch it, by the table in the head of the file.
    pub unsafe fn body<R>(&self, with: impl FnOnce(*mut B) -> R) -> R {
        self.body.with_mut(with)
    }

    /// Ends a poll after which the future waits. Returns whether it was woken meanwhile, so that
    /// the caller owes it a task.
    ///
    /// # Safety
    ///
    /// The caller runs it, and does not touch it afterwards.
    #[must_use]
    pub unsafe fn pause(&self) -> bool {
        // Release: pairs with `begin`.
        let before = self.state.fetch_and(!RUNNING, Ordering::Release);
        before & WOKEN != 0
    }

    /// Marks the future as done: its output is in the body. Says what is left to do.
    ///
    /// # Safety
    ///
    /// The caller runs it, and touches the body afterwards only if it is detached.
    pub unsafe fn finish(&self) -> Finished<L> {
        // AcqRel: see the head of the file.
        let before = self.state.fetch_or(DONE, Ordering::AcqRel);
        if before & DETACHED != 0 {
            return Finished::Detached;
        }
        if before & LISTENED == 0 {
            return Finished::NoListener;
        }
        // SAFETY: Invariant 2.
        let listener = self.listener.with_mut(|listener| unsafe { (*listener).take() });
        listener.map_or(Finished::NoListener, Finished::Listener)
    }

    /// Returns whether the future is done.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with `finish`.
        self.state.load(Ordering::Acquire) & DONE != 0
    }

    /// Registers `listener` in place of the last one. Returns false if the future is done.
    ///
    /// # Safety
    ///
    /// The caller has the handle.
    #[must_use]
    pub unsafe fn listen(&self, listener: L) -> bool {
        // SAFETY: the caller's promise.
        if !unsafe { self.unlisten() } {
            return false;
        }
        // SAFETY: Invariant 2: the bit is clear.
        self.listener.with_mut(|cell| unsafe { *cell = Some(listener) });
        // AcqRel: see the head of the file.
        let before = self.state.fetch_or(LISTENED, Ordering::AcqRel);
        if before & DONE != 0 {
            // The runner has finished it before the bit was set.
            // SAFETY: so the listener is still the handle's.
            drop(self.listener.with_mut(|cell| unsafe { (*cell).take() }));
            return false;
        }
        true
    }

    /// Removes the listener. Returns false if the future is done: then the runner may be notifying
    /// it just now.
    ///
    /// # Safety
    ///
    /// The caller has the handle.
    unsafe fn unlisten(&self) -> bool {
        // Acquire on failure: pairs with `finish`. Relaxed on success: the listener was the
        // handle's own.
        let cleared = self.state.fetch_update(Ordering::Relaxed, Ordering::Acquire, |state| {
            (state & DONE == 0).then_some(state & !LISTENED)
        });
        if cleared.is_ok() {
            // SAFETY: Invariant 2. Dropped after the access, as its drop is a caller's code.
            drop(self.listener.with_mut(|cell| unsafe { (*cell).take() }));
        }
        cleared.is_ok()
    }

    /// Gives up the output. Returns whether it is there already, so that the caller must drop it.
    ///
    /// # Safety
    ///
    /// The caller has the handle, has not taken the output, and gives the handle up.
    pub unsafe fn detach(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.unlisten() };
        // Acquire: pairs with `finish`. The runner that sees the bit reads nothing of the handle.
        let before = self.state.fetch_or(DETACHED, Ordering::Acquire);
        before & DONE != 0
    }
}
