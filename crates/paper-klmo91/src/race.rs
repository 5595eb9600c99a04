//! Elapsed times of a program with each strategy in turn: tables 3 and 4.
//!
//! Rounds are interleaved, so that a drift meets all strategies alike. Figures are medians.
//! Always-block takes part twice, under two names. Its difference from itself is noise, and a
//! smaller difference means nothing.
//!
//! If a strategy took more than [`HOPELESS`] times as long as always-block, it is not run again. A
//! strategy that spins for holders without a processor may take a hundred times as long, and a
//! further round would tell nothing new.
//!
//! The thresholds of *Opt-known* are computed as the paper's were, from waits recorded beforehand
//! in the same experiment: *for each lock, we pre-computed the optimum threshold* (section 5).

use stanchion_formulas::competitive::optimal_threshold;

#[cfg(test)]
use stanchion_study::settings::spinning::ENTRANTS;
use stanchion_study::settings::spinning::Thresholds;

use super::paper::Elapsed;
use super::recording::{Recorded, unsound};
use stanchion_study::context::Stop;
use stanchion_study::measure::{Repeated, median};
use stanchion_study::outcome::{Axis, Comparison, Picture, Series, Shape, Table, range};
use stanchion_study::units::{nanos, percent};

/// The indices of entrants.
pub(crate) const BLOCK: usize = 0;
pub(crate) const SPIN: usize = 1;
pub(crate) const FIXED: [usize; 2] = [2, 3];
pub(crate) const KNOWN: usize = 4;
pub(crate) const ADAPTIVE: [usize; 3] = [5, 6, 7];
pub(crate) const COMPETITIVE: std::ops::RangeInclusive<usize> = 2..=7;
pub(crate) const AGAIN: usize = 8;

/// The noise above which nothing is decided.
pub(crate) const MOST_NOISE: f64 = 0.05;

/// The multiple of always-block's time above which a strategy is not run again.
const HOPELESS: f64 = 5.0;

/// The name of the only column of the chart.
pub(crate) const HERE: &str = "here";

/// The results of a race.
#[derive(Debug)]
pub(crate) struct Standings {
    /// The label of each entrant.
    names: Vec<&'static str>,
    /// The type of each entrant in `stanchion_competitive::policy`.
    policies: Vec<&'static str>,
    /// The nanoseconds of each entrant in each round.
    rounds: Vec<Vec<f64>>,
    /// The median of each entrant's rounds.
    elapsed: Vec<f64>,
}

impl Standings {
    pub(crate) fn of(
        names: Vec<&'static str>,
        policies: Vec<&'static str>,
        rounds: Vec<Vec<f64>>,
    ) -> Self {
        let elapsed = rounds.iter().map(|rounds| median(rounds.clone())).collect();
        Self { names, policies, rounds, elapsed }
    }

