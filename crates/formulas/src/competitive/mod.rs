//! The cost of spinning for a time and then blocking, and the best time to spin.
//!
//! Karlin, Li, Manasse and Owicki ("Empirical studies of competitive spinning for a shared-memory
//! multiprocessor", SOSP 1991) compare seven strategies with an off-line optimum that knows how
//! long each wait will be. This module has the costs and thresholds of sections 2 and 4 of that
//! paper, as functions of a [`Distribution`] of waits, or of a trace of them in order.
//!
//! # The cost of a wait
//!
//! A lock is unavailable for a time t. A thread that spins until then pays t. A thread that blocks
//! pays C, a context switch. A thread that spins for a threshold k and then blocks pays t if t <=
//! k, and k + C if not ([`cost`]). A thread that knew t would pay the smaller of t and C. All times
//! are in one unit of the caller's choice: spins, nanoseconds. A wait of length 0 found the lock
//! free at its first look: it costs nothing, even if the strategy is to block at once. A wait may
//! be infinite. Spinning to its end costs infinitely much.
//!
//! | question | answer | section |
//! | --- | --- | --- |
//! | the cost of a fixed threshold | [`expected_cost`] | 4 |
//! | the cost with perfect knowledge | [`optimal_offline`], [`offline_on_trace`] | 2.3, table 2 |
//! | the best threshold | [`optimal_threshold`], [`best_of_three`] | 2.4, 2.5 |
//! | the average cost of a strategy | [`cost_on_distribution`] | 4, table 1 |
//! | its cost on given waits, in order | [`cost_on_trace`], [`Learner`] | 2.5 |
//! | the worst case | [`competitive_ratio`] | 2.1 |
//!
//! ```
//! use stanchion_formulas::competitive::{
//!     Distribution, Strategy, cost_on_distribution, optimal_offline,
//! };
//!
//! // One lock: in units of 16 spins most waits are short, a few end in blocking. A context switch
//! // is 200 spins.
//! let waits = Distribution::from_buckets(&[16.0, 32.0, 64.0, 1008.0], &[600, 200, 100, 100])?;
//! let best = optimal_offline(&waits, 200.0)?.cost;
//! for strategy in Strategy::PAPER {
//!     let cost = cost_on_distribution(strategy, &waits, 200.0, 100_000, 42)?.mean;
//!     println!("{strategy:28} {:.3}", cost / best);
//!     assert!(cost >= best);
//! }
//! # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
//! ```
//!
//! A program's cost is the sum over its locks of waits times cost, each lock with its own
//! distribution, as in table 1.
//!
//! Not for: the time that a program takes. Section 5 of the paper found elapsed times that these
//! costs do not explain. A strategy changes the set of waits, and a processor that would have been
//! idle spins for free.

mod distribution;
mod evaluate;
mod learner;
mod randomized;
mod strategy;
mod threshold;
mod walk;

pub use distribution::Distribution;
pub use evaluate::{LEAST_DRAWS, RUNS, cost_on_distribution, cost_on_trace};
pub use learner::Learner;
pub use randomized::{E_RATIO, randomized_cost, randomized_density, randomized_threshold};
pub use strategy::{Strategy, competitive_ratio};
pub use threshold::{best_of_three, optimal_threshold};
pub use walk::{LEAST_STEP, random_walk_step, walk_thresholds};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CompetitiveError {
    /// There is no wait to speak of.
    #[error(
        "no wait has any weight: a distribution takes at least one; record some contention first"
    )]
    Empty,
    /// A length is not one.
    #[error(
        "length number {index} is {length}: a wait takes a time of 0 or more; drop it or mend what recorded it"
    )]
    Length {
        /// Its index among those given, from 0.
        index: usize,
        /// The length.
        length: f64,
    },
    /// A weight is not one.
    #[error(
        "weight number {index} is {weight}: give a finite weight of 0 or more, such as a count"
    )]
    Weight {
        /// Its index among those given, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// All weights together are too much.
    #[error("the weights add up to more than 1e100: divide all of them by the largest")]
    TotalWeight,
    /// Buckets and their counts do not match.
    #[error("{representatives} buckets but {counts} counts: give one length for each count")]
    Buckets {
        /// The number of lengths that were given.
        representatives: usize,
        /// The number of counts that were given.
        counts: usize,
    },
    /// A change of unit that is none.
    #[error("factor = {factor}: multiply lengths by a finite number above 0")]
    Factor {
        /// The factor.
        factor: f64,
    },
    /// The cost of a context switch is not one.
    #[error(
        "C = {switch}: a context switch takes a finite time above 0; give it in the unit of the waits"
    )]
    Switch {
        /// The cost.
        switch: f64,
    },
    /// A threshold is not one.
    #[error("threshold = {threshold}: spin for a time of 0 or more, infinity to spin for ever")]
    Threshold {
        /// The threshold.
        threshold: f64,
    },
    /// A step of the random walk is not one, or too small.
    #[error(
        "step = {step}: give a finite step above 0, and at least {LEAST_STEP} of C to list the thresholds"
    )]
    Step {
        /// The step.
        step: f64,
    },
    /// A quantile is not one.
    #[error("u = {uniform}: a quantile lies from 0 to 1; draw it with Random::unit")]
    Uniform {
        /// The quantile.
        uniform: f64,
    },
    /// A strategy's parameter is out of its range.
    #[error("{strategy}: {parameter} = {value}: give a fraction of C from {least} to {most}")]
    Parameter {
        /// The strategy.
        strategy: Strategy,
        /// Its parameter's name.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// The least it may be.
        least: f64,
        /// The most it may be.
        most: f64,
    },
    /// A strategy's threshold does not follow from the waits that were.
    #[error(
        "{strategy} does not learn: its threshold is computed beforehand or drawn; ask cost_on_trace"
    )]
    NotLearned {
        /// The strategy.
        strategy: Strategy,
    },
    /// Too few draws to tell how sure the mean is.
    #[error("draws = {draws}: {strategy} is simulated; draw at least {LEAST_DRAWS} waits")]
    Draws {
        /// The strategy.
        strategy: Strategy,
        /// The number of draws that were asked for.
        draws: u32,
    },
}

