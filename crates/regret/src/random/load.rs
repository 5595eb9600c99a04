//! The load of a random cell: threads, their sections, the work outside, and other programs.

use serde_json::{Value, json};
use stanchion_formulas::Random;
use stanchion_study::units::{count, nanos};

use super::draw::{chance, one_of, uniform, zero_or_log_uniform};
use crate::grid::Lap;
use crate::turns::Shape;

/// The least and the most nanoseconds of a section that is not empty.
const SECTIONS: (f64, f64) = (10.0, 200_000.0);

/// The nanoseconds that an empty section is taken to last, where other lengths are multiples of it.
const LEAST: f64 = 25.0;

/// The least and the most work outside, as a multiple of the section.
const OUTSIDE: (f64, f64) = (0.1, 10.0);

/// The most threads, in multiples of the processors.
pub(super) const MOST_THREADS: usize = 8;

/// The work of a cell's threads, and the programs beside them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    /// The number of threads.
    pub(super) threads: usize,
    /// The mean lengths, in nanoseconds, in the first and the second phase.
    pub(super) laps: [Lap; 2],
    /// The distribution of the lengths.
    pub(super) shape: Shape,
    /// The number of other processes that compute for ever.
    pub(super) hogs: usize,
    /// True if each thread is pinned to a processor.
    pub(super) pinned: bool,
}

impl Load {
    /// Draws a load for a computer with so many processors.
    pub(super) fn draw(random: &mut Random, processors: usize) -> Self {
        let threads = uniform(random, 1, MOST_THREADS * processors);
        let section = |random: &mut Random| zero_or_log_uniform(random, SECTIONS.0, SECTIONS.1);
        let inside = section(random);
        let shape = one_of(random, &Shape::ALL);
        let factor = zero_or_log_uniform(random, OUTSIDE.0, OUTSIDE.1);
        let hogs = company(random);
        let pinned = chance(random, 0.5);
        // The other length is drawn for all cells, so that a cell is the same up to its phases.
        let other = section(random);
        let changes = chance(random, 0.2);
        let outside = (inside.max(LEAST) * factor).round() as u64;
        let lap = |inside: f64| Lap { inside: inside.round() as u64, outside };
        let laps = [lap(inside), lap(if changes { other } else { inside })];
        Self { threads, laps, shape, hogs, pinned }
    }

    /// Describes the load to a reader.
    pub(super) fn words(&self) -> String {
        let [first, second] = self.laps;
        let length = |lap: Lap| nanos(lap.inside as f64);
        let mut words = vec![count(self.threads, "thread")];
        words.push(if first.inside == second.inside {
            format!("sections of {}", length(first))
        } else {
            format!("sections of {} and {} in turns", length(first), length(second))
        });
        words.push(format!("{} outside", nanos(first.outside as f64)));
        if first != second || first.inside + first.outside > 0 {
            words.push(self.shape.name().to_owned());
        }
        words.extend(surroundings(self.hogs, self.pinned));
        words.join(", ")
    }

    /// Returns the parameters for programs.
    pub(super) fn data(&self) -> Value {
        json!({
            "threads": self.threads,
            "inside_ns": self.laps.map(|lap| lap.inside),
            "outside_ns": self.laps[0].outside,
            "lengths": self.shape.name(),
            "hogs": self.hogs,
            "pinned": self.pinned,
        })
    }
}

/// Draws the number of other processes that compute.
pub(super) fn company(random: &mut Random) -> usize {
    match random.unit() {
        share if share < 0.6 => 0,
        share if share < 0.8 => 1,
        _ => 2,
    }
}

