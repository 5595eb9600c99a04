//! One measurement over many locks and settings, repeated, and the median of each cell.
//!
//! Locks take turns within a repeat, and repeats follow each other. So a drift (a neighbour's load,
//! the clock rate, the temperature) affects all locks alike. If one lock were measured to the end
//! before the next, each would be measured under different conditions.

use super::super::context::{Context, Stop};

/// A table of results, indexed `cells[lock][setting]`.
pub type Grid<T> = Vec<Vec<T>>;

/// Runs `measure(lock, setting)` for every pair, `repeats` times. Locks take turns. `median` joins
/// the repeats of a cell.
pub fn sweep<S: Copy, M, T>(
    context: &Context,
    locks: usize,
    settings: &[S],
    repeats: usize,
    mut measure: impl FnMut(usize, S) -> M,
    median: impl Fn(Vec<M>) -> T,
) -> Result<Grid<T>, Stop> {
    let mut seen: Grid<Vec<M>> =
        (0..locks).map(|_| settings.iter().map(|_| Vec::new()).collect()).collect();
    for _ in 0..repeats {
        for (column, &setting) in settings.iter().enumerate() {
            for (row, cells) in seen.iter_mut().enumerate() {
                cells[column].push(measure(row, setting));
                context.step()?;
            }
        }
    }
    Ok(seen.into_iter().map(|cells| cells.into_iter().map(&median).collect()).collect())
}

/// Returns the number of steps of the progress bar that a sweep takes.
pub fn steps(locks: usize, settings: usize, repeats: usize) -> usize {
    locks * settings * repeats
}

/// Returns the middle value, or the mean of the middle two if there is no middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

/// Returns the value that a quarter of the others lie below: the second of five, the third of nine.
pub fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 4).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
        assert_eq!(lower_quartile(vec![9.0, 2.0, 8.0, 1.0, 3.0]), 2.0);
        assert_eq!(lower_quartile((1..=9).rev().map(f64::from).collect()), 3.0);
        assert_eq!(lower_quartile(vec![4.0]), 4.0);
        assert!(lower_quartile(Vec::new()).is_nan());
    }

    #[test]
    fn locks_take_turns() {
        let context = Context::new(true, 1, Interrupt::default());
        let mut order = Vec::new();
        let measure = |lock, setting| {
            order.push((lock, setting));
            1.0
        };
        sweep(&context, 2, &['a', 'b'], 2, measure, median).unwrap();
        let once = [(0, 'a'), (1, 'a'), (0, 'b'), (1, 'b')];
        assert_eq!(order, [once, once].concat());
    }
}
