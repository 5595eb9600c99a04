//! The range of an axis, and the values that are labelled along it.

use crate::outcome::Scale;
use crate::units::significant;

/// The fewest labelled values of an axis on which equal differences are equally long.
pub(super) const FEWEST: usize = 2;

/// The fewest labelled values of a logarithmic axis. With two of them a reader could take it for
/// the other kind.
pub(super) const FEWEST_LOG: usize = 3;

/// The range of an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The spacing of values.
    pub(super) scale: Scale,
    /// The value at the beginning.
    pub(super) low: f64,
    /// The value at the end.
    pub(super) high: f64,
    /// True if labels between whole numbers would mean nothing.
    whole: bool,
}

impl Span {
    /// Returns a range with exactly these ends.
    pub(super) fn exactly(scale: Scale, low: f64, high: f64) -> Self {
        Self { scale, low, high, whole: false }
    }

    /// Returns the range of `values` with a little room at both ends. On a logarithmic axis only
    /// positive values have a place.
    pub(super) fn of(values: impl Iterator<Item = f64>, scale: Scale, from_zero: bool) -> Self {
        let log = scale == Scale::Log;
        let (mut low, mut high, mut whole) = (f64::INFINITY, f64::NEG_INFINITY, true);
        for value in values.filter(|value| value.is_finite() && (*value > 0.0 || !log)) {
            (low, high) = (low.min(value), high.max(value));
            whole &= value.fract() == 0.0;
        }
        if low > high {
            return if log {
                Self::exactly(scale, 0.5, 20.0)
            } else {
                Self::exactly(scale, 0.0, 1.0)
            };
        }
        let (low, high) = match scale {
            Scale::Log if high / low < 1.2 => (low / 2.0, high * 2.0),
            Scale::Log => {
                let room = (high / low).powf(0.04).max(1.05);
                (low / room, high * room)
            }
            Scale::Linear if from_zero && low >= 0.0 => {
                (0.0, if high > 0.0 { high * 1.05 } else { 1.0 })
            }
            Scale::Linear if low == high && whole => (low - 1.0, high + 1.0),
            Scale::Linear => {
                let room = ((high - low) * 0.04).max(high.abs() * 1e-3).max(1e-9);
                (low - room, high + room)
            }
        };
        Self { scale, low, high, whole: whole && !log && !from_zero }
    }

    /// Returns whether `value` has a place on the axis.
    pub(super) fn has(self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// Returns the place of `value`: 0 is the beginning, and 1 the end.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Returns the fewest labelled values that the axis may have.
    pub(super) fn fewest(self) -> usize {
        if self.scale == Scale::Log { FEWEST_LOG } else { FEWEST }
    }

    /// Returns the values to label, with their labels: of several good choices the first that
    /// `fits`, and else the fewest values. If the axis is of few distinct `values`, each of them
    /// is labelled.
    pub(super) fn ticks(
        self,
        values: &[f64],
        fits: impl Fn(&[(f64, String)]) -> bool,
    ) -> Vec<(f64, String)> {
        let mut choices = Vec::new();
        if (self.fewest()..=9).contains(&values.len()) {
            choices.push(values.to_vec());
        }
        if self.scale == Scale::Log {
            choices.extend([&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(|of| self.decades(of)));
            choices.extend(
                [2, 3, 4].map(|step| {
                    self.decades(&[1.0]).into_iter().step_by(step).collect::<Vec<f64>>()
                }),
            );
        }
        // Over a wide range, multiples of one number lie close together at the end of a logarithmic
        // axis.
        if self.scale == Scale::Linear || self.high / self.low < 30.0 {
            choices.extend([5.0, 4.0, 3.0].map(|parts| self.steps(parts)));
        }
        let mut fewest: Option<Vec<(f64, String)>> = None;
        for choice in choices {
            let inside: Vec<f64> =
                choice.into_iter().filter(|&value| self.contains(value)).collect();
            if inside.len() < self.fewest() {
                continue;
            }
            let labelled = labelled(&inside);
            if fits(&labelled) {
                return labelled;
            }
            if fewest.as_ref().is_none_or(|fewest| labelled.len() < fewest.len()) {
                fewest = Some(labelled);
            }
        }
        fewest.map(|ticks| spread_out(ticks, self.fewest())).unwrap_or_default()
    }

    fn contains(self, value: f64) -> bool {
        let room = (self.high - self.low).abs() * 1e-9;
        value >= self.low - room && value <= self.high + room
    }

    /// Returns the products of the powers of ten with `digits`.
    fn decades(self, digits: &[f64]) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        (first..=last)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)))
            .collect()
    }

    /// Returns the multiples of a round number in the range, at least `parts` of them.
    fn steps(self, parts: f64) -> Vec<f64> {
        let most = (self.high - self.low) / parts;
        let power = 10_f64.powf(most.log10().floor());
        let digit = [5.0, 2.0].into_iter().find(|digit| digit * power <= most).unwrap_or(1.0);
        let step = if self.whole { (digit * power).max(1.0) } else { digit * power };
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        (0..=(last - first).max(0.0) as usize).map(|at| (first + at as f64) * step).collect()
    }
}

