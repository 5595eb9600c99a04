//! The conditions under which gangs that wait busily are better, and those under which blocking is:
//! 15 to 17, and the diagram of figure 9.
//!
//! All three are straight lines over t_p: they return the t_w on the line. It may be below 0: then
//! no wait is short enough.

use super::{GangError, Iteration, System, alpha_of, time};

/// The way that is at least 1/σ times as fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Gangs that wait busily.
    Gang,
    /// Blocking without gangs.
    Blocking,
    /// Neither.
    Even,
}

fn ratio(sigma: f64) -> Result<f64, GangError> {
    if sigma > 0.0 && sigma <= 1.0 { Ok(sigma) } else { Err(GangError::Sigma { value: sigma }) }
}

/// Condition 15: the longest wait t_w with which gangs take at most `sigma` of the time that
/// blocking takes, when all programs are alike.
///
/// # Errors
///
/// [`GangError`] if `processing`, `alpha` or `sigma` is out of its range.
pub fn gang_below(
    system: System,
    processing: f64,
    alpha: f64,
    sigma: f64,
) -> Result<f64, GangError> {
    let (processing, sigma) = (time("processing", processing)?, ratio(sigma)?);
    let blocks = system.blocking_share() * alpha_of(alpha)? * system.switch();
    let share = sigma / system.overhead();
    Ok(share * blocks + (share - 1.0) * processing)
}

/// Condition 16: the shortest wait t_w with which blocking takes at most `sigma` of the time that
/// gangs take, when all programs are alike.
///
/// # Errors
///
/// [`GangError`] if `processing`, `alpha` or `sigma` is out of its range.
pub fn blocking_above(
    system: System,
    processing: f64,
    alpha: f64,
    sigma: f64,
) -> Result<f64, GangError> {
    let (processing, sigma) = (time("processing", processing)?, ratio(sigma)?);
    let blocks = system.blocking_share() * alpha_of(alpha)? * system.switch();
    let share = 1.0 / (sigma * system.overhead());
    Ok(share * blocks + (share - 1.0) * processing)
}

/// Condition 17: as [`gang_below`], when the other programs only compute.
///
/// # Errors
///
/// [`GangError`] if `processing`, `alpha` or `sigma` is out of its range.
pub fn gang_below_among_busy(
    system: System,
    processing: f64,
    alpha: f64,
    sigma: f64,
) -> Result<f64, GangError> {
    let (processing, sigma) = (time("processing", processing)?, ratio(sigma)?);
    let (alpha, ell) = (alpha_of(alpha)?, f64::from(system.load()));
    let share = sigma / (system.overhead() * ell);
    let others = sigma * system.quantum() * (ell - 1.0) / ell;
    Ok(others + share * alpha * system.switch() + (share - 1.0) * processing)
}

/// Returns the phase of an iteration in figure 9: by 15, then by 16.
///
/// # Errors
///
/// [`GangError`] if `alpha` or `sigma` is out of its range.
///
/// ```
/// use stanchion_formulas::gang::{Iteration, makbilan, phase::{Phase, phase}};
/// let system = makbilan::system(3)?;
/// let at = |processing, waiting| {
///     phase(system, Iteration::new(processing, waiting)?, makbilan::ALPHA, 0.5)
/// };
/// assert_eq!(at(0.1, 0.05)?, Phase::Gang);
/// assert_eq!(at(0.3, 0.3)?, Phase::Even);
/// assert_eq!(at(0.1, 0.8)?, Phase::Blocking);
/// # Ok::<(), stanchion_formulas::gang::GangError>(())
/// ```
pub fn phase(
    system: System,
    iteration: Iteration,
    alpha: f64,
    sigma: f64,
) -> Result<Phase, GangError> {
    let wait = iteration.waiting();
    Ok(if wait <= gang_below(system, iteration.processing(), alpha, sigma)? {
        Phase::Gang
    } else if wait >= blocking_above(system, iteration.processing(), alpha, sigma)? {
        Phase::Blocking
    } else {
        Phase::Even
    })
}
