//! Durations, counted by powers of two.
//!
//! Why not a mean: one of 10 ms among a thousand of 2 µs is the one that a user feels, and a mean
//! shows neither. Why powers of two: the entry costs only a count of leading zeros, and it does not
//! matter whether a latency was 5 µs or 6.
//!
//! # Orderings
//!
//! Relaxed: statistics, each count right by itself.

use core::fmt;
use core::time::Duration;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};

/// The powers of two. The last one stands for 2 s and all that is longer.
const POWERS: usize = 32;

/// Counts that any thread raises, seldom.
pub(crate) struct Histogram([AtomicU64; POWERS]);

impl Default for Histogram {
    fn default() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::fresh(0)))
    }
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn count(&self, nanos: u64) {
        let power = nanos.checked_ilog2().unwrap_or(0) as usize;
        self.0[power.min(POWERS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Latencies {
        Latencies { counts: core::array::from_fn(|power| self.0[power].load(Ordering::Relaxed)) }
    }
}

/// Durations of something that happened, each known to a factor of two. A part of
/// [`Metrics`](crate::Metrics).
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let handoffs = runtime.metrics().handoff_latencies;
/// println!("{} hand-offs, median below {:?}", handoffs.count(), handoffs.quantile(0.5));
/// println!("{handoffs}");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The number of durations for each power of two.
    counts: [u64; POWERS],
}

impl Latencies {
    /// Returns how often it happened and was timed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns a duration that this share of them stayed below, 0.5 for the median; `None` if there
    /// was none. It is at most twice as long as the longest of that share.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        self.buckets().find_map(|(less_than, count)| {
            so_far += count;
            (so_far >= wanted).then_some(less_than)
        })
    }

    /// Returns the counts that are not 0, shortest first: so many took less than this, and at least
    /// half of it. The last bucket, of 2^32 ns, has all that took longer too.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(1)?;
    /// for (less_than, count) in runtime.metrics().handoff_latencies.buckets() {
    ///     println!("{count} took less than {less_than:?}, and half of that or more");
    /// }
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(power, count)| (Duration::from_nanos(2 << power), *count))
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(median), Some(late)) = (self.quantile(0.5), self.quantile(0.99)) else {
            return f.write_str("none timed");
        };
        write!(f, "p50 < {median:.1?}, p99 < {late:.1?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_counts_between_its_half_and_its_double() {
        for (nanos, less_than) in
            [(0, 2), (1, 2), (2, 4), (3, 4), (1_023, 1_024), (1_024, 2_048), (u64::MAX, 1 << 32)]
        {
            let histogram = Histogram::default();
            histogram.count(nanos);
            let read = histogram.read();
            assert_eq!(read.buckets().collect::<Vec<_>>(), [(Duration::from_nanos(less_than), 1)]);
            assert_eq!(read.quantile(0.0), read.quantile(1.0));
        }
    }

    #[test]
    fn quantiles_follow_the_counts() {
        assert_eq!(Latencies::default().quantile(0.5), None);
        assert_eq!(Latencies::default().to_string(), "none timed");
        let histogram = Histogram::default();
        (0..98).for_each(|_| histogram.count(1_000));
        (0..2).for_each(|_| histogram.count(1_000_000));
        let read = histogram.read();
        assert_eq!(read.count(), 100);
        assert_eq!(read.quantile(0.98), Some(Duration::from_nanos(1_024)));
        assert_eq!(read.quantile(0.99), Some(Duration::from_nanos(1 << 20)));
        assert_eq!(read.to_string(), "p50 < 1.0µs, p99 < 1.0ms");
    }
}