/// Leaves out labels between others, as long as at least `fewest` stay.
fn spread_out(ticks: Vec<(f64, String)>, fewest: usize) -> Vec<(f64, String)> {
    let step = ((ticks.len() - 1) / (fewest.max(2) - 1)).max(1);
    ticks.into_iter().step_by(step).collect()
}

/// Labels `values` with as few digits as tell them apart.
fn labelled(values: &[f64]) -> Vec<(f64, String)> {
    let short: Vec<String> = values.iter().map(|&value| tick(value)).collect();
    if short.windows(2).all(|pair| pair[0] != pair[1]) {
        return values.iter().copied().zip(short).collect();
    }
    let least = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::MAX, f64::min);
    let decimals = (-least.log10().floor()).clamp(0.0, 12.0) as usize;
    values.iter().map(|&value| (value, format!("{value:.decimals$}"))).collect()
}

/// Formats an axis label: short, without needless digits.
pub(crate) fn tick(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match value.abs() {
        size if size >= 1e12 || (size > 0.0 && size < 1e-3) => {
            let text = format!("{value:.2e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{}e{power}", trim(digits))
        }
        size if size >= 1e4 => {
            let unit = units.into_iter().find(|unit| size >= unit.0);
            unit.map_or_else(String::new, |(unit, name)| {
                format!("{}{name}", trim(&significant(value / unit)))
            })
        }
        _ => trim(&significant(value)).to_owned(),
    }
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "0.25"),
            (1500.0, "1500"),
            (20_000.0, "20k"),
            (2.5e6, "2.5M"),
            (1e5, "100k"),
            (-4e9, "-4G"),
            (2e-9, "2e-9"),
            (1.5e13, "1.5e13"),
        ];
        for (value, expected) in cases {
            assert_eq!(tick(value), expected);
        }
    }

    fn labels(values: &[f64], scale: Scale, from_zero: bool, room: usize) -> Vec<String> {
        let span = Span::of(values.iter().copied(), scale, from_zero);
        let ticks = span.ticks(&[], |ticks| ticks.len() <= room);
        assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&span.place(tick.0))));
        ticks.into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn every_axis_has_enough_labels() {
        let values = [1e-9, 0.003, 0.99, 1.0, 1.01, 7.0, 13.0, 999.0, 12_345.0, 4e7, 3e11];
        for low in values {
            for factor in [1.0, 1.001, 1.1, 1.5, 2.0, 3.3, 10.0, 77.0, 1e4, 1e9] {
                for room in [2, 3, 6, 12] {
                    let ends = [low, low * factor];
                    let log = labels(&ends, Scale::Log, false, room);
                    assert!(
                        log.len() >= FEWEST_LOG && log.len() <= room.max(5),
                        "{ends:?} {room}: {log:?}"
                    );
                    for from_zero in [false, true] {
                        let linear = labels(&ends, Scale::Linear, from_zero, room);
                        assert!(linear.len() >= FEWEST, "{ends:?} {room}: {linear:?}");
                    }
                    let distinct: std::collections::BTreeSet<_> = log.iter().collect();
                    assert_eq!(distinct.len(), log.len(), "{ends:?}: {log:?}");
                }
            }
        }
    }

    #[test]
    fn counts_are_labelled_by_whole_numbers() {
        assert_eq!(labels(&[1.0, 2.0], Scale::Linear, false, 9), ["1", "2"]);
        assert_eq!(labels(&[4.0], Scale::Linear, false, 9), ["3", "4", "5"]);
        assert_eq!(labels(&[], Scale::Log, false, 3), ["1", "3", "10"]);
        assert_eq!(labels(&[-3.0, 0.0], Scale::Log, false, 3), ["1", "3", "10"]);
    }
}
