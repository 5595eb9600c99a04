//! Regrets in random cells, their distribution, and the bars.
//!
//! - *Regret of throughput*: the throughput of the cell's best peer over the contestant's own. Ours
//!   may be below 1. A contestant that starves a thread sets no best, and its regret is 1 at least.
//! - *Regret of processor time*: the processor time for an operation over that of the best peer
//!   that sleeps.
//! - *Regret of waits*: the contestant's wait over that of one peer, which the family names. It is
//!   the 99.9th percentile where both timed at least 20,000 waits, else the 99th where both timed
//!   2,000, and else nothing.
//! - *Noise*: the same figures of the default, of which its double's are the factor away.
//! - *Bar*: a figure of our default meets it if it is at most the limit, or at most the same figure
//!   of the noise in the clean cells if that is higher. In a marked cell the regret is first
//!   divided by the factor between the default and its double there, down to 1. So no bar is wider
//!   for a cell because another one is noisy.

use super::plan::Plan;
use super::trial::{Settled, factor};
use crate::contestants::Role;
use crate::race::Figures;
use crate::standing::{best, geometric_mean, may_set_best};

/// The fewest timed waits for the 99.9th percentile.
pub(super) const FOR_P999: u64 = 20_000;

/// The fewest timed waits for the 99th percentile.
const FOR_P99: u64 = 2_000;

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Operations a second.
    Throughput,
    /// Processor time for an operation.
    ProcessorTime,
    /// Long waits.
    Waits,
}

impl Measure {
    /// All measures, in the order of tables.
    pub(super) const ALL: [Self; 3] = [Self::Throughput, Self::ProcessorTime, Self::Waits];

    /// Returns the name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::ProcessorTime => "processor time",
            Self::Waits => "waits",
        }
    }
}

/// The regrets of one measure: `[cell][column]`, none where there is nothing to compare.
pub(super) type Regrets = Vec<Vec<Option<f64>>>;

/// The distribution of some figures over cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// The geometric mean.
    pub(super) mean: f64,
    /// The figure that nine cells of ten do not exceed.
    pub(super) p90: f64,
    /// The largest figure.
    pub(super) worst: f64,
    /// The cell of the largest figure.
    pub(super) at: usize,
    /// The number of cells with a figure.
    pub(super) cells: usize,
}

/// Returns the distribution, or nothing if there are no figures.
pub(super) fn spread(figures: impl Iterator<Item = Option<f64>>) -> Option<Spread> {
    let known = figures.enumerate().filter_map(|(cell, figure)| Some((figure?, cell)));
    let mut all: Vec<(f64, usize)> = known.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let &(worst, at) = all.last()?;
    let rank = (0.9 * all.len() as f64).ceil() as usize;
    let mean = geometric_mean(all.iter().map(|&(figure, _)| figure));
    Some(Spread { mean, p90: all[rank.max(1) - 1].0, worst, at, cells: all.len() })
}

/// A limit of a family, and whether our default meets it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    /// The measure that is judged.
    pub(super) measure: Measure,
    /// The figure of its distribution.
    pub(super) figure: &'static str,
    /// The limit of the family.
    pub(super) limit: f64,
    /// The same figure of the noise in clean cells; 1 if there are none.
    pub(super) noise: f64,
    /// The figure of our default, after the allowance of marked cells.
    pub(super) here: f64,
    /// The cell that decides, if it is one.
    pub(super) at: Option<usize>,
}

impl Bar {
    /// Returns whether the bar is met.
    pub(super) fn is_met(&self) -> bool {
        self.here <= self.limit.max(self.noise)
    }
}

/// The judgement of a trial.
pub(super) struct Judgement<'a> {
    /// The plan of the trial.
    plan: &'a Plan,
    /// The figures of each cell.
    cells: &'a [Settled],
    /// The regrets of each measure, in the order of [`Measure::ALL`].
    pub(super) regrets: [Regrets; 3],
    /// The factor between the default and its double, for each measure and cell.
    pub(super) noise: [Vec<Option<f64>>; 3],
}

impl<'a> Judgement<'a> {
    /// Judges the figures of `cells`, which have one column more than the plan: the double's.
    pub(super) fn new(plan: &'a Plan, cells: &'a [Settled]) -> Self {
        let regrets = Measure::ALL.map(|measure| {
            cells.iter().map(|cell| regrets(plan, cell, measure)).collect::<Regrets>()
        });
        let (default, double) = (plan.default(), plan.columns.len());
        let noise = Measure::ALL.map(|measure| {
            let apart = |cell: &Settled| {
                Some(factor(value(cell, default, measure)?, value(cell, double, measure)?))
            };
            cells.iter().map(apart).collect()
        });
        Self { plan, cells, regrets, noise }
    }

