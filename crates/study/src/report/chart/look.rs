//! The look of a series: its colour, its mark, and the dashes of its line.
//!
//! Six colours can be told apart by readers with each of the three common kinds of colour
//! blindness, on light and on dark ground; the test below computes that. With more series a colour
//! returns with another mark and other dashes. No two of the first [`LOOKS`] series look alike.

use std::fmt::Write;

/// The number of colours.
pub(super) const COLOURS: usize = 6;

/// The number of marks.
const MARKS: usize = 8;

/// The number of different looks.
pub(crate) const LOOKS: usize = COLOURS * MARKS;

/// The colours on light ground, in the order of series; the style sheet has them too.
pub(super) const LIGHT: [&str; COLOURS] =
    ["#0f0dce", "#db7b0a", "#000000", "#4a96e0", "#8a3406", "#2f003e"];

/// The dashes of lines; the first line is whole.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// The look of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Look {
    /// The number of the colour.
    colour: usize,
    /// The number of the mark.
    mark: usize,
    /// The number of the dashes.
    dashes: usize,
}

impl Look {
    /// Returns the look of the series of that number.
    pub(crate) fn of(series: usize) -> Self {
        let (colour, again) = (series % COLOURS, series / COLOURS % MARKS);
        Self { colour, mark: (colour + again) % MARKS, dashes: again % DASHES.len() }
    }

    /// Returns the number that the style sheet knows the colour by, from 1 on.
    pub(super) fn class(self) -> usize {
        self.colour + 1
    }

    /// Returns the colour and the mark, by which a reader tells series apart.
    pub(super) fn pair(self) -> (usize, usize) {
        (self.colour, self.mark)
    }

    /// Returns the attribute for the dashes of a line; empty for a whole line.
    pub(super) fn dashes(self) -> String {
        match DASHES[self.dashes] {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        }
    }

    /// Returns the mark as SVG, with its middle at (x, y) and about `size` pixels to each side.
    pub(crate) fn mark(self, x: f64, y: f64, size: f64) -> String {
        let class = self.class();
        let polygon = |corners: &[(f64, f64)]| {
            let mut points = String::new();
            for (dx, dy) in corners {
                // Writing to a String does not fail.
                let _ = write!(points, "{:.1},{:.1} ", x + dx * size, y + dy * size);
            }
            format!("<polygon points=\"{}\" class=\"f{class}\"/>", points.trim_end())
        };
        let circle = |radius: f64, class: &str| {
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" class=\"{class}\"/>")
        };
        match self.mark {
            0 => circle(size, &format!("f{class}")),
            1 => polygon(&[(0.0, -1.2), (1.2, 0.9), (-1.2, 0.9)]),
            2 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            4 => polygon(&[(0.0, 1.2), (1.2, -0.9), (-1.2, -0.9)]),
            5 => format!(
                "<path d=\"M{:.1} {:.1}h{w:.1}M{:.1} {:.1}v{w:.1}\" class=\"s{class} open\"/>",
                x - 1.2 * size,
                y,
                x,
                y - 1.2 * size,
                w = 2.4 * size
            ),
            6 => circle(0.9 * size, &format!("s{class} open")),
            _ => format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{w:.1}\" \
                 class=\"s{class} open\"/>",
                x - 0.8 * size,
                y - 0.8 * size,
                w = 1.6 * size
            ),
        }
    }
}

/// The sign of an entry of a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A series.
    Series(Look),
    /// All points that the paper states, of any series.
    Stated,
}

impl Sign {
    /// Returns the sign as SVG, with its middle at (x, y) and about `size` pixels to each side.
    pub(crate) fn mark(self, x: f64, y: f64, size: f64) -> String {
        match self {
            Self::Series(look) => look.mark(x, y, size),
            Self::Stated => ring("saxis", (x, y), size),
        }
    }
}

/// Returns the hollow mark of a point that the paper states: a ring around (x, y), with the stroke
/// of the class `ink`.
pub(super) fn ring(ink: &str, (x, y): (f64, f64), radius: f64) -> String {
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" class=\"{ink} open stated\"/>")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_looks_are_alike() {
        let pairs: BTreeSet<_> = (0..LOOKS).map(|series| Look::of(series).pair()).collect();
        assert_eq!(pairs.len(), LOOKS);
        // Lines of many points are told apart by dashes as well.
        let lines: BTreeSet<_> = (0..COLOURS * DASHES.len())
            .map(|series| (Look::of(series).class(), Look::of(series).dashes()))
            .collect();
        assert_eq!(lines.len(), COLOURS * DASHES.len());
    }

    type Vector = [f64; 3];

    /// The least distance between two colours of a palette, in OKLab. Neighbours that differ by
    /// 0.02 can just be told apart side by side.
    const APART: f64 = 0.19;

    /// Matrices that leave of linear colours the part that a reader sees: all of it; without the
    /// cones for long, middle and short waves (Machado, Oliveira, Fernandes 2009, severity 1).
    const READERS: [[Vector; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    fn times(matrix: &[Vector; 3], vector: Vector) -> Vector {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    fn linear(colour: &str) -> Vector {
        std::array::from_fn(|at| {
            let byte = u8::from_str_radix(&colour[1 + 2 * at..3 + 2 * at], 16).unwrap();
            let value = f64::from(byte) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn oklab(linear: Vector) -> Vector {
        let cones = times(
            &[
                [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
                [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
                [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
            ],
            linear.map(|value| value.clamp(0.0, 1.0)),
        );
        times(
            &[
                [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
                [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
                [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
            ],
            cones.map(f64::cbrt),
        )
    }

    fn luminance(colour: &str) -> f64 {
        times(&[[0.2126, 0.7152, 0.0722]; 3], linear(colour))[0]
    }

    #[test]
    fn colours_are_told_apart_by_all_readers_on_both_grounds() {
        let sheet = include_str!("../style.css");
        let values = |name: &str| -> Vec<String> {
            sheet.split(&format!("--{name}: ")).skip(1).map(|rest| rest[..7].to_owned()).collect()
        };
        for (scheme, ground) in values("ground").iter().enumerate() {
            let palette: Vec<String> =
                (1..=COLOURS).map(|class| values(&format!("c{class}"))[scheme].clone()).collect();
            if scheme == 0 {
                assert_eq!(palette, LIGHT, "files of their own have the same colours");
            }
            for (at, one) in palette.iter().enumerate() {
                let (high, low) = (luminance(one), luminance(ground));
                let contrast = (high.max(low) + 0.05) / (high.min(low) + 0.05);
                assert!(contrast >= 3.0, "{one} on {ground}: {contrast}");
                for other in &palette[..at] {
                    for reader in &READERS {
                        let [a, b] = [one, other].map(|of| oklab(times(reader, linear(of))));
                        let square = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                        assert!(square.sqrt() > APART, "{one} and {other}: {}", square.sqrt());
                    }
                }
            }
        }
    }
}
