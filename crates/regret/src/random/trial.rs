//! All races of a random grid.
//!
//! A *visit* to a cell runs all contestants in several rounds, each round in another order. The
//! default stands twice in each round. The factor between it and its double is the noise of the
//! visit. A visit is *clean* if other programs had little of the processors, and if the double
//! differs by at most 5 %.
//!
//! If the first races of a contestant take longer than all of them should, it runs no more of them
//! in this visit: a barrier that only spins may need seconds for one crossing.
//!
//! The first pass visits all cells. Up to three more passes visit those without a clean visit
//! again, the noisiest first, as long as there is time. A clean visit decides a cell alone. If a
//! cell has none, all its visits decide it together, and it is marked. No cell is dropped or
//! replaced: cells in which a lock is unsteady would be the ones that go.

use std::time::{Duration, Instant};

use stanchion_formulas::Random;
use stanchion_study::context::{Context, Stop};
use stanchion_study::others::{Account, DISTURBED};

use super::draw::source;
use super::plan::{Place, Plan};
use super::{Drawn, Stage};
use crate::hogs::Hogs;
use crate::race::Figures;
use crate::standing::medians;
use crate::turns::shuffle;
use crate::waits::Waits;
use crate::work::Pace;

/// The largest factor between a contestant and its double in a clean visit.
pub(super) const STEADY: f64 = 1.05;

/// The most visits to one cell.
pub(super) const VISITS: usize = 4;

/// All figures.
pub(super) struct Trial {
    /// The cells that were visited at least once.
    pub(super) cells: Vec<Cell>,
    /// True if cells were left unclean because the time was over.
    pub(super) out_of_time: bool,
}

/// A cell and its visits.
pub(super) struct Cell {
    /// The name.
    pub(super) name: String,
    /// The parameters and the race.
    pub(super) drawn: Drawn,
    /// The visits so far.
    visits: Vec<Visit>,
}

/// The figures of one visit.
struct Visit {
    /// The figures of each column, one a round. None if it takes no part.
    rounds: Vec<Vec<Figures>>,
    /// The timed waits of each column, of all rounds.
    waits: Vec<Waits>,
    /// The factor between the default and its double.
    difference: f64,
    /// The share of the processors' time that other programs had, if it is known.
    others: Option<f64>,
}

impl Visit {
    fn is_clean(&self) -> bool {
        self.difference <= STEADY && self.others.is_none_or(|others| others <= DISTURBED)
    }
}

/// The figures that count for a cell.
pub(super) struct Settled {
    /// The medians of each column; none if it takes no part in this cell.
    pub(super) figures: Vec<Option<Figures>>,
    /// The timed waits of each column.
    pub(super) waits: Vec<Waits>,
    /// The largest share of the processors' time that other programs had in a visit that counts.
    pub(super) others: Option<f64>,
    /// The number of visits.
    pub(super) visits: usize,
    /// True if no visit was clean.
    pub(super) marked: bool,
}

impl Cell {
    fn is_clean(&self) -> bool {
        self.visits.last().is_some_and(Visit::is_clean)
    }

    /// Returns the factor between the default and its double in the last visit.
    fn difference(&self) -> f64 {
        self.visits.last().map_or(f64::INFINITY, |visit| visit.difference)
    }

    /// Returns the figures that count.
    pub(super) fn settled(&self) -> Settled {
        let clean = self.visits.last().filter(|visit| visit.is_clean());
        let counted = clean.map_or(&self.visits[..], std::slice::from_ref);
        let columns = counted.first().map_or(0, |visit| visit.rounds.len());
        let column = |column: usize| {
            let rounds: Vec<Figures> =
                counted.iter().flat_map(|visit| &visit.rounds[column]).copied().collect();
            (!rounds.is_empty()).then(|| medians(&rounds))
        };
        let waits = |column: usize| {
            let mut waits = Waits::default();
            counted.iter().for_each(|visit| waits.add(&visit.waits[column]));
            waits
        };
        Settled {
            figures: (0..columns).map(column).collect(),
            waits: (0..columns).map(waits).collect(),
            others: counted.iter().filter_map(|visit| visit.others).reduce(f64::max),
            visits: self.visits.len(),
            marked: clean.is_none(),
        }
    }
}

