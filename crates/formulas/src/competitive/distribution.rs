//! The lengths of waits, with weights and sorted: the empirical distribution that everything else
//! here takes.
//!
//! Why not a histogram with a fixed bucket: section 3 of the paper counts in 16 spins, a recorder
//! of nanoseconds in powers of two, and a test in any unit. Points of any length serve all three,
//! and a sum over points is exact for each.
//!
//! Invariants, kept by every constructor:
//!
//! 1. There is at least one point.
//! 2. Lengths rise strictly, none is negative or NaN; the last may be infinite.
//! 3. Weights are above 0, and their sum is at most [`MOST_WEIGHT`].

use super::{CompetitiveError, check_length};
use crate::Random;

/// Most that all weights may add up to: far from where a weight times a length overflows.
const MOST_WEIGHT: f64 = 1e100;

/// A distribution of lengths of waits, in any unit of time: points of `(length, weight)`, lengths
/// rising.
///
/// Weights need not add up to 1; counts will do. Equal lengths are made one point. Lengths are
/// those of *contended* acquisitions, as in section 3 of the paper. A length of 0 stands for a lock
/// that was free at the first look, so it costs every strategy 0.
///
/// ```
/// use stanchion_formulas::competitive::Distribution;
/// // Section 3: 16 spins a bucket. A bucket is given by its upper edge, as D[i] of section 2.4 is.
/// let waits = Distribution::from_buckets(&[16.0, 32.0, 48.0, 1008.0], &[70, 20, 0, 10])?;
/// assert_eq!(waits.total_weight(), 100.0);
/// assert_eq!(waits.points(), [(16.0, 70.0), (32.0, 20.0), (1008.0, 10.0)]);
/// assert!((waits.mean() - (16.0 * 0.7 + 32.0 * 0.2 + 1008.0 * 0.1)).abs() < 1e-9);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The points: length and weight, lengths rising.
    points: Vec<(f64, f64)>,
    /// At each point, the weight up to and including it.
    up_to: Vec<f64>,
}

impl Distribution {
    /// One point for each of `samples`, all of the same weight. Takes n log n for n samples.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError`] if there is no sample, or one is negative or NaN.
    ///
    /// ```
    /// use stanchion_formulas::competitive::Distribution;
    /// let waits = Distribution::from_samples(&[30.0, 10.0, 30.0])?;
    /// assert_eq!(waits.points(), [(10.0, 1.0), (30.0, 2.0)]);
    /// assert!(Distribution::from_samples(&[10.0, -1.0]).is_err());
    /// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
    /// ```
    pub fn from_samples(samples: &[f64]) -> Result<Self, CompetitiveError> {
        Self::build(samples.iter().map(|&length| (length, 1.0)))
    }

    /// A histogram: `representatives[i]` stands for the `counts[i]` waits of bucket i. A bucket of
    /// no waits is left out.
    ///
    /// Section 2.4 of the paper lets the upper edge stand for a bucket, which makes no wait look
    /// shorter than it was.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError`] if the two differ in number, all counts are 0, or a representative is
    /// negative or NaN.
    pub fn from_buckets(representatives: &[f64], counts: &[u64]) -> Result<Self, CompetitiveError> {
        let (lengths, weights) = (representatives.len(), counts.len());
        if lengths != weights {
            return Err(CompetitiveError::Buckets { representatives: lengths, counts: weights });
        }
        Self::build(
            representatives.iter().zip(counts).map(|(&length, &count)| (length, count as f64)),
        )
    }

    /// Points of `(length, weight)`, in any order. A point of weight 0 is left out.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError`] if no point has weight, a length or weight is negative or NaN, or the
    /// weights add up to more than 1e100.
    pub fn from_points(points: &[(f64, f64)]) -> Result<Self, CompetitiveError> {
        Self::build(points.iter().copied())
    }