    /// Returns the distribution of the regrets of a column.
    pub(super) fn of(&self, measure: Measure, column: usize) -> Option<Spread> {
        spread(self.regrets[measure as usize].iter().map(|row| row[column]))
    }

    /// Returns the distribution of the noise.
    pub(super) fn noise_of(&self, measure: Measure) -> Option<Spread> {
        spread(self.noise[measure as usize].iter().copied())
    }

    /// Returns the bars of the family that these cells decide.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let limits = &self.plan.family.limits;
        let throughput = [("mean", limits.mean), ("p90", limits.p90), ("worst", limits.worst)];
        let asked = throughput.map(|(figure, limit)| (Measure::Throughput, figure, limit));
        let asked =
            asked.into_iter().chain([(Measure::ProcessorTime, "mean", limits.processor_time)]);
        asked.filter_map(|(measure, figure, limit)| self.bar(measure, figure, limit?)).collect()
    }

    fn bar(&self, measure: Measure, figure: &'static str, limit: f64) -> Option<Bar> {
        let default = self.plan.default();
        let allowed = (0..self.cells.len()).map(|cell| {
            let regret = self.regrets[measure as usize][cell][default]?;
            let noise = self.noise[measure as usize][cell].filter(|_| self.cells[cell].marked);
            Some(noise.map_or(regret, |noise| allow(regret, noise)))
        });
        let ours = spread(allowed)?;
        let clean = self.noise[measure as usize].iter().zip(self.cells);
        let noise = spread(clean.map(|(noise, cell)| noise.filter(|_| !cell.marked)));
        let pick = |spread: &Spread| match figure {
            "mean" => spread.mean,
            "p90" => spread.p90,
            _ => spread.worst,
        };
        let (here, noise) = (pick(&ours), noise.as_ref().map_or(1.0, pick));
        let at = (figure == "worst").then_some(ours.at);
        Some(Bar { measure, figure, limit, noise, here, at })
    }
}

/// Divides a regret above 1 by a factor, down to 1.
fn allow(regret: f64, noise: f64) -> f64 {
    if regret > 1.0 { (regret / noise).max(1.0) } else { regret }
}

/// Returns the figure of a column by which doubles are compared.
fn value(cell: &Settled, column: usize, measure: Measure) -> Option<f64> {
    let figures = cell.figures[column]?;
    let figure = match measure {
        Measure::Throughput => figures.throughput,
        Measure::ProcessorTime => figures.cost,
        Measure::Waits => cell.waits[column].quantile(share(cell.waits[column].count())?).max(1.0),
    };
    (figure > 0.0).then_some(figure)
}

/// Returns the percentile that so many waits decide.
fn share(waits: u64) -> Option<f64> {
    match waits {
        FOR_P999.. => Some(0.999),
        FOR_P99.. => Some(0.99),
        _ => None,
    }
}

/// Returns the regrets of one cell.
fn regrets(plan: &Plan, cell: &Settled, measure: Measure) -> Vec<Option<f64>> {
    let columns = 0..cell.figures.len();
    match measure {
        Measure::Throughput => {
            let best = best(of(cell, &plan.those(|one| one.role == Role::Peer)).iter().copied());
            let regret = |column: usize| {
                let figures = cell.figures[column].filter(|_| best > 0.0)?;
                let regret = best / figures.throughput;
                Some(if may_set_best(&figures) { regret } else { regret.max(1.0) })
            };
            columns.map(regret).collect()
        }
        Measure::ProcessorTime => {
            let sleeping = of(cell, &plan.those(|one| one.role == Role::Peer && one.sleeps));
            let least = least_cost(&sleeping);
            columns.map(|column| Some(value(cell, column, measure)? / least?)).collect()
        }
        Measure::Waits => {
            let peer = plan.those(|one| Some(one.name) == plan.family.waits_of);
            let regret = |column: usize| {
                let (own, peer) = (&cell.waits[column], &cell.waits[*peer.first()?]);
                let share = share(own.count().min(peer.count()))?;
                Some(own.quantile(share).max(1.0) / peer.quantile(share).max(1.0))
            };
            columns.map(regret).collect()
        }
    }
}

/// Returns the figures of those of `columns` that take part.
fn of<'a>(cell: &'a Settled, columns: &[usize]) -> Vec<&'a Figures> {
    columns.iter().filter_map(|&column| cell.figures[column].as_ref()).collect()
}

