//! Time for waiters: ticks cheap enough for a slow path, and deadlines.
//!
//! Two clocks, because a waiter asks two questions:
//!
//! | question | type | read by |
//! | --- | --- | --- |
//! | how long have I spun? | [`Ticks`] | a processor counter where the kernel reads it too |
//! | must I give up? | [`Deadline`] | the monotonic clock, which the kernel sleeps by |
//!
//! [`source`] returns which clock ticks are read from. Ticks may be wrong by 0.4 % at first and by
//! less later. They may be wrong by more once a virtual machine has moved to a processor of another
//! speed. Deadlines are exact.
//!
//! Why not [`std::time::Instant`] for both: it is a call into the kernel's page (20 to 40 ns) where
//! the counter is one instruction. It is a system call on a machine with a kernel that does not
//! trust the counter.
//!
//! Budgets in this project are **time**, never counts of pauses: a pause hint lasts 1 ns on one
//! processor and 60 ns on another.
//!
//! # Invariants
//!
//! 1. A [`Deadline`] never passes early.
//! 2. Between two suspends of the machine, [`Ticks`] read by one thread never run backwards.
//!    Between threads they agree as well as the kernel's own clock does, since the counter is used
//!    only where that clock is made from it.
//! 3. Across a suspend, ticks may stand still, run on, or begin anew at a smaller number. Then
//!    [`Ticks::nanos_since`] an earlier moment may be 0 or as long as the suspend. A loop that
//!    waits for a moment must not wait for a former uptime: the budgets of this crate end when the
//!    ticks have moved on by so many *or have run backwards*. The rate between ticks and
//!    nanoseconds is not touched by a suspend.
//! 4. Across a suspend a [`Deadline`] is as late as the suspend was long, where the monotonic clock
//!    stands still meanwhile (Linux, macOS).
//! 5. Reading [`now`] orders nothing: it is not a fence.

#[cfg(feature = "std")]
use crate::backend;
#[cfg(feature = "std")]
use core::{fmt, time::Duration};

/// The moments that deadlines are given in: the standard library's, on every machine.
///
/// Get one from [`moment_after`], which knows the machine. A simulated machine refuses an instant
/// that was read from the real clock.
#[cfg(feature = "std")]
pub use std::time::Instant;

/// A moment, in the units of the machine's cheapest trustworthy clock.
///
/// ```
/// use stanchion_machine::clock::{now, pause_ns};
/// let start = now();
/// let end = start.plus_nanos(2_000);
/// while now() < end {}
/// assert!(now().nanos_since(start) > 1_900);
/// assert_eq!(start.nanos_since(end), 0);
/// assert!(pause_ns() > 0.0);
/// ```
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(u64);

/// Returns the moment it is now. About 10 ns where the processor counter may be used.
///
/// The first call of a process decides on the clock, and the first conversion to nanoseconds finds
/// the counter's speed: some 50 µs together, by `clock_gettime`, `futex` and the counter alone.
/// Neither allocates nor opens a file. [`warm_up`](crate::warm_up) does both beforehand.
#[cfg(feature = "std")]
#[inline]
#[must_use]
pub fn now() -> Ticks {
    Ticks(backend::clock::now())
}

#[cfg(feature = "std")]
impl Ticks {
    /// Returns the nanoseconds from `earlier` to `self`, or 0 if `earlier` is the later one.
    #[inline]
    #[must_use]
    pub fn nanos_since(self, earlier: Self) -> u64 {
        backend::clock::to_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the moment `nanos` nanoseconds later, or the last representable moment if that lies
    /// beyond it.
    #[inline]
    #[must_use]
    pub fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(backend::clock::from_nanos(nanos)))
    }

    /// Returns the bare count, for keeping a moment in an atomic word.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the moment for which [`to_bits`](Self::to_bits) returned `bits`.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// A length of time from now on. It is over when the ticks have moved on by that many, or have run
/// backwards (Invariant 3).
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The ticks at its beginning.
    start: u64,
    /// Its length in ticks.
    ticks: u64,
}

#[cfg(feature = "std")]
impl Span {
    /// Returns a span of `nanos` nanoseconds from now.
    #[inline]
    pub(crate) fn from_now(nanos: u64) -> Self {
        Self { ticks: backend::clock::from_nanos(nanos), start: backend::clock::now() }
    }

