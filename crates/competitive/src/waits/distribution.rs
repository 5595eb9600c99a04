//! The lengths of the waits for a lock: plain counts.
//!
//! # Invariants
//!
//! Kept by [`Distribution::add`] and [`Distribution::merge`], made by [`Distribution::reconcile`]
//! of counts that were read while others counted, and checked of counts that come from a file.
//!
//! 1. The unit is from 1 to [`MAX_UNIT_NS`](super::MAX_UNIT_NS).
//! 2. There are at most as many arrivals as waits, and at most as many wake latencies as blocked
//!    waits.
//! 3. The longest wait lies in the last bucket that is not empty. Without waits everything is 0.
//! 4. All waits together are as long as the buckets allow, and the time spun is no more than that.
//! 5. No count is above [`MOST`].

use core::fmt;
use core::ops::RangeInclusive;

use super::buckets::{
    self, ARRIVALS, LATENCIES, LENGTHS, MAX_LENGTH_NS, MAX_UNIT_NS, above, longest, longest_latency,
};

/// The most that a count may be: what a floating-point number still tells from the next.
pub(super) const MOST: u64 = 1 << 53;

/// One wait, as a recorder gets it. Times are in nanoseconds. A time above [`MAX_LENGTH_NS`] counts
/// as that.
///
/// ```
/// use stanchion_competitive::waits::{Distribution, Observation};
/// let mut waits = Distribution::new(400);
/// waits.add(&Observation { length_ns: 1_000, spun_ns: 1_000, ..Observation::default() });
/// assert_eq!((waits.count(), waits.blocked()), (1, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The time that the lock was not to be had: spinning, and blocked until the release that woke
    /// the thread.
    pub length_ns: u64,
    /// The part of that which was spun.
    pub spun_ns: u64,
    /// Set if it blocked.
    pub blocked: bool,
    /// From the release that woke it to its running again, if it blocked and that is known.
    pub wake_latency_ns: Option<u64>,
    /// The number of others that waited when it began, or [`UNKNOWN`](Self::UNKNOWN).
    pub others: u32,
    /// The number of times that the lock changed hands meanwhile without coming to it.
    pub holder_changes: u32,
}

impl Observation {
    /// The number of [`others`](Self::others) of a wait of which that is not known.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// The waits for one lock, or for several: the number of each length, those spun through and those
/// that blocked apart.
///
/// ```
/// use stanchion_competitive::waits::{Distribution, Observation};
/// let mut waits = Distribution::new(400);
/// for length_ns in [300, 500, 90_000] {
///     waits.add(&Observation { length_ns, blocked: length_ns > 5_000, ..Observation::default() });
/// }
/// assert_eq!((waits.count(), waits.spun(), waits.blocked()), (3, 2, 1));
/// assert_eq!(waits.quantile_ns(0.5), Some(800)); // the end of its bucket
/// assert_eq!(waits.max_ns(), 90_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The width of the buckets around C, in nanoseconds.
    pub(super) unit: u64,
    /// The counts.
    pub(super) counts: Counts,
}

/// The counts, in the same form as in the table and in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// The sum of the waits, in nanoseconds.
    pub(super) total: u64,
    /// The part of that sum that was spun.
    pub(super) spun_time: u64,
    /// The longest wait.
    pub(super) max: u64,
    /// The number of times that a waiter saw the holder change.
    pub(super) holder_changes: u64,
    /// The number of waits by how many others waited when they began.
    pub(super) arrivals: [u64; ARRIVALS],
    /// The number of waits without blocking, by length.
    pub(super) spun: Box<[u64; LENGTHS]>,
    /// The number of waits that blocked, by length.
    pub(super) blocked: Box<[u64; LENGTHS]>,
    /// The number of wake-ups, by latency.
    pub(super) latencies: Box<[u64; LATENCIES]>,
}

/// The waits of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The shortest wait that it would count, in nanoseconds.
    pub from_ns: u64,
    /// The longest, in nanoseconds.
    pub to_ns: u64,
    /// The number of waits that were spun through.
    pub spun: u64,
    /// The number of waits that blocked.
    pub blocked: u64,
}

/// Two distributions cannot be added: their buckets are not as wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitsDiffer {
    /// The unit of the one that was to be added to, in nanoseconds.
    pub ours: u64,
    /// The unit of the other, in nanoseconds.
    pub theirs: u64,
}

impl fmt::Display for UnitsDiffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, theirs } = self;
        write!(
            f,
            "waits counted in units of {ours} ns cannot be added to those in units of \
             {theirs} ns: each recording has its own unit, 0.08 C"
        )
    }
}

