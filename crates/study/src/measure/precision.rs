//! How often something is measured: until what decides is known precisely enough, or so often and
//! no more.

use super::sweep::Grid;
use crate::context::{Context, Stop};

/// A width fixed before anything is measured, and how often is measured for it at least and at
/// most.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// Rounds that are always measured.
    pub least: usize,
    /// Rounds after which no more are measured.
    pub most: usize,
    /// How much larger the upper end of a figure's confidence interval may be than the lower, as a
    /// share of the lower.
    pub width: f64,
}

/// Two-sided 95 % quantiles of Student's distribution, by degrees of freedom from 1 on.
const STUDENT: [f64; 12] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];
/// The same for more.
const NORMAL: f64 = 1.96;

/// Returns how wide the 95 % confidence interval of `figures` is: how much larger its upper end is
/// than its lower, as a share of the lower.
///
/// It is that of the mean of the logarithms, by Student's distribution: times have a long tail
/// upwards, and what is judged are their ratios. Of fewer than two figures nothing is known.
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
    // Of figures that are no positive numbers nothing is known.
    if width.is_nan() { f64::INFINITY } else { width }
}

impl Precision {
    /// Returns whether nothing more is measured after `rounds` rounds of which the widest interval
    /// is `widest`.
    pub fn is_reached(&self, rounds: usize, widest: f64) -> bool {
        rounds >= self.most || (rounds >= self.least && widest <= self.width)
    }

    /// Returns why nothing is judged by figures of which the widest interval is `widest`; none if
    /// it is narrow enough.
    pub fn refusal(&self, widest: f64) -> Option<String> {
        (widest > self.width).then(|| {
            format!(
                "a figure that decides is not known well enough: after {} rounds the upper end of its 95 % confidence interval is {:.2} times the \
                 lower, and more than {:.2} decides nothing. Close other programs and run it again",
                self.most,
                1.0 + widest,
                1.0 + self.width
            )
        })
    }
}

/// What [`sweep_until`] found.
#[derive(Debug)]
pub struct Swept<T> {
    /// What the rounds of each cell come to.
    pub grid: Grid<T>,
    /// How many rounds there were.
    pub rounds: usize,
    /// The widest interval of the figures that decide.
    pub widest: f64,
}

/// Runs `measure(lock, setting)` for every pair, locks in turn, until `precision` is reached;
/// `join` joins the rounds of a cell.
///
/// `figure(lock, column, measured)` is the figure of a cell by which is judged; none for the cells
/// that decide nothing. Whether more is measured depends on how wide the intervals of these figures
/// are, and not on the figures.
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
        // Logarithms 0, 1 and 2: a standard error of 1/√3, and 4.303 of those to either side.
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
        // Whichever way a figure lies, it takes as many rounds.
        assert_eq!(rounds(|_| 0.007), (3, true));
    }

    #[test]
    fn what_is_not_a_number_decides_nothing() {
        assert!(PRECISION.refusal(width(&[f64::NAN, 1.0])).is_some());
        assert!(PRECISION.refusal(f64::INFINITY).is_some());
        assert!(PRECISION.refusal(0.1).is_none());
    }
}
