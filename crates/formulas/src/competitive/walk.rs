//! Random walk (section 2.5): the threshold goes one step down after a wait longer than C, one step
//! up after any other.
//!
//! If waits are drawn independently, steps are too: down with the chance q that a wait is longer
//! than C, up with p = 1 - q, whatever the threshold. So the threshold is a Markov chain whose
//! long-run distribution has a closed form, and nothing needs to be simulated.
//!
//! # The chain
//!
//! The ends are 0 and C. If C is not a whole number of steps s (the paper's 200 spins are 12½ steps
//! of 16), the walk comes down from C on other values than it goes up on from 0. So there are two
//! tracks of m + 1 thresholds each, m·s being the last multiple of s below C:
//!
//! ```text
//! up    0 → s → 2s → … → m·s → C          a_0 … a_m
//! down  C → C-s → C-2s → … → C-m·s → 0    b_0 … b_m
//! ```
//!
//! A step down from the up track goes back on the same track and stays at 0. A step up from the
//! down track goes back on the same track and stays at C.
//!
//! In the long run as much flows from the up track to the down track as comes back, J. A cut behind
//! a_i gives p·a_i - q·a_{i+1} = J with a_{m+1} = 0, and one behind b_j gives q·b_j - p·b_{j+1} =
//! J. Both unroll to geometric sums, and with r = q/p and G(k) = 1 + r + … + r^k, times a common
//! factor,
//!
//! ```text
//! a_(m-k) = r^(m+1)·G(k)      b_(m-k) = r^(m-k)·G(k)
//! ```
//!
//! No term overflows for r <= 1. For r > 1 the picture is turned upside down, r becomes p/q and the
//! two tracks change places. If C is a whole number n of steps, the tracks coincide and their sum
//! is the birth-and-death chain's r^(n-i)·(1 - r^n) at i·s, as it should be.
//!
//! The walk's bound: section 2.5 stops it at C, table 3 prints 1008 spins, as for the other
//! adaptive strategies. This module follows section 2.5: to spin for longer than C on no better
//! evidence than that the last wait was shorter than C is pointless.

use super::{CompetitiveError, Distribution, check_length, check_switch, check_threshold};

/// Least step, as a fraction of C, of all strategies that have one: a million thresholds are
/// enough.
pub const LEAST_STEP: f64 = 1e-6;

/// Fractions of C below this are rounding errors of a sum of steps.
const DUST: f64 = 1e-9;

/// The threshold after a wait: one `step` less if the wait was longer than `switch`, one more if
/// not, but from 0 to `switch`.
///
/// All four in the same unit.
///
/// # Errors
///
/// [`CompetitiveError`] if `threshold` or `wait` is negative or NaN, or `step` or `switch` is not
/// finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::random_walk_step;
/// assert_eq!(random_walk_step(96.0, 500.0, 16.0, 200.0)?, 80.0);
/// assert_eq!(random_walk_step(96.0, 40.0, 16.0, 200.0)?, 112.0);
/// assert_eq!(random_walk_step(192.0, 40.0, 16.0, 200.0)?, 200.0); // no further than C
/// assert_eq!(random_walk_step(8.0, 500.0, 16.0, 200.0)?, 0.0);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn random_walk_step(
    threshold: f64,
    wait: f64,
    step: f64,
    switch: f64,
) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    check_threshold(threshold)?;
    check_length(0, wait)?;
    if step <= 0.0 || !step.is_finite() {
        return Err(CompetitiveError::Step { step });
    }
    Ok(walk(threshold, wait, step, switch))
}

/// [`random_walk_step`] of checked numbers. What comes within a rounding error of an end is at it.
pub(super) fn walk(threshold: f64, wait: f64, step: f64, switch: f64) -> f64 {
    if wait > switch {
        let down = threshold - step;
        if down < DUST * switch { 0.0 } else { down.min(switch) }
    } else {
        let up = threshold + step;
        if up > (1.0 - DUST) * switch { switch } else { up }
    }
}

/// Returns the long-run distribution of the random walk's threshold, if waits are drawn
/// independently from `waits`; exact.
///
/// `step` is in the unit of `waits` and `switch`. The start of the walk does not matter: sooner or
/// later it meets an end, and from then on it is on the tracks. (If no wait is longer than `switch`
/// it ends at `switch` and stays. If all are longer, it ends at 0.)
///
/// # Errors
///
/// [`CompetitiveError`] if `switch` is not finite and above 0, or `step` not finite and at least
/// [`LEAST_STEP`] of `switch`.
///
/// ```
/// use stanchion_formulas::competitive::{Distribution, walk_thresholds};
/// // A coin decides; C is four steps, so all five thresholds are equally likely.
/// let waits = Distribution::from_samples(&[1.0, 100.0])?;
/// for (threshold, share) in walk_thresholds(&waits, 10.0, 40.0)?.points() {
///     assert!((share - 0.2).abs() < 1e-12, "{threshold}");
/// }
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn walk_thresholds(
    waits: &Distribution,
    step: f64,
    switch: f64,
) -> Result<Distribution, CompetitiveError> {
    check_switch(switch)?;
    if step < LEAST_STEP * switch || !step.is_finite() {
        return Err(CompetitiveError::Step { step });
    }
    let down = waits.share_above(switch);
    let up = 1.0 - down;
    let steps = switch / step;
    let last = (steps * (1.0 - DUST)).ceil() as usize - 1; // m; there is at least one step
    let rising = |i: usize| i as f64 * step;
    let falling = |j: usize| {
        let at = switch - j as f64 * step;
        let multiple = (at / step).round() * step;
        if (at - multiple).abs() < DUST * switch && j > 0 { multiple } else { at }
    };

    // The track that the walk drifts to is the one with the end where it stays.
    let upwards = up >= down;
    let ratio = if upwards { down / up } else { up / down };
    let mut points = Vec::with_capacity(2 * (last + 1));
    let mut sum = 0.0; // G(k)
    for k in 0..=last {
        sum = 1.0 + ratio * sum;
        let away = ratio.powf((last + 1) as f64) * sum;
        let near = ratio.powf((last - k) as f64) * sum;
        let (on_rising, on_falling) = if upwards { (away, near) } else { (near, away) };
        points.push((rising(last - k), on_rising));
        points.push((falling(last - k), on_falling));
    }
    let total: f64 = points.iter().map(|point| point.1).sum();
    points.iter_mut().for_each(|point| point.1 /= total);
    Distribution::from_points(&points)
}
