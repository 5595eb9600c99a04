//! A random grid as the terminal, the report and programs get it.

use serde_json::{Value, json};

use super::judge::{Bar, Judgement, Measure, Spread};
use super::plan::Plan;
use super::trial::{STEADY, Settled, Trial, VISITS};
use crate::contestants::Role;
use crate::race::Figures;
use crate::standing::{FAIR, STARVED, may_set_best};
use stanchion_study::grids::{self, Grid};
use stanchion_study::host::Host;
use stanchion_study::others::DISTURBED;
use stanchion_study::outcome::{Axis, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{count, nanos, percent, significant};

/// The cells that the terminal lists.
const LISTED: usize = 10;

/// The fewest cells of a whole grid. A smaller one is a brief look.
const WHOLE: usize = 20;

/// A trial and the figures that follow from it.
struct Shown<'a> {
    /// The plan of the trial.
    plan: &'a Plan,
    /// The cells with their races.
    trial: &'a Trial,
    /// The figures of each cell.
    cells: &'a [Settled],
    /// Regrets and noise.
    judgement: Judgement<'a>,
    /// Names of the columns; the last is the double's.
    names: Vec<String>,
    /// The bars that are decided.
    bars: Vec<Bar>,
}

/// Makes the report of `trial`.
pub(super) fn outcome(plan: &Plan, trial: &Trial) -> Outcome {
    let cells: Vec<Settled> = trial.cells.iter().map(super::trial::Cell::settled).collect();
    let judgement = Judgement::new(plan, &cells);
    let bars = judgement.bars();
    let shown = Shown { plan, trial, cells: &cells, judgement, names: plan.names(), bars };
    let mut lines = shown.summary();
    lines.push(String::new());
    lines.extend(if cells.len() == 1 { shown.contestants(0) } else { shown.worst_cells() });
    Outcome {
        title: Some(format!(
            "Random {}: regret against the best peer in drawn cells",
            plan.family.name
        )),
        pictures: vec![shown.map()],
        tables: vec![shown.distribution(), shown.judged(), shown.by_cell()],
        notes: shown.notes(),
        grids: Vec::from_iter(plan.is_open.then(|| grid(plan, trial, trial.cells.len() < WHOLE))),
        data: Some(shown.data()),
        lines,
        ..Outcome::new(shown.verdict())
    }
}

