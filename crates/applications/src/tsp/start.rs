//! A tour to begin with: the shorter it is, the more tours are never looked at.
//!
//! From each city to the nearest that is left, then pieces are turned round for as long as that
//! makes the tour shorter (G. Croes, *A method for solving traveling-salesman problems*, 1958); the
//! best of all.

use super::instance::Instance;

/// The length of the tour, and its cities from 0 on.
pub(super) fn tour(instance: &Instance) -> (u64, Vec<usize>) {
    let tours = (0..instance.cities()).map(|first| {
        let mut cities = nearest(instance, first);
        improve(instance, &mut cities);
        let zero = cities.iter().position(|&city| city == 0).unwrap_or(0);
        cities.rotate_left(zero);
        (instance.length(&cities), cities)
    });
    // There are at least three cities.
    tours.min().unwrap_or_default()
}

fn nearest(instance: &Instance, first: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..instance.cities()).filter(|&city| city != first).collect();
    let (mut cities, mut here) = (vec![first], first);
    while let Some(next) = (0..left.len()).min_by_key(|&next| instance.distance(here, left[next])) {
        here = left.swap_remove(next);
        cities.push(here);
    }
    cities
}

fn improve(instance: &Instance, cities: &mut [usize]) {
    let n = cities.len();
    let mut better = true;
    while better {
        better = false;
        for from in 0..n - 1 {
            for to in from + 2..n {
                let (a, b) = (cities[from], cities[from + 1]);
                let (c, d) = (cities[to], cities[(to + 1) % n]);
                let way = |from, to| u64::from(instance.distance(from, to));
                if way(a, c) + way(b, d) < way(a, b) + way(c, d) {
                    cities[from + 1..=to].reverse();
                    better = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_gone_round_once() {
        // Twelve cities in a ring, numbered so that neighbours are 5 apart: 5 is prime to 12.
        let position = |city: usize| city * 5 % 12;
        let ring = Instance::new("", 12, |a, b| {
            let apart = position(a).abs_diff(position(b));
            apart.min(12 - apart) as u32
        });
        let (length, cities) = tour(&ring);
        assert_eq!((length, cities.len(), cities[0]), (12, 12, 0));
        assert_eq!(ring.length(&cities), 12);
    }
}
