//! The memory of a lock of its waits, and the threshold that follows: the procedure `Adjust` of
//! section 2.5, one case for each strategy.
//!
//! The paper's `P_Variable_Spin` gives `Adjust` the time that a thread would have spun if it had
//! never blocked. [`Learner::observe`] takes that time. This module does not decide how a real
//! mutex finds it out.
//!
//! The paper does not define the threshold of a lock that has seen no wait. Here it spins for C: of
//! all thresholds without knowledge this has the least ratio (section 2.4). With one or two
//! samples, last-three-samples uses those.

use std::collections::BTreeMap;

use super::threshold::{best_of, minimise};
use super::walk::walk;
use super::{CompetitiveError, Strategy, check_length, check_switch};

/// The memory of one lock under one strategy. It gives the time to spin, and gets the length of the
/// wait.
///
/// ```
/// use stanchion_formulas::competitive::{Learner, Strategy};
/// let mut lock = Learner::new(Strategy::THREE_SAMPLES, 200.0)?;
/// assert_eq!(lock.threshold(), 200.0); // nothing seen yet
/// for wait in [2000.0, 3000.0, 2000.0] {
///     lock.observe(wait)?;
/// }
/// assert_eq!(lock.threshold(), 0.0); // it would have been best to block each time
/// lock.observe(20.0)?;
/// // One of three was short: 20, rounded up to a multiple of 16.
/// assert_eq!(lock.threshold(), 32.0);
/// # Ok::<(), stanchion_formulas::competitive::CompetitiveError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Learner {
    /// The cost of a context switch.
    switch: f64,
    /// The time that the next wait may spin.
    threshold: f64,
    /// The waits that the strategy remembers.
    memory: Memory,
}

#[derive(Clone, Debug, PartialEq)]
enum Memory {
    /// The threshold is given once and for all.
    Nothing,
    /// The number of waits of each length, in steps.
    All { rounding: Rounding, counts: BTreeMap<u64, u64>, seen: u64 },
    /// The last three waits. One that has not been is 0: it costs every threshold the same,
    /// nothing, and so has no say.
    Three { rounding: Rounding, waits: [f64; 3], next: usize },
    /// Only the threshold itself.
    Walk { step: f64 },
}

impl Learner {
    /// A lock that has seen no wait, where a context switch costs `switch`, in the unit of the
    /// waits to come.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError`] if `switch` is not finite and above 0, a parameter of the strategy is
    /// out of range, or its threshold does not come from past waits (optimal on-line, randomized).
    pub fn new(strategy: Strategy, switch: f64) -> Result<Self, CompetitiveError> {
        check_switch(switch)?;
        strategy.check()?;
        let (threshold, memory) = match strategy {
            Strategy::AlwaysBlock => (0.0, Memory::Nothing),
            Strategy::AlwaysSpin => (f64::INFINITY, Memory::Nothing),
            Strategy::FixedSpin(fraction) => (fraction * switch, Memory::Nothing),
            Strategy::OptimalOnlineApproximation { step, cap } => {
                let rounding = Rounding::new(step, cap, switch);
                (switch, Memory::All { rounding, counts: BTreeMap::new(), seen: 0 })
            }
            Strategy::LastThreeSamples { step, cap } => {
                let rounding = Rounding::new(step, cap, switch);
                (switch, Memory::Three { rounding, waits: [0.0; 3], next: 0 })
            }
            Strategy::RandomWalk { step } => (switch, Memory::Walk { step: step * switch }),
            Strategy::OptimalOnline | Strategy::Randomized => {
                return Err(CompetitiveError::NotLearned { strategy });
            }
        };
        Ok(Self { switch, threshold, memory })
    }

    /// Returns the time that the next wait may spin, in the unit of `switch`; infinite for
    /// always-spin.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Takes note of how long a wait was, whether or not the thread spun for all of it, and adjusts
    /// the threshold.
    ///
    /// Constant time, except for the approximation, which takes as long as there are distinct
    /// rounded waits: `cap / step` at most, 16 with the paper's constants.
    ///
    /// # Errors
    ///
    /// [`CompetitiveError::Length`] if `wait` is negative or NaN; nothing was learned then.
    pub fn observe(&mut self, wait: f64) -> Result<(), CompetitiveError> {
        check_length(0, wait)?;
        let switch = self.switch;
        match &mut self.memory {
            Memory::Nothing => {}
            Memory::All { rounding, counts, seen } => {
                *counts.entry(rounding.steps(wait)).or_default() += 1;
                *seen += 1;
                let points =
                    counts.iter().map(|(&steps, &count)| (rounding.length(steps), count as f64));
                self.threshold = minimise(points, *seen as f64, switch).0;
            }
            Memory::Three { rounding, waits, next } => {
                waits[*next] = rounding.round(wait);
                *next = (*next + 1) % waits.len();
                self.threshold = best_of(*waits, switch);
            }
            Memory::Walk { step } => self.threshold = walk(self.threshold, wait, *step, switch),
        }
        Ok(())
    }
}

/// Waits are rounded up to whole steps, then cut: the tables of section 5 stay small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rounding {
    /// The length of a step.
    step: f64,
    /// The longest length that is told from longer ones.
    cap: f64,
}

impl Rounding {
    /// `step` and `cap` are fractions of `switch`.
    pub(super) fn new(step: f64, cap: f64, switch: f64) -> Self {
        Self { step: step * switch, cap: cap * switch }
    }

    /// A wait as the strategy remembers it.
    pub(super) fn round(self, wait: f64) -> f64 {
        self.length(self.steps(wait))
    }

    /// Returns the length of a wait in steps, rounded up. If it is a whole number of steps but for
    /// a rounding error, it is that number.
    fn steps(self, wait: f64) -> u64 {
        (wait.min(self.cap) / self.step - 1e-9).ceil() as u64
    }

    fn length(self, steps: u64) -> f64 {
        (steps as f64 * self.step).min(self.cap)
    }
}