    #[inline]
    pub(crate) fn is_over(self) -> bool {
        self.is_over_at(backend::clock::now())
    }

    /// Returns the nanoseconds that are left of it.
    pub(crate) fn left(self) -> u64 {
        let passed = backend::clock::now().wrapping_sub(self.start);
        backend::clock::to_nanos(self.ticks.saturating_sub(passed))
    }

    /// Returns whether it is over at `now`. A jump backwards wraps around to more than any span.
    #[inline]
    fn is_over_at(self, now: u64) -> bool {
        now.wrapping_sub(self.start) >= self.ticks
    }
}

/// Returns how long one pause hint lasts on this processor, in nanoseconds. The first call measures
/// it, in about 50 µs; later calls remember it.
///
/// The result is the shortest of several windows, so that an interrupt or a busy sibling does not
/// lengthen it.
#[cfg(feature = "std")]
#[must_use]
pub fn pause_ns() -> f64 {
    backend::clock::pause_ns()
}

/// Returns which clock [`now`] reads on this machine, and why. May read a file for the reason.
///
/// ```
/// println!("{}", stanchion_machine::clock::source());
/// ```
#[cfg(feature = "std")]
#[must_use]
pub fn source() -> Source {
    backend::clock::source()
}

/// The clock that [`now`] reads.
#[cfg(feature = "std")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A counter of the processor, from which the kernel makes its own time.
    Counter {
        /// `rdtsc` on x86, `cntvct_el0` on aarch64.
        instruction: &'static str,
    },
    /// The operating system's monotonic clock.
    Monotonic(Distrust),
    /// The time of a model, which passes when the model says so.
    Modelled,
    /// The virtual time of a simulated machine.
    Virtual,
}

/// The reason why the processor's counter is not read directly.
#[cfg(feature = "std")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distrust {
    /// No counter is known for this architecture and operating system.
    NoCounter,
    /// The counter changes speed or stops (x86: no invariant TSC).
    NotInvariant,
    /// The kernel's clock takes a system call, so it is not made from the counter. This holds the
    /// name of the kernel's time source. That is another clock if the kernel has found the counter
    /// wrong.
    Clocksource(std::string::String),
    /// The same, and the kernel does not name its time source.
    UnknownClocksource,
}

#[cfg(feature = "std")]
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter { instruction } => write!(f, "processor counter ({instruction})"),
            Self::Monotonic(why) => write!(f, "monotonic clock ({why})"),
            Self::Modelled => f.write_str("modelled time"),
            Self::Virtual => f.write_str("virtual time"),
        }
    }
}

#[cfg(feature = "std")]
impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCounter => f.write_str("no processor counter is known here"),
            Self::NotInvariant => f.write_str("the processor's counter changes speed"),
            Self::Clocksource(name) => {
                write!(f, "reading the kernel's clock takes a system call (its source is {name})")
            }
            Self::UnknownClocksource => {
                f.write_str("the kernel does not say what it keeps its time by")
            }
        }
    }
}

/// Returns the moment `timeout` from now, in the type that `lock_api` takes deadlines in. Returns
/// `None` if it lies beyond the end of the clock.
///
/// ```
/// use std::time::Duration;
/// use stanchion_machine::clock::moment_after;
/// assert!(moment_after(Duration::from_secs(1)).is_some());
/// assert_eq!(moment_after(Duration::MAX), None);
/// ```
#[cfg(feature = "std")]
#[must_use]
pub fn moment_after(timeout: Duration) -> Option<Instant> {
    backend::clock::instant().checked_add(timeout)
}

/// Returns the system's monotonic clock in nanoseconds. It is the same for all processes, unlike
/// [`Ticks`].
///
/// ```
/// use stanchion_machine::clock::monotonic;
/// let before = monotonic();
/// assert!(monotonic() >= before);
/// ```
#[cfg(feature = "std")]
#[must_use]
pub fn monotonic() -> u64 {
    backend::clock::monotonic()
}

