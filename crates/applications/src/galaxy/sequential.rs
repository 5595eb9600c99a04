//! The reference: one thread, no locks, no pool, no display; star by star from beginning to end.

use super::centres::{Encounter, STEP};
use super::outcome::{Options, Refused};
use super::stars::stars;
use core::time::Duration;
use stanchion_machine::clock;

/// The result of a sequential run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of the positions and speeds of all stars, bit for bit.
    pub checksum: u64,
    /// The time that it took.
    pub elapsed: Duration,
}

/// Advances the stars of `options`. Its threads and chunks do not matter.
///
/// ```
/// use stanchion_applications::galaxy::{Options, sequential};
/// let outcome = sequential::run(&Options { stars: 100, steps: 20, ..Options::default() })?;
/// println!("{:016x}", outcome.checksum);
/// # Ok::<(), stanchion_applications::galaxy::Refused>(())
/// ```
///
/// # Errors
///
/// [`Refused`] names the option that is no good, and what would be.
pub fn run(options: &Options) -> Result<Outcome, Refused> {
    options.check()?;
    let began = clock::now();
    let start = Encounter::new(options.ratio);
    let masses = start.bodies.map(|body| body.mass);
    let mut checksum = 0_u64;
    for (number, mut star) in (0..).zip(stars(options.stars, options.seed, &start)) {
        let mut encounter = start;
        for _ in 0..options.steps {
            encounter.advance(STEP);
            star.advance(encounter.positions(), masses, |_| ());
        }
        checksum = checksum.wrapping_add(star.contribution(number));
    }
    Ok(Outcome { checksum, elapsed: Duration::from_nanos(clock::now().nanos_since(began)) })
}
