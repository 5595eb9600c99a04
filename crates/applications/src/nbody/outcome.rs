//! The options of a simulation, its figures, and the errors of options.

use crate::pace::CVAX_INSTRUCTION_NS;
use core::ops::RangeInclusive;
use thiserror::Error;

/// The number of bodies that there may be. Each takes about 250 bytes.
pub const BODIES: RangeInclusive<usize> = 1..=1 << 22;

/// The values of the opening angle. Above 1 a body could be far from a cube that it is in.
pub const THETA: RangeInclusive<f64> = 0.0..=1.0;

/// The values of the softening, in units of length.
pub const SOFTENING: RangeInclusive<f64> = 1e-6..=1.0;

/// The lengths of a step, in units of time.
pub const DT: RangeInclusive<f64> = 1e-9..=1.0;

/// The exactness of a simulation, and the portions of its work.
///
/// ```
/// use stanchion_applications::nbody::Options;
/// let options = Options { theta: 0.3, ..Options::default() };
/// assert_eq!((options.dt, options.softening), (1.0 / 64.0, 0.05));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The opening angle, within [`THETA`]: a cube is far if its side is seen under less than that.
    /// At 0 each body pulls each other one for itself.
    pub theta: f64,
    /// Time that passes in a step, within [`DT`]. A body crosses the model of Plummer in 2.8.
    pub dt: f64,
    /// Distance below which gravity weakens, within [`SOFTENING`].
    pub softening: f64,
    /// The least number of bodies that are computed at once; 0 is 1. The force on a body takes
    /// microseconds, and a fork that no thread takes costs a pool nanoseconds. Sixteen would leave
    /// four processors waiting for each other a quarter of the time (`cargo test -p
    /// stanchion-applications-simulated --test together nbody -- --nocapture`).
    pub grain: usize,
    /// The time that a simulated machine takes for an instruction, in nanoseconds. It has no effect
    /// on the real one.
    pub instruction_ns: u64,
}

impl Default for Options {
    /// θ 0.6, steps of 1/64, softening 0.05, each body's forces for themselves.
    fn default() -> Self {
        Self {
            theta: 0.6,
            dt: 1.0 / 64.0,
            softening: 0.05,
            grain: 1,
            instruction_ns: CVAX_INSTRUCTION_NS,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), Refused> {
        if !THETA.contains(&self.theta) {
            return Err(Refused::Theta(self.theta));
        }
        if !DT.contains(&self.dt) {
            return Err(Refused::Dt(self.dt));
        }
        if !SOFTENING.contains(&self.softening) {
            return Err(Refused::Softening(self.softening));
        }
        Ok(())
    }
}

/// Why nothing was computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Outside of [`BODIES`].
    #[error("{0} bodies: must be {least} to {most}", least = BODIES.start(), most = BODIES.end())]
    Bodies(usize),
    /// Outside of [`THETA`].
    #[error("an opening angle of {0}: must be {least} to {most}", least = THETA.start(), most = THETA.end())]
    Theta(f64),
    /// Outside of [`DT`].
    #[error("a step of {0}: must be {least} to {most}", least = DT.start(), most = DT.end())]
    Dt(f64),
    /// Outside of [`SOFTENING`].
    #[error("a softening of {0}: must be {least} to {most}", least = SOFTENING.start(), most = SOFTENING.end())]
    Softening(f64),
    /// A mass below zero, or a number of a body that is none, or is so large that its square would
    /// not be a number.
    #[error("body {0}: its mass must be at least 0, and no number beyond 1e100")]
    Body(usize),
}

/// The energy of all bodies, in Hénon's units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Of their motion.
    pub kinetic: f64,
    /// Of their gravitation, below 0.
    pub potential: f64,
}

impl Energy {
    /// Both together.
    #[must_use]
    pub fn total(self) -> f64 {
        self.kinetic + self.potential
    }

    /// Returns the difference from the energy at the `start`, as a part of that.
    #[must_use]
    pub fn drift(self, start: Self) -> f64 {
        (self.total() - start.total()) / start.total().abs()
    }
}

/// The cost of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Bodies and cubes that pulled at bodies.
    pub interactions: u64,
    /// Nanoseconds in which the tree was built, from keys to nodes.
    pub tree_ns: u64,
    /// Nanoseconds in which forces were computed.
    pub force_ns: u64,
}

/// The error of the forces by the tree, as a part of the forces by each pair of bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForceError {
    /// The root of the mean square.
    pub mean: f64,
    /// The largest.
    pub largest: f64,
    /// The energy, as it is without the tree.
    pub exact: Energy,
}
