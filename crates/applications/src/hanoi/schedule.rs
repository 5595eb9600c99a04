//! The moves: the schedule of Frame and Stewart, and the number of its moves.
//!
//! To bring n disks to another peg over p pegs: bring the k smallest to a spare peg, bring the
//! others to the goal over the p - 1 pegs that are left, then bring the k smallest there. The k is
//! the one that needs fewest moves:
//!
//! ```text
//! T(0, p) = 0    T(1, p) = 1    T(n, 3) = 2^n - 1
//! T(n, p) = min over 0 < k < n of  2 T(k, p) + T(n - k, p - 1)
//! ```
//!
//! With three pegs that is the least possible, with four as well (T. Bousch, *La quatrième tour de
//! Hanoï*, 2014). With more pegs fewer moves have not been found, nor proved to be impossible.
//! Another way to the same number: of the n disks, the first C(p - 3, p - 3) add 1 move, the next
//! C(p - 2, p - 3) add 2, the next C(p - 1, p - 3) add 4, and so on ([`closed_form`]).
//!
//! If several k need as few moves, the largest is taken. The goal is the first of the pegs that the
//! smallest disks use on their way. With 64 disks on 5 pegs no other choice tried lets more moves
//! go on at once ([`Run::chain`](super::Run::chain)).
//!
//! Source: J. S. Frame, B. M. Stewart, *Solution to advanced problem 3918*, American Mathematical
//! Monthly 48, 1941.

/// Number of a disk: 0 is the smallest.
pub type Disk = u8;

/// One disk from one peg to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The disk.
    pub disk: Disk,
    /// From which peg, counted from 0.
    pub from: u8,
    /// To which.
    pub to: u8,
}

/// The least number of moves for each number of disks on each number of pegs, and the best k.
struct Table {
    /// `cells[pegs - 2][disks]`: moves, `u64::MAX` for more than can be counted or for what cannot
    /// be done; and k.
    cells: Vec<Vec<(u64, usize)>>,
}

impl Table {
    fn new(disks: usize, pegs: usize) -> Self {
        let mut cells: Vec<Vec<(u64, usize)>> = Vec::new();
        // Two pegs: one disk, and no more.
        cells.push(
            (0..=disks).map(|disks| (if disks < 2 { disks as u64 } else { u64::MAX }, 0)).collect(),
        );
        for _ in 3..=pegs {
            let fewer_pegs = &cells[cells.len() - 1];
            let mut row: Vec<(u64, usize)> = vec![(0, 0), (1, 0)];
            for disks in 2..=disks {
                let moves = |k: usize| {
                    let (first, rest) = (row[k], fewer_pegs[disks - k]);
                    first.0.saturating_mul(2).saturating_add(rest.0)
                };
                let best =
                    (1..disks).rev().min_by_key(|&k| moves(k)).map_or((0, 0), |k| (moves(k), k));
                row.push(best);
            }
            row.truncate(disks + 1);
            cells.push(row);
        }
        Self { cells }
    }

    fn at(&self, disks: usize, pegs: usize) -> (u64, usize) {
        self.cells[pegs - 2][disks]
    }
}

/// Moves of the schedule for `disks` disks on `pegs` pegs, at least 3; `u64::MAX` if that is as
/// many or more.
///
/// ```
/// use stanchion_applications::hanoi::moves_needed;
/// assert_eq!([1, 2, 3, 4, 5].map(|disks| moves_needed(disks, 3)), [1, 3, 7, 15, 31]);
/// assert_eq!(moves_needed(64, 5), 1_535);
/// ```
///
/// # Panics
///
/// If `pegs` is less than 3.
#[must_use]
pub fn moves_needed(disks: usize, pegs: usize) -> u64 {
    assert!(pegs >= 3, "{pegs} pegs: there must be at least 3");
    Table::new(disks, pegs).at(disks, pegs).0
}

/// The same number from the closed form, computed without the recurrence; `u64::MAX` if it is as
/// large or larger.
///
/// ```
/// use stanchion_applications::hanoi::{closed_form, moves_needed};
/// assert!((0..100).all(|disks| closed_form(disks, 6) == moves_needed(disks, 6)));
/// ```
///
/// # Panics
///
/// If `pegs` is less than 3.
#[must_use]
pub fn closed_form(disks: usize, pegs: usize) -> u64 {
    assert!(pegs >= 3, "{pegs} pegs: there must be at least 3");
    let (mut left, mut moves) = (disks as u128, 0_u128);
    for class in 0.. {
        // C(class + pegs - 3, pegs - 3): as many disks add 2^class moves each.
        let size =
            (1..=pegs as u128 - 3).fold(1_u128, |size, i| size.saturating_mul(class + i) / i);
        let these = size.min(left);
        let each =
            1_u128.checked_shl(class as u32).filter(|_| class < 64).unwrap_or(u64::MAX.into());
        moves = moves.saturating_add(these.saturating_mul(each));
        left -= these;
        if left == 0 || moves >= u64::MAX.into() {
            break;
        }
    }
    u64::try_from(moves).unwrap_or(u64::MAX)
}