    pub(crate) fn name(&self, entrant: usize) -> &'static str {
        self.names[entrant]
    }

    /// Returns the time that `entrant` saved against always-block, as a share of always-block's
    /// time. It is below 0 if the entrant took more.
    pub(crate) fn improvement(&self, entrant: usize) -> f64 {
        1.0 - self.elapsed[entrant] / self.elapsed[BLOCK]
    }

    /// Returns the difference of always-block from itself, as a share of its time: that of its two
    /// medians, or half of the distance between the quartiles of all its rounds, whichever is more.
    pub(crate) fn noise(&self) -> f64 {
        let mut rounds = [&self.rounds[BLOCK][..], &self.rounds[AGAIN]].concat();
        rounds.sort_unstable_by(f64::total_cmp);
        let quarter = rounds.len() / 4;
        let spread = match (rounds.get(quarter), rounds.iter().rev().nth(quarter)) {
            (Some(low), Some(high)) => (high - low) / 2.0 / self.elapsed[BLOCK],
            _ => 0.0,
        };
        self.improvement(AGAIN).abs().max(spread)
    }

    /// Returns the reason why nothing can be decided, if there is one.
    pub(crate) fn disturbed(&self, processors: usize) -> Option<String> {
        if processors < 2 {
            return Some(
                "one processor only: the holder of a lock does not run while another spins for it"
                    .to_owned(),
            );
        }
        (self.noise() > MOST_NOISE).then(|| {
            format!(
                "always-block differed from itself by {}: others took the processors. Close other programs and run it again",
                percent(self.noise())
            )
        })
    }

    /// Returns a table in the paper's layout, our figures beside the paper's.
    pub(crate) fn table(&self, title: &str, paper: &[Elapsed]) -> Table {
        let columns = [
            "strategy",
            "policy here",
            "rounds",
            "time here",
            "fastest",
            "slowest",
            "improvement here",
            "paper: most spins",
            "paper: time",
            "paper: improvement",
        ];
        let signed = |share: f64| percent(share).replace('-', "−");
        let rows = (0..self.names.len()).map(|entrant| {
            let rounds = &self.rounds[entrant];
            let mut row = vec![
                self.names[entrant].to_owned(),
                self.policies[entrant].to_owned(),
                rounds.len().to_string(),
                nanos(self.elapsed[entrant]),
                nanos(rounds.iter().copied().fold(f64::INFINITY, f64::min)),
                nanos(rounds.iter().copied().fold(0.0, f64::max)),
                signed(self.improvement(entrant)),
            ];
            row.extend(match beside(paper, self.names[entrant]) {
                Some(there) => [
                    there.spins.to_owned(),
                    nanos(there.seconds * 1e9),
                    signed(1.0 - there.seconds / paper[BLOCK].seconds),
                ],
                None => ["–", "–", "–"].map(str::to_owned),
            });
            row
        });
        Table {
            title: title.to_owned(),
            columns: columns.map(str::to_owned).into(),
            rows: rows.collect(),
        }
    }

    /// Compares the improvements with the paper's.
    pub(crate) fn comparisons(&self, paper: &[Elapsed]) -> Vec<Comparison> {
        let mut all = Vec::new();
        for entrant in SPIN..self.names.len() {
            let there = match beside(paper, self.names[entrant]) {
                Some(there) => percent(1.0 - there.seconds / paper[BLOCK].seconds),
                None if entrant == AGAIN => "the noise".to_owned(),
                None => "not in the paper".to_owned(),
            };
            all.push(Comparison::new(
                format!("{}: less time than always-block", self.names[entrant]),
                there,
                percent(self.improvement(entrant)),
            ));
        }
        all
    }

    pub(crate) fn picture(&self, title: &str) -> Picture {
        let series = (0..self.names.len()).map(|entrant| {
            let points = [(0.0, self.elapsed[entrant] / self.elapsed[BLOCK])];
            let (low, high) = range(self.rounds[entrant].iter().copied());
            let spread = (low / self.elapsed[BLOCK], high / self.elapsed[BLOCK]);
            Series::new(self.names[entrant], points).with_spread([spread])
        });
        Picture {
            title: title.to_owned(),
            shape: Shape::Rows,
            x: Axis::named("machine", vec![HERE.to_owned()]),
            y: Axis::linear("elapsed time, that of always-block being 1"),
            series: series.collect(),
        }
    }
}

/// Returns the paper's row of that name.
fn beside<'p>(paper: &'p [Elapsed], name: &str) -> Option<&'p Elapsed> {
    paper.iter().find(|row| row.strategy == name)
}

/// Returns whether the last round of an entrant took so long that the entrant is not run again.
pub(crate) fn hopeless(times: &[Vec<f64>], entrant: usize) -> bool {
    let last = |entrant: usize| times[entrant].last().copied();
    match (last(BLOCK), last(entrant)) {
        (Some(block), Some(time)) => time > HOPELESS * block,
        _ => false,
    }
}

/// Returns for each lock the threshold that would have been best for its recorded waits.
pub(crate) fn thresholds(recorded: &Recorded) -> Result<Thresholds, Stop> {
    let mut thresholds = Thresholds::new();
    for lock in &recorded.pool.locks {
        let waits = lock.waits().map_err(unsound)?;
        let (threshold, _) = optimal_threshold(&waits, recorded.pool.cost).map_err(unsound)?;
        thresholds.insert(lock.name.clone(), threshold.min(u64::MAX as f64) as u64);
    }
    Ok(thresholds)
}

/// Returns the notes on both tables, for their reader.
pub(crate) fn notes(what: &str, repeated: &Repeated, recorded: &Recorded) -> Vec<String> {
    vec![
        format!(
            "{what}. Medians of {}, strategies in turn; every run is checked against the program's own result. Always-block takes part twice: \
             what separates it from itself is noise. A strategy that took more than {HOPELESS} times as long as always-block was not run again.",
            repeated.words()
        ),
        format!(
            "The thresholds of Opt-known are the best for {} waits recorded in a run before the rounds, lock by lock, with C = {}. The other policies \
             go by the C that the mutex measures while it is used.",
            stanchion_study::units::grouped(recorded.pool.waits()),
            nanos(recorded.pool.cost)
        ),
        "The paper's machine had six processors and a C of 200 µs; its random walk may spin for up to 1008 spins by table 3, but for C by section 2.5, which \
         is followed here."
            .to_owned(),
    ]
}

