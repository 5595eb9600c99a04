//! A number that may have come from a formula or from drawing at random, and how sure of it we are.

/// A mean with its standard error. Its unit is that of the draws.
///
/// ```
/// use stanchion_formulas::Estimate;
/// let drawn = Estimate::of([1.0, 2.0, 3.0, 4.0]);
/// assert_eq!((drawn.mean, drawn.runs), (2.5, 4));
/// assert!(drawn.agrees_with(3.0, 1.0)); // standard error 0.65
/// assert!(Estimate::exact(2.5).agrees_with(2.5, 0.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over all runs.
    pub mean: f64,
    /// Standard error of that mean: 0 if nothing was drawn, infinite if there was one run, which
    /// shows no spread.
    pub standard_error: f64,
    /// The number of independent runs; 0 if the mean is exact.
    pub runs: u32,
}

impl Estimate {
    /// Returns the value of a formula: no runs and no error.
    #[must_use]
    pub fn exact(mean: f64) -> Self {
        Self { mean, standard_error: 0.0, runs: 0 }
    }

    /// Mean and standard error of independent runs, by Welford's recurrence, which does not cancel.
    /// The mean of none is NaN.
    #[must_use]
    pub fn of(runs: impl IntoIterator<Item = f64>) -> Self {
        let (mut count, mut mean, mut squares) = (0_u32, 0.0, 0.0);
        for run in runs {
            count += 1;
            let off = run - mean;
            mean += off / f64::from(count);
            squares += off * (run - mean);
        }
        let (mean, variance) = match count {
            0 => (f64::NAN, f64::INFINITY),
            1 => (mean, f64::INFINITY),
            _ => (mean, squares / f64::from(count - 1)),
        };
        Self { mean, standard_error: (variance / f64::from(count)).sqrt(), runs: count }
    }

    /// Returns whether `expected` lies within `errors` standard errors of the mean.
    ///
    /// Rounding of the sums is allowed for, so an estimate without any spread agrees with its own
    /// value.
    #[must_use]
    pub fn agrees_with(&self, expected: f64, errors: f64) -> bool {
        let rounding = 1e-9 * expected.abs();
        (self.mean - expected).abs() <= errors * self.standard_error + rounding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, variance 13, standard error √(13/3).
    #[test]
    fn a_mean_by_hand() {
        let estimate = Estimate::of([2.0, 4.0, 9.0]);
        assert_eq!((estimate.mean, estimate.runs), (5.0, 3));
        assert!((estimate.standard_error - (13.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_run_is_not_sure_and_none_knows_nothing() {
        assert_eq!(Estimate::of([7.0]).standard_error, f64::INFINITY);
        assert!(Estimate::of([]).mean.is_nan());
        assert!(!Estimate::of([]).agrees_with(0.0, 5.0));
        assert!(!Estimate::exact(1.0).agrees_with(1.1, 5.0));
    }
}
