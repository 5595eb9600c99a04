//! Repeats a measurement until the figures that decide a claim are known precisely enough, or until
//! a fixed number of rounds.

use super::required::{REQUIRED, Required};
use super::sweep::Grid;
use crate::context::{Context, Stop};
use crate::outcome::{Outcome, Verdict};
use crate::student::quantile;

/// A required precision, fixed before anything is measured, and the fewest and the most rounds to
/// reach it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Rounds that measure also the cells that decide nothing.
    pub whole: usize,
    /// Rounds that are always measured if a figure decides.
    pub least: usize,
    /// Rounds after which no more are measured.
    pub most: usize,
    /// The largest allowed width of a figure's confidence interval: by how much its upper end may
    /// exceed its lower, as a share of the lower.
    pub width: f64,
}

/// The cells that a round measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// All cells.
    Whole,
    /// The cells that decide the claim.
    Deciding,
}

impl Round {
    /// Returns true if the round measures a cell; `decides` says whether the cell decides the
    /// claim.
    pub fn measures(self, decides: bool) -> bool {
        decides || self == Self::Whole
    }
}

/// The rounds of a measurement that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    /// The precision that was asked for.
    pub precision: Precision,
    /// The number of rounds.
    pub rounds: usize,
    /// The widest interval of the figures that decide.
    pub widest: f64,
}

/// Returns the width of the 95 % confidence interval of `figures`: by how much its upper end
/// exceeds its lower, as a share of the lower.
///
/// The interval is that of the mean of the logarithms, by Student's distribution, because times
/// have a long upper tail and claims are about their ratios. The width for fewer than two figures
/// is infinite.
pub fn width(figures: &[f64]) -> f64 {
    let number = figures.len() as f64;
    if figures.len() < 2 {
        return f64::INFINITY;
    }
    let logs = figures.iter().map(|figure| figure.ln());
    let mean = logs.clone().sum::<f64>() / number;
    let variance = logs.map(|log| (log - mean).powi(2)).sum::<f64>() / (number - 1.0);
    let width = (2.0 * quantile(figures.len()) * (variance / number).sqrt()).exp() - 1.0;
    // If a figure is not a positive number, the width is unknown.
    if width.is_nan() { f64::INFINITY } else { width }
}

/// Returns a figure by which a value is known precisely that may be 0 or negative, like a
/// difference or a share: intervals of the value are compared with `scale`.
///
/// A width of 0.5 allows the interval of the value to be 0.4 of `scale` long, wherever it lies.
pub fn on_scale(value: f64, scale: f64) -> f64 {
    (value / scale).exp()
}

/// Returns the requirement of `experiment`.
fn required(experiment: &str) -> &'static Required {
    let row = REQUIRED.iter().find(|row| row.experiment == experiment);
    row.unwrap_or_else(|| panic!("{experiment} has no required precision"))
}

impl Precision {
    /// Returns the precision that `experiment` requires: a row of [`REQUIRED`].
    ///
    /// # Panics
    ///
    /// If the experiment has no row.
    pub fn of(experiment: &str, context: &Context) -> Self {
        let quick = Self::quick(experiment);
        let full = required(experiment).full;
        context.pick(quick, Self { width: quick.width, ..Self::rounds(full) })
    }

    /// Returns the precision that a quick run of `experiment` requires.
    ///
    /// # Panics
    ///
    /// If the experiment has no row.
    pub fn quick(experiment: &str) -> Self {
        let &Required { quick: [whole, least, most], width, .. } = required(experiment);
        Self { whole, least, most, width }
    }

    /// Returns a precision that is reached by so many whole rounds, whatever their figures.
    pub const fn rounds(rounds: usize) -> Self {
        Self { whole: rounds, least: rounds, most: rounds, width: f64::INFINITY }
    }

    /// Returns the most steps of the progress bar that the measurement of `cells` cells takes, of
    /// which `deciding` decide the claim.
    pub fn steps(&self, cells: usize, deciding: usize) -> usize {
        let rounds = if deciding == 0 { self.whole } else { self.most };
        self.whole * (cells - deciding) + rounds * deciding
    }

