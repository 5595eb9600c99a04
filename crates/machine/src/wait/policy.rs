//! What a waiter does between two looks.
//!
//! Why not just pause: a spin lock whose waiters never give up their processor stops the program
//! when the holder has none, which is certain as soon as threads outnumber processors and for ever
//! under a strict-priority scheduler. [`Patient`], the default everywhere, pauses while waiting is
//! likely to be short, then yields, and at last sleeps in growing steps.

use super::Pauses;
use crate::backend;

/// How a waiter passes the time between two looks. One value lives for one wait.
///
/// # Panics
///
/// A policy runs while its thread may be linked into a lock's queue: it must not panic, nor may its
/// destructor. The provided ones do not; the locks of this project end the process if one does.
pub trait WaitPolicy {
    /// A policy at the beginning of a wait. Cheap: it is made before the first look.
    fn start() -> Self;

    /// The last look found nothing: let time pass.
    fn pause(&mut self);

    /// The same for a waiter that knows how many are `ahead` of it, at least 1: by default one
    /// [`TURN_NS`] longer for each but the next.
    #[inline]
    fn pause_behind(&mut self, ahead: u32) {
        if ahead > 1 {
            // Never long enough to matter if the number is wrong.
            super::delay(u64::from(ahead - 1).min(64) * TURN_NS);
        }
        self.pause();
    }

    /// Whether the next pause gives the processor away, so that its thread will not look for a
    /// while.
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

    /// For how many nanoseconds from now on it would only pause and look again, by the pauses of
    /// [`hint::spin_loop`](crate::hint::spin_loop): `u64::MAX` if for ever, 0 (the default) if that
    /// is not known.
    ///
    /// A simulated machine asks it before each pause. Unless the answer is 0, it lets so much time
    /// pass, or until the word is written, without calling [`pause`](Self::pause), and reports the
    /// time by [`paused`](Self::paused). Other machines do not ask.
    fn pausing(&self) -> u64 {
        0
    }

    /// So many nanoseconds, at most what [`pausing`](Self::pausing) said, have passed without a
    /// [`pause`](Self::pause).
    fn paused(&mut self, nanos: u64) {
        let _ = nanos;
    }
}

/// What a turn at a short critical section is taken to last, in nanoseconds.
pub const TURN_NS: u64 = 100;

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

/// Pauses for `SPIN_NS` nanoseconds, then yields the processor `YIELDS` times, then sleeps: 50 µs,
/// doubling up to 1 ms.
///
/// The defaults: 4 µs is a few hand-offs of a short critical section between two processors, and
/// less than what it costs to put a thread to sleep and wake it. Without the `std` feature there is
/// nobody to yield to: it pauses for ever.
///
/// ```
/// use stanchion_machine::wait::{Patient, WaitPolicy};
/// let mut policy = <Patient>::start();
/// for _ in 0..10_000 {
///     policy.pause(); // soon yields, in the end sleeps
/// }
/// ```
#[derive(Debug)]
pub struct Patient<const SPIN_NS: u64 = 4_000, const YIELDS: u32 = 256> {
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Most waits end here: the clock has not been read.
    Brief { left: u32 },
    /// Pausing until the time is up.
    Spinning(Budget),
    #[cfg(feature = "std")]
    Yielding { left: u32 },
    #[cfg(feature = "std")]
    Sleeping { nanos: u64 },
}

/// [`Pauses`] with nothing worth printing.
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

impl<const SPIN_NS: u64, const YIELDS: u32> WaitPolicy for Patient<SPIN_NS, YIELDS> {
    #[inline]
    fn start() -> Self {
        Self { stage: if SPIN_NS > 0 { Stage::Brief { left: BRIEF_PAUSES } } else { Self::TIRED } }
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
            // With a processor's worth of threads ahead of it, one of them is waiting for a
            // processor: give it this one.
            #[cfg(feature = "std")]
            if ahead as usize >= backend::usable() {
                if !self.leaves() {
                    self.stage = Self::TIRED;
                }
                return self.pause_longer();
            }
            super::delay(u64::from(ahead - 1).min(64) * TURN_NS);
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
        // The others read the clock.
        if let Stage::Brief { left } = &mut self.stage {
            let pauses = nanos.div_ceil(backend::wait::pause_nanos());
            *left = left.saturating_sub(u32::try_from(pauses).unwrap_or(u32::MAX));
        }
    }
}

impl<const SPIN_NS: u64, const YIELDS: u32> Patient<SPIN_NS, YIELDS> {
    /// Done with pausing.
    #[cfg(feature = "std")]
    const TIRED: Stage = Stage::Yielding { left: YIELDS };
    /// There is nobody to yield to.
    #[cfg(not(feature = "std"))]
    const TIRED: Stage = Stage::Brief { left: u32::MAX };

    #[cold]
    fn pause_longer(&mut self) {
        match &mut self.stage {
            // With a single processor no other thread makes progress while this one pauses.
            #[cfg(feature = "std")]
            Stage::Brief { .. } if backend::usable() == 1 => {
                self.stage = Self::TIRED;
                crate::thread::yield_now();
            }
            Stage::Brief { .. } => {
                self.stage = Stage::Spinning(Budget(Pauses::within(SPIN_NS)));
                backend::spin_loop();
            }
            Stage::Spinning(Budget(budget)) => {
                // A last look before the processor is given away.
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
