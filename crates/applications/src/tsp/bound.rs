//! A lower bound of the tours that complete a given beginning.
//!
//! A thread that completes a tour goes from its last city through all that are left and back to
//! city 0. Without the first and the last step that is a path through the cities that are left, so
//! it is no shorter than their smallest spanning tree. The two steps are no shorter than the
//! shortest of their kind.
//!
//! The tree is often a bad path: at one city many branches meet. So each city gets a potential,
//! which is added to all distances from it. A whole tour goes through each city once, in and out.
//! So potentials change the length of all tours alike, but not that of trees. Those of cities where
//! branches meet are raised, those of leaves lowered, until the tree is nearly a path (Held and
//! Karp's ascent).
//!
//! Distances with potentials are whole multiples of 1 / [`SCALE`], so that the bound is the same on
//! every computer.
//!
//! Source: M. Held, R. Karp, *The traveling-salesman problem and minimum spanning trees*,
//! Operations Research 18, 1970, and part II, Mathematical Programming 1, 1971.

use super::instance::Instance;
use super::tour::{Tour, cities};

/// Parts of the unit of distance in which potentials are counted.
const SCALE: i64 = 256;

/// The quality of the bound: the better, the fewer tours and the more computing for each search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The spanning tree alone. Many tours, so the structures are much used: for studies of them.
    Tree,
    /// With potentials: for getting the answer.
    #[default]
    Ascent,
}

/// Distances with potentials.
#[derive(Clone, Debug)]
pub(super) struct Reduced {
    /// The number of cities.
    cities: usize,
    /// Row by row, in parts.
    distances: Vec<i64>,
    /// The potential of each city.
    potentials: Vec<i64>,
}

impl Reduced {
    /// `upper` is the length of some tour.
    pub(super) fn new(instance: &Instance, bound: Bound, upper: u64) -> Self {
        let n = instance.cities();
        let exact = match bound {
            Bound::Tree => vec![0.0; n],
            Bound::Ascent => ascent(instance, upper),
        };
        // A potential is at most a few times the longest tour.
        let potentials: Vec<i64> =
            exact.into_iter().map(|potential| (potential * SCALE as f64).round() as i64).collect();
        let distances = (0..n * n)
            .map(|index| {
                let (from, to) = (index / n, index % n);
                i64::from(instance.distance(from, to)) * SCALE + potentials[from] + potentials[to]
            })
            .collect();
        Self { cities: n, distances, potentials }
    }

    fn distance(&self, from: usize, to: usize) -> i64 {
        self.distances[from * self.cities + to]
    }

    /// No tour that begins like this one is shorter.
    pub(super) fn of(&self, tour: &Tour, instance: &Instance) -> u64 {
        let (left, last) = (tour.left(instance), tour.last());
        if left == 0 {
            return tour.length() + u64::from(instance.distance(last, 0));
        }
        let shortest = |from| cities(left).map(|to| self.distance(from, to)).min().unwrap_or(0);
        let potentials: i64 = cities(left).map(|city| 2 * self.potentials[city]).sum();
        let parts = self.tree(left) + shortest(last) + shortest(0)
            - self.potentials[last]
            - self.potentials[0]
            - potentials;
        let bound = tour.length() as i64 + (parts + SCALE - 1).div_euclid(SCALE);
        u64::try_from(bound).unwrap_or(0)
    }

    /// Returns the length of the smallest spanning tree of the cities whose bits are set. Source:
    /// R. Prim, 1957.
    fn tree(&self, bits: u64) -> i64 {
        let mut rest: [(i64, usize); u64::BITS as usize] = [(i64::MAX, 0); u64::BITS as usize];
        let mut count = 0;
        for city in cities(bits) {
            rest[count] = (i64::MAX, city);
            count += 1;
        }
        let Some(mut left) = count.checked_sub(1) else { return 0 };
        let (mut city, mut length) = (rest[left].1, 0);
        while left > 0 {
            let mut next = 0;
            for index in 0..left {
                let distance = self.distance(city, rest[index].1);
                rest[index].0 = rest[index].0.min(distance);
                if rest[index].0 < rest[next].0 {
                    next = index;
                }
            }
            length += rest[next].0;
            city = rest[next].1;
            left -= 1;
            rest[next] = rest[left];
        }
        length
    }
}

/// Rounds of the ascent, and the share of its step that is left after each.
const ROUNDS: u32 = 400;
const SHRINK: f64 = 0.98;

