//! An estimate of the number of bounds that a search will compute, before it is begun.
//!
//! A dive goes from city 0 to the end, at each step to one of the next cities with a good enough
//! bound, at random. If it had 5 ways at the first step and 3 at the second, there are about 15
//! tours of that length. The mean over many dives is right on average, and seldom right in one
//! case. Dives meet the few large branches rarely, so the estimate is more often too low than too
//! high. And it does not know that the search will find shorter tours than the one to begin with.
//!
//! Source: D. Knuth, *Estimating the efficiency of backtrack programs*, Mathematics of Computation
//! 29, 1975.

use super::bound::Reduced;
use super::instance::Instance;
use super::tour::Tour;
use crate::mix::mix;

/// Dives from the start, and the bounds after which no other is begun: with many cities each is
/// long, and a tenth of a second should do.
const DIVES: u64 = 1_000;
const BOUNDS: u64 = 40_000;

/// Bounds that a search for a tour shorter than `upper` computes.
pub(super) fn bounds(instance: &Instance, reduced: &Reduced, upper: u64) -> f64 {
    let (mut sum, mut computed, mut dives) = (0.0, 0, 0);
    let mut good = Vec::new();
    while dives < DIVES && computed < BOUNDS {
        let dive = dives;
        dives += 1;
        let (mut tour, mut weight) = (Tour::new(), 1.0);
        for step in 0..instance.cities() as u64 {
            good.clear();
            let mut looked = 0.0;
            for city in tour.next(instance) {
                looked += 1.0;
                computed += 1;
                let next = tour.with(city, instance);
                if reduced.of(&next, instance) < upper {
                    good.push(next);
                }
            }
            sum += weight * looked;
            if good.is_empty() {
                break;
            }
            weight *= good.len() as f64;
            tour = good[(mix(dive << 8 | step) % good.len() as u64) as usize];
        }
    }
    sum / dives as f64
}

/// The decimal logarithm of the number of tours through so many cities, (n - 1)! / 2.
pub(super) fn tours_log10(cities: usize) -> f64 {
    (2..cities).map(|factor| (factor as f64).log10()).sum::<f64>() - 2_f64.log10()
}

#[cfg(test)]
mod tests {
    use super::super::bound::Bound;
    use super::*;

    #[test]
    fn all_tours_are_counted_where_no_bound_is_bad() {
        // All distances alike, and any tour good enough: 6 ways, one of them forbidden, then each
        // way on.
        let even = Instance::new("", 5, |_, _| 1);
        let reduced = Reduced::new(&even, Bound::Tree, 6);
        fn count(tour: Tour, instance: &Instance) -> u64 {
            tour.next(instance).map(|city| 1 + count(tour.with(city, instance), instance)).sum()
        }
        let exact = count(Tour::new(), &even) as f64;
        let estimate = bounds(&even, &reduced, 6);
        assert!((estimate - exact).abs() < 0.1 * exact, "{estimate} for {exact}");
    }

    #[test]
    fn the_number_of_tours() {
        assert!((tours_log10(5) - 12_f64.log10()).abs() < 1e-12);
    }
}