/// The moves that bring `disks` disks from the first of `pegs` pegs to the last.
pub(crate) fn schedule(disks: usize, pegs: usize) -> Vec<Move> {
    let table = Table::new(disks, pegs);
    let mut moves = Vec::with_capacity(table.at(disks, pegs).0 as usize);
    let spare: Vec<u8> = (1..pegs as u8 - 1).collect();
    bring(&table, 0, disks, 0, pegs as u8 - 1, &spare, &mut moves);
    moves
}

/// Brings disks `first` to `first + count - 1` from one peg to another. Depth of recursion: `count`
/// plus the pegs.
fn bring(
    table: &Table,
    first: usize,
    count: usize,
    from: u8,
    to: u8,
    spare: &[u8],
    moves: &mut Vec<Move>,
) {
    match (count, spare) {
        (0, _) => {}
        (1, _) => moves.push(Move { disk: first as Disk, from, to }),
        (_, [aside, rest @ ..]) => {
            let (_, few) = table.at(count, spare.len() + 2);
            let others: Vec<u8> = [to].into_iter().chain(rest.iter().copied()).collect();
            bring(table, first, few, from, *aside, &others, moves);
            bring(table, first + few, count - few, from, to, rest, moves);
            let others: Vec<u8> = [from].into_iter().chain(rest.iter().copied()).collect();
            bring(table, first, few, *aside, to, &others, moves);
        }
        (_, []) => unreachable!("a table never leaves two disks to two pegs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashSet, VecDeque};

    #[test]
    fn the_known_tables() {
        for (pegs, known) in [
            (3, &[0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023][..]),
            // The sequences A007664 and A007665 of the On-Line Encyclopedia of Integer Sequences.
            (4, &[0, 1, 3, 5, 9, 13, 17, 25, 33, 41, 49, 65, 81, 97, 113, 129, 161]),
            (5, &[0, 1, 3, 5, 7, 11, 15, 19, 23, 27, 31, 39, 47, 55, 63, 71, 79]),
        ] {
            for (disks, &moves) in known.iter().enumerate() {
                assert_eq!(moves_needed(disks, pegs), moves, "{disks} disks, {pegs} pegs");
            }
        }
        assert_eq!((moves_needed(64, 4), moves_needed(64, 5)), (18_433, 1_535));
        assert_eq!((moves_needed(63, 3), moves_needed(64, 3)), ((1 << 63) - 1, u64::MAX));
    }

    #[test]
    fn recurrence_and_closed_form_agree() {
        for pegs in 3..=10 {
            for disks in 0..=80 {
                assert_eq!(
                    closed_form(disks, pegs),
                    moves_needed(disks, pegs),
                    "{disks} disks, {pegs} pegs"
                );
            }
        }
    }

    #[test]
    fn the_schedule_has_that_many_moves_and_each_is_allowed() {
        for pegs in 3..=8 {
            for disks in (1..=12).chain(if pegs > 4 { 60..=64 } else { 13..=13 }) {
                let moves = schedule(disks, pegs);
                assert_eq!(moves.len() as u64, moves_needed(disks, pegs));
                let mut stacks = vec![Vec::new(); pegs];
                stacks[0] = (0..disks as Disk).rev().collect();
                for Move { disk, from, to } in moves {
                    assert_eq!(stacks[from as usize].pop(), Some(disk));
                    assert!(stacks[to as usize].last().is_none_or(|&under| under > disk));
                    stacks[to as usize].push(disk);
                }
                assert_eq!(stacks[pegs - 1], (0..disks as Disk).rev().collect::<Vec<_>>());
            }
        }
    }

    /// The truth, by looking at every position: `position[disk]` is a peg.
    fn shortest(disks: usize, pegs: u8) -> u64 {
        let (start, goal) = (vec![0; disks], vec![pegs - 1; disks]);
        let mut seen = HashSet::from([start.clone()]);
        let mut next = VecDeque::from([(start, 0)]);
        while let Some((position, moves)) = next.pop_front() {
            if position == goal {
                return moves;
            }
            let top = |peg: u8| position.iter().position(|&at| at == peg);
            for (from, to) in (0..pegs).flat_map(|from| (0..pegs).map(move |to| (from, to))) {
                let Some(disk) = top(from) else { continue };
                if from != to && top(to).is_none_or(|under| under > disk) {
                    let mut position = position.clone();
                    position[disk] = to;
                    if seen.insert(position.clone()) {
                        next.push_back((position, moves + 1));
                    }
                }
            }
        }
        unreachable!("every position can be reached")
    }

    #[test]
    fn small_schedules_are_as_short_as_any() {
        for (pegs, most) in [(3, 7), (4, 6), (5, 6), (6, 5)] {
            for disks in 1..=most {
                assert_eq!(
                    shortest(disks, pegs),
                    moves_needed(disks, pegs.into()),
                    "{disks} disks, {pegs} pegs"
                );
            }
        }
    }
}