/// The potentials, in units of distance. Only what IEEE 754 rounds correctly is computed: the same
/// everywhere.
fn ascent(instance: &Instance, upper: u64) -> Vec<f64> {
    let n = instance.cities();
    let mut potentials = vec![0.0; n];
    let (mut best, mut best_bound) = (potentials.clone(), f64::NEG_INFINITY);
    let mut step = 2.0;
    for _ in 0..ROUNDS {
        let (length, degrees) = one_tree(instance, &potentials);
        let bound = length - 2.0 * potentials.iter().sum::<f64>();
        if bound > best_bound {
            best_bound = bound;
            best.clone_from(&potentials);
        }
        let off = |degree: u32| f64::from(degree) - 2.0;
        let squares: f64 = degrees.iter().map(|&degree| off(degree) * off(degree)).sum();
        if squares == 0.0 {
            // A tour: it is as long as the bound, and the shortest.
            break;
        }
        let size = step * (upper as f64 - bound).max(1.0) / squares;
        for (potential, &degree) in potentials.iter_mut().zip(&degrees) {
            *potential += size * off(degree);
        }
        step *= SHRINK;
    }
    best
}

/// The smallest spanning tree of all cities but 0, and the two shortest ways from there: its
/// length, and how many ways meet at each city.
fn one_tree(instance: &Instance, potentials: &[f64]) -> (f64, Vec<u32>) {
    let n = instance.cities();
    let distance = |from: usize, to: usize| {
        f64::from(instance.distance(from, to)) + potentials[from] + potentials[to]
    };
    let (mut length, mut degrees) = (0.0, vec![0; n]);
    let mut rest: Vec<(f64, usize, usize)> =
        (2..n).map(|city| (distance(1, city), city, 1)).collect();
    while !rest.is_empty() {
        let next = (0..rest.len()).min_by(|&a, &b| rest[a].0.total_cmp(&rest[b].0)).unwrap_or(0);
        let (way, city, from) = rest.swap_remove(next);
        length += way;
        degrees[city] += 1;
        degrees[from] += 1;
        for (near, other, by) in &mut rest {
            let way = distance(city, *other);
            if way < *near {
                (*near, *by) = (way, city);
            }
        }
    }
    let mut ways: Vec<(f64, usize)> = (1..n).map(|city| (distance(0, city), city)).collect();
    ways.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    for &(way, city) in &ways[..2] {
        length += way;
        degrees[city] += 1;
        degrees[0] += 1;
    }
    (length, degrees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The shortest way on from `tour`, by trying all.
    fn shortest(tour: Tour, instance: &Instance) -> u64 {
        let back = tour.length() + u64::from(instance.distance(tour.last(), 0));
        let on =
            cities(tour.left(instance)).map(|city| shortest(tour.with(city, instance), instance));
        on.min().unwrap_or(back)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// For every beginning of a tour, with both bounds, and potentials for any upper bound.
        #[test]
        fn no_tour_is_shorter_than_its_bound(
            distances in prop::collection::vec(0_u32..100, 15),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
            upper in 0_u64..500,
        ) {
            let mut given = distances.into_iter();
            let instance = Instance::new("", 6, |_, _| given.next().unwrap_or(0));
            let mut tour = Tour::new();
            for pick in picks {
                let left: Vec<usize> = cities(tour.left(&instance)).collect();
                if !left.is_empty() {
                    tour = tour.with(*pick.get(&left), &instance);
                }
            }
            for bound in [Bound::Tree, Bound::Ascent] {
                let bound = Reduced::new(&instance, bound, upper).of(&tour, &instance);
                prop_assert!(bound <= shortest(tour, &instance), "{bound} for {tour:?}");
            }
        }
    }

    #[test]
    fn the_ascent_finds_what_the_tree_does_not() {
        // Four cities around a fifth: the tree is a star, of which a tour can have two rays.
        let star = Instance::new("", 5, |a, b| if a == 1 || b == 1 { 10 } else { 20 });
        let of = |bound| Reduced::new(&star, bound, 80).of(&Tour::new(), &star);
        assert_eq!(shortest(Tour::new(), &star), 80);
        assert!(
            of(Bound::Tree) <= 50 && of(Bound::Ascent) >= 75,
            "{} {}",
            of(Bound::Tree),
            of(Bound::Ascent)
        );
    }
}
