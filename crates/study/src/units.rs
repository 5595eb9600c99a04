//! Formats numbers for a reader: three significant digits and the unit that keeps them short.

/// Formats `value` with three significant digits, without an exponent between 0.001 and ten
/// million.
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if !(1e-3..1e7).contains(&size) {
        return format!("{value:.2e}");
    }
    // Rounding may carry into the next power of ten: 9.996 has magnitude 0 but prints as 10.0.
    let magnitude = (format!("{size:.2e}").split('e').nth(1))
        .and_then(|exponent| exponent.parse::<i32>().ok())
        .unwrap_or(0);
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Formats a share of 1 as a percentage. A share too small for three decimals is "less than 0.001
/// %".
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 0.001 {
        return "less than 0.001\u{a0}%".to_owned();
    }
    format!("{}\u{a0}%", significant(percent))
}

/// Formats `number` with a comma after every three digits from the right.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count: "1 experiment", "2 experiments".
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Formats a count that may be large: "1 wait", "1,300 waits".
pub fn grouped_count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {what}{s}", grouped(number))
}

/// Formats a time given in nanoseconds, in ns, µs, ms or s, with a no-break space before the unit.
pub fn nanos(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size < 1e3 => (value, "ns"),
        size if size < 1e6 => (value / 1e3, "µs"),
        size if size < 1e9 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    format!("{}\u{a0}{unit}", significant(scaled))
}

/// The most names in a list of [`named`].
const NAMES: usize = 6;

/// Lists `names`: the first of them, and the number of the others.
pub fn named(names: &[&str]) -> String {
    let (first, others) = names.split_at(names.len().min(NAMES));
    let first = first.join(", ");
    if others.is_empty() { first } else { format!("{first} and {} more", others.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (123.4, "123"),
            (1234.0, "1234"),
            (0.01234, "0.0123"),
            (1e-9, "1.00e-9"),
            (-2.5, "-2.50"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in cases {
            assert_eq!(significant(value), expected);
        }
        assert_eq!(percent(3.07e-6), "less than 0.001\u{a0}%");
        assert_eq!(percent(1e-5), "0.00100\u{a0}%");
        assert_eq!(percent(0.0), "0\u{a0}%");
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (200_000, "200,000")] {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!((count(1, "egg"), count(0, "egg")), ("1 egg".to_owned(), "0 eggs".to_owned()));
        let eggs = [0, 1, 1300].map(|eggs| grouped_count(eggs, "egg"));
        assert_eq!(eggs, ["0 eggs", "1 egg", "1,300 eggs"]);
        assert_eq!(nanos(1500.0), "1.50\u{a0}µs");
        assert_eq!(nanos(2.0e9), "2.00\u{a0}s");
    }
}
