//! Latches: set once by one thread, waited for by one other thread.
//!
//! A latch lies on the stack of its waiter. The waiter may return as soon as the latch is set, and
//! then the latch is gone. So the setter's exchange is its last access to the latch. Whatever the
//! setter needs to wake the waiter, it reads before the exchange.
//!
//! | bits | meaning | written by |
//! | --- | --- | --- |
//! | none | not set, and the waiter does not sleep for it | |
//! | watched | the waiter sleeps, or is about to | the waiter |
//! | set | the waiter may return | the setter |
//! | thief | the index of the worker that stole the fork, plus one | the thief, before setting |
//!
//! # Orderings
//!
//! The setter's exchange is Release. A waiter that sees the latch set acquires what the setter did.

use stanchion_competitive::cost;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_while_awake, spin_for};
use stanchion_machine::{park, topology};

/// The waiting of a thread outside of the pool between spinning and sleeping: a few yields.
type Yielding = Patient<0, 4>;

const OPEN: u32 = 0;
const WATCHED: u32 = 1;
const SET: u32 = 2;
/// The unit of the bits above, which hold the thief's index plus one.
const THIEF: u32 = 4;

/// A flag that one thread sets and one other thread waits for. The table above shows its bits.
#[repr(transparent)]
pub struct Latch(AtomicU32);

impl Latch {
    /// Creates a latch that is not set.
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    #[inline]
    pub fn new() -> Self {
        Self(AtomicU32::fresh(OPEN))
    }

    /// Returns whether the latch is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the setter's exchange.
        self.0.load(Ordering::Acquire) & SET != 0
    }

    /// Announces that the waiter is about to sleep elsewhere, so the setter must wake it. Returns
    /// whether it may sleep: not if the latch is set.
    pub fn watch(&self) -> bool {
        // Acquire: pairs with the setter's exchange. Nothing is published: the setter reads what it
        // needs before its exchange.
        self.0.fetch_or(WATCHED, Ordering::Acquire) & SET == 0
    }

    /// Writes the index of the worker that will set the latch.
    pub fn name_thief(&self, thief: usize) {
        // Relaxed: a hint for the waiter.
        self.0.fetch_or((thief as u32 + 1) * THIEF, Ordering::Relaxed);
    }

    /// Returns the index of the worker that will set the latch, if it has been written.
    pub fn thief(&self) -> Option<usize> {
        // Relaxed: a hint.
        (self.0.load(Ordering::Relaxed) / THIEF).checked_sub(1).map(|thief| thief as usize)
    }

    /// Sets the latch at this address. Returns whether the caller must wake the waiter, which
    /// sleeps or is about to.
    ///
    /// # Safety
    ///
    /// The latch is alive until it is set, and is set once.
    pub unsafe fn set(latch: *const Self) -> bool {
        // SAFETY: alive until it is set, which the exchange below does. Only an address is taken.
        let state = unsafe { &raw const (*latch).0 };
        // SAFETY: as above: the exchange itself still finds the latch alive, and nothing touches it
        // afterwards. Release: pairs with the Acquire of the waiter.
        let before = unsafe { (*state).swap(SET, Ordering::Release) };
        before & WATCHED != 0
    }

    /// Wakes the waiter of the latch at this address, which sleeps in [`wait`](Self::wait). The
    /// latch may be gone: only its address is used.
    pub fn wake(latch: *const Self) {
        park::wake_at(latch.cast::<AtomicU32>(), 1);
    }

    /// Waits until the latch is set: spins for the [cost of blocking](cost), yields a few times,
    /// then sleeps.
    ///
    /// A task has often ended soon after a worker was woken for it. So a caller that slept at once
    /// would have to be woken too.
    pub fn wait(&self) {
        // With one processor no worker makes progress while this thread spins.
        // Relaxed: `is_set` acquires.
        let has_set = |state: u32| state & SET != 0;
        if topology::usable() > 1
            && spin_for(&self.0, Ordering::Relaxed, has_set, cost::current()).is_some()
            && self.is_set()
        {
            return;
        }
        let set = || self.is_set().then_some(());
        if retry_while_awake(set, &mut Yielding::start(), Deadline::NEVER).is_some() {
            return;
        }
        while self.watch() {
            park::wait(&self.0, WATCHED, Deadline::NEVER);
        }
    }
}
