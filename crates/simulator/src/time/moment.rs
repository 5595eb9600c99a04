//! A moment of a run, or the length of a time.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};
use serde::Serialize;

/// A moment of a run, counted from its beginning, or the length of a time.
///
/// ```
/// use stanchion_simulator::Time;
/// assert_eq!(Time::nanos(3) + Time::micros(1), Time::nanos(1_003));
/// assert_eq!(Time::micros(2).as_nanos(), 2_000);
/// assert_eq!(Time::nanos(5).to_string(), "5 ns");
/// assert_eq!("2.8 us".parse(), Ok(Time::nanos(2_800)));
/// ```
///
/// It is serialized as its whole picoseconds, and read from those or from a text like that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The beginning of a run, and no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than anything.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns that many picoseconds.
    #[must_use]
    pub const fn picos(count: u64) -> Self {
        Self(count)
    }

    /// Returns that many nanoseconds.
    #[must_use]
    pub const fn nanos(count: u64) -> Self {
        Self(count.saturating_mul(1_000))
    }

    /// Returns that many microseconds.
    #[must_use]
    pub const fn micros(count: u64) -> Self {
        Self(count.saturating_mul(1_000_000))
    }

    /// Returns that many milliseconds.
    #[must_use]
    pub const fn millis(count: u64) -> Self {
        Self(count.saturating_mul(1_000_000_000))
    }

    /// Whole picoseconds.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds, rounded down.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds, as a number to divide by.
    #[must_use]
    pub fn as_secs(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Returns the rest of `self` after `other`, or nothing if that is longer.
    #[must_use]
    pub const fn since(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl Mul<u64> for Time {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl core::iter::Sum for Time {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let picos = self.0 as f64;
        match self.0 {
            u64::MAX => f.write_str("never"),
            0 => f.write_str("0 ns"),
            1..1_000 => write!(f, "{picos} ps"),
            1_000..1_000_000 => write!(f, "{} ns", rounded(picos / 1e3)),
            1_000_000..1_000_000_000 => write!(f, "{} us", rounded(picos / 1e6)),
            1_000_000_000..1_000_000_000_000 => write!(f, "{} ms", rounded(picos / 1e9)),
            _ => write!(f, "{} s", rounded(picos / 1e12)),
        }
    }
}

/// Three decimals at most.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates() {
        assert_eq!(Time::NEVER + Time::nanos(1), Time::NEVER);
        assert_eq!(Time::ZERO - Time::nanos(1), Time::ZERO);
    }

    #[test]
    fn time_is_shown_in_the_unit_that_fits() {
        assert_eq!(Time::picos(1_500).to_string(), "1.5 ns");
        assert_eq!(Time::millis(2).to_string(), "2 ms");
        assert_eq!(Time::NEVER.to_string(), "never");
    }
}
