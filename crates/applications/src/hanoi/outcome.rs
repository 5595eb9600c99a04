//! The result of a run, and its faults.

use super::board::Remains;
use super::schedule::Disk;
use crate::named::LockWaits;
use crate::waits::Waits;
use core::time::Duration;
use thiserror::Error;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Moves made in all rounds.
    pub moves: u64,
    /// Moves that Frame and Stewart need for a round.
    pub needed: u64,
    /// Moves of a round of which each has to wait for the one before. `needed` / `chain` moves can
    /// go on at once, on average.
    pub chain: u64,
    /// The peg on which the disks should be in the end: the last after an odd number of rounds,
    /// else the first.
    pub goal: usize,
    /// For each peg the disks on it in the end, from bottom to top.
    pub pegs: Vec<Vec<Disk>>,
    /// The fault that was found in the end, if there is one.
    pub fault: Option<Fault>,
    /// From before the first thread is started until all are done.
    pub elapsed: Duration,
    /// The waits for each lock, all threads together.
    pub locks: Vec<LockWaits>,
    /// The waits for a turn on a peg, which is not a lock. The acquisitions are steps.
    pub turns: Waits,
    /// The work of each thread.
    pub threads: Vec<Share>,
}

/// One thread's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Moves it made.
    pub moves: u64,
    /// The processor it stayed on; none if it was left to the system.
    pub processor: Option<usize>,
}

/// A fault at the end of a run: the lock does not exclude, or the program is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A peg has not the disks that it should have.
    #[error("peg {peg} has the disks {found:?} from bottom to top, not {expected:?}")]
    Peg {
        /// The peg.
        peg: usize,
        /// The disks on it.
        found: Vec<Disk>,
        /// The disks that should be on it.
        expected: Vec<Disk>,
    },
    /// The display shows something else than is there.
    #[error("the display shows the disks {shown:?} on peg {peg}, which has {found:?}")]
    Display {
        /// The peg.
        peg: usize,
        /// The disks that are drawn.
        shown: Vec<Disk>,
        /// The disks that are there.
        found: Vec<Disk>,
    },
    /// Some disks are said to be carried still.
    #[error("the disks {0:?} are said to be carried still")]
    Held(Vec<Disk>),
    /// A number of the display is wrong.
    #[error("{what}: {found}, not {expected}")]
    Number {
        /// The name of the number.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The value that it should have.
        expected: u64,
    },
}

/// The expected remains of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The number of disks.
    pub(super) disks: usize,
    /// The peg on which they must be.
    pub(super) goal: usize,
    /// The number of moves.
    pub(super) moves: u64,
    /// The number of times that a disk was carried past a peg.
    pub(super) passed: u64,
}

impl Expected {
    /// The first thing that is wrong with `remains`.
    pub(super) fn fault(&self, remains: &Remains) -> Option<Fault> {
        for (peg, found) in remains.pegs.iter().enumerate() {
            let disks = if peg == self.goal { self.disks } else { 0 };
            let expected: Vec<Disk> = (0..disks as Disk).rev().collect();
            if *found != expected {
                return Some(Fault::Peg { peg, found: found.clone(), expected });
            }
        }
        for (peg, (shown, found)) in remains.shown.iter().zip(&remains.pegs).enumerate() {
            if shown != found {
                return Some(Fault::Display { peg, shown: shown.clone(), found: found.clone() });
            }
        }
        if !remains.held.is_empty() {
            return Some(Fault::Held(remains.held.clone()));
        }
        let numbers = [
            ("moves counted", remains.counted, self.moves),
            ("moves of the disks", remains.moved, self.moves),
            ("pegs that disks were carried past", remains.passed, self.passed),
            ("disks that are above a peg still", remains.above, 0),
        ];
        let wrong = numbers.into_iter().find(|&(_, found, expected)| found != expected);
        wrong.map(|(what, found, expected)| Fault::Number { what, found, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_found() {
        let expected = Expected { disks: 2, goal: 2, moves: 3, passed: 7 };
        let right = Remains {
            pegs: vec![vec![], vec![], vec![1, 0]],
            shown: vec![vec![], vec![], vec![1, 0]],
            held: vec![],
            counted: 3,
            moved: 3,
            passed: 7,
            above: 0,
        };
        assert_eq!(expected.fault(&right), None);
        let message = |change: fn(&mut Remains)| {
            let mut remains = right.clone();
            change(&mut remains);
            expected.fault(&remains).expect("a fault").to_string()
        };
        assert_eq!(
            message(|remains| remains.pegs.swap(0, 2)),
            "peg 0 has the disks [1, 0] from bottom to top, not []"
        );
        assert_eq!(
            message(|remains| remains.pegs[2].swap(0, 1)),
            "peg 2 has the disks [0, 1] from bottom to top, not [1, 0]"
        );
        assert_eq!(
            message(|remains| remains.shown[1].push(0)),
            "the display shows the disks [0] on peg 1, which has []"
        );
        assert_eq!(
            message(|remains| remains.held.push(1)),
            "the disks [1] are said to be carried still"
        );
        assert_eq!(message(|remains| remains.counted = 4), "moves counted: 4, not 3");
        assert_eq!(message(|remains| remains.moved = 2), "moves of the disks: 2, not 3");
        assert_eq!(
            message(|remains| remains.passed = 8),
            "pegs that disks were carried past: 8, not 7"
        );
        assert_eq!(
            message(|remains| remains.above = 1),
            "disks that are above a peg still: 1, not 0"
        );
    }
}