/// Returns the least processor time among those that may set a best, or else among all.
fn least_cost(figures: &[&Figures]) -> Option<f64> {
    let least = |fair: bool| {
        let counted = figures.iter().filter(|figures| !fair || may_set_best(figures));
        counted.map(|figures| figures.cost).filter(|&cost| cost > 0.0).reduce(f64::min)
    };
    least(true).or_else(|| least(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::waits::Waits;

    fn plan() -> Plan {
        let contestants = vec!["parking_lot".to_owned(), "spin".to_owned()];
        let options = Options { random: Some(2), contestants, ..Options::default() };
        let mut plan = Plan::new(&options).unwrap().unwrap();
        // Not the other contestants with these words in their names.
        plan.columns.retain(|&column| {
            ["Adaptive", "parking_lot", "spin"].contains(&plan.entrants[column].name)
        });
        plan
    }

    fn figures(throughput: f64, cost: f64) -> Figures {
        Figures { throughput, cost, fairness: 1.0, ..Figures::default() }
    }

    /// Ours, parking_lot, spin, and the double of ours.
    fn cell(figures: [Figures; 4], waits: u64) -> Settled {
        let waits = [1, 2, 3, 1].map(|length| {
            let mut all = Waits::default();
            (0..waits).for_each(|_| all.note(length));
            all
        });
        Settled {
            figures: figures.map(Some).into(),
            waits: waits.into(),
            others: None,
            visits: 1,
            marked: false,
        }
    }

    #[test]
    fn regrets_are_to_the_best_peer_that_starves_no_thread() {
        let plan = plan();
        let starving = Figures { fairness: 0.4, ..figures(400.0, 1.0) };
        let row = [figures(125.0, 3.0), figures(100.0, 2.0), starving, figures(100.0, 4.0)];
        let cells = [cell(row, 20_000)];
        let judgement = Judgement::new(&plan, &cells);
        assert_eq!(judgement.regrets[0], [[Some(0.8), Some(1.0), Some(1.0), Some(1.0)]]);
        assert_eq!(judgement.regrets[1], [[Some(1.5), Some(1.0), Some(0.5), Some(2.0)]]);
        assert_eq!(judgement.regrets[2], [[Some(0.5), Some(1.0), Some(1.5), Some(0.5)]]);
        assert_eq!(judgement.noise[0], [Some(1.25)]);
        let few = [cell(row, 1_999)];
        assert_eq!(Judgement::new(&plan, &few).regrets[2], [[None; 4]]);
    }

    #[test]
    fn bars_allow_the_noise_and_marked_cells_their_own() {
        let plan = plan();
        let row = |ours, double| {
            [figures(ours, 1.0), figures(120.0, 1.0), figures(1.0, 9.0), figures(double, 1.0)]
        };
        let met = |cells: &[Settled]| -> Vec<(bool, f64)> {
            let bars = Judgement::new(&plan, cells).bars();
            bars.iter().map(|bar| (bar.is_met(), (bar.here * 100.0).round() / 100.0)).collect()
        };
        let quiet = [cell(row(120.0, 120.0), 0), cell(row(80.0, 80.0), 0)];
        assert_eq!(met(&quiet), [(false, 1.22), (false, 1.5), (false, 1.5), (true, 1.0)]);
        let noisy = [cell(row(120.0, 120.0), 0), cell(row(80.0, 50.0), 0)];
        assert_eq!(met(&noisy), [(true, 1.22), (true, 1.5), (true, 1.5), (true, 1.0)]);
        let marked = || Settled { marked: true, ..cell(row(80.0, 60.0), 0) };
        let [mean, _, worst, _] = met(&[cell(row(120.0, 120.0), 0), marked()])[..] else {
            panic!("four bars");
        };
        assert_eq!((mean, worst), ((false, 1.06), (true, 1.13)));
    }

    #[test]
    fn spreads() {
        assert_eq!(spread([None, None].into_iter()), None);
        let figures = (1..=20).rev().map(|figure| Some(f64::from(figure)));
        let all = spread([None].into_iter().chain(figures)).unwrap();
        assert_eq!((all.p90, all.worst, all.at, all.cells), (18.0, 20.0, 1, 20));
        let one = spread([Some(2.0)].into_iter()).unwrap();
        assert_eq!((one.p90, one.worst), (2.0, 2.0));
        assert!((one.mean - 2.0).abs() < 1e-12);
    }
}