/// Describes the other processes and the pinning.
pub(super) fn surroundings(hogs: usize, pinned: bool) -> impl Iterator<Item = String> {
    let hogs = (hogs > 0).then(|| match hogs {
        1 => "1 busy process".to_owned(),
        more => format!("{more} busy processes"),
    });
    hogs.into_iter().chain(pinned.then(|| "pinned".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::draw::source;
    use super::super::draw::tests::{near, quantile};
    use super::*;

    const LOADS: u32 = 200_000;

    fn loads() -> Vec<Load> {
        (0..LOADS).map(|index| Load::draw(&mut source("locks", 1, index), 2)).collect()
    }

    fn number(loads: &[Load], is: impl Fn(&Load) -> bool) -> f64 {
        loads.iter().filter(|load| is(load)).count() as f64
    }

    #[test]
    fn loads_have_the_quantiles_of_their_distributions() {
        let loads = loads();
        let of = |figure: &dyn Fn(&Load) -> Option<f64>| -> Vec<f64> {
            loads.iter().filter_map(figure).collect()
        };
        let mut sections = of(&|load| Some(load.laps[0].inside as f64).filter(|&ns| ns > 0.0));
        near(sections.len() as f64, 180_000.0);
        for (share, expected) in [(0.25, 118.9), (0.5, 1_414.0), (0.75, 16_820.0)] {
            near(quantile(&mut sections, share) / expected, 1.0);
        }
        assert!(sections[0] >= 10.0 && sections[sections.len() - 1] <= 200_000.0);
        let mut factors = of(&|load| {
            let lap = load.laps[0];
            (lap.outside > 0).then(|| lap.outside as f64 / (lap.inside as f64).max(LEAST))
        });
        near(factors.len() as f64, 180_000.0);
        for (share, expected) in [(0.25, 0.316), (0.5, 1.0), (0.75, 3.16)] {
            near(quantile(&mut factors, share), expected);
        }
        let mut threads = of(&|load| Some(load.threads as f64));
        assert_eq!(quantile(&mut threads, 0.0), 1.0);
        assert_eq!(quantile(&mut threads, 1.0), 16.0);
        near(threads.iter().sum::<f64>() / f64::from(LOADS), 8.5);
    }

    #[test]
    fn loads_have_their_shares_of_company_pinning_and_phases() {
        let loads = loads();
        for (hogs, expected) in [(0, 120_000.0), (1, 40_000.0), (2, 40_000.0)] {
            near(number(&loads, |load| load.hogs == hogs), expected);
        }
        near(number(&loads, |load| load.pinned), 100_000.0);
        // One cell of a hundred with phases has two empty sections.
        near(number(&loads, |load| load.laps[0] != load.laps[1]), 40_000.0 * 0.99);
        for shape in Shape::ALL {
            near(number(&loads, |load| load.shape == shape), f64::from(LOADS) / 3.0);
        }
    }

    #[test]
    fn a_load_is_the_same_for_one_source_and_told_in_words() {
        let draw = |index| Load::draw(&mut source("locks", 1989, index), 2);
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
        let first: Vec<String> =
            (0..3).map(|index| draw(index).words().replace('\u{a0}', " ")).collect();
        assert_eq!(first, FIRST);
        let load = Load {
            threads: 1,
            laps: [Lap { inside: 0, outside: 40 }, Lap { inside: 2_000, outside: 40 }],
            shape: Shape::Bimodal,
            hogs: 1,
            pinned: true,
        };
        assert_eq!(
            load.words().replace('\u{a0}', " "),
            "1 thread, sections of 0 ns and 2.00 µs in turns, 40.0 ns outside, bimodal, 1 busy \
             process, pinned"
        );
        assert_eq!(load.data()["inside_ns"], json!([0, 2_000]));
        let plain = Load { laps: [Lap { inside: 0, outside: 0 }; 2], hogs: 0, ..load };
        assert!(plain.words().ends_with("outside, pinned"), "{}", plain.words());
    }

    /// The first cells of the usual seed. The next releases draw the same ones.
    const FIRST: [&str; 3] = [
        "3 threads, sections of 160 µs and 220 ns in turns, 651 µs outside, exponential, pinned",
        "3 threads, sections of 13.0 ns, 21.0 ns outside, exponential, pinned",
        "13 threads, sections of 14.0 ns, 34.0 ns outside, exponential, pinned",
    ];
}
