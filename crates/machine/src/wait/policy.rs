//! Policies: the way in which a waiter passes the time between two looks at a word.
//!
//! Why not only pause: if the waiters of a spin lock never give up their processor, the program
//! stops when the holder has no processor. That is certain to happen as soon as threads outnumber
//! processors, and it lasts for ever under a strict-priority scheduler. [`Patient`], the default
//! everywhere, pauses while the wait is likely to be short. Then it yields, and at last it sleeps
//! in growing steps.

use super::Pauses;
use crate::backend;

/// The way in which a waiter passes the time between two looks. One value lives for one wait.
///
/// # Panics
///
/// A policy runs while its thread may be linked into a lock's queue: it must not panic, nor may its
/// destructor. The provided ones do not; the locks of this project end the process if one does.
pub trait WaitPolicy {
    /// Returns a policy at the beginning of a wait. Must be cheap: it runs before the first look.
    fn start() -> Self;

    /// Lets time pass after a look that found nothing.
    fn pause(&mut self);

    /// Lets time pass for a waiter that knows how many waiters are `ahead` of it, at least 1. By
    /// default it pauses longer by a short [turn](super::turns) for each of them but the next.
    #[inline]
    fn pause_behind(&mut self, ahead: u32) {
        if ahead > 1 {
            // Bounded, so that a wrong number costs little.
            super::delay(super::turns(u64::from(ahead - 1).min(64)));
        }
        self.pause();
    }

    /// Returns whether the next pause gives the processor away, so that the thread will not look
    /// again for a while.
    #[inline]
    fn leaves(&self) -> bool {
        false
    }

    /// Returns whether the next pause would put the thread to sleep for a while. An algorithm that
    /// can wake its waiters asks it before each pause. If the answer is true, the thread sleeps
    /// until it is woken, instead of pausing again and again.
    #[inline]
    fn sleeps(&self) -> bool {
        false
    }

    /// Returns for how many nanoseconds from now on the policy would only pause and look again, by
    /// the pauses of [`hint::spin_loop`](crate::hint::spin_loop). The answer is `u64::MAX` if it
    /// would do so for ever, and 0 (the default) if that is not known.
    ///
    /// A simulated machine asks it before each pause. Unless the answer is 0, it lets so much time
    /// pass, or until the word is written, without calling [`pause`](Self::pause), and reports the
    /// time by [`paused`](Self::paused). Other machines do not ask.
    fn pausing(&self) -> u64 {
        0
    }

    /// Tells the policy that `nanos` nanoseconds have passed without a [`pause`](Self::pause). That
    /// is at most what [`pausing`](Self::pausing) returned.
    fn paused(&mut self, nanos: u64) {
        let _ = nanos;
    }
}

/// Pauses and never gives the processor away.
///
/// For threads that have a processor of their own, and for code that must not enter the kernel.
/// With more threads than processors, a waiter burns its whole time slice while the holder waits
/// for one.
///
/// ```
/// use stanchion_machine::wait::{Spin, WaitPolicy};
/// let mut policy = Spin::start();
/// policy.pause();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl WaitPolicy for Spin {
    #[inline]
    fn start() -> Self {
        Self
    }

    #[inline]
    fn pause(&mut self) {
        backend::spin_loop();
    }

    fn pausing(&self) -> u64 {
        u64::MAX
    }
}

/// Pauses for as long as `SPINS` [calls](super::calls) to the kernel take and each processor has a
/// short [turn](super::turns), then yields the processor `YIELDS` times, then sleeps: 50 µs,
/// doubling up to 1 ms.
///
/// The defaults: 40 calls, 4 µs where one takes 100 ns, are a few hand-offs of a short critical
/// section between two processors, and less than the cost of putting a thread to sleep and waking
/// it. Without the `std` feature it cannot yield, so it pauses for ever.
///
/// ```
/// use stanchion_machine::wait::{Patient, WaitPolicy};
/// let mut policy = <Patient>::start();
/// for _ in 0..500 {
///     policy.pause(); // soon yields, in the end sleeps
/// }
/// ```
#[derive(Debug)]
pub struct Patient<const SPINS: u64 = 40, const YIELDS: u32 = 256> {
    /// The stage that the wait has reached, and what is left of it.
    stage: Stage,
}

/// The stages of a wait by [`Patient`], in their order.
#[derive(Debug)]
enum Stage {
    /// The first pauses, before the policy reads the clock. Most waits end here.
    Brief { left: u32 },
    /// Pausing until the budget of time is used up.
    Spinning(Budget),
    /// Yielding the processor, `left` times more.
    #[cfg(feature = "std")]
    Yielding { left: u32 },
    /// Sleeping; the next sleep lasts `nanos`.
    #[cfg(feature = "std")]
    Sleeping { nanos: u64 },
}