    fn build(given: impl Iterator<Item = (f64, f64)>) -> Result<Self, CompetitiveError> {
        let mut points = Vec::with_capacity(given.size_hint().0);
        for (index, (length, weight)) in given.enumerate() {
            check_length(index, length)?;
            if weight < 0.0 || !weight.is_finite() {
                return Err(CompetitiveError::Weight { index, weight });
            }
            if weight > 0.0 {
                points.push((length.abs(), weight)); // `abs` for -0.0, which is not below 0
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        let up_to: Vec<f64> = points
            .iter()
            .scan(0.0, |sum, &(_, weight)| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        match up_to.last() {
            None => Err(CompetitiveError::Empty),
            Some(&total) if total > MOST_WEIGHT => Err(CompetitiveError::TotalWeight),
            Some(_) => Ok(Self { points, up_to }),
        }
    }

    /// The points `(length, weight)`: lengths rise strictly, weights are above 0.
    #[must_use]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Sum of all weights: the number of waits, if the weights are counts.
    #[must_use]
    pub fn total_weight(&self) -> f64 {
        self.up_to.last().copied().unwrap_or_default() // there is a last one, by Invariant 1
    }

    /// Mean length; infinite if a wait is.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.expect(|length| length)
    }

    /// The share of waits that are longer than `length`, from 0 to 1.
    ///
    /// ```
    /// use stanchion_formulas::competitive::Distribution;
    /// let waits = Distribution::from_samples(&[10.0, 20.0, 30.0, 40.0])?;
    /// assert_eq!(waits.share_above(30.0), 0.25);
    /// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
    /// ```
    #[must_use]
    pub fn share_above(&self, length: f64) -> f64 {
        let first = self.points.partition_point(|point| point.0 <= length);
        let above: f64 = self.points[first..].iter().map(|point| point.1).sum();
        // The sum from the other end may differ from the total in its last digit.
        (above / self.total_weight()).min(1.0)
    }

    /// Returns the waits of both: of two runs, or of two locks that are not told apart any more.
    ///
    /// Table 1 of the paper keeps the distributions of different locks apart: a program's cost is
    /// the sum over its locks of weight times cost. If they are merged, the adaptive strategies
    /// have nothing to adapt to.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError::TotalWeight`] if the weights add up to more than 1e100.
    pub fn merge(&self, other: &Self) -> Result<Self, CompetitiveError> {
        Self::build(self.points.iter().chain(&other.points).copied())
    }

    /// Every length times `factor`: another unit of time.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError::Factor`] unless `factor` is finite and above 0.
    ///
    /// ```
    /// use stanchion_formulas::competitive::Distribution;
    /// let nanoseconds = Distribution::from_samples(&[500.0, 1500.0])?;
    /// assert_eq!(nanoseconds.scale(0.001)?.mean(), 1.0); // in microseconds
    /// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
    /// ```
    pub fn scale(&self, factor: f64) -> Result<Self, CompetitiveError> {
        if factor <= 0.0 || !factor.is_finite() {
            return Err(CompetitiveError::Factor { factor });
        }
        Self::build(self.points.iter().map(|&(length, weight)| (length * factor, weight)))
    }

    /// Returns the distribution with every length above `most` made `most`: a recorder that gives
    /// up there sees that.
    ///
    /// The paper's recorder gave up at 1008 spins, 5.04 context switches. Always-spin then looks
    /// cheaper than it is, as section 5 says of Hanoi. It also says that no other result would
    /// change. That is so for every strategy with a threshold below the cut: fixed-spin,
    /// random-walk and randomized (at most C), last-three-samples (at most 3 C, see
    /// [`best_of_three`](super::best_of_three)). Optimal on-line and its approximation may spin up
    /// to the cut, if blocking would not pay before, and look cheaper then as well.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError::Length`] if `most` is negative or NaN.
    pub fn cut_at(&self, most: f64) -> Result<Self, CompetitiveError> {
        check_length(0, most)?;
        Self::build(self.points.iter().map(|&(length, weight)| (length.min(most), weight)))
    }

    /// A length drawn at random, each with the chance of its weight; the same `random` gives the
    /// same lengths. Takes log n for n points.
    ///
    /// ```
    /// use stanchion_formulas::{Random, competitive::Distribution};
    /// let waits = Distribution::from_points(&[(10.0, 0.9), (500.0, 0.1)])?;
    /// let mut random = Random::new(1);
    /// let long = (0..1000).filter(|_| waits.sample(&mut random) == 500.0).count();
    /// assert!((60..140).contains(&long));
    /// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
    /// ```
    pub fn sample(&self, random: &mut Random) -> f64 {
        let at = random.unit() * self.total_weight();
        let index = self.up_to.partition_point(|&up_to| up_to <= at);
        // `at` may be rounded up to the total.
        self.points[index.min(self.points.len() - 1)].0
    }

    /// Expectation of a function of the length.
    pub(super) fn expect(&self, of: impl Fn(f64) -> f64) -> f64 {
        let total = self.total_weight();
        let sum: f64 = self.points.iter().map(|&(length, weight)| weight * of(length)).sum();
        sum / total
    }

    /// The distribution of a function of the length that keeps it from 0 up.
    pub(super) fn map(&self, of: impl Fn(f64) -> f64) -> Result<Self, CompetitiveError> {
        Self::build(self.points.iter().map(|&(length, weight)| (of(length), weight)))
    }
}
