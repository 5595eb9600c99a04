//! Student's distribution, for the confidence intervals of means of few values.

/// Two-sided 95 % quantiles of Student's distribution, by degrees of freedom from 1 on.
const STUDENT: [f64; 12] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];

/// Returns the two-sided 95 % quantile of Student's distribution for the mean of `number` values,
/// infinite for fewer than two. Within a hundredth from 14 values on.
pub fn quantile(number: usize) -> f64 {
    if number < 2 {
        return f64::INFINITY;
    }
    // Beyond the table: the normal distribution's quantile, and the first terms of the series in
    // the inverse of the degrees of freedom.
    let inverse = 1.0 / (number - 1) as f64;
    let series = || 1.96 + 2.37 * inverse + 2.82 * inverse * inverse;
    STUDENT.get(number - 2).copied().unwrap_or_else(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_go_on_beyond_the_table() {
        let known = [(2, 12.706), (13, 2.179), (14, 2.160), (15, 2.145), (31, 2.042), (61, 2.000)];
        for (number, known) in known {
            assert!((quantile(number) - known).abs() < 0.01, "{number}: {}", quantile(number));
        }
        assert!((2..100).all(|number| quantile(number) > quantile(number + 1)));
        assert_eq!(quantile(1), f64::INFINITY);
    }
}