    /// Runs `round` again and again. It measures the cells of the round, and returns the figures
    /// that decide the claim, the same ones in the same order each time.
    ///
    /// The number of rounds depends on the widths of the intervals of these figures. It does not
    /// depend on the figures, so it does not depend on the verdict. If no figure decides, only
    /// whole rounds are run.
    pub fn repeat(
        self,
        mut round: impl FnMut(Round) -> Result<Vec<f64>, Stop>,
    ) -> Result<Repeated, Stop> {
        let mut seen: Vec<Vec<f64>> = Vec::new();
        for rounds in 1.. {
            let whole = rounds <= self.whole;
            let figures = round(if whole { Round::Whole } else { Round::Deciding })?;
            seen.resize_with(figures.len(), Vec::new);
            debug_assert!(seen.iter().all(|figures| figures.len() + 1 == rounds), "other figures");
            seen.iter_mut().zip(figures).for_each(|(seen, figure)| seen.push(figure));
            let widest = seen.iter().map(|figures| width(figures)).fold(0.0, f64::max);
            let least = if seen.is_empty() { self.whole } else { self.least };
            if rounds >= self.most || (rounds >= least && widest <= self.width) {
                return Ok(Repeated { precision: self, rounds, widest });
            }
        }
        unreachable!("a measurement ends after the most rounds")
    }
}

impl Repeated {
    /// Returns `verdict`, or *not judged* if a figure that decides is not known precisely enough.
    pub fn judge(&self, verdict: Verdict) -> Verdict {
        let Precision { width, .. } = self.precision;
        if matches!(verdict, Verdict::NotJudged(_)) || self.widest <= width {
            return verdict;
        }
        let widest = match 1.0 + self.widest {
            times if times > 10.0 => "more than 10".to_owned(),
            times => format!("{times:.2}"),
        };
        Verdict::NotJudged(format!(
            "a deciding figure is not precise enough: after {} rounds the upper end of its 95 % \
             confidence interval is {widest} times the lower, and the limit is {:.2} times. Close \
             other programs and run it again",
            self.rounds,
            1.0 + width
        ))
    }

    /// Returns `outcome` with its verdict [judged](Self::judge), and with these notes.
    pub fn outcome(&self, outcome: Outcome, notes: Vec<String>) -> Outcome {
        Outcome { notes, verdict: self.judge(outcome.verdict), ..outcome }
    }

    /// Returns the number of rounds in words, to stand after "medians of".
    pub fn words(&self) -> String {
        let whole = self.precision.whole.min(self.rounds);
        if whole == self.rounds {
            format!("{whole} rounds")
        } else {
            format!("{} rounds, or {whole} where a cell decides nothing", self.rounds)
        }
    }
}

/// Runs `measure(cell, round)` for `cells` cells in turn, round after round, until `precision` is
/// reached. Returns the results of each cell, one for each round that measured it.
///
/// `decides(cell)` says whether the cell decides the claim. `figures` computes the figures of a
/// round from its results of these cells, in their order.
pub fn rounds_until<M>(
    context: &Context,
    cells: usize,
    precision: Precision,
    mut measure: impl FnMut(usize, usize) -> Result<M, Stop>,
    decides: impl Fn(usize) -> bool,
    figures: impl Fn(&[&M]) -> Vec<f64>,
) -> Result<(Vec<Vec<M>>, Repeated), Stop> {
    let decides: Vec<bool> = (0..cells).map(decides).collect();
    let deciding = decides.iter().filter(|&&decides| decides).count();
    context.plan(precision.steps(cells, deciding));
    let mut seen: Vec<Vec<M>> = (0..cells).map(|_| Vec::new()).collect();
    let mut rounds = 0;
    let repeated = precision.repeat(|round| {
        for (cell, results) in seen.iter_mut().enumerate() {
            if round.measures(decides[cell]) {
                results.push(measure(cell, rounds)?);
                context.step()?;
            }
        }
        rounds += 1;
        // The cells that decide are this round's.
        let last = seen.iter().zip(&decides).filter(|(_, decides)| **decides);
        let last: Vec<&M> = last.filter_map(|(results, _)| results.last()).collect();
        Ok(if last.is_empty() { Vec::new() } else { figures(&last) })
    })?;
    Ok((seen, repeated))
}

