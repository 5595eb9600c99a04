//! The marks of a time axis: round numbers of one unit, as close as their texts allow.

use crate::Time;

/// Units: the length in picoseconds, and the name.
const UNITS: [(u64, &str); 5] =
    [(1, "ps"), (1_000, "ns"), (1_000_000, "us"), (1_000_000_000, "ms"), (1_000_000_000_000, "s")];

/// A time axis between two moments.
#[derive(Debug)]
pub(super) struct Axis {
    /// The name of the unit.
    pub(super) unit: &'static str,
    /// Moments and the texts at them.
    pub(super) marks: Vec<(Time, String)>,
}

impl Axis {
    /// Marks for an axis of `width` pixels, on which a character takes `letter` of them.
    pub(super) fn new((from, to): (Time, Time), width: u64, letter: u64) -> Self {
        let (from, to) = (from.as_picos(), to.as_picos());
        let length = (to - from).max(1);
        let fits = |unit: &&(u64, &str)| unit.0 <= to;
        let (size, unit) = *UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        let round =
            (0..20).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power.min(18))));
        for step in round {
            let text = |mark: u64| decimal(mark, size, step);
            let longest = text(to).len().max(text(from).len()) as u64;
            // Two letters between a text and the next.
            let room = u128::from(step) * u128::from(width) / u128::from(length);
            if room >= u128::from((longest + 2) * letter) || step >= length {
                let first = from.div_ceil(step);
                let marks = (first..=to / step).map(|count| count * step);
                let marks = marks.map(|mark| (Time::picos(mark), text(mark))).collect();
                return Self { unit, marks };
            }
        }
        Self { unit, marks: Vec::new() }
    }
}

/// A mark in units of `size`, with as many decimals as multiples of `step` have.
fn decimal(mark: u64, size: u64, step: u64) -> String {
    let mut decimals = 0;
    let mut finest = size;
    while !step.is_multiple_of(finest) {
        finest /= 10;
        decimals += 1;
    }
    let whole = mark / size;
    if decimals == 0 {
        return whole.to_string();
    }
    format!("{whole}.{:0decimals$}", mark % size / finest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from: u64, to: u64) -> (Vec<String>, &'static str) {
        let axis = Axis::new((Time::nanos(from), Time::nanos(to)), 960, 7);
        (axis.marks.into_iter().map(|(_, text)| text).collect(), axis.unit)
    }

    #[test]
    fn marks_are_round_and_in_one_unit() {
        let (marks, unit) = texts(0, 1_000_000);
        assert_eq!((marks[1].as_str(), unit), ("0.05", "ms"));
        assert_eq!(marks.last().unwrap(), "1.00");
        assert_eq!(texts(0, 0).0, ["0"]);
    }

    #[test]
    fn texts_never_touch() {
        for to in (1..400).map(|step| step * step * step * 17) {
            for from in [0, to / 2, to - to / 1_000 - 1] {
                let (from, to) = (Time::nanos(from), Time::nanos(to));
                let axis = Axis::new((from, to), 960, 7);
                let position = |mark: Time| {
                    mark.since(from).as_picos() as f64 * 960.0 / to.since(from).as_picos() as f64
                };
                for pair in axis.marks.windows(2) {
                    let gap = position(pair[1].0) - position(pair[0].0);
                    let text = (pair[0].1.len() + pair[1].1.len()) as f64 / 2.0 * 7.0;
                    assert!(gap > text + 7.0, "{pair:?} between {from} and {to}");
                }
                assert!(
                    axis.marks.len() < 100
                        && axis.marks.iter().all(|mark| mark.0 >= from && mark.0 <= to)
                );
            }
        }
    }
}
