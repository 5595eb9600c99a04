//! Regret: the throughput of a cell's best lock over that of another lock, and the summary of a
//! contestant's regrets.
//!
//! - *Best of a cell*: the most throughput among the contestants that may set a best.
//! - *May set a best*: a contestant with a fairness of 0.5 at least, and no wait above 100 ms. A
//!   lock that starves some threads shows what they lost as throughput.
//! - *Regret*: the best throughput over the contestant's own. If a contestant has more than the
//!   best but may not set it, its regret is 1: what it starved some threads of is no gain.
//! - *Worst regret* and *geometric mean*: taken over all cells.
//! - *Double*: a contestant that runs a second time under another name. It sets no best, so its
//!   regret may be below 1. The difference between the two is noise.
//! - *Step*: one of ours with another step of its policy, in the study only if asked for. It sets
//!   no best, so that the others' regrets stay the same.
//!
//! If no lock of a cell may set a best, the most throughput of all is the best, so that the cell
//! still tells the locks apart.

use super::race::Figures;
use stanchion_study::measure::median;

/// Jain's index below which a contestant sets no best.
pub(crate) const FAIR: f64 = 0.5;

/// The wait in nanoseconds above which a contestant sets no best.
pub(crate) const STARVED: f64 = 100e6;

/// Returns the median of each figure over all rounds.
pub(crate) fn medians(rounds: &[Figures]) -> Figures {
    let over = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
    Figures {
        throughput: over(|figures| figures.throughput),
        cost: over(|figures| figures.cost),
        fairness: over(|figures| figures.fairness),
        p50: over(|figures| figures.p50),
        p99: over(|figures| figures.p99),
        p999: over(|figures| figures.p999),
        longest: over(|figures| figures.longest),
    }
}

/// Returns whether these figures may be a cell's best.
pub(crate) fn may_set_best(figures: &Figures) -> bool {
    figures.fairness >= FAIR && figures.longest <= STARVED
}

/// Returns the best throughput among `row`, the contestants of a cell, or 0 if there are none.
pub(crate) fn best<'a>(row: impl Iterator<Item = &'a Figures> + Clone) -> f64 {
    let most = |row: &mut dyn Iterator<Item = &'a Figures>| {
        row.map(|figures| figures.throughput).fold(0.0, f64::max)
    };
    let fair = most(&mut row.clone().filter(|figures| may_set_best(figures)));
    if fair > 0.0 { fair } else { most(&mut row.clone()) }
}

/// Computes `regrets[cell][contestant]` of `cells[cell][contestant]`. The contestants in the
/// columns `entered` may set the best.
pub(crate) fn regrets(cells: &[Vec<Figures>], entered: &[usize]) -> Vec<Vec<f64>> {
    cells
        .iter()
        .map(|row| {
            let best = best(entered.iter().map(|&column| &row[column]));
            let regret = |figures: &Figures| {
                let regret = best / figures.throughput;
                if may_set_best(figures) { regret } else { regret.max(1.0) }
            };
            row.iter().map(regret).collect()
        })
        .collect()
}

/// The summary of one contestant's regrets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// The largest regret of all cells.
    pub(crate) worst: f64,
    /// The cell of the largest regret.
    pub(crate) at: usize,
    /// The geometric mean over all cells.
    pub(crate) mean: f64,
}

/// Returns the standing of the contestant in column `contestant`.
pub(crate) fn standing(regrets: &[Vec<f64>], contestant: usize) -> Standing {
    let column = || regrets.iter().map(|row| row[contestant]);
    let (at, worst) =
        column().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NAN));
    Standing { worst, at, mean: geometric_mean(column()) }
}

/// Returns the geometric mean, or NaN if there are no values.
pub(crate) fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value.ln(), count + 1));
    (sum / f64::from(count)).exp()
}

/// Returns the one of `columns` with the least geometric mean.
pub(crate) fn leader(regrets: &[Vec<f64>], columns: &[usize]) -> usize {
    columns
        .iter()
        .copied()
        .min_by(|&a, &b| standing(regrets, a).mean.total_cmp(&standing(regrets, b).mean))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(throughput: f64) -> Figures {
        Figures { throughput, fairness: 1.0, longest: 1e6, ..Figures::default() }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn regret_is_to_the_best_of_each_cell() {
        let cells = vec![vec![figures(100.0), figures(50.0)], vec![figures(80.0), figures(100.0)]];
        let regrets = regrets(&cells, &[0, 1]);
        assert_eq!(regrets, [[1.0, 2.0], [1.25, 1.0]]);
        let first = standing(&regrets, 0);
        assert_eq!((first.worst, first.at), (1.25, 1));
        assert!(close(first.mean, 1.25_f64.sqrt()));
        let second = standing(&regrets, 1);
        assert_eq!((second.worst, second.at), (2.0, 0));
        assert!(close(second.mean, 2.0_f64.sqrt()));
        assert_eq!(leader(&regrets, &[0, 1]), 0);
    }

    #[test]
    fn who_starves_others_sets_no_best() {
        let unfair = Figures { fairness: 0.49, ..figures(1000.0) };
        let slow = Figures { longest: 100.1e6, ..figures(2000.0) };
        let regrets = regrets(&[vec![unfair, figures(100.0), slow, figures(80.0)]], &[0, 1, 2, 3]);
        assert_eq!(regrets, [[1.0, 1.0, 1.0, 1.25]]);
    }

    #[test]
    fn where_all_starve_others_the_most_is_best() {
        let unfair = |throughput| Figures { fairness: 0.1, ..figures(throughput) };
        assert_eq!(regrets(&[vec![unfair(10.0), unfair(40.0)]], &[0, 1]), [[4.0, 1.0]]);
    }

    #[test]
    fn a_double_sets_no_best() {
        assert_eq!(
            regrets(&[vec![figures(100.0), figures(50.0), figures(125.0)]], &[0, 1]),
            [[1.0, 2.0, 0.8]]
        );
    }

    #[test]
    fn medians_are_each_figure_s_own() {
        let rounds = [
            Figures { cost: 3.0, ..figures(1.0) },
            Figures { cost: 2.0, ..figures(9.0) },
            Figures { cost: 1.0, ..figures(5.0) },
        ];
        let medians = medians(&rounds);
        assert_eq!((medians.throughput, medians.cost), (5.0, 2.0));
    }

    #[test]
    fn nothing_is_no_number() {
        assert!(geometric_mean(std::iter::empty()).is_nan());
        assert!(standing(&[], 0).worst.is_nan());
        assert_eq!(leader(&[], &[]), 0);
    }
}
