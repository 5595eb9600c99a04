//! The cost of each strategy: on a distribution (section 4, table 1), and on waits in their order
//! (section 2.5).
//!
//! On a distribution the paper assumes that waits are drawn independently. Then nearly all costs
//! are exact:
//!
//! - Always-block, always-spin, fixed-spin: one expectation at a constant threshold.
//! - Optimal on-line: the minimum of that expectation.
//! - Randomized: e/(e-1) times the off-line optimum.
//! - Random-walk: the threshold's long-run distribution has a closed form, and the next wait is
//!   independent of it.
//! - Last-three-samples: all triples of rounded waits, with their chances. The next wait is
//!   independent of them.
//! - Optimal on-line approximation: simulated, learning included. In the long run it is optimal
//!   on-line for rounded waits.
//!
//! Last-three-samples has as many triples as there are ways to choose 3 of n rounded waits with
//! repetition, 45,760 for the paper's 63 and 0. Beyond [`MOST_ROUNDED`] rounded waits it is
//! simulated too.

use super::learner::Rounding;
use super::threshold::best_of;
use super::{
    CompetitiveError, Distribution, E_RATIO, Learner, Strategy, check_switch, expected_cost,
    offline_on_trace, optimal_offline, optimal_threshold, pay, walk_thresholds,
};
use crate::{Estimate, Random};

/// The number of locks that a simulation runs, each from its first wait on. The spread of their
/// means gives the standard error.
pub const RUNS: u32 = 32;

/// Least number of waits that a simulation draws: two for each of the [`RUNS`] locks.
pub const LEAST_DRAWS: u32 = 2 * RUNS;

/// Most distinct rounded waits for which last-three-samples is computed over all triples; 2.8
/// million of them.
const MOST_ROUNDED: usize = 256;

/// Returns the average cost of a wait under `strategy`, if waits are drawn independently from
/// `waits` and a context switch costs `switch`.
///
/// `draws` and `seed` matter only to simulated strategies: the optimal on-line approximation, and
/// last-three-samples with more than 256 different waits after rounding. The simulation runs
/// [`RUNS`] locks, each for `draws / RUNS` waits drawn from `seed` on, and each starting with
/// nothing learned. The result has the standard error of the mean. Everything else is exact, and
/// its result has `runs` 0. The adaptive strategies that are exact are so in the long run, when
/// their start is forgotten.
///
/// If the recorder cut the waits, as the paper's were cut at 1008 spins, always-spin's cost is too
/// low, as section 5 says itself. Optimal on-line's cost may be too low as well
/// ([`Distribution::cut_at`]).
///
/// # Errors
///
/// [`CompetitiveError`] if `switch` is not finite and above 0, a parameter of the strategy is out
/// of range, or fewer than [`LEAST_DRAWS`] draws are to be simulated.
///
/// ```
/// use stanchion_formulas::competitive::{Distribution, Strategy, cost_on_distribution};
/// let waits = Distribution::from_points(&[(16.0, 0.9), (1008.0, 0.1)])?;
/// let block = cost_on_distribution(Strategy::AlwaysBlock, &waits, 200.0, 0, 0)?;
/// assert_eq!((block.mean, block.runs), (200.0, 0));
/// let best = cost_on_distribution(Strategy::OptimalOnline, &waits, 200.0, 0, 0)?;
/// let learned = cost_on_distribution(Strategy::APPROXIMATION, &waits, 200.0, 100_000, 1)?;
/// assert!(best.mean <= learned.mean && learned.mean < 1.2 * best.mean);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn cost_on_distribution(
    strategy: Strategy,
    waits: &Distribution,
    switch: f64,
    draws: u32,
    seed: u64,
) -> Result<Estimate, CompetitiveError> {
    check_switch(switch)?;
    strategy.check()?;
    let exact = match strategy {
        Strategy::AlwaysBlock => expected_cost(waits, 0.0, switch)?,
        Strategy::AlwaysSpin => waits.mean(),
        Strategy::FixedSpin(fraction) => expected_cost(waits, fraction * switch, switch)?,
        Strategy::OptimalOnline => optimal_threshold(waits, switch)?.1,
        Strategy::Randomized => E_RATIO * optimal_offline(waits, switch)?.cost,
        Strategy::RandomWalk { step } => {
            let thresholds = walk_thresholds(waits, step * switch, switch)?;
            thresholds.expect(|threshold| mean_cost(waits, threshold, switch))
        }
        Strategy::LastThreeSamples { step, cap } => {
            let rounding = Rounding::new(step, cap, switch);
            let rounded = waits.map(|wait| rounding.round(wait))?;
            if rounded.points().len() > MOST_ROUNDED {
                return simulate(strategy, waits, switch, draws, seed);
            }
            over_triples(&rounded, waits, switch)
        }
        Strategy::OptimalOnlineApproximation { .. } => {
            return simulate(strategy, waits, switch, draws, seed);
        }
    };
    Ok(Estimate::exact(exact))
}

