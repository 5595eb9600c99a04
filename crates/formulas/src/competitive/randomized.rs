//! The randomized strategy: spin for a time that is drawn anew for each wait. So no adversary can
//! make waits that are just beyond it.
//!
//! Karlin, Manasse, McGeoch, Owicki ("Competitive randomized algorithms for non-uniform problems",
//! SODA 1990), the paper's KMMO89. The threshold has the density and, integrated, the distribution
//! function
//!
//! ```text
//! p(x) = e^(x/C) / (C·(e - 1))    F(x) = (e^(x/C) - 1) / (e - 1)    for x in 0..=C
//! ```
//!
//! **Its cost.** In units of C, a wait of u <= 1 costs in expectation
//!
//! ```text
//! ∫₀ᵘ (x + 1)·p(x) dx + u·∫ᵤ¹ p(x) dx  =  (u·eᵘ + u·(e - eᵘ)) / (e - 1)  =  u·e/(e - 1)
//! ```
//!
//! since x·eˣ is the integral of (x + 1)·eˣ. A longer wait costs the first integral with u = 1,
//! which is e/(e - 1). So *each* wait costs e/(e-1) = 1.58 times the cost of the off-line optimum,
//! no more and no less. There is nothing to simulate.

use std::f64::consts::E;

use super::{CompetitiveError, check_length, check_switch};

/// e/(e-1), about 1.582: the least ratio that a randomized strategy can guarantee, and an optimal
/// on-line one for a known distribution.
pub const E_RATIO: f64 = E / (E - 1.0);

/// The threshold at quantile `uniform` of the randomized strategy, `C·ln(1 + u·(e - 1))`: give it a
/// number drawn evenly from 0..=1.
///
/// # Errors
///
/// [`CompetitiveError`] unless `uniform` lies in 0..=1 and `switch` is finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::randomized_threshold;
/// assert_eq!(randomized_threshold(0.0, 200.0)?, 0.0);
/// assert!((randomized_threshold(1.0, 200.0)? - 200.0).abs() < 1e-9);
/// assert!(randomized_threshold(0.5, 200.0)? > 100.0); // long thresholds are likelier
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn randomized_threshold(uniform: f64, switch: f64) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    if !(0.0..=1.0).contains(&uniform) {
        return Err(CompetitiveError::Uniform { uniform });
    }
    Ok(switch * (uniform * (E - 1.0)).ln_1p())
}

/// The density of the randomized strategy's threshold at `threshold`, per unit of time; 0 beyond
/// `switch`.
///
/// # Errors
///
/// [`CompetitiveError`] if `threshold` is negative or NaN, or `switch` is not finite and above 0.
pub fn randomized_density(threshold: f64, switch: f64) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    super::check_threshold(threshold)?;
    let inside = threshold <= switch;
    Ok(if inside { (threshold / switch).exp() / (switch * (E - 1.0)) } else { 0.0 })
}

/// Returns the expected cost of a wait of length `wait` under the randomized strategy: e/(e-1)
/// times the smaller of `wait` and `switch`.
///
/// # Errors
///
/// [`CompetitiveError`] if `wait` is negative or NaN, or `switch` is not finite and above 0.
///
/// ```
/// use stanchion_formulas::competitive::{E_RATIO, randomized_cost};
/// assert_eq!(randomized_cost(100.0, 200.0)?, E_RATIO * 100.0);
/// assert_eq!(randomized_cost(f64::INFINITY, 200.0)?, E_RATIO * 200.0);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn randomized_cost(wait: f64, switch: f64) -> Result<f64, CompetitiveError> {
    check_switch(switch)?;
    check_length(0, wait)?;
    Ok(E_RATIO * wait.min(switch))
}