/// Runs all races. If the user stops the trial, the cells with a complete visit count.
pub(super) fn run(context: &Context, plan: &Plan) -> Result<Trial, Stop> {
    let cells = plan.cells.iter().map(|&place| cell(context, plan, place)).collect();
    let mut trial = Trial { cells, out_of_time: false };
    let done = passes(context, plan, &mut trial);
    trial.cells.retain(|cell| !cell.visits.is_empty());
    match done {
        Err(Stop::Interrupted) if !trial.cells.is_empty() => Ok(trial),
        done => done.map(|()| trial),
    }
}

/// A grid of which each cell is visited once, one after the other, when the caller asks.
pub(super) struct Look<'a> {
    /// The context of the study.
    context: &'a Context,
    /// The plan of the grid.
    plan: &'a Plan,
    /// The stage of all races.
    stage: Stage<'a>,
    /// The source of the order of races.
    random: Random,
    /// The cells that were visited so far.
    trial: Trial,
    /// The longest time of a visit so far.
    longest: Duration,
}

impl<'a> Look<'a> {
    pub(super) fn new(context: &'a Context, plan: &'a Plan) -> Self {
        Self {
            context,
            plan,
            stage: stage(context, plan),
            random: Random::new(context.seed),
            trial: Trial { cells: Vec::new(), out_of_time: false },
            longest: Duration::ZERO,
        }
    }

    /// Returns the cells that were visited so far.
    pub(super) fn trial(&self) -> &Trial {
        &self.trial
    }

    /// Returns whether there is a next cell, and time enough for it.
    pub(super) fn has_next_within(&self, time: Duration) -> bool {
        self.trial.cells.len() < self.plan.cells.len() && self.longest < time
    }

    /// Visits the next cell.
    pub(super) fn visit_next(&mut self) -> Result<(), Stop> {
        let began = Instant::now();
        let mut cell = cell(self.context, self.plan, self.plan.cells[self.trial.cells.len()]);
        let visit = visit(self.context, self.plan, &cell.drawn, &self.stage, &mut self.random)?;
        cell.visits.push(visit);
        self.trial.cells.push(cell);
        self.longest = self.longest.max(began.elapsed());
        Ok(())
    }
}

/// Draws a cell.
fn cell(context: &Context, plan: &Plan, place: Place) -> Cell {
    let mut source = source(plan.family.name, place.seed, place.index);
    Cell {
        name: plan.name(place),
        drawn: (plan.family.draw)(&mut source, context.processors.len()),
        visits: Vec::new(),
    }
}

fn stage<'a>(context: &'a Context, plan: &Plan) -> Stage<'a> {
    Stage {
        processors: &context.processors,
        pace: Pace::measure(),
        settle: plan.window / 8,
        window: plan.window,
        timed: plan.window / 3,
    }
}

fn passes(context: &Context, plan: &Plan, trial: &mut Trial) -> Result<(), Stop> {
    let stage = stage(context, plan);
    let mut random = Random::new(context.seed);
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    context.plan(plan.cells.len());
    for pass in 0..VISITS {
        let mut unclean: Vec<usize> =
            (0..trial.cells.len()).filter(|&cell| !trial.cells[cell].is_clean()).collect();
        if pass > 0 {
            let noise = |cell: &usize| trial.cells[*cell].difference();
            unclean.sort_by(|a, b| noise(b).total_cmp(&noise(a)));
            context.plan_more(unclean.len());
        }
        for cell in unclean {
            if pass > 0 && began.elapsed() + longest > plan.time {
                trial.out_of_time = true;
                return Ok(());
            }
            let visit_began = Instant::now();
            let visited = visit(context, plan, &trial.cells[cell].drawn, &stage, &mut random)?;
            trial.cells[cell].visits.push(visited);
            longest = longest.max(visit_began.elapsed());
            context.step()?;
        }
    }
    Ok(())
}

