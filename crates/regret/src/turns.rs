//! The laps of a race that are not all alike: their lengths, and which of them only read.
//!
//! The laps are drawn before the race, into a table that all threads walk through over and over,
//! each from another row. All contestants of a cell have the same table. Why not draw them during
//! the race: a logarithm takes as long as some sections.

use stanchion_formulas::Random;

use super::work::Steps;

/// The distribution of the lengths of sections, and of the work outside. The mean is given apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All are equally long.
    Constant,
    /// The distribution is exponential.
    Exponential,
    /// One of ten is ten times as long as the others.
    Bimodal,
}

impl Shape {
    /// All shapes.
    pub(crate) const ALL: [Self; 3] = [Self::Constant, Self::Exponential, Self::Bimodal];

    /// Returns the length that `share` of all do not exceed, in multiples of the mean.
    fn quantile(self, share: f64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Exponential => -(1.0 - share).ln(),
            // 0.9 of 1 and 0.1 of 10 have a mean of 1.9.
            Self::Bimodal if share < 0.9 => 1.0 / 1.9,
            Self::Bimodal => 10.0 / 1.9,
        }
    }

    /// Returns the shape in one word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Exponential => "exponential",
            Self::Bimodal => "bimodal",
        }
    }
}

/// The rows of a table: so many that one of a thousand laps can be a write.
const ROWS: usize = 1_000;

/// The factor that stands for 1.
const ONE: u32 = 1 << 10;

/// One lap, as factors of the mean lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// The factor of the section, in parts of [`ONE`].
    inside: u16,
    /// The factor of the work outside, in parts of [`ONE`].
    outside: u16,
    /// True if the section only reads.
    pub(crate) reads: bool,
}

impl Turn {
    /// The lap of a race in which all laps are alike.
    const PLAIN: Self = Self { inside: ONE as u16, outside: ONE as u16, reads: false };

    /// Returns the lengths of this lap, where `mean` are those of the mean lap.
    #[inline]
    pub(crate) fn of(self, mean: Steps) -> Steps {
        let times = |steps: u32, factor: u16| {
            (u64::from(steps) * u64::from(factor) / u64::from(ONE)) as u32
        };
        Steps {
            inside: times(mean.inside, self.inside),
            outside: times(mean.outside, self.outside),
        }
    }
}

/// A table of laps; empty if all laps are alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Vec<Turn>);

impl Turns {
    /// Draws laps with lengths of that shape, of which a share only reads.
    pub(crate) fn draw(shape: Shape, reads: f64, random: &mut Random) -> Self {
        let column = |random: &mut Random| {
            let mut factors: Vec<f64> =
                (0..ROWS).map(|row| shape.quantile((row as f64 + 0.5) / ROWS as f64)).collect();
            shuffle(&mut factors, random);
            factors.into_iter().map(|factor| (factor * f64::from(ONE)).round() as u16)
        };
        let (inside, outside) = (column(random), column(random));
        let mut turns: Vec<Turn> = inside
            .zip(outside)
            .enumerate()
            .map(|(row, (inside, outside))| {
                let reads = row < (reads * ROWS as f64).round() as usize;
                Turn { inside, outside, reads }
            })
            .collect();
        shuffle(&mut turns, random);
        Self(turns)
    }

    /// Returns the factors of the work outside.
    #[cfg(target_os = "linux")]
    pub(crate) fn outside(&self) -> Vec<f32> {
        self.0.iter().map(|turn| f32::from(turn.outside) / ONE as f32).collect()
    }

    /// Returns the laps of thread `index` of `threads`.
    pub(crate) fn walk(&self, index: usize, threads: usize) -> Walk<'_> {
        Walk { turns: &self.0, at: index * self.0.len() / threads }
    }
}

/// The laps of one thread, without end.
pub(crate) struct Walk<'a> {
    /// The table; empty if all laps are alike.
    turns: &'a [Turn],
    /// The row of the next lap.
    at: usize,
}

impl Walk<'_> {
    /// Returns the next lap.
    #[inline]
    pub(crate) fn next(&mut self) -> Turn {
        let Some(&turn) = self.turns.get(self.at) else { return Turn::PLAIN };
        self.at = if self.at + 1 == self.turns.len() { 0 } else { self.at + 1 };
        turn
    }
}

/// Shuffles `values`. Every order is equally likely (Fisher and Yates).
pub(crate) fn shuffle<T>(values: &mut [T], random: &mut Random) {
    for last in (1..values.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        values.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_mean_and_the_quantiles_of_its_shape() {
        for (shape, [median, ninth, last]) in [
            (Shape::Constant, [1.0, 1.0, 1.0]),
            (Shape::Exponential, [0.693, 2.30, 7.60]),
            (Shape::Bimodal, [0.526, 0.526, 5.26]),
        ] {
            let turns = Turns::draw(shape, 0.5, &mut Random::new(1));
            for column in [|turn: &Turn| turn.inside, |turn: &Turn| turn.outside] {
                let mut factors: Vec<f64> =
                    turns.0.iter().map(|turn| f64::from(column(turn)) / f64::from(ONE)).collect();
                factors.sort_unstable_by(f64::total_cmp);
                let mean = factors.iter().sum::<f64>() / ROWS as f64;
                assert!((mean - 1.0).abs() < 0.005, "{shape:?}: {mean}");
                for (row, expected) in [(499, median), (899, ninth), (999, last)] {
                    let found = factors[row];
                    assert!((found / expected - 1.0).abs() < 0.01, "{shape:?} {row}: {found}");
                }
            }
        }
    }

    #[test]
    fn a_share_of_the_laps_reads_and_the_source_decides_which() {
        let draw = |reads, seed| Turns::draw(Shape::Exponential, reads, &mut Random::new(seed));
        let reading = |turns: &Turns| turns.0.iter().filter(|turn| turn.reads).count();
        assert_eq!(reading(&draw(0.0, 1)), 0);
        assert_eq!(reading(&draw(0.999, 1)), 999);
        let text = |seed| format!("{:?}", draw(0.5, seed));
        assert!(text(1) == text(1) && text(1) != text(2));
    }

    #[test]
    fn threads_walk_the_whole_table_from_different_rows() {
        let turns = Turns::draw(Shape::Exponential, 0.5, &mut Random::new(1));
        let text = |walk: &mut Walk<'_>| -> String {
            (0..ROWS).map(|_| format!("{:?}", walk.next())).collect()
        };
        let (mut first, mut second) = (turns.walk(0, 2), turns.walk(1, 2));
        let lap = text(&mut first);
        assert_eq!(lap, text(&mut first), "it starts again at its end");
        assert_ne!(lap, text(&mut second));
        let plain = Turns::default().walk(1, 2).next().of(Steps { inside: 7, outside: 9 });
        assert_eq!(plain, Steps { inside: 7, outside: 9 });
    }

    #[test]
    fn a_shuffle_keeps_all_and_leaves_every_place_to_every_value() {
        let mut random = Random::new(3);
        let mut first = [0; 4];
        for _ in 0..4_000 {
            let mut values = [0, 1, 2, 3];
            shuffle(&mut values, &mut random);
            first[values[0]] += 1;
            values.sort_unstable();
            assert_eq!(values, [0, 1, 2, 3]);
        }
        assert!(first.iter().all(|&times| (850..1_150).contains(&times)), "{first:?}");
    }
}