impl Shown<'_> {
    fn name(&self, cell: usize) -> &str {
        &self.trial.cells[cell].name
    }

    /// Returns our regret in a cell.
    fn regret(&self, cell: usize) -> Option<f64> {
        self.judgement.regrets[Measure::Throughput as usize][cell][self.plan.default()]
    }

    /// Returns the cells, those with our largest regrets first.
    fn ranked(&self) -> Vec<usize> {
        let mut cells: Vec<usize> = (0..self.cells.len()).collect();
        let regret = |cell: &usize| self.regret(*cell).unwrap_or(0.0);
        cells.sort_by(|a, b| regret(b).total_cmp(&regret(a)));
        cells
    }

    fn marked(&self) -> usize {
        self.cells.iter().filter(|cell| cell.marked).count()
    }

    fn run(&self) -> String {
        format!(
            "{}, {}, {} of {} ms, {}{}",
            count(self.cells.len(), "cell"),
            count(self.plan.columns.len(), "contestant"),
            count(self.plan.rounds, "round"),
            self.plan.window.as_millis(),
            if self.marked() == 0 {
                "all clean".to_owned()
            } else {
                format!("{} marked", self.marked())
            },
            if self.cells.len() < self.plan.cells.len() { ", then interrupted" } else { "" }
        )
    }

    fn verdict(&self) -> Verdict {
        let missed: Vec<String> =
            self.bars.iter().filter(|bar| !bar.is_met()).map(|bar| self.words(bar)).collect();
        if self.bars.is_empty() {
            return Verdict::NotJudged(format!("no bar could be judged ({})", self.run()));
        }
        Verdict::when(
            missed.is_empty(),
            match missed.len() {
                0 => format!("all {} bars met ({})", self.bars.len(), self.run()),
                missed_bars => format!(
                    "{missed_bars} of {} bars missed ({}): {}",
                    self.bars.len(),
                    self.run(),
                    missed.join("; ")
                ),
            },
        )
    }

    fn words(&self, bar: &Bar) -> String {
        let at = bar.at.map(|cell| format!(" in {}", self.name(cell))).unwrap_or_default();
        format!("{}{at}, {}", figure(bar), self.asked(bar))
    }

    fn asked(&self, bar: &Bar) -> String {
        let limit = format!("asked at most {:.2}", bar.limit);
        if bar.noise > bar.limit { format!("{limit}, noise {:.3}", bar.noise) } else { limit }
    }

    /// Returns the lines of the terminal above the cells: a line for each contestant, and the bars.
    fn summary(&self) -> Vec<String> {
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let head = Measure::ALL.map(|measure| format!("{:<26}", measure.name()));
        let line = |name: &str, spreads: [Option<Spread>; 3]| {
            let spreads = spreads.map(|spread| {
                format!(
                    "{:<26}",
                    spread.map_or_else(
                        || "–".to_owned(),
                        |of| format!(
                            "{:>6}  {:>6}  {:>6}",
                            significant(of.mean),
                            significant(of.p90),
                            significant(of.worst)
                        ),
                    )
                )
            });
            format!("{name:width$}  {}", spreads.join("")).trim_end().to_owned()
        };
        let mut lines = vec![
            format!("{:width$}  {}", "regret of", head.join("")).trim_end().to_owned(),
            format!("{:width$}  {}", "", "  mean     p90   worst    ".repeat(3))
                .trim_end()
                .to_owned(),
        ];
        for (column, name) in self.names.iter().enumerate() {
            lines.push(line(name, Measure::ALL.map(|of| self.judgement.of(of, column))));
        }
        lines.push(line("noise", Measure::ALL.map(|of| self.judgement.noise_of(of))));
        for bar in &self.bars {
            let mark = if bar.is_met() { "met" } else { "MISSED" };
            lines.push(format!("{mark:10}  {}", self.words(bar)));
        }
        lines
    }

    /// Returns the cells with our largest regrets.
    fn worst_cells(&self) -> Vec<String> {
        let width = self.trial.cells.iter().map(|cell| cell.name.len()).max().unwrap_or(0);
        let mut lines = vec![format!(
            "{:width$}  {:>6}  {:>6}  best peer, cell (repeat one by --replay)",
            "worst in", "regret", "noise"
        )];
        for cell in self.ranked().into_iter().take(LISTED) {
            lines.push(format!(
                "{:width$}  {:>6}  {:>6}{} {}; {}",
                self.name(cell),
                shown(self.regret(cell)),
                shown(self.judgement.noise[0][cell]),
                if self.cells[cell].marked { "*" } else { " " },
                self.best_peer(cell),
                self.trial.cells[cell].drawn.words
            ));
        }
        if self.marked() > 0 {
            lines.push("* marked: no visit was clean".to_owned());
        }
        lines
    }

    /// Returns the figures of every contestant in a cell.
    fn contestants(&self, cell: usize) -> Vec<String> {
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let settled = &self.cells[cell];
        let mut lines = vec![
            format!("{}: {}", self.name(cell), self.trial.cells[cell].drawn.words),
            format!(
                "{:width$}  {:>6}  {:>10}  {:>9}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}",
                "", "regret", "a second", "processor", "Jain", "p50", "p99", "p99.9", "longest"
            ),
        ];
        for (column, name) in self.names.iter().enumerate() {
            let Some(of) = settled.figures[column] else { continue };
            let waits = &settled.waits[column];
            let wait = |share: f64| match waits.count() {
                0 => "–".to_owned(),
                _ => nanos(waits.quantile(share)),
            };
            lines.push(format!(
                "{name:width$}  {:>6}  {:>10}  {:>9}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}",
                shown(self.judgement.regrets[0][cell][column]),
                significant(of.throughput),
                nanos(of.cost),
                significant(of.fairness),
                wait(0.5),
                wait(0.99),
                wait(0.999),
                nanos(of.longest)
            ));
        }
        lines
    }

    /// Returns the name of the peer with the least regret in a cell.
    fn best_peer(&self, cell: usize) -> &str {
        let peers = self.plan.those(|one| one.role == crate::contestants::Role::Peer);
        let fair =
            |column: &usize| self.cells[cell].figures[*column].is_some_and(|of| may_set_best(&of));
        let throughput =
            |column: usize| self.cells[cell].figures[column].map_or(0.0, |of| of.throughput);
        let most = |columns: Vec<usize>| {
            columns.into_iter().max_by(|&a, &b| throughput(a).total_cmp(&throughput(b)))
        };
        most(peers.iter().copied().filter(fair).collect())
            .or_else(|| most(peers))
            .map_or("–", |column| &self.names[column])
    }

    fn map(&self) -> Picture {
        let row = |cell: usize| {
            let regrets = self.judgement.regrets[Measure::Throughput as usize][cell].iter();
            let known =
                regrets.enumerate().filter_map(|(at, regret)| Some((at as f64, (*regret)?)));
            Series::new(self.name(cell).to_owned(), known)
        };
        Picture {
            title: "Regret of each contestant in each cell (1 is the best peer)".to_owned(),
            shape: Shape::Map,
            x: Axis::named("contestant", self.names.clone()),
            y: Axis::log("regret"),
            series: self.ranked().into_iter().map(row).collect(),
        }
    }

    fn distribution(&self) -> Table {
        let row = |name: &str, measure: Measure, spread: Option<Spread>| {
            let of = spread?;
            Some(vec![
                name.to_owned(),
                measure.name().to_owned(),
                significant(of.mean),
                significant(of.p90),
                significant(of.worst),
                self.name(of.at).to_owned(),
                of.cells.to_string(),
            ])
        };
        let mut rows = Vec::new();
        for measure in Measure::ALL {
            for (column, name) in self.names.iter().enumerate() {
                rows.extend(row(name, measure, self.judgement.of(measure, column)));
            }
            rows.extend(row("noise", measure, self.judgement.noise_of(measure)));
        }
        table(
            "Regrets over all cells",
            &["contestant", "of", "geometric mean", "p90", "worst", "where", "cells"],
            rows,
        )
    }

    fn judged(&self) -> Table {
        let row = |bar: &Bar| {
            vec![
                figure(bar),
                self.asked(bar),
                bar.at.map_or_else(String::new, |cell| self.name(cell).to_owned()),
                if bar.is_met() { "yes" } else { "no" }.to_owned(),
            ]
        };
        let rows = self.bars.iter().map(row).collect();
        table("What is asked of our default", &["bar", "asked", "where", "met"], rows)
    }

    fn by_cell(&self) -> Table {
        let rows = self.ranked().into_iter().map(|cell| {
            let settled = &self.cells[cell];
            let [_, cost, waits] = Measure::ALL.map(|measure| {
                shown(self.judgement.regrets[measure as usize][cell][self.plan.default()])
            });
            vec![
                self.name(cell).to_owned(),
                self.trial.cells[cell].drawn.words.clone(),
                shown(self.regret(cell)),
                self.best_peer(cell).to_owned(),
                cost,
                waits,
                shown(self.judgement.noise[0][cell]),
                settled.others.map_or_else(|| "–".to_owned(), percent),
                settled.visits.to_string(),
                if settled.marked { "marked" } else { "clean" }.to_owned(),
            ]
        });
        let columns = [
            "cell",
            "parameters",
            "our regret",
            "best peer",
            "of processor time",
            "of waits",
            "noise",
            "others",
            "visits",
            "",
        ];
        table("Cells, our largest regret first", &columns, rows.collect())
    }

    fn notes(&self) -> Vec<String> {
        let plan = self.plan;
        let mut notes = vec![
            format!(
                "{}, drawn from fixed distributions; a cell's name is the family, the seed and the \
                 index, and `--replay` measures that cell again. The same name is the same cell on \
                 every computer with as many processors.",
                self.run()
            ),
            format!(
                "Regret: the throughput of the best peer over that of the contestant, in {}. A \
                 peer sets no best where Jain's index is below {FAIR} or a wait is longer than {}. \
                 The regret of processor time is against the best peer that sleeps{}.",
                plan.family.operations,
                nanos(STARVED),
                plan.family.waits_of.map_or_else(String::new, |peer| format!(
                    ". That of waits is against {peer}: the 99.9th percentile where both timed \
                     20,000 waits, the 99th where both timed 2,000"
                ))
            ),
            format!(
                "Noise is the factor between the default and its double, which runs in each round \
                 as well. A visit is clean if that is at most {STEADY} and other programs had at \
                 most {} of the processors' time. A cell is visited up to {VISITS} times. A cell \
                 without a clean visit counts with all its visits, is marked, and is allowed its \
                 own noise. All bars are allowed the noise of the clean cells. No cell is dropped.",
                percent(DISTURBED)
            ),
        ];
        if self.trial.out_of_time {
            notes.push(format!(
                "The time of {} s was over before all marked cells had been visited {VISITS} times.",
                plan.time.as_secs()
            ));
        }
        notes
    }

    fn data(&self) -> Value {
        let spreads = |of: &dyn Fn(Measure) -> Option<Spread>| {
            let one = |measure: Measure| {
                let data = of(measure).map(|of| {
                    json!({
                        "mean": of.mean, "p90": of.p90, "worst": of.worst,
                        "worst_in": self.name(of.at), "cells": of.cells,
                    })
                });
                (measure.name().replace(' ', "_"), data.unwrap_or(Value::Null))
            };
            Value::Object(Measure::ALL.into_iter().map(one).collect())
        };
        let regrets: Vec<Value> = (self.names.iter().enumerate())
            .map(|(column, name)| {
                let of = spreads(&|measure| self.judgement.of(measure, column));
                json!({ "contestant": name, "regret": of })
            })
            .collect();
        let bars: Vec<Value> = (self.bars.iter())
            .map(|bar| {
                json!({
                    "measure": bar.measure.name(), "figure": bar.figure, "limit": bar.limit,
                    "noise": bar.noise, "here": bar.here, "met": bar.is_met(),
                })
            })
            .collect();
        json!({
            "family": self.plan.family.name,
            "rounds": self.plan.rounds,
            "window_ms": self.plan.window.as_secs_f64() * 1e3,
            "out_of_time": self.trial.out_of_time,
            "contestants": regrets,
            "noise": spreads(&|measure| self.judgement.noise_of(measure)),
            "bars": bars,
            "cells": self.ranked().into_iter().map(|cell| self.cell(cell)).collect::<Vec<_>>(),
        })
    }

    fn cell(&self, cell: usize) -> Value {
        let settled = &self.cells[cell];
        let contestants: Vec<Value> = (self.names.iter().enumerate())
            .filter_map(|(column, name)| {
                let of = settled.figures[column]?;
                Some(json!({
                    "contestant": name,
                    "regret": self.judgement.regrets[0][cell][column],
                    "regret_of_processor_time": self.judgement.regrets[1][cell][column],
                    "regret_of_waits": self.judgement.regrets[2][cell][column],
                    "may_set_best": may_set_best(&of),
                    "timed_waits": settled.waits[column].count(),
                    "median": figures(&of),
                }))
            })
            .collect();
        json!({
            "cell": self.name(cell),
            "parameters": self.trial.cells[cell].drawn.data,
            "noise": self.judgement.noise[0][cell],
            "others": settled.others,
            "visits": settled.visits,
            "marked": settled.marked,
            "contestants": contestants,
        })
    }
}

