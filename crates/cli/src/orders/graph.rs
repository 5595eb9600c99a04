//! The graph of orders, as far as it is drawn, and the rows of its locks.

use std::collections::BTreeMap;

use super::{Lock, Orders, Pair};

/// The most locks that are drawn.
pub(super) const MOST: usize = 30;

/// The locks and pairs of a picture.
pub(super) struct Graph<'o> {
    /// The locks, from the one that is taken first down.
    pub(super) locks: Vec<&'o Lock>,
    /// The pairs: the rows of the held and of the taken lock.
    pub(super) pairs: Vec<(usize, usize, &'o Pair)>,
    /// The number of locks that any pair has.
    pub(super) all: usize,
    /// True if a drawn lock is in a cycle.
    pub(super) has_cycle: bool,
}

impl<'o> Graph<'o> {
    /// Chooses what is drawn, and gives each lock its row.
    pub(super) fn of(orders: &'o Orders) -> Self {
        let mut index = BTreeMap::<(usize, u64), usize>::new();
        let mut locks: Vec<&Lock> = Vec::new();
        let mut node = |lock: &'o Lock| {
            *index.entry((lock.process, lock.number)).or_insert_with(|| {
                locks.push(lock);
                locks.len() - 1
            })
        };
        let pairs = orders.pairs.iter();
        let edges: Vec<(usize, usize, &Pair)> =
            pairs.map(|pair| (node(&pair.step.held), node(&pair.step.taken), pair)).collect();
        let chosen = choose(locks.len(), &edges);
        let edges: Vec<_> =
            edges.into_iter().filter(|&(from, to, _)| chosen[from] && chosen[to]).collect();
        let rows = rows(&chosen, &edges);
        let mut row_of = vec![0; locks.len()];
        rows.iter().enumerate().for_each(|(row, &lock)| row_of[lock] = row);
        let has_cycle = edges.iter().any(|(.., pair)| pair.is_in_cycle);
        let place = |(from, to, pair)| (row_of[from], row_of[to], pair);
        Self {
            all: locks.len(),
            locks: rows.iter().map(|&lock| locks[lock]).collect(),
            pairs: edges.into_iter().map(place).collect(),
            has_cycle,
        }
    }
}

/// Returns which locks are drawn: all, or those in cycles first, then their neighbours, or without
/// cycles those with the most pairs.
fn choose(locks: usize, edges: &[(usize, usize, &Pair)]) -> Vec<bool> {
    if locks <= MOST {
        return vec![true; locks];
    }
    let mut chosen = vec![false; locks];
    let mut left = MOST;
    let mut choose = |chosen: &mut Vec<bool>, lock: usize| {
        if left > 0 && !chosen[lock] {
            chosen[lock] = true;
            left -= 1;
        }
    };
    for &(from, to, pair) in edges {
        if pair.is_in_cycle {
            choose(&mut chosen, from);
            choose(&mut chosen, to);
        }
    }
    let in_cycles = chosen.clone();
    for &(from, to, _) in edges {
        if in_cycles[from] || in_cycles[to] {
            choose(&mut chosen, from);
            choose(&mut chosen, to);
        }
    }
    if !in_cycles.contains(&true) {
        let mut degrees = vec![0_usize; locks];
        edges.iter().flat_map(|&(from, to, _)| [from, to]).for_each(|lock| degrees[lock] += 1);
        let mut by_degree: Vec<usize> = (0..locks).collect();
        by_degree.sort_by_key(|&lock| std::cmp::Reverse(degrees[lock]));
        by_degree.into_iter().for_each(|lock| choose(&mut chosen, lock));
    }
    chosen
}

/// Returns the locks from the first row down, so that few pairs lead up. Where no lock is left
/// that is only taken first, the one comes next that is most of all taken before others: the
/// heuristic of Eades, Lin and Smyth (1993).
fn rows(chosen: &[bool], edges: &[(usize, usize, &Pair)]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..chosen.len()).filter(|&lock| chosen[lock]).collect();
    let mut rows = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ends = edges
            .iter()
            .filter(|(from, to, _)| from != to && left.contains(from) && left.contains(to));
        let ends: Vec<(usize, usize)> = ends.map(|&(from, to, _)| (from, to)).collect();
        let key = |&(_, &lock): &(usize, &usize)| {
            let before = ends.iter().filter(|&&(_, to)| to == lock).count();
            let after = ends.iter().filter(|&&(from, _)| from == lock).count();
            (before > 0, before as isize - after as isize)
        };
        let next = left.iter().enumerate().min_by_key(key).map_or(0, |(position, _)| position);
        rows.push(left.remove(next));
    }
    rows
}
