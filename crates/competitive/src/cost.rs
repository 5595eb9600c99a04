//! C, the cost of blocking: the time from a release, or another wake-up, until the woken thread
//! runs.
//!
//! Why not a constant: if a thread's processor sleeps, the thread is woken by an interrupt, 20 to
//! 60 µs away in a virtual machine. A thread that only has to take over a running processor is
//! there in 2 to 5 µs. Why not a mean of the gaps that are seen: on a busy machine a woken thread
//! also waits for its turn, which is not the price of blocking. So C is a low quantile of the gaps,
//! the tenth hundredth, followed by small steps.
//!
//! There is one estimate for each mode of the process, not for each lock:
//!
//! | mode | the woken thread ran on | so |
//! | --- | --- | --- |
//! | [`Mode::Idle`] | another processor than the waker | that processor was idle, and slept |
//! | [`Mode::Busy`] | the waker's own | it had to wait for the waker to leave |
//!
//! [`current`] is the estimate of the mode that was seen last. Before any thread has been woken it
//! is [`SEED_CALLS`] times the cost of a call to the kernel.
//!
//! # Orderings
//!
//! All are Relaxed: each estimate is a number by itself. If two threads adjust it at once, one may
//! not count.
//!
//! Source: Karlin et al. 1991 measured 200 µs beforehand (section 5). Measuring it in passing is an
//! addition of this crate.

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::topology;
use stanchion_machine::wait::{as_measured, calls};

/// No estimate is below this, in nanoseconds…
pub const MIN_NS: u64 = 500;
/// …nor above this.
pub const MAX_NS: u64 = 50_000;
/// Before anything was measured, C is taken to be so many calls to the kernel that need not wait.
pub const SEED_CALLS: u64 = 16;

/// The processor on which a woken thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// On a processor that had been idle.
    Idle,
    /// On the waker's.
    Busy,
}

stanchion_machine::global! {
    /// Nanoseconds; 0 before the first.
    static ESTIMATES: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
}

stanchion_machine::global! {
    /// The mode seen last.
    static LATEST: AtomicU32 = AtomicU32::new(0);
}

/// C in nanoseconds, as it has been of late. Between [`MIN_NS`] and [`MAX_NS`].
///
/// ```
/// use stanchion_competitive::cost;
/// assert!((cost::MIN_NS..=cost::MAX_NS).contains(&cost::current()));
/// ```
#[inline]
#[must_use]
pub fn current() -> u64 {
    let latest = LATEST.load(Ordering::Relaxed) as usize % 2;
    match ESTIMATES[latest].load(Ordering::Relaxed) {
        0 => seed(),
        nanos => nanos.into(),
    }
}

/// C in that mode; `None` if it was not asked for yet.
#[must_use]
pub fn of(mode: Mode) -> Option<u64> {
    match ESTIMATES[mode as usize].load(Ordering::Relaxed) {
        0 => None,
        nanos => Some(nanos.into()),
    }
}

/// The first guess, for both modes.
#[cold]
fn seed() -> u64 {
    let seed = clamped(calls(SEED_CALLS));
    for estimate in &*ESTIMATES {
        // The first thread sets it. A gap that was seen meanwhile is worth more.
        let _ = estimate.compare_exchange(0, seed as u32, Ordering::Relaxed, Ordering::Relaxed);
    }
    seed
}

fn clamped(nanos: u64) -> u64 {
    nanos.clamp(MIN_NS, MAX_NS)
}

/// The moment of a wake-up, and the processor of its waker.
#[derive(Clone, Copy)]
pub(crate) struct WakeUp {
    /// The time from which the sleeper might have gone on.
    pub(crate) at: Ticks,
    /// The processor, if the system tells.
    on: Option<usize>,
}

impl WakeUp {
    /// A wake-up by the calling thread, of a sleeper that might have gone on at `at`.
    pub(crate) fn since(at: Ticks) -> Self {
        Self { at, on: topology::current() }
    }

    /// A wake-up of which nothing is learnt.
    pub(crate) const NONE: Self = Self { at: Ticks::from_bits(0), on: None };

    /// Returns the mode for the thread that was woken, which has really slept. `None` if the system
    /// does not tell.
    pub(crate) fn mode(self) -> Option<Mode> {
        let mode = |here| if self.on == Some(here) { Mode::Busy } else { Mode::Idle };
        self.on.and_then(|_| topology::current()).map(mode)
    }

    /// Observes the gap between the wake-up and now. The calling thread was woken, and has really
    /// slept.
    pub(crate) fn observe(self) {
        if let Some(mode) = self.mode() {
            observe(clock::now().nanos_since(self.at), mode);
        }
    }
}

/// One gap was seen, in nanoseconds.
pub(crate) fn observe(gap: u64, mode: Mode) {
    let estimate = &ESTIMATES[mode as usize];
    let before = match estimate.load(Ordering::Relaxed) {
        0 => seed(),
        nanos => nanos.into(),
    };
    estimate.store(follow(before, as_measured(gap)) as u32, Ordering::Relaxed);
    LATEST.store(mode as u32, Ordering::Relaxed);
}

/// One step of the estimate towards the tenth hundredth of the gaps: it stands still where one gap
/// of ten is below it, because then nine small steps up are one big step down.
fn follow(estimate: u64, gap: u64) -> u64 {
    // A step is an eightieth: within a factor of two of the truth after some fifty gaps.
    let step = (estimate / 80).max(9);
    let next = if gap < estimate { estimate.saturating_sub(step) } else { estimate + step / 9 };
    clamped(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_at_the_tenth_hundredth() {
        // Gaps of 1 to 100 µs, evenly: a tenth is below 10.9 µs.
        let mut estimate = 40_000;
        let mut last = Vec::new();
        let mut state = 1_u64;
        for round in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            estimate = follow(estimate, 1_000 + (state >> 33) % 99_000);
            if round > 100_000 {
                last.push(estimate);
            }
        }
        let mean = last.iter().sum::<u64>() / last.len() as u64;
        assert!((9_000..13_000).contains(&mean), "{mean}");
    }

    #[test]
    fn nonsense_stays_within_the_bounds() {
        let mut estimate = 4_000;
        for _ in 0..10_000 {
            estimate = follow(estimate, 0);
        }
        assert_eq!(estimate, MIN_NS);
        for _ in 0..10_000 {
            estimate = follow(estimate, 10_000_000_000);
        }
        assert_eq!(estimate, MAX_NS);
    }

    #[test]
    fn there_is_a_first_guess() {
        assert!((MIN_NS..=MAX_NS).contains(&current()));
    }
}