fn figure(bar: &Bar) -> String {
    format!("{} of {} {:.3}", bar.figure, bar.measure.name(), bar.here)
}

fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "–".to_owned(), significant)
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Table { title: title.to_owned(), columns, rows }
}

/// Returns the figures of one contestant for programs.
fn figures(figures: &Figures) -> Value {
    crate::show::figures(figures)
}

/// Returns the figures of `trial` without the double's, as a study keeps them.
pub(super) fn grid(plan: &Plan, trial: &Trial, brief: bool) -> Grid {
    let host = Host::here();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let columns = plan.columns.len();
    let cell = |cell: &super::trial::Cell| {
        let settled = cell.settled();
        let figures = |column: usize| {
            let of = settled.figures[column]?;
            let waits = &settled.waits[column];
            Some(grids::Figures {
                throughput: of.throughput,
                cost: of.cost,
                tail: (waits.count() >= super::judge::FOR_P999).then(|| waits.quantile(0.999)),
                fair: may_set_best(&of),
            })
        };
        grids::Cell {
            name: cell.name.clone(),
            threads: cell.drawn.data["threads"].as_u64().unwrap_or(1) as usize,
            length_ns: length(&cell.drawn.data),
            hogs: cell.drawn.hogs,
            figures: (0..columns).map(figures).collect(),
        }
    };
    Grid {
        family: plan.family.name.to_owned(),
        written: since.map_or(0, |since| since.as_secs()),
        seed: plan.cells.first().map_or(0, |place| place.seed),
        distributions: grids::DISTRIBUTIONS,
        version: host.stanchion,
        processor: host.processor,
        processors: host.parallelism,
        brief,
        contestants: plan.names()[..columns].to_vec(),
        peers: plan.columns.iter().map(|&of| plan.entrants[of].role == Role::Peer).collect(),
        cells: trial.cells.iter().map(cell).collect(),
    }
}

/// Returns the length of the work in a cell's parameters, in nanoseconds; the first phase's if it
/// has two.
fn length(parameters: &Value) -> f64 {
    let known = ["inside_ns", "work_ns", "grain_ns"].into_iter().find_map(|name| {
        let value = &parameters[name];
        value.as_f64().or_else(|| value[0].as_f64())
    });
    known.unwrap_or(0.0)
}
