//! The paper's machine, in milliseconds: section 3.3, equation 14 and table 1.

use super::{GangError, Iteration, System};

/// Processors in all experiments but the fourth, so threads of a gang.
pub const PROCESSORS: u32 = 10;

/// τq.
pub const QUANTUM: f64 = 50.0;

/// τcs with gangs (table 1), and of figure 9.
pub const SWITCH: f64 = 0.2;

/// α of figure 9.
pub const ALPHA: f64 = 1.5;

/// The time of a unit of GRAIN or VAR.
pub const UNIT: f64 = 0.00141;

/// The time of a barrier of ten.
pub const BARRIER: f64 = 0.137;

/// Scheduling with the default library, 0.07 + 0.14/ℓ: a part of it comes once a round (table 1).
#[must_use]
pub fn scheduling(load: u32) -> f64 {
    0.07 + 0.14 / f64::from(load.max(1))
}

/// Spawning a thread, with the default library and with gangs (table 1).
pub const SPAWNING: [f64; 2] = [1.6, 2.5];

/// The machine with so many gangs of ten.
///
/// # Errors
///
/// [`GangError::None`] for none.
pub fn system(load: u32) -> Result<System, GangError> {
    System::new(QUANTUM, SWITCH, load, PROCESSORS)
}

/// Equation 14: an iteration of a program with these parameters, in numbers of instructions of its
/// loop.
///
/// # Errors
///
/// [`GangError::Time`] if one is negative or not finite.
///
/// ```
/// use stanchion_formulas::gang::makbilan::iteration;
/// let iteration = iteration(100.0, 100.0)?;
/// assert!((iteration.processing() - 0.3485).abs() < 1e-9);
/// assert!((iteration.waiting() - 0.058).abs() < 1e-3);
/// # Ok::<(), stanchion_formulas::gang::GangError>(())
/// ```
pub fn iteration(grain: f64, var: f64) -> Result<Iteration, GangError> {
    let work = Iteration::uniform(grain * UNIT, var * UNIT, PROCESSORS)?;
    Iteration::new(BARRIER + work.processing(), work.waiting())
}
