//! One word that says who may touch a future, its output, and what tells whoever waits for it.
//!
//! Wakers set a bit and leave; only the one who wakes an idle future must put it among the ready tasks. Why not a lock: a waker may run in a signal
//! of another program's reactor, or inside the poll that it wakes. Why not a count of wake-ups: one poll answers all that came before it.
//!
//! ```text
//!            wake: the one who set `woken`         begin
//!   idle ─────────────────────────────► scheduled ───────► running ──► done
//!     ^  <─────────────────────────────────────────────────  │  ^
//!     │                 pause: nobody woke it meanwhile      │  │
//!     └──────────────────────────────────────────────────────┘  └── wake: only the bit; `pause` finds it, and it is scheduled again
//! ```
//!
//! | state | `woken` | `running` | `done` | who may touch `body` |
//! | --- | --- | --- | --- | --- |
//! | idle | 0 | 0 | 0 | nobody |
//! | scheduled | 1 | 0 | 0 | who takes the one task that runs it |
//! | running | any | 1 | 0 | who runs it |
//! | done | any | any | 1 | the handle; who ran it, if `detached` was set before `done` |
//!
//! | bit | set by | meaning |
//! | --- | --- | --- |
//! | `aborted` | anybody, once and for all | it is not polled any more |
//! | `listened` | the handle, which may clear it unless it is done | what lies in `listener` is to be told |
//! | `detached` | the handle, as its last act | nobody takes the output |
//!
//! # Invariants
//!
//! 1. `woken` without `running` and `done`: there is one task that runs it. It was made by who set the bit, or by who paused and found it.
//! 2. `listener` belongs to the handle while `listened` is clear, and to who ran the future once `listened` and `done` are set.
//! 3. The output is dropped by the handle or by who ran the future: `done` and `detached` are set by exchanges, and the later one sees the other.
//!
//! # Orderings
//!
//! | exchange | pairs with |
//! | --- | --- |
//! | `wake`, `abort`: Release | `begin`: Acquire. What was done before a wake-up is seen by the poll after it, also if somebody else had woken it already |
//! | `pause`: Release | `begin`: Acquire. One poll sees what the last did; exchanges between the two pass it on, as this one passes on those of wakers |
//! | `finish`: Release | `listen`, `detach`, `is_done`: Acquire, for the output |
//! | `listen`: Release | `finish`: Acquire, for the listener |
//!
//! Source: the bits are those of async-task and tokio, whose wakers, when they find the bit set, exchange (the first) or only look (the second); this
//! exchanges.

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;

const WOKEN: u32 = 1;
const RUNNING: u32 = 2;
const DONE: u32 = 4;
const ABORTED: u32 = 8;
const LISTENED: u32 = 16;
const DETACHED: u32 = 32;

/// A future's state, itself or its output as `B`, and what tells its handle as `L`.
pub struct FutureState<B, L> {
    state: AtomicU32,
    listener: UnsafeCell<Option<L>>,
    body: UnsafeCell<B>,
}

/// Who is left when a future is done.
#[derive(Debug, PartialEq, Eq)]
pub enum Finished<L> {
    /// The handle, which has not asked yet.
    NoListener,
    /// The handle, which is to be told so.
    Listener(L),
    /// Nobody: who has finished it drops the output.
    Detached,
}

// SAFETY: the body is touched by one thread at a time (the table above), and so is the listener (Invariant 2).
unsafe impl<B: Send, L: Send> Sync for FutureState<B, L> {}

impl<B, L> FutureState<B, L> {
    /// One that is scheduled: whoever makes it owes it a task.
    pub fn new(body: B) -> Self {
        Self {
            state: AtomicU32::fresh(WOKEN),
            listener: UnsafeCell::new(None),
            body: UnsafeCell::new(body),
        }
    }

    /// Something has happened that the future waits for. True, if the caller owes it a task now.
    #[must_use]
    pub fn wake(&self) -> bool {
        self.mark(WOKEN)
    }

    /// It is not to be polled any more. True, if the caller owes it a task now.
    #[must_use]
    pub fn abort(&self) -> bool {
        self.mark(WOKEN | ABORTED)
    }

    fn mark(&self, bits: u32) -> bool {
        // Release, and an exchange also where the bit is set already: pairs with `begin`.
        let before = self.state.fetch_or(bits, Ordering::Release);
        before & (WOKEN | RUNNING | DONE) == 0
    }

    /// Begins to run it. False, if it is aborted.
    ///
    /// # Safety
    ///
    /// The caller has the task that was owed to it (Invariant 1).
    pub unsafe fn begin(&self) -> bool {
        // Exact: scheduled is `woken` without `running`, and only its task changes these two. Acquire: pairs with `wake` and `pause`.
        let before = self.state.fetch_xor(WOKEN | RUNNING, Ordering::Acquire);
        before & ABORTED == 0
    }

    /// What `with` makes of the body.
    ///
    /// # Safety
    ///
    /// The caller may touch it, by the table in the head of the file.
    pub unsafe fn body<R>(&self, with: impl FnOnce(*mut B) -> R) -> R {
        self.body.with_mut(with)
    }

    /// It was polled, and waits. True, if it was woken meanwhile, and the caller owes it a task.
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

    /// Its output is in the body. Says who is left.
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

    /// Whether the output is there, or was.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with `finish`.
        self.state.load(Ordering::Acquire) & DONE != 0
    }

    /// Has `listener` told when it is done, in place of the last one. False, if it is done.
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
            // Who finished it came before the bit.
            // SAFETY: so the listener is still the handle's.
            drop(self.listener.with_mut(|cell| unsafe { (*cell).take() }));
            return false;
        }
        true
    }

    /// Nobody is to be told. False, if it is done: then somebody may be told just now.
    ///
    /// # Safety
    ///
    /// The caller has the handle.
    unsafe fn unlisten(&self) -> bool {
        // Acquire on failure: pairs with `finish`. Relaxed on success: the listener was the handle's own.
        let cleared = self.state.fetch_update(Ordering::Relaxed, Ordering::Acquire, |state| {
            (state & DONE == 0).then_some(state & !LISTENED)
        });
        if cleared.is_ok() {
            // SAFETY: Invariant 2. Dropped after the access, for that is code of others.
            drop(self.listener.with_mut(|cell| unsafe { (*cell).take() }));
        }
        cleared.is_ok()
    }

    /// Nobody takes the output. True, if it is there already, and the caller is to drop it.
    ///
    /// # Safety
    ///
    /// The caller has the handle, has not taken the output, and gives the handle up.
    pub unsafe fn detach(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.unlisten() };
        // Acquire: pairs with `finish`. Nothing of the handle's is read by who sees the bit.
        let before = self.state.fetch_or(DETACHED, Ordering::Acquire);
        before & DONE != 0
    }
}
