//! Distributions of the parameters of random cells.
//!
//! The distributions were fixed before any lock was tuned by them. A change of one changes every
//! cell of every seed, so the tests below hold their quantiles, and
//! [`DISTRIBUTIONS`](stanchion_study::grids::DISTRIBUTIONS) rises with it.

use stanchion_formulas::Random;

/// Returns the source of all that is random in cell `index` of the grid of `seed`.
///
/// Each cell has a source of its own. So a cell is the same in grids of all sizes, and can be drawn
/// alone.
pub(super) fn source(family: &str, seed: u64, index: u32) -> Random {
    // FNV-1a: two families have other cells with the same seed.
    let name = family.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let of_grid = Random::new(seed).next_u64() ^ name;
    Random::new(Random::new(of_grid).next_u64() ^ u64::from(index))
}

/// Returns true in `share` of all draws.
pub(super) fn chance(random: &mut Random, share: f64) -> bool {
    random.unit() < share
}

/// Returns a number from `low` to `high`, each equally likely.
pub(super) fn uniform(random: &mut Random, low: usize, high: usize) -> usize {
    low + random.below((high - low) as u64 + 1) as usize
}

/// Returns one of `values`, each equally likely.
pub(super) fn one_of<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

/// Returns a number from `low` to `high` with a logarithm that is uniformly distributed.
pub(super) fn log_uniform(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.unit())
}

/// Returns 0 in one draw of ten, else a number from `low` to `high` with a logarithm that is
/// uniformly distributed.
pub(super) fn zero_or_log_uniform(random: &mut Random, low: f64, high: f64) -> f64 {
    if chance(random, 0.1) { 0.0 } else { log_uniform(random, low, high) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the value that `share` of `values` do not exceed.
    pub(in crate::random) fn quantile(values: &mut [f64], share: f64) -> f64 {
        values.sort_unstable_by(f64::total_cmp);
        values[((values.len() - 1) as f64 * share).round() as usize]
    }

    /// Asserts that a figure is within a twentieth of what is expected.
    pub(in crate::random) fn near(figure: f64, expected: f64) {
        assert!((figure / expected - 1.0).abs() < 0.05, "{figure} is not about {expected}");
    }

    #[test]
    fn numbers_with_a_uniform_logarithm() {
        let mut random = Random::new(1);
        let mut values: Vec<f64> =
            (0..200_000).map(|_| log_uniform(&mut random, 10.0, 100_000.0)).collect();
        for (share, expected) in [(0.25, 100.0), (0.5, 1_000.0), (0.75, 10_000.0)] {
            near(quantile(&mut values, share), expected);
        }
        assert!(values[0] >= 10.0 && values[0] < 10.1, "{}", values[0]);
        let last = values[values.len() - 1];
        assert!(last <= 100_000.0 && last > 99_000.0, "{last}");
    }

    #[test]
    fn one_of_ten_is_zero() {
        let mut random = Random::new(2);
        let values: Vec<f64> =
            (0..20_000).map(|_| zero_or_log_uniform(&mut random, 1.0, 2.0)).collect();
        near(values.iter().filter(|&&value| value == 0.0).count() as f64, 2_000.0);
        assert!(values.iter().all(|&value| value == 0.0 || (1.0..=2.0).contains(&value)));
    }

    #[test]
    fn numbers_and_choices_are_equally_likely() {
        let mut random = Random::new(3);
        let mut seen = [0.0; 16];
        for _ in 0..160_000 {
            seen[uniform(&mut random, 1, 16) - 1] += 1.0;
        }
        seen.iter().for_each(|&times| near(times, 10_000.0));
        let some = (0..40_000).filter(|_| one_of(&mut random, &['a', 'b', 'c', 'd']) == 'c');
        near(some.count() as f64, 10_000.0);
    }

    #[test]
    fn a_cell_depends_on_family_seed_and_index_alone() {
        let first = |family, seed, index| source(family, seed, index).next_u64();
        assert_eq!(first("locks", 1989, 3), first("locks", 1989, 3));
        let others = [("locks", 1989, 4), ("locks", 1990, 3), ("rwlocks", 1989, 3)];
        for (family, seed, index) in others {
            assert_ne!(first(family, seed, index), first("locks", 1989, 3));
        }
        // The next releases draw the same cells.
        assert_eq!(first("locks", 1989, 0), FIRST);
    }

    const FIRST: u64 = 2_881_831_540_423_388_538;
}