/// [`Pauses`] for a `Debug` that prints none of its state.
struct Budget(Pauses);

impl core::fmt::Debug for Budget {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("..")
    }
}

/// Pauses of [`Patient`] before it reads the clock: at most 1 µs on any processor known, and no
/// more than the wait of a hand-off.
const BRIEF_PAUSES: u32 = 16;

/// The first and the longest sleep of [`Patient`].
#[cfg(feature = "std")]
const SLEEPS_NS: (u64, u64) = (50_000, 1_000_000);

impl<const SPINS: u64, const YIELDS: u32> WaitPolicy for Patient<SPINS, YIELDS> {
    #[inline]
    fn start() -> Self {
        Self { stage: if SPINS > 0 { Stage::Brief { left: BRIEF_PAUSES } } else { Self::TIRED } }
    }

    #[inline]
    fn pause(&mut self) {
        if let Stage::Brief { left } = &mut self.stage
            && *left > 0
        {
            *left -= 1;
            return backend::spin_loop();
        }
        self.pause_longer();
    }

    #[inline]
    fn pause_behind(&mut self, ahead: u32) {
        if ahead > 1 {
            // If at least as many threads are ahead as there are processors, then one of them is
            // waiting for a processor: give it this one.
            #[cfg(feature = "std")]
            if ahead as usize >= backend::usable() {
                if !self.leaves() {
                    self.stage = Self::TIRED;
                }
                return self.pause_longer();
            }
            // Bounded, so that a wrong number costs little.
            super::delay(super::turns(u64::from(ahead - 1).min(64)));
        }
        self.pause();
    }

    #[inline]
    fn leaves(&self) -> bool {
        #[cfg(feature = "std")]
        return matches!(self.stage, Stage::Yielding { .. } | Stage::Sleeping { .. });
        #[cfg(not(feature = "std"))]
        false
    }

    #[inline]
    fn sleeps(&self) -> bool {
        #[cfg(feature = "std")]
        return matches!(self.stage, Stage::Yielding { left: 0 } | Stage::Sleeping { .. });
        #[cfg(not(feature = "std"))]
        false
    }

    fn pausing(&self) -> u64 {
        match &self.stage {
            Stage::Brief { left } => u64::from(*left) * backend::wait::pause_nanos(),
            Stage::Spinning(Budget(budget)) => budget.left(),
            #[cfg(feature = "std")]
            Stage::Yielding { .. } | Stage::Sleeping { .. } => 0,
        }
    }

    fn paused(&mut self, nanos: u64) {
        // The other stages read the clock.
        if let Stage::Brief { left } = &mut self.stage {
            let pauses = nanos.div_ceil(backend::wait::pause_nanos());
            *left = left.saturating_sub(u32::try_from(pauses).unwrap_or(u32::MAX));
        }
    }
}

impl<const SPINS: u64, const YIELDS: u32> Patient<SPINS, YIELDS> {
    /// The stage after pausing.
    #[cfg(feature = "std")]
    const TIRED: Stage = Stage::Yielding { left: YIELDS };
    /// Without `std` the thread cannot yield: it goes on pausing.
    #[cfg(not(feature = "std"))]
    const TIRED: Stage = Stage::Brief { left: u32::MAX };

    #[cold]
    fn pause_longer(&mut self) {
        match &mut self.stage {
            // With a single processor no other thread makes progress while this one pauses: yield
            // at once.
            #[cfg(feature = "std")]
            Stage::Brief { .. } if backend::usable() == 1 => {
                self.stage = Self::TIRED;
                crate::thread::yield_now();
            }
            // The first pauses are used up: measure time from here on.
            Stage::Brief { .. } => {
                self.stage =
                    Stage::Spinning(Budget(Pauses::within(super::calls(SPINS) + super::rounds(1))));
                backend::spin_loop();
            }
            Stage::Spinning(Budget(budget)) => {
                // If the budget is used up, the caller looks once more before the processor is
                // given away.
                if !budget.pause() {
                    self.stage = Self::TIRED;
                }
            }
            #[cfg(feature = "std")]
            Stage::Yielding { left } => match left.checked_sub(1) {
                Some(fewer) => {
                    *left = fewer;
                    crate::thread::yield_now();
                }
                None => {
                    self.stage = Stage::Sleeping { nanos: SLEEPS_NS.0 };
                    self.pause_longer();
                }
            },
            #[cfg(feature = "std")]
            Stage::Sleeping { nanos } => {
                let this_time = *nanos;
                *nanos = (this_time * 2).min(SLEEPS_NS.1);
                crate::thread::sleep(core::time::Duration::from_nanos(this_time));
            }
        }
    }
}
