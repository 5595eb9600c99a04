//! Repeats a measurement until the figures that decide a claim are known precisely enough, or until
//! a fixed number of rounds.

use super::sweep::Grid;
use crate::context::{Context, Stop};

/// A required precision, fixed before anything is measured, and the fewest and the most rounds to
/// reach it.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// Rounds that are always measured.
    pub least: usize,
    /// Rounds after which no more are measured.
    pub most: usize,
    /// The largest allowed width of a figure's confidence interval: by how much its upper end may
    /// exceed its lower, as a share of the lower.
    pub width: f64,
}

/// Two-sided 95 % quantiles of Student's distribution, by degrees of freedom from 1 on.
const STUDENT: [f64; 12] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];
/// The same quantile for more degrees of freedom.
const NORMAL: f64 = 1.96;

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
    let quantile = STUDENT.get(figures.len() - 2).copied().unwrap_or(NORMAL);
    let width = (2.0 * quantile * (variance / number).sqrt()).exp() - 1.0;
    // If a figure is not a positive number, the width is unknown.
    if width.is_nan() { f64::INFINITY } else { width }
}

impl Precision {
    /// Returns true if the measurement ends after `rounds` rounds, the widest interval being
    /// `widest`.
    pub fn is_reached(&self, rounds: usize, widest: f64) -> bool {
        rounds >= self.most || (rounds >= self.least && widest <= self.width)
    }

    /// Returns why figures with a widest interval of `widest` decide nothing; none if that is
    /// narrow enough.
    pub fn refusal(&self, widest: f64) -> Option<String> {
        (widest > self.width).then(|| {
            format!(
                "a deciding figure is not precise enough: after {} rounds the upper end of its \
                 95 % confidence interval is {:.2} times the lower, and the limit is {:.2} times. \
                 Close other programs and run it again",
                self.most,
                1.0 + widest,
                1.0 + self.width
            )
        })
    }
}

/// The result of [`sweep_until`].
#[derive(Debug)]
pub struct Swept<T> {
    /// The joined rounds of each cell.
    pub grid: Grid<T>,
    /// The number of rounds.
    pub rounds: usize,
    /// The widest interval of the figures that decide.
    pub widest: f64,
}

/// Runs `measure(lock, setting)` for every pair until `precision` is reached. Locks take turns.
/// `join` joins the rounds of a cell.
///
/// `figure(lock, column, measured)` is the figure of a cell that decides the claim; none for a cell
/// that decides nothing. The number of rounds depends on the widths of the intervals of these
/// figures, not on the figures.
pub fn sweep_until<S: Copy, M, T>(
    context: &Context,
    locks: usize,
    settings: &[S],
    precision: Precision,
    mut measure: impl FnMut(usize, S) -> M,
    figure: impl Fn(usize, usize, &M) -> Option<f64>,
    join: impl Fn(Vec<M>) -> T,
) -> Result<Swept<T>, Stop> {
    let mut seen: Grid<Vec<M>> =
        (0..locks).map(|_| settings.iter().map(|_| Vec::new()).collect()).collect();
    let mut rounds = 0;
    let widest = loop {
        for (column, &setting) in settings.iter().enumerate() {
            for (row, cells) in seen.iter_mut().enumerate() {
                cells[column].push(measure(row, setting));
                context.step()?;
            }
        }
        rounds += 1;
        let widest = seen
            .iter()
            .enumerate()
            .flat_map(|(row, cells)| cells.iter().enumerate().map(move |cell| (row, cell)))
            .filter_map(|(row, (column, cell))| {
                cell.iter()
                    .map(|measured| figure(row, column, measured))
                    .collect::<Option<Vec<f64>>>()
            })
            .map(|figures| width(&figures))
            .fold(0.0, f64::max);
        if precision.is_reached(rounds, widest) {
            break widest;
        }
    };
    let grid = seen.into_iter().map(|cells| cells.into_iter().map(&join).collect()).collect();
    Ok(Swept { grid, rounds, widest })
}

#[cfg(test)]
mod tests {
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

    const PRECISION: Precision = Precision { least: 3, most: 5, width: 0.1 };

    fn rounds(figure: impl Fn(usize) -> f64) -> (usize, bool) {
        let context = Context::new(true, 1, Interrupt::default());
        let mut calls = [0, 0];
        let measure = |lock: usize, ()| {
            calls[lock] += 1;
            // The second lock decides nothing, so its noise does not matter.
            if lock == 1 { 10_f64.powi(calls[1]) } else { figure(calls[0] as usize) }
        };
        let decides = |lock, _: usize, &measured: &f64| (lock == 0).then_some(measured);
        let join = |all: Vec<f64>| all.len();
        let swept = sweep_until(&context, 2, &[()], PRECISION, measure, decides, join).unwrap();
        assert_eq!(swept.grid, [[swept.rounds], [swept.rounds]]);
        (swept.rounds, PRECISION.refusal(swept.widest).is_none())
    }

    #[test]
    fn quiet_figures_end_it_early_and_loud_ones_at_the_most_and_unjudged() {
        assert_eq!(rounds(|_| 7.0), (3, true));
        assert_eq!(rounds(|round| if round.is_multiple_of(2) { 1.0 } else { 9.0 }), (5, false));
        // The value of a figure does not change the number of rounds.
        assert_eq!(rounds(|_| 0.007), (3, true));
    }

    #[test]
    fn what_is_not_a_number_decides_nothing() {
        assert!(PRECISION.refusal(width(&[f64::NAN, 1.0])).is_some());
        assert!(PRECISION.refusal(f64::INFINITY).is_some());
        assert!(PRECISION.refusal(0.1).is_none());
    }
}
