//! Publishers that keep by themselves whether they fence, towards announcers that must know it.
//!
//! A publisher that looks at each [`light`] whether barriers are made pays for the look. One that
//! runs much more often keeps the answer in a word of its own, and calls [`light_while_free`]. If
//! the process then does without barriers, it would not fence although announcers count on that. So
//! the publisher says in a [`Reliance`] on which period of barriers it relies. An announcer looks
//! there after its `heavy`. If that period is over, the announcer makes the publisher fence.
//!
//! ```text
//! publisher                                announcer
//! ---------                                ---------
//! p = period(), and there is one           write Y
//! (1) begins(p)                            (a) heavy()
//! (2) keep that it need not fence          (b) outlived? if it is:
//! (3) confirms(p), else take (2) back      (c)   keep that the publisher must fence
//! write X                                  (d)   wait until the publisher's writes are visible
//! light_while_free(), or light()           (e)   end the reliance
//! read Y                                   read X
//! ```
//!
//! # Why it is right
//!
//! The publisher relies on the period p. Either the announcer's heavy fence was a barrier of that
//! period, which is right with each publisher. Or it was a fence only, after the end of the period.
//!
//! - If the announcer sees p in (b), it makes the publisher fence. What the publisher wrote before
//!   is visible after (d).
//! - If it sees 0, another announcer has ended the reliance after (d). Its Release in (e) and the
//!   Acquire in (b) make the publisher's writes visible here too.
//! - If it sees a later period, the publisher has begun that one after all that it wrote in p, and
//!   the Release in (1) and the Acquire in (b) make that visible.
//! - If it sees an earlier value, (1) is not visible here. Then the look of (3) finds that p is
//!   over: the fence of (3) comes after the one in this announcer's `heavy`.
//!
//! The fences in (3) and before (c) also keep a publisher that is late in (2) from taking back what
//! an announcer has said in (c): if the look of (3) finds p, then (2) comes before (c).
//!
//! [`light`]: crate::asymmetric::light
//! [`light_while_free`]: crate::asymmetric::light_while_free

use crate::atomic::{AtomicU32, Fresh, Ordering, fence};

/// The period of barriers on which one publisher relies, if any; see the [module](self).
///
/// The functions that ask for a `current` period are given [`asymmetric::period`], and the one that
/// waits [`asymmetric::wait_until_visible`].
///
/// [`asymmetric::period`]: crate::asymmetric::period
/// [`asymmetric::wait_until_visible`]: crate::asymmetric::wait_until_visible
///
/// ```
/// use stanchion_machine::asymmetric::{heavy, period, wait_until_visible};
/// use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed};
/// use stanchion_machine::reliance::Reliance;
///
/// static MUST_FENCE: AtomicU32 = AtomicU32::new(1);
/// static RELIANCE: Reliance = Reliance::new();
///
/// fn publisher_begins() {
///     let Some(now) = period() else { return };
///     RELIANCE.begins(now);
///     MUST_FENCE.store(0, Relaxed);
///     if !RELIANCE.confirms(now, period) {
///         MUST_FENCE.store(1, Relaxed);
///     }
/// }
///
/// fn announcer_fences() {
///     heavy();
///     if let Some(over) = RELIANCE.outlived(period) {
///         RELIANCE.end(over, || MUST_FENCE.store(1, Relaxed), wait_until_visible);
///     }
/// }
/// # heavy();
/// # publisher_begins();
/// # announcer_fences();
/// ```
#[derive(Debug)]
pub struct Reliance {
    /// The period, or 0.
    period: AtomicU32,
}

impl Reliance {
    /// Makes the reliance of a publisher that fences.
    #[must_use]
    pub const fn new() -> Self {
        Self { period: AtomicU32::new(0) }
    }

    /// Makes it as [`new`](Self::new) does, while the program runs.
    #[must_use]
    pub fn fresh() -> Self {
        Self { period: AtomicU32::fresh(0) }
    }

    /// Says that the publisher relies on barriers of this period. It may not do so before it has
    /// [confirmed](Self::confirms) that.
    pub fn begins(&self, period: u32) {
        // Release: pairs with the Acquire of `outlived`.
        self.period.store(period, Ordering::Release);
    }

    /// Returns whether the period is still the current one, after the publisher has written that it
    /// need not fence. If not, it must take that back.
    #[must_use]
    pub fn confirms(&self, period: u32, current: impl FnOnce() -> Option<u32>) -> bool {
        // SeqCst: pairs with the fence of `heavy`, and with that of `end`.
        fence(Ordering::SeqCst);
        current() == Some(period)
    }

    /// Returns the period on which the publisher relies, if it is over. For a thread that has
    /// called [`heavy`](crate::asymmetric::heavy).
    #[must_use]
    pub fn outlived(&self, current: impl FnOnce() -> Option<u32>) -> Option<u32> {
        // Acquire: pairs with the Release of `begins` and of `end`.
        let period = self.period.load(Ordering::Acquire);
        (period != 0 && current() != Some(period)).then_some(period)
    }

    /// Ends the reliance on a period that is over: writes that the publisher must fence, and waits
    /// until all is visible that it has written without.
    pub fn end(&self, period: u32, must_fence: impl FnOnce(), wait_until_visible: impl FnOnce()) {
        // SeqCst: pairs with the fence of `confirms`.
        fence(Ordering::SeqCst);
        must_fence();
        wait_until_visible();
        // Release: pairs with the Acquire of `outlived`. Relaxed on failure: the publisher has
        // begun a later period, or another thread has ended this one.
        let _ = self.period.compare_exchange(period, 0, Ordering::Release, Ordering::Relaxed);
    }
}

impl Default for Reliance {
    fn default() -> Self {
        Self::new()
    }
}