/// Runs `measure(lock, setting)` for every pair until `precision` is reached. Locks take turns.
/// `join` joins the rounds of a cell.
///
/// `decides(lock, column)` says whether the cell decides the claim, and `figure` is the figure of
/// such a cell.
pub fn sweep_until<S: Copy, M, T>(
    context: &Context,
    (locks, settings): (usize, &[S]),
    precision: Precision,
    mut measure: impl FnMut(usize, S) -> M,
    decides: impl Fn(usize, usize) -> bool,
    figure: impl Fn(&M) -> f64,
    join: impl Fn(Vec<M>) -> T,
) -> Result<(Grid<T>, Repeated), Stop> {
    let place = |cell: usize| (cell % locks, cell / locks);
    let (seen, repeated) = rounds_until(
        context,
        locks * settings.len(),
        precision,
        |cell, _| Ok(measure(place(cell).0, settings[place(cell).1])),
        |cell| decides(place(cell).0, place(cell).1),
        |last| last.iter().map(|measured| figure(measured)).collect(),
    )?;
    let mut grid: Grid<T> = (0..locks).map(|_| Vec::new()).collect();
    seen.into_iter().enumerate().for_each(|(cell, runs)| grid[place(cell).0].push(join(runs)));
    Ok((grid, repeated))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn intervals_are_those_of_student() {
        assert_eq!(width(&[5.0]), f64::INFINITY);
        assert_eq!(width(&[5.0, 5.0, 5.0]), 0.0);
        // Logarithms 0, 1 and 2: the standard error is 1/√3, and the interval extends 4.303 of them
        // to either side.
        let figures = [0.0_f64, 1.0, 2.0].map(f64::exp);
        assert!((width(&figures) - ((2.0 * 4.303 / 3.0_f64.sqrt()).exp() - 1.0)).abs() < 1e-9);
        // The scale does not matter.
        assert!((width(&[1.0, 1.1, 1.2]) - width(&[100.0, 110.0, 120.0])).abs() < 1e-9);
    }

    #[test]
    fn differences_are_as_wide_on_either_side_of_zero() {
        let on = |shift: f64, side: f64| {
            width(&[0.0, 0.1, 0.2].map(|value| on_scale(side * (shift + value), 3.0)))
        };
        assert!((on(0.0, 1.0) - on(-7.0, 1.0)).abs() < 1e-9);
        assert!((on(0.0, 1.0) - on(5.0, -1.0)).abs() < 1e-9);
    }

    const PRECISION: Precision = Precision { whole: 2, least: 3, most: 5, width: 0.1 };

    /// Returns the verdict on a figure that must be below 1, and the number of rounds.
    fn judged(figures: &[f64]) -> (&'static str, usize) {
        let mut rest = figures.iter();
        let repeated =
            PRECISION.repeat(|_| Ok(vec![*rest.next().expect("a figure a round")])).unwrap();
        let mean = figures[..repeated.rounds].iter().map(|figure| figure.ln()).sum::<f64>();
        let verdict = Verdict::when(mean < 0.0, String::new());
        (repeated.judge(verdict).name(), repeated.rounds)
    }

    #[test]
    fn quiet_figures_end_it_early_and_loud_ones_at_the_most_and_unjudged() {
        assert_eq!(judged(&[0.7; 3]), ("holds", 3));
        assert_eq!(judged(&[7.0; 3]), ("differs", 3));
        assert_eq!(judged(&[0.1, 0.9, 0.1, 0.9, 0.1]), ("not judged", 5));
        assert_eq!(judged(&[0.1, 0.101, 0.102, 9.9, 9.9]), ("holds", 3), "it looks at no more");
    }

    #[test]
    fn what_is_not_a_number_decides_nothing() {
        assert_eq!(judged(&[f64::NAN; 5]), ("not judged", 5));
        assert_eq!(judged(&[0.0; 5]), ("not judged", 5));
    }

    proptest! {
        /// Figures are moved to the other side of the threshold, by a factor and by a mirror. The
        /// number of rounds stays the same, and so does whether there is a verdict.
        #[test]
        fn the_side_of_the_threshold_does_not_matter(
            logs in proptest::collection::vec(-0.2_f64..0.2, 5),
            shrink in 1_u32..1_000,
            shift in -3.0_f64..3.0,
        ) {
            let logs: Vec<f64> = logs.iter().map(|log| log / f64::from(shrink)).collect();
            let judged = |side: f64| {
                let figures: Vec<f64> =
                    logs.iter().map(|log| (side * (shift + log)).exp()).collect();
                let (verdict, rounds) = judged(&figures);
                (verdict == "not judged", rounds)
            };
            let mirrored = judged(-1.0);
            prop_assert_eq!(judged(1.0), mirrored);
            let shifted: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let (verdict, rounds) = self::judged(&shifted);
            prop_assert_eq!((verdict == "not judged", rounds), mirrored);
        }
    }

    /// Returns the rounds of a sweep over two locks, of which the first decides if `decides`, and
    /// the number of measurements of each.
    fn swept(decides: bool) -> (usize, Vec<Vec<usize>>) {
        let context = Context::new(true, 1, Interrupt::default());
        let mut calls = 0;
        let measure = |lock: usize, ()| {
            calls += 1;
            // The second lock decides nothing, so its noise does not matter.
            if lock == 1 { f64::from(calls) } else { 7.0 }
        };
        let decides = |lock, _: usize| decides && lock == 0;
        let join = |all: Vec<f64>| all.len();
        let (grid, repeated) =
            sweep_until(&context, (2, &[()]), PRECISION, measure, decides, |&figure| figure, join)
                .unwrap();
        (repeated.rounds, grid)
    }

    #[test]
    fn only_whole_rounds_measure_what_decides_nothing() {
        assert_eq!(swept(true), (3, vec![vec![3], vec![2]]));
        assert_eq!(swept(false), (2, vec![vec![2], vec![2]]), "no figure decides");
        assert_eq!((PRECISION.steps(10, 4), PRECISION.steps(10, 0)), (32, 20));
    }

    #[test]
    fn figures_are_of_the_cells_that_decide_in_the_same_round() {
        let context = Context::new(true, 1, Interrupt::default());
        let measure = |cell: usize, round: usize| Ok(10 * (cell + 1) + round);
        let figures = |last: &[&usize]| {
            let (one, other) = (*last[0], *last[1]);
            assert_eq!((last.len(), one + 20), (2, other), "cells 0 and 2 of one round");
            vec![(one - one % 10) as f64]
        };
        let (seen, repeated) =
            rounds_until(&context, 3, PRECISION, measure, |cell| cell != 1, figures).unwrap();
        assert_eq!(repeated.rounds, 3);
        assert_eq!(seen, [vec![10, 11, 12], vec![20, 21], vec![30, 31, 32]]);
        let fails = |_: usize, _: usize| Err::<f64, _>(Stop::Failed("no".to_owned()));
        let failed = rounds_until(&context, 1, PRECISION, fails, |_| true, |_| vec![1.0]);
        assert_eq!(failed.unwrap_err(), Stop::Failed("no".to_owned()));
    }

    #[test]
    fn rounds_in_words() {
        let words = |rounds| Repeated { precision: PRECISION, rounds, widest: 0.0 }.words();
        assert_eq!(words(2), "2 rounds");
        assert_eq!(words(4), "4 rounds, or 2 where a cell decides nothing");
    }

    #[test]
    fn required_precisions_can_be_reached() {
        for (index, row) in REQUIRED.iter().enumerate() {
            let [whole, least, most] = row.quick;
            assert!(1 <= whole && whole <= least && 2 <= least, "{row:?}");
            assert!(least <= most && 2 <= row.full, "{row:?}");
            assert!(row.width > 0.0 && !row.why.is_empty(), "{row:?}");
            let others = &REQUIRED[index + 1..];
            assert!(others.iter().all(|other| other.experiment != row.experiment), "{row:?}");
        }
    }
}