fn check_switch(switch: f64) -> Result<(), CompetitiveError> {
    let sound = switch > 0.0 && switch.is_finite();
    if sound { Ok(()) } else { Err(CompetitiveError::Switch { switch }) }
}

fn check_length(index: usize, length: f64) -> Result<(), CompetitiveError> {
    let sound = length >= 0.0;
    if sound { Ok(()) } else { Err(CompetitiveError::Length { index, length }) }
}

fn check_threshold(threshold: f64) -> Result<(), CompetitiveError> {
    let sound = threshold >= 0.0;
    if sound { Ok(()) } else { Err(CompetitiveError::Threshold { threshold }) }
}

/// Returns the cost of a wait with a threshold: `wait` if that is at most `threshold`,
/// `threshold + switch` if not.
///
/// All in one unit. A threshold of 0 is always-block, an infinite one always-spin.
///
/// # Errors
///
/// [`CompetitiveError`] if `threshold` or `wait` is negative or NaN, or `switch` is not finite and
/// above 0.
///
/// ```
/// use stanchion_formulas::competitive::cost;
/// assert_eq!(cost(100.0, 80.0, 200.0)?, 80.0);
/// assert_eq!(cost(100.0, 101.0, 200.0)?, 300.0);
/// assert_eq!(cost(0.0, 0.0, 200.0)?, 0.0); // the lock was free
/// assert_eq!(cost(f64::INFINITY, f64::INFINITY, 200.0)?, f64::INFINITY);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn cost(threshold: f64, wait: f64, switch: f64) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    check_threshold(threshold)?;
    check_length(0, wait)?;
    Ok(pay(threshold, wait, switch))
}

/// [`cost`] of checked numbers.
fn pay(threshold: f64, wait: f64, switch: f64) -> f64 {
    if wait <= threshold { wait } else { threshold + switch }
}

/// Returns the average cost of a wait with one `threshold`: the mean of [`cost`] over `waits`.
/// Exact; takes n steps for n points.
///
/// # Errors
///
/// [`CompetitiveError`] if `threshold` is negative or NaN, or `switch` is not finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::{Distribution, expected_cost};
/// let waits = Distribution::from_samples(&[50.0, 150.0, 1000.0, 1000.0])?;
/// // (50 + 300 + 300 + 300) / 4 with C = 200 and half of it as threshold
/// assert_eq!(expected_cost(&waits, 100.0, 200.0)?, 237.5);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn expected_cost(
    waits: &Distribution,
    threshold: f64,
    switch: f64,
) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    check_threshold(threshold)?;
    Ok(waits.expect(|wait| pay(threshold, wait, switch)))
}

/// The result of the off-line optimum on a distribution: a row of table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offline {
    /// Its mean cost of a wait, in the unit of the waits:
    /// `share_blocked·C + (1 - share_blocked)·mean_spin`.
    pub cost: f64,
    /// The share of waits in which it blocks, from 0 to 1: those of C and longer.
    pub share_blocked: f64,
    /// Mean length of the waits in which it spins, in the unit of the waits; none if it always
    /// blocks.
    pub mean_spin: Option<f64>,
}

/// Returns the optimum of a thread that knows the length of each wait (section 2.3): it spins if
/// the wait is shorter than `switch`, and blocks at once if not.
///
/// # Errors
///
/// [`CompetitiveError::Switch`] unless `switch` is finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::{Distribution, optimal_offline};
/// let waits = Distribution::from_samples(&[10.0, 50.0, 200.0, 1000.0])?;
/// let optimum = optimal_offline(&waits, 200.0)?;
/// assert_eq!((optimum.cost, optimum.share_blocked, optimum.mean_spin), (115.0, 0.5, Some(30.0)));
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn optimal_offline(waits: &Distribution, switch: f64) -> Result<Offline, CompetitiveError> {
    check_switch(switch)?;
    let cost = waits.expect(|wait| wait.min(switch));
    let (mut spun, mut spins) = (0.0, 0.0);
    for &(length, weight) in waits.points().iter().take_while(|point| point.0 < switch) {
        spun += length * weight;
        spins += weight;
    }
    let blocked: f64 =
        waits.points().iter().skip_while(|point| point.0 < switch).map(|p| p.1).sum();
    Ok(Offline {
        cost,
        share_blocked: blocked / (blocked + spins),
        mean_spin: (spins > 0.0).then(|| spun / spins),
    })
}

/// Returns the cost of all of `trace` for a thread that knows the length of each wait: the sum of
/// the smaller of each wait and `switch`.
///
/// # Errors
///
/// [`CompetitiveError`] if a wait is negative or NaN, or `switch` is not finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::offline_on_trace;
/// assert_eq!(offline_on_trace(&[10.0, 500.0, 90.0], 200.0)?, 300.0);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn offline_on_trace(trace: &[f64], switch: f64) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    trace.iter().enumerate().try_for_each(|(index, &wait)| check_length(index, wait))?;
    Ok(trace.iter().map(|wait| wait.min(switch)).sum())
}
