//! The trial as the report shows it: standings, bars, the map of regrets, the figures behind it,
//! and all of it as data.

use serde_json::{Value, json};

use super::bars::{Bar, bars};
use super::contestants::CONTESTANTS;
use super::options::Plan;
use super::race::Figures;
use super::standing::{FAIR, STARVED, Standing, geometric_mean, may_set_best, regrets, standing};
use super::trial::Trial;
use stanchion_study::others::DISTURBED;
use stanchion_study::outcome::{Axis, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{count, grouped, nanos, percent, significant};

/// A trial and the figures that follow from it.
struct Shown<'a> {
    /// The cells and contestants of the run.
    plan: &'a Plan,
    /// The figures of all rounds.
    trial: &'a Trial,
    /// Names of the columns; the last is the double's, if there is one.
    names: Vec<String>,
    /// Medians, by cell and contestant.
    cells: Vec<Vec<Figures>>,
    /// Losses to the best lock of the cell, by cell and contestant.
    regrets: Vec<Vec<f64>>,
    /// The requirements, judged.
    bars: Vec<Bar>,
}

/// Makes the report of `trial`.
pub(crate) fn outcome(plan: &Plan, trial: &Trial) -> Outcome {
    let cells = trial.medians();
    let regrets = regrets(&cells, &plan.setters());
    let mut names: Vec<String> =
        plan.contestants.iter().map(|contestant| contestant.name.to_owned()).collect();
    names.extend(trial.double.map(|double| format!("{} again", names[double])));
    let bars = bars(plan, &cells, &regrets);
    let shown = Shown { plan, trial, names, cells, regrets, bars };
    Outcome {
        pictures: vec![shown.map()],
        tables: shown.tables(),
        folded: shown.details(),
        notes: shown.notes(),
        data: shown.data(),
        lines: shown.lines(),
        ..Outcome::new(shown.verdict())
    }
}

