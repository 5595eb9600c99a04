//! The plan: the order in which the disks come and go on each peg. It tells which move must wait
//! for which.
//!
//! A move is two steps: *lift* the disk from one peg, *lower* it onto another. On each peg the
//! steps keep the order that they have in the [schedule](super::schedule), and nothing else is
//! ordered. So a peg sees the same as if one monk did all the moves one by one, and every step is
//! as valid as it was there. But while a disk is carried its peg is free for the next step, and
//! several disks are carried at once.
//!
//! Why not the obvious thing, a move as one step that has both pegs: with 64 disks on 5 pegs the
//! 1,535 moves then have a chain of 1,493 of which each must wait for the one before. There is
//! nothing to share among threads. With two steps the longest chain is 350.
//!
//! Odd rounds bring the disks back: the schedule in the mirror, with peg p taken for the p-th from
//! the end.
//!
//! # Invariants
//!
//! 1. The steps on a peg are numbered 0, 1, 2, … through all rounds, and step number t is made when
//!    t steps have been made there.
//! 2. A thread with several disks makes their moves in the order of the schedule. Then the earliest
//!    move that is not yet done can be made. All moves before it on its pegs are earlier moves, and
//!    its thread has no earlier one to do. So the threads never all wait.

use super::schedule::{Disk, Move, schedule};

/// A move and when it comes on its pegs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// The move.
    pub(super) made: Move,
    /// Number of the lifting among the steps on its peg, in this round.
    lift: u32,
    /// Number of the lowering, the same way.
    lower: u32,
}

/// All rounds.
#[derive(Debug)]
pub(super) struct Plan {
    /// The number of pegs.
    pegs: usize,
    /// The moves of an even round, in the order of the schedule.
    moves: Vec<Planned>,
    /// For each disk the indices of its moves in `moves`.
    of_disk: Vec<Vec<u32>>,
    /// Steps on each peg in an even round.
    steps: Vec<u64>,
}

impl Plan {
    pub(super) fn new(disks: usize, pegs: usize) -> Self {
        let mut steps = vec![0_u32; pegs];
        let mut of_disk = vec![Vec::new(); disks];
        let mut number = |peg: u8| {
            let number = steps[peg as usize];
            steps[peg as usize] += 1;
            number
        };
        let planned = |(index, made): (u32, Move)| {
            of_disk[made.disk as usize].push(index);
            Planned { made, lift: number(made.from), lower: number(made.to) }
        };
        let moves = (0..).zip(schedule(disks, pegs)).map(planned).collect();
        Self { pegs, moves, of_disk, steps: steps.into_iter().map(u64::from).collect() }
    }

    /// Moves of a round.
    pub(super) fn len(&self) -> usize {
        self.moves.len()
    }

    /// The moves of `disks` in a round, in the order of the schedule, as numbers for
    /// [`planned`](Self::planned).
    pub(super) fn moves_of(&self, disks: impl Iterator<Item = Disk>) -> Vec<u32> {
        let mut moves: Vec<u32> =
            disks.flat_map(|disk| &self.of_disk[disk as usize]).copied().collect();
        moves.sort_unstable();
        moves
    }

    /// Move `index` of round `round`, and the numbers of its lifting and lowering on their pegs
    /// through all rounds.
    pub(super) fn planned(&self, index: u32, round: u32) -> (Move, u64, u64) {
        let Planned { made: Move { disk, from, to }, lift, lower } = self.moves[index as usize];
        let peg = |peg| self.peg(peg, round);
        let made = Move { disk, from: peg(from), to: peg(to) };
        let before = |peg| self.before(peg, round);
        (made, before(made.from) + u64::from(lift), before(made.to) + u64::from(lower))
    }

    /// The peg that stands for `peg` of the schedule in `round`.
    pub(super) fn peg(&self, peg: u8, round: u32) -> u8 {
        if round.is_multiple_of(2) { peg } else { self.pegs as u8 - 1 - peg }
    }

