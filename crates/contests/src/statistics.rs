//! Medians and quantiles, the same for all contests.

/// Returns the figure that a share of all figures does not exceed: the one with the nearest rank.
/// Sorts the figures.
///
/// Returns NaN if there are no figures.
///
/// ```
/// use stanchion_contests::statistics::quantile;
/// let mut figures = [4.0, 1.0, 3.0, 2.0, 5.0];
/// assert_eq!(quantile(&mut figures, 0.5), 3.0);
/// assert_eq!(quantile(&mut figures, 1.0), 5.0);
/// ```
pub fn quantile(figures: &mut [f64], share: f64) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    let Some(last) = figures.len().checked_sub(1) else { return f64::NAN };
    figures[(last as f64 * share.clamp(0.0, 1.0)).round() as usize]
}

/// Returns the median, the upper one of two. Sorts the figures.
pub fn median(figures: &mut [f64]) -> f64 {
    quantile(figures, 0.5)
}