fn visit(
    context: &Context,
    plan: &Plan,
    drawn: &Drawn,
    stage: &Stage<'_>,
    random: &mut Random,
) -> Result<Visit, Stop> {
    let (default, double) = (plan.default(), plan.columns.len());
    let mut rounds = vec![Vec::new(); double + 1];
    let mut waits = vec![Waits::default(); double + 1];
    let hogs = match drawn.hogs {
        0 => None,
        number => Some(Hogs::start(&context.processors, number).map_err(Stop::Failed)?),
    };
    let running = hogs.as_ref().map(Hogs::processes).unwrap_or_default();
    let before = Account::now(&context.processors, &running);
    let mut order: Vec<usize> = (0..=double).collect();
    let mut spent = vec![Duration::ZERO; double + 1];
    let most = plan.race() * u32::try_from(plan.rounds).unwrap_or(u32::MAX);
    for _ in 0..plan.rounds {
        shuffle(&mut order, random);
        for &column in &order {
            if spent[column] > most {
                continue;
            }
            let (of, began) =
                (plan.columns[if column == double { default } else { column }], Instant::now());
            if let Some((figures, timed)) = (drawn.race)(of, stage) {
                rounds[column].push(figures);
                waits[column].add(&timed);
            }
            spent[column] += began.elapsed();
            context.go_on()?;
        }
    }
    let after = Account::now(&context.processors, &running);
    let others = before.zip(after).and_then(|(before, after)| after.others_since(before));
    let throughput = |column: usize| medians(&rounds[column]).throughput;
    let difference = factor(throughput(default), throughput(double));
    Ok(Visit { rounds, waits, difference, others })
}

/// Returns the factor between two figures, at least 1.
pub(super) fn factor(one: f64, other: f64) -> f64 {
    let ratio = one / other;
    ratio.max(1.0 / ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(throughputs: &[f64], difference: f64, others: Option<f64>) -> Visit {
        let figures = |&throughput: &f64| Figures { throughput, ..Figures::default() };
        Visit {
            rounds: vec![throughputs.iter().map(figures).collect(), Vec::new()],
            waits: vec![Waits::default(); 2],
            difference,
            others,
        }
    }

    fn cell(visits: Vec<Visit>) -> Cell {
        let race = |_: usize, _: &Stage<'_>| None;
        let data = serde_json::Value::Null;
        let drawn = Drawn { words: String::new(), data, hogs: 0, race: Box::new(race) };
        Cell { name: String::new(), drawn, visits }
    }

    #[test]
    fn a_clean_visit_decides_alone_and_unclean_ones_together() {
        let throughput = |settled: &Settled| settled.figures[0].unwrap().throughput;
        let noisy = || visit(&[10.0, 20.0, 30.0], 1.06, Some(0.0));
        let busy = || visit(&[40.0, 50.0], 1.0, Some(0.2));
        let settled = cell(vec![noisy(), visit(&[7.0], 1.04, None)]).settled();
        assert_eq!((throughput(&settled), settled.marked, settled.visits), (7.0, false, 2));
        assert!(settled.figures[1].is_none(), "it took no part");
        let settled = cell(vec![noisy(), busy()]).settled();
        assert_eq!((throughput(&settled), settled.marked), (30.0, true));
        assert_eq!(settled.others, Some(0.2));
    }

    #[test]
    fn factors_are_at_least_one() {
        assert_eq!((factor(2.0, 4.0), factor(4.0, 2.0), factor(3.0, 3.0)), (2.0, 2.0, 1.0));
    }
}
