//! The options of a run, its result, and the errors of options.

use super::centres::Encounter;
use super::stars::Star;
use crate::crew::MAX_THREADS;
use crate::named::LockWaits;
use crate::pace::CVAX_INSTRUCTION_NS;
use crate::waits::Waits;
use core::ops::RangeInclusive;
use core::time::Duration;
use thiserror::Error;

/// The number of stars that there may be. Each takes about 80 bytes.
pub const STARS: RangeInclusive<usize> = 1..=1 << 22;

/// The options of a run.
///
/// ```
/// use stanchion_applications::galaxy::Options;
/// let options = Options { stars: 1_000, threads: 2, ..Options::default() };
/// assert_eq!((options.steps, options.chunk), (1_500, 64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Stars of both galaxies, within [`STARS`].
    pub stars: usize,
    /// Steps of [`STEP`](super::STEP) each.
    pub steps: u64,
    /// Threads, 1 to [`MAX_THREADS`]. The caller is one of them.
    pub threads: usize,
    /// Of the stars' first positions.
    pub seed: u64,
    /// The second mass, 0 to 1; the first is 1.
    pub ratio: f64,
    /// Stars that a thread takes from the pool at once, at least 1: the fewer, the more locking.
    pub chunk: usize,
    /// Set if each thread stays on a processor of its own, if there are enough.
    pub pinned: bool,
    /// The time that a simulated machine takes for an instruction, in nanoseconds. It has no effect
    /// on the real one.
    pub instruction_ns: u64,
}

impl Default for Options {
    /// 10,000 stars in chunks of 64; 1,500 steps, of which the nearest point is about the 880th;
    /// one thread, seed 1, the second mass half of the first, not pinned.
    fn default() -> Self {
        Self {
            stars: 10_000,
            steps: 1_500,
            threads: 1,
            seed: 1,
            ratio: 0.5,
            chunk: 64,
            pinned: false,
            instruction_ns: CVAX_INSTRUCTION_NS,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), Refused> {
        if !STARS.contains(&self.stars) {
            return Err(Refused::Stars(self.stars));
        }
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(Refused::Threads(self.threads));
        }
        if !(0.0..=1.0).contains(&self.ratio) {
            return Err(Refused::Ratio(self.ratio));
        }
        if self.chunk == 0 {
            return Err(Refused::Chunk);
        }
        Ok(())
    }
}

/// Why nothing was run.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Outside of [`STARS`].
    #[error("{0} stars: must be {least} to {most}", least = STARS.start(), most = STARS.end())]
    Stars(usize),
    /// Not 1 to [`MAX_THREADS`].
    #[error("{0} threads: must be 1 to {MAX_THREADS}")]
    Threads(usize),
    /// Not 0 to 1.
    #[error("a second mass of {0}: must be 0 to 1, the first being 1")]
    Ratio(f64),
    /// No stars in a chunk.
    #[error("chunks of no stars: must have at least 1")]
    Chunk,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Of the positions and speeds of all stars, bit for bit; that of
    /// [`sequential`](super::sequential::run).
    pub checksum: u64,
    /// The number of steps made: all, unless the watcher ended the run.
    pub steps: u64,
    /// The centres in the end.
    pub centres: Encounter,
    /// Stars that the display shows in the end.
    pub shown: u64,
    /// The fault that was found in the end, if there is one.
    pub fault: Option<Fault>,
    /// From before the first thread is started until all are done.
    pub elapsed: Duration,
    /// The waits for each lock, all threads together.
    pub locks: Vec<LockWaits>,
    /// Not a lock: waits for the others at the end of a step.
    pub barrier: Waits,
    /// The work of each thread.
    pub threads: Vec<Share>,
}

/// One thread's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Chunks it advanced.
    pub chunks: u64,
    /// The processor it stayed on; none if it was left to the system.
    pub processor: Option<usize>,
}

/// A fault at the end of a run: the lock does not exclude, or the program is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Stars were lost.
    #[error("{found} stars are left of {expected}")]
    Stars {
        /// As many as there are.
        found: u64,
        /// As many as there were.
        expected: u64,
    },
    /// The display shows something else than is there.
    #[error("the display shows {shown} stars in cell {cell}, where {found} are")]
    Display {
        /// The cell, counted from the top left row by row.
        cell: usize,
        /// As many as it shows.
        shown: u32,
        /// As many as there are.
        found: u32,
    },
}

/// Returns the first fault in the stars that are left, of `expected`, or in what is shown of them.
pub(super) fn fault<'a>(
    stars: impl Iterator<Item = &'a Star>,
    expected: usize,
    shown: &[u32],
) -> Option<Fault> {
    let mut cells = vec![0_u32; shown.len()];
    let mut found = 0;
    for star in stars {
        found += 1;
        if let Some(cell) = star.cell() {
            cells[cell as usize] += 1;
        }
    }
    let expected = expected as u64;
    if found != expected {
        return Some(Fault::Stars { found, expected });
    }
    let cell = cells.iter().zip(shown).position(|(found, shown)| found != shown)?;
    Some(Fault::Display { cell, shown: shown[cell], found: cells[cell] })
}

#[cfg(test)]
mod tests {
    use super::super::stars::stars;
    use super::*;

    #[test]
    fn each_fault_is_found() {
        let all: Vec<Star> = stars(50, 1, &Encounter::new(1.0)).collect();
        let mut shown = vec![0; super::super::WIDTH * super::super::HEIGHT];
        all.iter().filter_map(Star::cell).for_each(|cell| shown[cell as usize] += 1);
        assert_eq!(shown.iter().sum::<u32>(), 50, "the start is in view");
        assert_eq!(fault(all.iter(), 50, &shown), None);
        let lost = fault(all[1..].iter(), 50, &shown).expect("a fault");
        assert_eq!(lost.to_string(), "49 stars are left of 50");
        shown[0] += 2;
        let wrong = fault(all.iter(), 50, &shown).expect("a fault");
        assert_eq!(wrong.to_string(), "the display shows 2 stars in cell 0, where 0 are");
    }
}
