//! Who would notice that a carrier is stuck: a word that the lookout shares with those who make threads ready.
//!
//! | word | means | left by |
//! | --- | --- | --- |
//! | `NOBODY` | nobody would | who makes something ready for which no seat is free, or the lookout, for either of the others |
//! | `TOLD` | the carriers that have seats are armed, unless they have been switched since, of which the lookout is being told | the lookout |
//! | `LOOKS` | the lookout looks every so often | the lookout |
//!
//! # Orderings
//!
//! All accesses are Relaxed; what orders them are fences, in two of Dekker's protocols, in each of which one of the two sees the other:
//!
//! | one | the other |
//! | --- | --- |
//! | the lookout says `NOBODY`, fence of [`leave`](Guard::leave), looks whether there is work | work is made ready, fence of `sleeping.rs`, looks whether it is `NOBODY` |
//! | somebody says `TOLD`, fence of [`stand`](Guard::stand), looks who is registered, and arms him | a carrier is registered, fence of [`has_begun`](Guard::has_begun), looks whether it is `TOLD`, and arms itself |

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};

const NOBODY: u32 = 0;
const TOLD: u32 = 1;
const LOOKS: u32 = 2;

/// Who would notice.
pub(crate) struct Guard(AtomicU32);

impl Guard {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::fresh(NOBODY))
    }

    /// Whether nobody would. After a fence.
    #[inline]
    pub(crate) fn is_nobody(&self) -> bool {
        self.0.load(Ordering::Relaxed) == NOBODY
    }

    /// Whether carriers that have seats are to be armed.
    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TOLD
    }

    /// The lookout is told: the caller arms the carriers after this.
    pub(crate) fn stand(&self) {
        self.0.store(TOLD, Ordering::Relaxed);
        // Pairs with the fence of `has_begun`.
        fence(Ordering::SeqCst);
    }

    /// The lookout looks every so often.
    pub(crate) fn look(&self) {
        self.0.store(LOOKS, Ordering::Relaxed);
    }

    /// Nobody is told, and nobody looks: the lookout looks once more for work after this, and stays if there is some.
    pub(crate) fn leave(&self) {
        self.0.store(NOBODY, Ordering::Relaxed);
        // Pairs with the fence of `Sleeping::tell`.
        fence(Ordering::SeqCst);
    }

    /// A carrier is registered: whether it is to arm itself.
    pub(crate) fn has_begun(&self) -> bool {
        // Pairs with the fence of `stand`.
        fence(Ordering::SeqCst);
        self.is_told()
    }
}