    /// Steps made on `peg` before `round`.
    fn before(&self, peg: u8, round: u32) -> u64 {
        let (there, back) = (u64::from(round).div_ceil(2), u64::from(round) / 2);
        there * self.steps[peg as usize] + back * self.steps[self.peg(peg, 1) as usize]
    }

    /// Moves of a round of which each has to wait for the one before: the least time of a round in
    /// moves, whatever the threads.
    pub(super) fn chain(&self) -> usize {
        let mut pegs = vec![0; self.pegs];
        let mut disks = vec![0; self.of_disk.len()];
        for Planned { made: Move { disk, from, to }, .. } in &self.moves {
            let lifted = pegs[*from as usize].max(disks[*disk as usize]);
            let lowered = pegs[*to as usize].max(lifted + 1);
            pegs[*from as usize] = lifted;
            pegs[*to as usize] = lowered;
            disks[*disk as usize] = lowered;
        }
        pegs.into_iter().max().unwrap_or(0)
    }

    /// Pegs that the disks of a round come over, both ends included: columns of the display, in
    /// all.
    pub(super) fn columns(&self) -> u64 {
        self.moves.iter().map(|planned| columns(planned.made).count() as u64).sum()
    }
}

/// The pegs over which a move brings its disk, from the one to the other.
pub(super) fn columns(Move { from, to, .. }: Move) -> impl Iterator<Item = u8> {
    let (low, high) = (from.min(to), from.max(to));
    (low..=high).map(move |peg| if from < to { peg } else { high - (peg - low) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_from_one_peg_to_the_other() {
        let over = |from, to| columns(Move { disk: 0, from, to }).collect::<Vec<_>>();
        assert_eq!(over(1, 4), [1, 2, 3, 4]);
        assert_eq!(over(4, 1), [4, 3, 2, 1]);
        assert_eq!(over(2, 2), [2]);
    }

    #[test]
    fn the_chain_of_sixty_four_disks_on_five_pegs() {
        let plan = Plan::new(64, 5);
        assert_eq!((plan.len(), plan.chain()), (1_535, 350));
        // Three disks on three pegs: the small one is lowered after the middle one is lifted, and
        // so on.
        assert_eq!(Plan::new(1, 3).chain(), 1);
        assert_eq!(Plan::new(2, 4).chain(), 2);
    }

    /// If steps are made in any order in which each peg's numbers come one by one, they leave the
    /// same disks as the schedule.
    #[test]
    fn numbers_on_each_peg_have_no_gap_through_all_rounds() {
        for (disks, pegs) in [(1, 3), (1, 5), (2, 5), (5, 3), (9, 4), (64, 8)] {
            let plan = Plan::new(disks, pegs);
            let mut next = vec![0_u64; pegs];
            let mut stacks = vec![Vec::new(); pegs];
            stacks[0] = (0..disks as Disk).rev().collect();
            for round in 0..5 {
                for index in 0..plan.len() as u32 {
                    let (Move { disk, from, to }, lift, lower) = plan.planned(index, round);
                    assert_eq!((lift, lower), (next[from as usize], next[to as usize]));
                    next[from as usize] += 1;
                    next[to as usize] += 1;
                    assert_eq!(stacks[from as usize].pop(), Some(disk));
                    stacks[to as usize].push(disk);
                }
                let goal = plan.peg(pegs as u8 - 1, round);
                assert_eq!(stacks[goal as usize].len(), disks, "round {round}");
            }
        }
    }

    #[test]
    fn each_move_is_of_one_disk() {
        let plan = Plan::new(10, 4);
        let all = plan.moves_of(0..10);
        assert_eq!(all, (0..plan.len() as u32).collect::<Vec<_>>());
        let (odd, even) = (plan.moves_of((1..10).step_by(2)), plan.moves_of((0..10).step_by(2)));
        assert_eq!(odd.len() + even.len(), all.len());
        assert!(odd.is_sorted() && even.is_sorted());
    }
}
