//! Who would notice that a worker is stuck: a word that the monitor shares with those who make threads ready.
//!
//! | word | means | left by |
//! | --- | --- | --- |
//! | `UNWATCHED` | nobody would | who makes something ready for which no slot is free, or the monitor, for either of the others |
//! | `ARMED` | the workers that have slots are armed, unless they have been switched since, of which the monitor is being told | the monitor |
//! | `POLLED` | the monitor looks every so often | the monitor |
//!
//! # Orderings
//!
//! All accesses are Relaxed; what orders them are fences, in two of Dekker's protocols, in each of which one of the two sees the other:
//!
//! | one | the other |
//! | --- | --- |
//! | the monitor says `UNWATCHED`, fence of [`leave`](WatchState::leave), looks whether there is work | work is made ready, fence of `parked.rs`, looks whether it is `UNWATCHED` |
//! | somebody says `ARMED`, fence of [`stand`](WatchState::stand), looks who is registered, and arms him | a worker is registered, fence of [`has_begun`](WatchState::has_begun), looks whether it is `ARMED`, and arms itself |

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};

const UNWATCHED: u32 = 0;
const ARMED: u32 = 1;
const POLLED: u32 = 2;

/// Who would notice.
pub(crate) struct WatchState(AtomicU32);

impl WatchState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::fresh(UNWATCHED))
    }

    /// Whether nobody would. After a fence.
    #[inline]
    pub(crate) fn is_nobody(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UNWATCHED
    }

    /// Whether workers that have slots are to be armed.
    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ARMED
    }

    /// The monitor is told: the caller arms the workers after this.
    pub(crate) fn stand(&self) {
        self.0.store(ARMED, Ordering::Relaxed);
        // Pairs with the fence of `has_begun`.
        fence(Ordering::SeqCst);
    }

    /// The monitor looks every so often.
    pub(crate) fn look(&self) {
        self.0.store(POLLED, Ordering::Relaxed);
    }

    /// Nobody is told, and nobody looks: the monitor looks once more for work after this, and stays if there is some.
    pub(crate) fn leave(&self) {
        self.0.store(UNWATCHED, Ordering::Relaxed);
        // Pairs with the fence of `ParkedSlots::tell`.
        fence(Ordering::SeqCst);
    }

    /// A worker is registered: whether it is to arm itself.
    pub(crate) fn has_begun(&self) -> bool {
        // Pairs with the fence of `stand`.
        fence(Ordering::SeqCst);
        self.is_told()
    }
}
