//! The units of all waiting: the time in which a cache line goes from one processor to another, and
//! the time of a call to the kernel.
//!
//! A waiter that looks sooner than a line can move takes the line away from the thread that works
//! on it. One that stays away for some hundred times as long leaves a lock idle. A waiter that
//! yields or sleeps pays for calls. Both times differ by a factor of ten between machines, and not
//! by the same one: a line moves in 25 ns between two cores that share a cache and in 250 ns
//! between two sockets, and a call takes 50 ns on bare metal and 500 ns in some virtual machines.
//! So policies count in transfers and calls, and not in nanoseconds.

use crate::backend;

/// A transfer where nothing can measure it, in nanoseconds.
pub(crate) const NOMINAL_TRANSFER_NS: u64 = 100;

/// A call where nothing can measure it, in nanoseconds.
pub(crate) const NOMINAL_CALL_NS: u64 = 100;

/// Returns the time of so many transfers of a cache line from one processor to another, in
/// nanoseconds.
///
/// The first call measures what a transfer takes, in some microseconds: half the time in which a
/// line goes to memory and comes back. It is between 20 ns and 500 ns. Where it cannot be measured
/// (without the `std` feature, and elsewhere than on x86-64 and on AArch64 with Linux) it is 100
/// ns.
///
/// ```
/// use stanchion_machine::wait::transfers;
/// assert!((20..=500).contains(&transfers(1)));
/// assert_eq!(transfers(40), 40 * transfers(1));
/// ```
#[inline]
#[must_use]
pub fn transfers(count: u64) -> u64 {
    backend::wait::transfer_nanos().saturating_mul(count)
}

/// Returns the time of so many calls to the kernel that need not wait, in nanoseconds.
///
/// The first call measures it, in some microseconds: the shortest of a few wake-ups for which there
/// is no sleeper. It is between 20 ns and 2 µs. Elsewhere than on Linux, and without the
/// `std` feature, it is 100 ns.
///
/// ```
/// use stanchion_machine::wait::calls;
/// assert!((20..=2_000).contains(&calls(1)));
/// ```
#[inline]
#[must_use]
pub fn calls(count: u64) -> u64 {
    backend::wait::call_nanos().saturating_mul(count)
}

/// A short turn at a lock: the lock's word goes to the waiter, what the lock protects follows, and
/// the release fetches the word again.
const TURN_TRANSFERS: u64 = 3;

/// Returns the time of so many short turns at a lock, in nanoseconds: three [`transfers`] each.
///
/// ```
/// use stanchion_machine::wait::{transfers, turns};
/// assert_eq!(turns(2), transfers(6));
/// ```
#[inline]
#[must_use]
pub fn turns(count: u64) -> u64 {
    transfers(TURN_TRANSFERS.saturating_mul(count))
}

/// Returns the time of so many rounds, in nanoseconds: in one, each processor that the process may
/// use has a short [turn](turns). Without the `std` feature one processor is assumed.
///
/// ```
/// use stanchion_machine::topology::usable;
/// use stanchion_machine::wait::{rounds, turns};
/// assert_eq!(rounds(2), turns(2 * usable() as u64));
/// ```
#[inline]
#[must_use]
pub fn rounds(count: u64) -> u64 {
    #[cfg(feature = "std")]
    let processors = backend::usable() as u64;
    #[cfg(not(feature = "std"))]
    let processors = 1;
    turns(count.saturating_mul(processors))
}

/// A yield that takes less than so many calls has let no other thread run.
#[cfg(feature = "std")]
const QUICK_CALLS: u64 = 100;

/// Yields the processor. Returns whether another thread has run meanwhile, as far as the time
/// tells: a yield that takes as long as a hundred calls has let one run.
///
/// ```
/// if !stanchion_machine::wait::yield_to_another() {
///     // No thread wants this processor: it may as well spin on.
/// }
/// ```
#[cfg(feature = "std")]
pub fn yield_to_another() -> bool {
    let began = crate::clock::now();
    crate::thread::yield_now();
    crate::clock::now().nanos_since(began) >= calls(QUICK_CALLS)
}

/// Returns pauses for [`retry_for`](super::retry_for): from half a transfer, at least 1 ns, up to
/// so many transfers.
///
/// ```
/// use stanchion_machine::wait::{pauses, transfers};
/// assert_eq!(pauses(4).end, transfers(4));
/// ```
#[inline]
#[must_use]
pub fn pauses(longest: u64) -> core::ops::Range<u64> {
    (transfers(1) / 2).max(1)..transfers(longest)
}

/// Returns a time that was measured, as policies are to see it: `nanos`, unless a simulated machine
/// was told to measure wrongly. For tests of policies that must not depend on a figure's accuracy.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn as_measured(nanos: u64) -> u64 {
    backend::wait::as_measured(nanos)
}