/// [`expected_cost`] of checked numbers.
fn mean_cost(waits: &Distribution, threshold: f64, switch: f64) -> f64 {
    waits.expect(|wait| pay(threshold, wait, switch))
}

/// Expected cost of last-three-samples: each multiset of three rounded waits, as often as it comes
/// in some order.
fn over_triples(rounded: &Distribution, waits: &Distribution, switch: f64) -> f64 {
    let total = rounded.total_weight();
    let values = rounded.points();
    let costs: Vec<f64> = values.iter().map(|point| mean_cost(waits, point.0, switch)).collect();
    let blocked = mean_cost(waits, 0.0, switch);
    let chance = |i: usize| values[i].1 / total;
    let mut sum = 0.0;
    for i in 0..values.len() {
        for j in i..values.len() {
            for k in j..values.len() {
                let orders = match (i == j, j == k) {
                    (true, true) => 1.0,
                    (false, false) => 6.0,
                    _ => 3.0,
                };
                let best = best_of([values[i].0, values[j].0, values[k].0], switch);
                let chosen = [i, j, k].into_iter().find(|&index| values[index].0 == best);
                let cost = chosen.map_or(blocked, |index| costs[index]);
                sum += orders * chance(i) * chance(j) * chance(k) * cost;
            }
        }
    }
    sum
}

fn simulate(
    strategy: Strategy,
    waits: &Distribution,
    switch: f64,
    draws: u32,
    seed: u64,
) -> Result<Estimate, CompetitiveError> {
    if draws < LEAST_DRAWS {
        return Err(CompetitiveError::Draws { strategy, draws });
    }
    let mut random = Random::new(seed);
    let each = draws / RUNS;
    let mut means = Vec::with_capacity(RUNS as usize);
    for _ in 0..RUNS {
        let mut lock = Learner::new(strategy, switch)?;
        let mut sum = 0.0;
        for _ in 0..each {
            let wait = waits.sample(&mut random);
            sum += pay(lock.threshold(), wait, switch);
            lock.observe(wait)?;
        }
        means.push(sum / f64::from(each));
    }
    Ok(Estimate::of(means))
}

/// Returns the cost of all waits of `trace` together under `strategy`, in this order: to be
/// compared with [`offline_on_trace`].
///
/// An adaptive strategy starts with nothing learned and learns from each wait ([`Learner`]).
/// Optimal on-line gets the trace's own distribution beforehand, as in section 5. For the
/// randomized strategy the result is the expectation over its thresholds. A trace of no waits costs
/// 0.
///
/// # Errors
///
/// [`CompetitiveError`] if a wait is negative or NaN, `switch` is not finite and above 0, or a
/// parameter of the strategy is out of range.
///
/// ```
/// use stanchion_formulas::competitive::{Strategy, cost_on_trace, offline_on_trace};
/// let trace = [10.0, 500.0, 90.0];
/// // 10 + (200 + 200) + 90
/// assert_eq!(cost_on_trace(Strategy::FixedSpin(1.0), &trace, 200.0)?, 500.0);
/// assert_eq!(offline_on_trace(&trace, 200.0)?, 300.0);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn cost_on_trace(
    strategy: Strategy,
    trace: &[f64],
    switch: f64,
) -> Result<f64, CompetitiveError> {
    strategy.check()?;
    let offline = offline_on_trace(trace, switch)?; // checks the rest
    if trace.is_empty() {
        return Ok(0.0);
    }
    match strategy {
        Strategy::Randomized => Ok(E_RATIO * offline),
        Strategy::OptimalOnline => {
            let (threshold, _) = optimal_threshold(&Distribution::from_samples(trace)?, switch)?;
            Ok(trace.iter().map(|&wait| pay(threshold, wait, switch)).sum())
        }
        _ => {
            let mut lock = Learner::new(strategy, switch)?;
            let mut sum = 0.0;
            for &wait in trace {
                sum += pay(lock.threshold(), wait, switch);
                lock.observe(wait)?;
            }
            Ok(sum)
        }
    }
}
