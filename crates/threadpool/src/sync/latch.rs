//! Latches: set once, waited for by one thread, which the setter must not need to find alive.
//!
//! A latch lies on the stack of who waits for it. The moment it is set that thread may go on and
//! the latch be gone, so the setter's exchange is its last access; what the setter needs to wake
//! the waiter, it must have before.
//!
//! | bits | meaning | written by |
//! | --- | --- | --- |
//! | none | not set, and its owner does not sleep for it | |
//! | watched | its owner sleeps, or is about to | the owner |
//! | set | the owner may go on | the setter |
//! | thief | the number of the worker that has stolen the fork, and one more | the thief, before it sets the latch |
//!
//! # Orderings
//!
//! The setter's exchange releases what it did; who sees the latch set acquires that.

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;
use machine::wait::{Patient, WaitPolicy, retry_while_awake};

/// How a thread outside of the pool waits before it sleeps: pauses for 4 µs, then yields 4 times.
type Awake = Patient<4_000, 4>;

const OPEN: u32 = 0;
const WATCHED: u32 = 1;
const SET: u32 = 2;
/// The bits above: a thief.
const THIEF: u32 = 4;

/// A latch.
#[repr(transparent)]
pub struct Latch(AtomicU32);

impl Latch {
    /// One that is not set.
    #[inline]
    pub fn new() -> Self {
        Self(AtomicU32::fresh(OPEN))
    }

    /// Whether it is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the setter's exchange.
        self.0.load(Ordering::Acquire) & SET != 0
    }

    /// The owner is about to sleep elsewhere, and must be told. Says whether it may: not if the
    /// latch is set.
    pub fn watch(&self) -> bool {
        // Acquire: pairs with the setter's exchange. Nothing is published; the setter reads what it
        // needs before.
        self.0.fetch_or(WATCHED, Ordering::Acquire) & SET == 0
    }

    /// Writes the number of the worker that will set the latch.
    pub fn name_thief(&self, thief: usize) {
        // Relaxed: a hint for the owner.
        self.0.fetch_or((thief as u32 + 1) * THIEF, Ordering::Relaxed);
    }

    /// The number of the worker that will set the latch, if it has written it.
    pub fn thief(&self) -> Option<usize> {
        // Relaxed: a hint.
        (self.0.load(Ordering::Relaxed) / THIEF).checked_sub(1).map(|thief| thief as usize)
    }

    /// Sets the latch at this address. Says whether its owner must be told, for he sleeps, or is
    /// about to.
    ///
    /// # Safety
    ///
    /// The latch is alive until it is set, and is set once.
    pub unsafe fn set(latch: *const Self) -> bool {
        // SAFETY: alive until it is set, which happens at the end of this expression.
        let state = unsafe { &raw const (*latch).0 };
        // SAFETY: as above. Release: pairs with the Acquire of the owner, who sees what was done
        // before.
        let before = unsafe { (*state).swap(SET, Ordering::Release) };
        before & WATCHED != 0
    }

    /// Tells the owner of the latch at this address, who sleeps in [`wait`](Self::wait). The latch
    /// may be gone.
    pub fn wake(latch: *const Self) {
        park::wake_at(latch.cast::<AtomicU32>(), 1);
    }

    /// Waits until the latch is set: spins and yields for a while, then sleeps.
    ///
    /// A task that a worker finds while it spins has often ended after a microsecond, and a sleep
    /// costs ten times as much.
    pub fn wait(&self) {
        let set = || self.is_set().then_some(());
        if retry_while_awake(set, &mut Awake::start(), Deadline::NEVER).is_some() {
            return;
        }
        while self.watch() {
            park::wait(&self.0, WATCHED, Deadline::NEVER);
        }
    }
}