impl core::error::Error for UnitsDiffer {}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            total: 0,
            spun_time: 0,
            max: 0,
            holder_changes: 0,
            arrivals: [0; ARRIVALS],
            spun: Box::new([0; LENGTHS]),
            blocked: Box::new([0; LENGTHS]),
            latencies: Box::new([0; LATENCIES]),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.total, other.total),
            (&mut self.spun_time, other.spun_time),
            (&mut self.holder_changes, other.holder_changes),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.max = self.max.max(other.max);
        let ours = self.arrivals.iter_mut().chain(self.spun.iter_mut());
        let ours = ours.chain(self.blocked.iter_mut()).chain(self.latencies.iter_mut());
        let theirs = other.arrivals.iter().chain(other.spun.iter());
        let theirs = theirs.chain(other.blocked.iter()).chain(other.latencies.iter());
        for (sum, more) in ours.zip(theirs) {
            *sum = sum.saturating_add(*more).min(MOST);
        }
    }

    pub(super) fn waits(&self) -> u64 {
        sum(&*self.spun) + sum(&*self.blocked)
    }

    /// The last bucket that is not empty.
    pub(super) fn last(&self) -> Option<usize> {
        (0..LENGTHS).rev().find(|&bucket| self.spun[bucket] + self.blocked[bucket] > 0)
    }

    /// Returns the least and the greatest sum of all waits, by their buckets and the longest of
    /// them.
    pub(super) fn bounds(&self, unit: u64) -> RangeInclusive<u128> {
        let (mut least, mut most) = (0, 0);
        for bucket in 0..LENGTHS {
            let count = u128::from(self.spun[bucket] + self.blocked[bucket]);
            least += count * u128::from(above(bucket, unit).map_or(0, |above| above + 1));
            most += count * u128::from(longest(bucket, unit).min(self.max));
        }
        // The longest is as long as it is, which its bucket does not say.
        if let Some(last) = self.last() {
            let shortest = above(last, unit).map_or(0, |above| above + 1);
            least += u128::from(self.max.saturating_sub(shortest));
        }
        least..=most
    }
}

/// The sum of counts, none above [`MOST`].
pub(super) fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0_u64, |sum, &count| sum.saturating_add(count))
}

impl Distribution {
    /// No waits yet, to be counted in buckets of `unit_ns`, which is taken to be from 1 to
    /// [`MAX_UNIT_NS`](super::MAX_UNIT_NS).
    #[must_use]
    pub fn new(unit_ns: u64) -> Self {
        Self { unit: unit_ns.clamp(1, MAX_UNIT_NS), counts: Counts::new() }
    }

    /// Counts one wait.
    pub fn add(&mut self, wait: &Observation) {
        let length = wait.length_ns.min(MAX_LENGTH_NS);
        let counts = &mut self.counts;
        counts.total = counts.total.saturating_add(length);
        counts.spun_time = counts.spun_time.saturating_add(wait.spun_ns.min(length));
        counts.max = counts.max.max(length);
        counts.holder_changes = counts.holder_changes.saturating_add(wait.holder_changes.into());
        if wait.others != Observation::UNKNOWN {
            counts.arrivals[(wait.others as usize).min(ARRIVALS - 1)] += 1;
        }
        let bucket = buckets::of_length(length, self.unit);
        if wait.blocked {
            counts.blocked[bucket] += 1;
            if let Some(latency) = wait.wake_latency_ns {
                counts.latencies[buckets::of_latency(latency)] += 1;
            }
        } else {
            counts.spun[bucket] += 1;
        }
    }

    /// Adds the waits of `other`.
    ///
    /// # Errors
    ///
    /// [`UnitsDiffer`] if they were counted in buckets of another width; then nothing was added.
    pub fn merge(&mut self, other: &Self) -> Result<(), UnitsDiffer> {
        if self.unit != other.unit {
            return Err(UnitsDiffer { ours: self.unit, theirs: other.unit });
        }
        self.counts.add(&other.counts);
        Ok(())
    }

    /// Of counts that were read one after another while threads went on counting: the nearest that
    /// could be those of one moment.
    pub(super) fn reconcile(unit: u64, mut counts: Counts) -> Self {
        let waits = counts.waits();
        let Some(last) = counts.last() else { return Self::new(unit) };
        trim(&mut counts.arrivals, waits);
        trim(&mut *counts.latencies, sum(&*counts.blocked));
        let shortest = above(last, unit).map_or(0, |above| above + 1);
        counts.max = counts.max.clamp(shortest, longest(last, unit).max(shortest));
        let (least, most) = counts.bounds(unit).into_inner();
        let within = u128::from(counts.total).clamp(least, most.max(least));
        counts.total = u64::try_from(within).unwrap_or(u64::MAX);
        counts.spun_time = counts.spun_time.min(counts.total);
        Self { unit, counts }
    }

