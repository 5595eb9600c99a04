//! The threshold of least cost: for a known distribution (section 2.4), and for three samples
//! (section 2.5).
//!
//! With threshold k a wait of length t costs t if t <= k and k + C if not, so for a distribution D
//!
//! ```text
//! E(k) = Σ_{t <= k} t·D(t) + (k + C)·Σ_{t > k} D(t)
//! ```
//!
//! **Why only 0 and the lengths that occur need be tried.** Let x < y be neighbours among 0 and the
//! lengths of D. For k in x..y the two sums range over the same lengths, so E(k) - E(x) = (k -
//! x)·Σ_{t > x} D(t) >= 0. Raising k without reaching another length gains nothing. From the
//! longest length on the second sum is empty and E is constant, so "for ever" costs the same as the
//! longest length. Hence the minimum over all k is one over n + 1 candidates. Both sums change by
//! one term from one candidate to the next, so one pass over the sorted lengths finds it.
//!
//! Why not stop at C: spinning beyond a context switch can pay. If half of the waits last 0.8 C and
//! half 1.1 C, spinning for all of them costs 0.95 C, always-block C, and stopping at 0.8 C costs
//! 1.3 C.
//!
//! Of thresholds of the same cost the shortest is taken: it does least harm if the next wait is
//! longer than all before.

use super::{CompetitiveError, Distribution, check_length, check_switch};

/// Returns the threshold of least expected cost on `waits`, and that cost: *optimal on-line for a
/// known distribution*.
///
/// Exact, in one pass over the points. The threshold is 0 (always block) or a length that occurs;
/// of equals the shortest. Both results are in the unit of `waits` and `switch`. The cost is at
/// most e/(e-1) times that of the off-line optimum.
///
/// # Errors
///
/// [`CompetitiveError::Switch`] unless `switch` is finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::{Distribution, optimal_threshold};
/// // Nine short waits and one long: spin for the short ones, then block.
/// // 0.9·20 + 0.1·(20 + 200) = 40.
/// let waits = Distribution::from_points(&[(20.0, 9.0), (1000.0, 1.0)])?;
/// let (threshold, cost) = optimal_threshold(&waits, 200.0)?;
/// assert_eq!(threshold, 20.0);
/// assert!((cost - 40.0).abs() < 1e-9);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn optimal_threshold(
    waits: &Distribution,
    switch: f64,
) -> Result<(f64, f64), CompetitiveError> {
    check_switch(switch)?;
    let total = waits.total_weight();
    let (threshold, cost) = minimise(waits.points().iter().copied(), total, switch);
    Ok((threshold, cost / total))
}

/// Threshold and cost, the latter times `total`, of the best threshold for `points`, lengths
/// rising, weights adding up to `total`.
pub(super) fn minimise(
    points: impl IntoIterator<Item = (f64, f64)>,
    total: f64,
    switch: f64,
) -> (f64, f64) {
    // Candidate 0 blocks at every wait; a wait of length 0, if there is one, comes as the first
    // point and makes it cheaper.
    let mut best = (0.0, switch * total);
    let (mut spun, mut longer) = (0.0, total);
    for (length, weight) in points {
        spun += length * weight;
        longer -= weight;
        // Infinite, or not a number, for an infinite length; neither is less than what blocking
        // costs.
        let cost = spun + (length + switch) * longer;
        if cost < best.1 {
            best = (length, cost);
        }
    }
    best
}

/// Returns the threshold that would have been best for three waits: the rule of *last three
/// samples*.
///
/// Their order does not matter. It is 0 or one of the three, by the same argument as for a whole
/// distribution. It is at most 3 C: a thread that spins that long for one of three waits would have
/// paid no more by blocking at each.
///
/// # Errors
///
/// [`CompetitiveError`] if a wait is negative or NaN, or `switch` is not finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::best_of_three;
/// // C = 200. Candidates: 0 costs 3·200 = 600; 30 costs 30 + 2·230 = 490;
/// // 50 costs 30 + 50 + 250 = 330; 900 costs 980.
/// assert_eq!(best_of_three(50.0, 900.0, 30.0, 200.0)?, 50.0);
/// // Two long waits of three: 0 costs 600, 30 costs 490, 900 costs 1830.
/// assert_eq!(best_of_three(900.0, 900.0, 30.0, 200.0)?, 30.0);
/// assert_eq!(best_of_three(900.0, 900.0, 900.0, 200.0)?, 0.0);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn best_of_three(a: f64, b: f64, c: f64, switch: f64) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    let waits = [a, b, c];
    for (index, &length) in waits.iter().enumerate() {
        check_length(index, length)?;
    }
    Ok(best_of(waits, switch))
}

/// [`best_of_three`] of checked numbers.
pub(super) fn best_of(mut waits: [f64; 3], switch: f64) -> f64 {
    waits.sort_by(f64::total_cmp);
    minimise(waits.map(|length| (length, 1.0)), 3.0, switch).0
}