/// Made up: nanoseconds of each entrant in the order of [`entrants`].
#[cfg(test)]
pub(crate) fn standings(elapsed: [f64; ENTRANTS]) -> Standings {
    use stanchion_study_programs::klmo91::{entrants::entrants, programs::Hanoi};
    let entrants = entrants::<Hanoi>();
    let names = entrants.iter().map(|entrant| entrant.name).collect();
    Standings::of(names, vec![""; ENTRANTS], elapsed.map(|time| vec![time]).into())
}

#[cfg(test)]
mod tests {
    use super::super::paper::{TABLE_3, TABLE_4};
    use super::*;
    use stanchion_study_programs::klmo91::{entrants::entrants, programs::Hanoi};

    #[test]
    fn the_paper_s_rows_come_first_and_in_its_order() {
        let entrants = entrants::<Hanoi>();
        for table in [TABLE_3, TABLE_4] {
            for (entrant, there) in entrants.iter().zip(table) {
                assert_eq!(entrant.name, there.strategy);
            }
        }
        assert!(beside(&TABLE_3, entrants[AGAIN].name).is_none());
        assert_eq!(entrants[AGAIN].policy, entrants[BLOCK].policy);
        assert_eq!(entrants[KNOWN].name, "Opt-known");
    }

    #[test]
    fn improvements_and_noise() {
        let standings = standings([10.0, 8.0, 9.0, 7.0, 6.0, 7.0, 7.0, 7.0, 9.6, 6.0, 11.0]);
        assert!((standings.improvement(SPIN) - 0.2).abs() < 1e-12);
        assert!((standings.improvement(10) + 0.1).abs() < 1e-12);
        assert!((standings.noise() - 0.04).abs() < 1e-12);
        assert_eq!(standings.disturbed(2), None);
        assert!(standings.disturbed(1).unwrap().contains("one processor"));
        let table = standings.table("a table", &TABLE_4);
        assert_eq!(table.rows.len(), ENTRANTS);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert_eq!(table.rows[SPIN][9], "−24.4\u{a0}%");
        assert!(table.rows[10][6].starts_with('−'));
    }

    #[test]
    fn rounds_that_differ_are_noise_even_if_their_medians_agree() {
        let mut standings = standings([10.0; ENTRANTS]);
        assert!(standings.noise() < 1e-12);
        standings.rounds[BLOCK] = vec![10.0, 10.0, 14.0];
        standings.rounds[AGAIN] = vec![7.0, 10.0, 14.0];
        // Of 7, 10, 10, 10, 14, 14 the second is 10 and the last but one 14.
        assert!((standings.noise() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn what_is_hopeless_is_not_run_again() {
        let mut times = vec![Vec::new(); 3];
        assert!(!hopeless(&times, SPIN), "nothing has run");
        times[BLOCK].push(10.0);
        assert!(!hopeless(&times, SPIN));
        times[SPIN].push(50.0);
        assert!(!hopeless(&times, SPIN));
        times[SPIN].push(51.0);
        assert!(hopeless(&times, SPIN));
        assert!(!hopeless(&times, BLOCK) && !hopeless(&times, 2));
    }

    #[test]
    fn a_loud_machine_decides_nothing() {
        let loud = standings([10.0, 8.0, 9.0, 7.0, 6.0, 7.0, 7.0, 7.0, 8.9, 6.0, 11.0]);
        assert!(loud.disturbed(2).unwrap().contains("11.0\u{a0}%"));
    }

    #[test]
    fn thresholds_are_the_locks_own() {
        let recorded = super::super::tests::recorded(
            "made up",
            &[("short", &[(100, 90), (50_000, 10)]), ("long", &[(50_000, 10)])],
        );
        let thresholds = thresholds(&recorded).unwrap();
        // A wait of 100 ns is counted in a bucket that ends at 160.
        assert_eq!(thresholds["short"], 160);
        assert_eq!(thresholds["long"], 0);
    }
}