    /// The width of a linear bucket in nanoseconds: 0.08 C, as C was when the recording began.
    #[must_use]
    pub const fn unit_ns(&self) -> u64 {
        self.unit
    }

    /// Returns the number of waits.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.waits()
    }

    /// Returns the number of waits that were spun through.
    #[must_use]
    pub fn spun(&self) -> u64 {
        sum(&*self.counts.spun)
    }

    /// Returns the number of waits that blocked.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        sum(&*self.counts.blocked)
    }

    /// Returns the sum of all waits, in nanoseconds.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.counts.total
    }

    /// Returns the part of that which was spun, in nanoseconds.
    #[must_use]
    pub const fn spun_ns(&self) -> u64 {
        self.counts.spun_time
    }

    /// The longest wait, in nanoseconds; 0 if there was none.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.counts.max
    }

    /// The mean wait in nanoseconds; none without waits.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.counts.total as f64 / count as f64)
    }

    /// Returns the number of times that a waiter saw the lock change hands without getting it.
    #[must_use]
    pub const fn holder_changes(&self) -> u64 {
        self.counts.holder_changes
    }

    /// Returns how many waits found so many others waiting when they began: `[0]` none, so that
    /// there were two contenders, … `[15]` fifteen, `[16]` more.
    ///
    /// Their sum may be less than [`count`](Self::count): by the waits that were just being
    /// counted.
    #[must_use]
    pub const fn arrivals(&self) -> &[u64; ARRIVALS] {
        &self.counts.arrivals
    }

    /// The share of waits with two contenders: the holder and the waiter. None without arrivals.
    ///
    /// Section 7 of the paper has it above 0.9, and takes the time to the next release for the wait
    /// because of it.
    #[must_use]
    pub fn share_of_two(&self) -> Option<f64> {
        let arrivals = sum(&self.counts.arrivals);
        (arrivals > 0).then(|| self.counts.arrivals[0] as f64 / arrivals as f64)
    }

    /// The buckets that are not empty, shortest waits first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let at = |bucket: usize| Bucket {
            from_ns: above(bucket, self.unit).map_or(0, |above| above + 1),
            to_ns: longest(bucket, self.unit),
            spun: self.counts.spun[bucket],
            blocked: self.counts.blocked[bucket],
        };
        (0..LENGTHS).map(at).filter(|bucket| bucket.spun + bucket.blocked > 0)
    }

    /// Lengths in nanoseconds with the number of waits that they stand for, rising: a bucket by its
    /// end, as in section 2.4, the last by the longest wait.
    ///
    /// ```
    /// use stanchion_competitive::waits::{Distribution, Observation};
    /// let mut waits = Distribution::new(400);
    /// for length_ns in [0, 1, 700] {
    ///     waits.add(&Observation { length_ns, ..Observation::default() });
    /// }
    /// assert_eq!(waits.points().collect::<Vec<_>>(), [(400, 2), (700, 1)]);
    /// ```
    pub fn points(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets()
            .map(|bucket| (bucket.to_ns.min(self.counts.max), bucket.spun + bucket.blocked))
    }

    /// Returns the times from releases to the running of the woken threads: ends of buckets in
    /// nanoseconds, rising, with the number of each.
    pub fn wake_latencies(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..LATENCIES)
            .map(|bucket| (longest_latency(bucket), self.counts.latencies[bucket]))
            .filter(|&(_, count)| count > 0)
    }

    /// A time in nanoseconds that a share `q` of the waits did not exceed, as exactly as the
    /// buckets tell: 0.5 for the median. None without waits, or unless `q` is from 0 to 1.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        quantile(self.points(), self.count(), q)
    }

    /// The same of the wake latencies. The tenth hundredth is what [`cost`](crate::cost) takes for
    /// C.
    #[must_use]
    pub fn wake_latency_quantile_ns(&self, q: f64) -> Option<u64> {
        quantile(self.wake_latencies(), sum(&*self.counts.latencies), q)
    }
}

/// Takes away from the last counts what there is more than `most` in all.
fn trim(counts: &mut [u64], most: u64) {
    let mut surplus = sum(counts).saturating_sub(most);
    for count in counts.iter_mut().rev() {
        let taken = surplus.min(*count);
        *count -= taken;
        surplus -= taken;
    }
}

fn quantile(points: impl Iterator<Item = (u64, u64)>, total: u64, q: f64) -> Option<u64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let rank = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut below = 0_u64;
    for (length, count) in points {
        below = below.saturating_add(count);
        if below >= rank {
            return Some(length);
        }
    }
    None
}
