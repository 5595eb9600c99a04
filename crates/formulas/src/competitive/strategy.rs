//! The strategies of section 2 with their parameters, as values that tables and studies go over.
//!
//! Every parameter is a fraction of C. So a strategy means the same on a machine with a context
//! switch of 2 µs as on the paper's Firefly, where it took 200 µs, the time of C = 200 spins. The
//! constants of section 5, in those units:
//!
//! | spins there | fraction of C | use |
//! | --- | --- | --- |
//! | 1008 | 5.04 | the longest wait that is told from longer ones |
//! | 64 | 0.32 | the approximation rounds waits up to multiples of it |
//! | 16 | 0.08 | last-three-samples rounds up to multiples of it; the random walk's step |
//!
//! The approximation and last-three-samples have a longest wait. 1008 is no multiple of 64. This
//! module rounds first and cuts then, so that no threshold is above 1008, the number that table 3
//! prints.

use std::fmt;

use super::{CompetitiveError, E_RATIO, LEAST_STEP};

/// A rule for the time that a thread spins before it blocks. Parameters are fractions of C.
///
/// ```
/// use stanchion_formulas::competitive::Strategy;
/// let names: Vec<_> = Strategy::PAPER.iter().map(Strategy::to_string).collect();
/// assert_eq!(names[..4], ["always-block", "always-spin", "fixed-spin C/2", "fixed-spin C"]);
/// assert_eq!(names[4..], ["optimal on-line", "last-three-samples", "random-walk"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// Never spin (section 2.2).
    AlwaysBlock,
    /// Never block (section 2.2).
    AlwaysSpin,
    /// Spin for this fraction of C (section 2.4).
    FixedSpin(f64),
    /// Spin for the time that minimises the expected cost on a distribution known beforehand
    /// (section 2.4).
    OptimalOnline,
    /// The same on the distribution of all waits so far (section 2.5).
    OptimalOnlineApproximation {
        /// Waits are rounded up to multiples of it.
        step: f64,
        /// Longer waits count as this long.
        cap: f64,
    },
    /// The same on the last three waits (section 2.5).
    LastThreeSamples {
        /// Waits are rounded up to multiples of it.
        step: f64,
        /// Longer waits count as this long.
        cap: f64,
    },
    /// One step less after a wait longer than C, one step more after any other, from 0 to C
    /// (section 2.5).
    RandomWalk {
        /// The step.
        step: f64,
    },
    /// A threshold drawn afresh for each wait (named in section 2.1, not measured there).
    Randomized,
}

impl Strategy {
    /// The approximation with the constants of section 5.
    pub const APPROXIMATION: Self = Self::OptimalOnlineApproximation { step: 0.32, cap: 5.04 };
    /// Last-three-samples with the constants of section 5.
    pub const THREE_SAMPLES: Self = Self::LastThreeSamples { step: 0.08, cap: 5.04 };
    /// The random walk with the constant of section 5.
    pub const WALK: Self = Self::RandomWalk { step: 0.08 };

    /// The columns of table 1, in its order.
    pub const PAPER: [Self; 7] = [
        Self::AlwaysBlock,
        Self::AlwaysSpin,
        Self::FixedSpin(0.5),
        Self::FixedSpin(1.0),
        Self::OptimalOnline,
        Self::THREE_SAMPLES,
        Self::WALK,
    ];

    /// All strategies, with the paper's parameters where it has some: those of table 1, the
    /// approximation of table 3, and the randomized.
    pub const ALL: [Self; 9] = [
        Self::AlwaysBlock,
        Self::AlwaysSpin,
        Self::FixedSpin(0.5),
        Self::FixedSpin(1.0),
        Self::OptimalOnline,
        Self::APPROXIMATION,
        Self::THREE_SAMPLES,
        Self::WALK,
        Self::Randomized,
    ];

    /// Checks that all parameters are in range. The error names the one that is not.
    pub(super) fn check(self) -> Result<(), CompetitiveError> {
        const MOST: f64 = 1e6;
        let within = |parameter, value: f64, least: f64| {
            let sound = (least..=MOST).contains(&value);
            let error =
                CompetitiveError::Parameter { strategy: self, parameter, value, least, most: MOST };
            if sound { Ok(()) } else { Err(error) }
        };
        match self {
            Self::AlwaysBlock | Self::AlwaysSpin | Self::OptimalOnline | Self::Randomized => Ok(()),
            Self::FixedSpin(fraction) => within("fraction", fraction, 0.0),
            Self::OptimalOnlineApproximation { step, cap }
            | Self::LastThreeSamples { step, cap } => {
                within("step", step, LEAST_STEP)?;
                within("cap", cap, 0.0)
            }
            Self::RandomWalk { step } => within("step", step, LEAST_STEP),
        }
    }
}

/// The name that the paper gives it.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::AlwaysBlock => "always-block",
            Self::AlwaysSpin => "always-spin",
            Self::FixedSpin(1.0) => "fixed-spin C",
            Self::FixedSpin(0.5) => "fixed-spin C/2",
            Self::FixedSpin(fraction) => return f.pad(&format!("fixed-spin {fraction} C")),
            Self::OptimalOnline => "optimal on-line",
            Self::OptimalOnlineApproximation { .. } => "optimal on-line approximation",
            Self::LastThreeSamples { .. } => "last-three-samples",
            Self::RandomWalk { .. } => "random-walk",
            Self::Randomized => "randomized",
        };
        f.pad(name)
    }
}

/// Returns the worst ratio of a strategy's cost to that of the off-line optimum, if it is proven,
/// or `None` if there is no bound.
///
/// - Fixed-spin f·C: 1 + max(f, 1/f), over every wait. That is 2 for C, 3 for C/2. The worst wait
///   is just beyond the threshold.
/// - Randomized: e/(e-1), over every wait, in expectation over the threshold. See
///   [`randomized_cost`](super::randomized_cost).
/// - Optimal on-line: e/(e-1), over every distribution. The randomized strategy is a mixture of
///   thresholds, and the best threshold is no worse than a mixture.
///
/// No deterministic strategy has a ratio below 2 over every sequence, and no randomized one below
/// e/(e-1) (section 2.1). Always-spin and always-block have no bound. The adaptive strategies come
/// with no proof for every sequence. The approximation's cost approaches that of optimal on-line,
/// apart from rounding, if the distribution does not change with time.
///
/// # Errors
///
/// [`CompetitiveError::Parameter`] if a parameter of the strategy is out of range.
///
/// ```
/// use stanchion_formulas::competitive::{E_RATIO, Strategy, competitive_ratio};
/// assert_eq!(competitive_ratio(Strategy::FixedSpin(1.0))?, Some(2.0));
/// assert_eq!(competitive_ratio(Strategy::FixedSpin(0.5))?, Some(3.0));
/// assert_eq!(competitive_ratio(Strategy::Randomized)?, Some(E_RATIO));
/// assert_eq!(competitive_ratio(Strategy::AlwaysSpin)?, None);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
pub fn competitive_ratio(strategy: Strategy) -> Result<Option<f64>, CompetitiveError> {
    strategy.check()?;
    Ok(match strategy {
        Strategy::FixedSpin(fraction) if fraction > 0.0 => Some(1.0 + fraction.max(1.0 / fraction)),
        Strategy::Randomized | Strategy::OptimalOnline => Some(E_RATIO),
        _ => None,
    })
}