/// The time at which a wait gives up: a moment of the monotonic clock, or never.
///
/// Without the `std` feature there is no clock, and the only deadlines are [`NEVER`](Self::NEVER)
/// and [`PAST`](Self::PAST).
///
/// ```
/// use std::time::{Duration, Instant};
/// use stanchion_machine::clock::Deadline;
///
/// assert!(Deadline::after(Duration::ZERO).passed());
/// assert!(Deadline::at(Instant::now()).passed());
/// assert!(!Deadline::after(Duration::from_secs(60)).passed());
/// assert_eq!(Deadline::after(Duration::MAX), Deadline::NEVER);
/// assert_eq!(Deadline::NEVER.remaining(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline {
    /// Nanoseconds on the monotonic clock; `u64::MAX` is never.
    nanos: u64,
}

impl Deadline {
    /// The deadline that never passes.
    pub const NEVER: Self = Self { nanos: u64::MAX };

    /// A deadline that has passed already: a wait for it looks once.
    pub const PAST: Self = Self { nanos: 0 };
}

#[cfg(feature = "std")]
impl Deadline {
    /// Returns the deadline `timeout` from now. A time beyond the end of the clock (500 years) is
    /// [`NEVER`](Self::NEVER).
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Self { nanos: backend::clock::monotonic().saturating_add(timeout) }
    }

    /// Returns the deadline at `instant`, which may lie in the past.
    #[must_use]
    pub fn at(instant: std::time::Instant) -> Self {
        Self { nanos: backend::clock::monotonic_at(instant) }
    }

    /// Returns whether the deadline has passed. Costs one reading of the monotonic clock, and none
    /// for [`NEVER`](Self::NEVER).
    #[inline]
    #[must_use]
    pub fn passed(self) -> bool {
        self == Self::PAST || (self != Self::NEVER && backend::clock::monotonic() >= self.nanos)
    }

    /// Returns the time left until the deadline: zero if it has passed, `None` if it never comes.
    #[must_use]
    pub fn remaining(self) -> Option<Duration> {
        (self != Self::NEVER)
            .then(|| Duration::from_nanos(self.nanos.saturating_sub(backend::clock::monotonic())))
    }

    /// Returns the bare moment, for keeping it in an atomic word: earlier deadlines are smaller.
    ///
    /// ```
    /// use core::time::Duration;
    /// use stanchion_machine::clock::Deadline;
    ///
    /// let soon = Deadline::after(Duration::from_secs(1));
    /// assert_eq!(Deadline::from_bits(soon.to_bits()), soon);
    /// assert!(soon.to_bits() < Deadline::NEVER.to_bits());
    /// ```
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.nanos
    }

    /// Returns the deadline for which [`to_bits`](Self::to_bits) returned `bits`.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self { nanos: bits }
    }

    /// Nanoseconds on the monotonic clock, as an absolute futex timeout wants them; `None` if it
    /// never comes.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn monotonic_nanos(self) -> Option<u64> {
        (self != Self::NEVER).then_some(self.nanos)
    }
}

#[cfg(not(feature = "std"))]
impl Deadline {
    /// Returns whether the deadline has passed: there is no clock, so only [`PAST`](Self::PAST)
    /// has.
    #[inline]
    #[must_use]
    pub fn passed(self) -> bool {
        self == Self::PAST
    }
}

#[cfg(all(test, feature = "std", not(any(stanchion_loom, stanchion_simulated))))]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_in_its_time_and_when_the_ticks_run_backwards() {
        let span = Span { start: 1_000_000, ticks: 300 };
        assert!(!span.is_over_at(1_000_000));
        assert!(!span.is_over_at(1_000_299));
        assert!(span.is_over_at(1_000_300));
        assert!(span.is_over_at(0), "the counter began anew");
        assert!(span.is_over_at(999_999));
        let over_the_end = Span { start: u64::MAX, ticks: 2 };
        assert!(!over_the_end.is_over_at(0));
        assert!(over_the_end.is_over_at(1));
    }

    #[test]
    fn a_span_from_now_takes_its_time() {
        let start = Instant::now();
        let span = Span::from_now(5_000_000);
        while !span.is_over() {
            core::hint::spin_loop();
        }
        // The rate may be wrong by 0.4 %.
        assert!(start.elapsed() > Duration::from_micros(4_900));
        assert!(Span::from_now(0).is_over());
    }
}