impl Shown<'_> {
    /// Returns the columns, the least geometric mean first.
    fn ranked(&self) -> Vec<(usize, Standing)> {
        let mut all: Vec<(usize, Standing)> =
            (0..self.names.len()).map(|column| (column, standing(&self.regrets, column))).collect();
        all.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        all
    }

    /// Returns the factor by which a lock differs from itself: its geometric mean over cells, and
    /// its largest.
    fn floor(&self) -> Option<[f64; 2]> {
        let (twin, double) = (self.trial.double?, self.names.len() - 1);
        let apart = self.cells.iter().map(|row| {
            let ratio = row[double].throughput / row[twin].throughput;
            ratio.max(1.0 / ratio)
        });
        Some([geometric_mean(apart.clone()), apart.fold(1.0, f64::max)])
    }

    fn verdict(&self) -> Verdict {
        let missed: Vec<String> = (self.bars.iter().filter(|bar| bar.met == Some(false)))
            .map(|bar| format!("{}: {} ({})", bar.what, bar.here, bar.asked))
            .collect();
        if let Some((disturbed, visits, share)) = self.disturbed()
            && 5 * disturbed > visits
        {
            return Verdict::NotJudged(format!(
                "others took the processors: {} of their time, and more than {} in {disturbed} of \
                 {visits} visits to a cell. Close other programs and run it again ({})",
                percent(share),
                percent(DISTURBED),
                self.run()
            ));
        }
        let (run, ranked) = (self.run(), self.ranked());
        let (first, standing) = ranked[0];
        let leads = format!(
            "{} leads with a mean regret of {} and {} at worst, in {}",
            self.names[first],
            significant(standing.mean),
            significant(standing.worst),
            self.plan.cells[standing.at].name
        );
        if self.bars.is_empty() {
            return Verdict::NotJudged(format!("our default took no part ({run}); {leads}"));
        }
        let verdict = if missed.is_empty() {
            Verdict::Holds(format!("every bar that could be judged ({run}); {leads}"))
        } else {
            let (missed_bars, bars) = (missed.len(), self.bars.len());
            Verdict::Differs(format!(
                "{missed_bars} of {bars} bars missed ({run}). {}",
                missed.join("; ")
            ))
        };
        match self.trial.repeated {
            Some(repeated) => repeated.judge(verdict),
            None => verdict,
        }
    }

    /// Returns the number of disturbed visits, the number of visits with a known share of other
    /// programs, and that share over all of them.
    fn disturbed(&self) -> Option<(usize, usize, f64)> {
        let others = &self.trial.others;
        let disturbed = others.iter().filter(|&&share| share > DISTURBED).count();
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        (!others.is_empty()).then_some((disturbed, others.len(), mean))
    }

    fn run(&self) -> String {
        format!(
            "{}, {}, {} of {} ms{}",
            self.plan.selection,
            count(self.plan.contestants.len(), "contestant"),
            count(self.trial.complete, "round"),
            self.plan.window.as_millis(),
            if self.trial.repeated.is_none() { ", then interrupted" } else { "" }
        )
    }

    fn map(&self) -> Picture {
        let row = |(cell, regrets): (&super::grid::Cell, &Vec<f64>)| {
            let points = regrets.iter().enumerate();
            Series::new(cell.name.clone(), points.map(|(column, &regret)| (column as f64, regret)))
        };
        Picture {
            title: "Regret of each contestant in each cell (1 is the best of the cell)".to_owned(),
            shape: Shape::Map,
            x: Axis::named("contestant", self.names.clone()),
            y: Axis::log("regret"),
            series: self.plan.cells.iter().zip(&self.regrets).map(row).collect(),
        }
    }

    fn tables(&self) -> Vec<Table> {
        let strings = |columns: &[&str]| columns.iter().map(|&column| column.to_owned()).collect();
        let standings = Table {
            title: "Standings, the least mean regret first".to_owned(),
            columns: strings(&[
                "contestant",
                "mean regret",
                "worst regret",
                "where",
                "sets no best in",
            ]),
            rows: (self.ranked().into_iter())
                .map(|(column, standing)| {
                    let barred =
                        self.cells.iter().filter(|row| !may_set_best(&row[column])).count();
                    vec![
                        self.names[column].clone(),
                        significant(standing.mean),
                        significant(standing.worst),
                        self.plan.cells[standing.at].name.clone(),
                        format!("{barred} of {}", self.cells.len()),
                    ]
                })
                .collect(),
        };
        let bars = Table {
            title: "What is asked of our default".to_owned(),
            columns: strings(&["bar", "asked", "here", "met"]),
            rows: (self.bars.iter())
                .map(|bar| {
                    let met = match bar.met {
                        Some(true) => "yes",
                        Some(false) => "no",
                        None => "not judged",
                    };
                    vec![
                        bar.what.to_owned(),
                        bar.asked.to_owned(),
                        bar.here.clone(),
                        met.to_owned(),
                    ]
                })
                .collect(),
        };
        if self.bars.is_empty() { vec![standings] } else { vec![standings, bars] }
    }

    /// Returns the figures behind the regrets, a table for each.
    fn details(&self) -> Vec<Table> {
        let table = |title: &str, value: &dyn Fn(&Figures) -> String| Table {
            title: title.to_owned(),
            columns: std::iter::once("cell".to_owned()).chain(self.names.iter().cloned()).collect(),
            rows: (self.plan.cells.iter().zip(&self.cells))
                .map(|(cell, row)| {
                    std::iter::once(cell.name.clone()).chain(row.iter().map(value)).collect()
                })
                .collect(),
        };
        vec![
            table("Acquisitions a second", &|figures| grouped(figures.throughput.round() as u64)),
            table("Processor time for an acquisition", &|figures| nanos(figures.cost)),
            table("Fairness (Jain's index, 1 is even)", &|figures| significant(figures.fairness)),
            table("Wait, the median", &|figures| nanos(figures.p50)),
            table("Wait, 99 %", &|figures| nanos(figures.p99)),
            table("Wait, 99.9 %", &|figures| nanos(figures.p999)),
            table("Longest wait", &|figures| nanos(figures.longest)),
        ]
    }

    fn notes(&self) -> Vec<String> {
        let plan = self.plan;
        let mut notes = vec![
            format!(
                "{}. Figures are medians of the rounds; rounds follow each other, and in each the \
                 contestants of a cell run in another order. A race settles for {} ms, is counted \
                 for {} ms without reading a clock, and has each wait timed for {} ms; the longest \
                 wait is of all of that, seen every 10 ms where waits are not timed. A timed wait \
                 includes the second reading of the clock.",
                capital(&self.run()),
                plan.settle().as_millis(),
                plan.window.as_millis(),
                plan.timed().as_millis()
            ),
            format!(
                "A contestant sets no best in a cell where Jain's index is below {FAIR} or a wait \
                 is longer than {}: what it starved some threads of would count as throughput. \
                 Where it has more than the best, its own regret is 1.",
                nanos(STARVED)
            ),
            "A cell is named threads, section, work outside it, company. Sections are work \
             without memory traffic beside one increment; `4x` has four times as much outside \
             (100 ns beside a section of 0 ns). `hogs` are two processes that compute for ever. \
             `phases`: four threads, sections of 100 ns and of 200 µs in turns of 20 ms, the \
             geometric mean of both. `sleeper`: four threads, sections of 1 µs, of which one in \
             64 sleeps for 200 µs."
                .to_owned(),
            "Up to one thread a processor each is pinned to its own; with more they are left to \
             the kernel. The processor time is that of the threads and not of the hogs, which \
             are processes of their own."
                .to_owned(),
        ];
        if let Some((disturbed, visits, share)) = self.disturbed() {
            notes.push(format!(
                "Other programs had {} of the processors' time meanwhile, and more than {} in \
                 {disturbed} of {visits} visits to a cell. More than a fifth of such visits, and \
                 nothing is judged.",
                percent(share),
                percent(DISTURBED)
            ));
        }
        notes.push(match (self.floor(), self.trial.double) {
            (Some([mean, most]), Some(double)) => format!(
                "Noise: {} led after the first round and entered twice from then on. The same lock \
                 differs from itself by a factor of {} in the mean and of {} at most; differences \
                 below that say nothing.",
                self.names[double],
                significant(mean),
                significant(most)
            ),
            _ => "Noise was not measured: after one round no contestant enters twice.".to_owned(),
        });
        notes
    }

    /// Returns the lines for the terminal: standings, bars, and the regrets themselves if they fit.
    fn lines(&self) -> Vec<String> {
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(10);
        let mut lines = vec![format!("{:width$}  {:>6}  {:>6}", "contestant", "mean", "worst")];
        let ranked = self.ranked();
        for (column, standing) in &ranked {
            lines.push(format!(
                "{:width$}  {:>6}  {:>6}  in {}",
                self.names[*column],
                significant(standing.mean),
                significant(standing.worst),
                self.plan.cells[standing.at].name
            ));
        }
        if let Some([mean, most]) = self.floor() {
            let (mean, most) = (significant(mean), significant(most));
            lines.push(format!("{:width$}  {mean:>6}  {most:>6}", "noise"));
        }
        if let Some((disturbed, visits, share)) = self.disturbed() {
            let (share, limit) = (percent(share), percent(DISTURBED));
            lines.push(format!(
                "others had {share} of the processors' time; above {limit} in {disturbed} of \
                 {visits} visits to a cell"
            ));
        }
        for bar in &self.bars {
            let mark = match bar.met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "not judged",
            };
            lines.push(format!("{mark:10}  {}, asked {}: {}", bar.what, bar.asked, bar.here));
        }
        if self.plan.cells.len() <= 30 {
            lines.push(String::new());
            lines.extend(self.matrix());
        }
        lines
    }

    /// Returns a table of regrets: a line for each cell, a column for each contestant.
    fn matrix(&self) -> Vec<String> {
        let width = self.plan.cells.iter().map(|cell| cell.name.len()).max().unwrap_or(0);
        let short = |name: &String| name.chars().take(9).collect::<String>();
        let head: Vec<String> =
            self.names.iter().map(|name| format!("{:>9}", short(name))).collect();
        let rows = self.plan.cells.iter().zip(self.cells.iter().zip(&self.regrets));
        let rows = rows.map(|(cell, (figures, regrets))| {
            let values: Vec<String> = (regrets.iter().zip(figures))
                .map(|(&regret, figures)| {
                    let mark = if may_set_best(figures) { " " } else { "*" };
                    format!("{:>8}{mark}", significant(regret))
                })
                .collect();
            format!("{:width$} {}", cell.name, values.join(" "))
        });
        std::iter::once(format!("{:width$} {}", "regret", head.join(" ")))
            .chain(rows)
            .chain(["* sets no best: unfair, or a wait of over 100 ms".to_owned()])
            .collect()
    }

    fn data(&self) -> Option<Value> {
        let cells: Vec<Value> = (self.plan.cells.iter().enumerate())
            .map(|(row, cell)| {
                let contestants: Vec<Value> = (self.names.iter().enumerate())
                    .map(|(column, name)| {
                        json!({
                            "contestant": name,
                            "regret": self.regrets[row][column],
                            "may_set_best": may_set_best(&self.cells[row][column]),
                            "median": figures(&self.cells[row][column]),
                            "rounds": self.trial.rounds[row][column].iter().map(figures).collect::<Vec<_>>(),
                        })
                    })
                    .collect();
                json!({
                    "cell": cell.name,
                    "threads": cell.threads,
                    "inside_ns": cell.laps.map(|lap| lap.inside),
                    "outside_ns": cell.laps.map(|lap| lap.outside),
                    "hogs": cell.hogs,
                    "contestants": contestants,
                })
            })
            .collect();
        let standings: Vec<Value> = (self.ranked().into_iter())
            .map(|(column, standing)| {
                json!({
                    "contestant": self.names[column],
                    "mean_regret": standing.mean,
                    "worst_regret": standing.worst,
                    "worst_in": self.plan.cells[standing.at].name,
                })
            })
            .collect();
        Some(json!({
            "rounds": self.trial.complete,
            "window_ms": self.plan.window.as_secs_f64() * 1e3,
            "not_entered": CONTESTANTS.iter()
                .filter(|one| !self.plan.contestants.iter().any(|entered| entered.name == one.name))
                .map(|one| one.name)
                .collect::<Vec<_>>(),
            "entered_twice": self.trial.double.map(|double| &self.names[double]),
            "others": self.trial.others,
            "noise": self.floor().map(|[mean, most]| json!({ "mean": mean, "most": most })),
            "standings": standings,
            "cells": cells,
        }))
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Returns the figures of a race for programs.
pub(crate) fn figures(figures: &Figures) -> Value {
    json!({
        "throughput": figures.throughput,
        "processor_ns": figures.cost,
        "fairness": figures.fairness,
        "wait_p50_ns": figures.p50,
        "wait_p99_ns": figures.p99,
        "wait_p999_ns": figures.p999,
        "wait_longest_ns": figures.longest,
    })
}
