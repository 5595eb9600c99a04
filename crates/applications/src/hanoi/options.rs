//! The options of a run, and their errors.

use crate::crew::MAX_THREADS;
use crate::pace::CVAX_INSTRUCTION_NS;
use core::ops::RangeInclusive;
use thiserror::Error;

/// The number of disks that there may be.
pub const DISKS: RangeInclusive<usize> = 1..=64;

/// The number of pegs that there may be.
pub const PEGS: RangeInclusive<usize> = 3..=8;

/// The most moves of a round: 21 disks on 3 pegs. Its plan takes some 50 MB.
pub const MAX_MOVES: u64 = 1 << 21;

/// The options of a run.
///
/// ```
/// use stanchion_applications::hanoi::Options;
/// let options = Options { rounds: 100, ..Options::default() };
/// assert_eq!((options.disks, options.pegs, options.threads), (64, 5, 64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Disks, within [`DISKS`].
    pub disks: usize,
    /// Pegs, within [`PEGS`].
    pub pegs: usize,
    /// Threads, 1 to [`MAX_THREADS`]. The caller is one of them. Thread t moves disks t, t +
    /// threads, and so on; those for which there is none have nothing to do.
    pub threads: usize,
    /// Times the disks go from end to end: there, back, there, …
    pub rounds: u32,
    /// Nanoseconds for which a disk is carried, the processor being busy with it, without a lock.
    /// Of the machine's own time, as `draw_ns`.
    pub work_ns: u64,
    /// Nanoseconds that it takes to draw something, holding the lock of the row or column: the dial
    /// of contention. A move draws twice in rows, and twice for each peg that it passes.
    pub draw_ns: u64,
    /// The time for which a thread sleeps that carries a disk past a peg and calls the window
    /// system, in nanoseconds by the clock. It sleeps until the window system has drawn the disk,
    /// and holds the lock of the column. If it is 0, there is no window system, and all drawing is
    /// computing.
    pub window_ns: u64,
    /// The number of disks carried past a peg for each call of the window system. If it is 0, it is
    /// never called.
    pub window_every: u64,
    /// Set if each thread stays on one processor; processors are dealt out in turn. Otherwise the
    /// system may let all threads take turns on one processor: they wake each other, and a woken
    /// thread often runs where its waker did. Then no lock is ever found held.
    pub pinned: bool,
    /// The time that a simulated machine takes for an instruction that neither carries nor draws,
    /// in nanoseconds. It has no effect on the real one.
    pub instruction_ns: u64,
}

impl Default for Options {
    /// The paper's 64 disks on 5 pegs, once; a thread for each disk, 1 µs for each move and 200 ns
    /// for each drawing, no window system, not pinned.
    fn default() -> Self {
        Self {
            disks: 64,
            pegs: 5,
            threads: 64,
            rounds: 1,
            work_ns: 1_000,
            draw_ns: 200,
            window_ns: 0,
            window_every: 16,
            pinned: false,
            instruction_ns: CVAX_INSTRUCTION_NS,
        }
    }
}

/// Why nothing was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Outside of [`DISKS`].
    #[error("{0} disks: must be {least} to {most}", least = DISKS.start(), most = DISKS.end())]
    Disks(usize),
    /// Outside of [`PEGS`].
    #[error("{0} pegs: must be {least} to {most}", least = PEGS.start(), most = PEGS.end())]
    Pegs(usize),
    /// Not 1 to [`MAX_THREADS`].
    #[error("{0} threads: must be 1 to {MAX_THREADS}")]
    Threads(usize),
    /// No rounds.
    #[error("no rounds: must be at least 1")]
    Rounds,
    /// More than [`MAX_MOVES`].
    #[error(
        "{disks} disks on {pegs} pegs take {} moves, the limit is {MAX_MOVES}: take more pegs or fewer disks",
        if *moves == u64::MAX { "more than 2^63".to_owned() } else { moves.to_string() }
    )]
    Moves {
        /// Disks.
        disks: usize,
        /// Pegs.
        pegs: usize,
        /// Moves of a round; `u64::MAX` for more.
        moves: u64,
    },
}
