//! All races of the plan, interleaved.
//!
//! A round visits each cell, and a visit runs each contestant, each time in another order. The
//! trial takes minutes or an hour. Whatever drifts meanwhile (a neighbour's load, the clock rate,
//! the temperature) meets all contestants alike, and none always runs after the same other one.
//!
//! After the first round the leader's double enters: the contestant with the least geometric mean
//! of regrets so far runs a second time in each cell of the rounds that remain. The best contestant
//! is not known before the end. The leader after one round is nearly always among the best, and
//! noise is the same for all of those.

use std::time::Duration;

use stanchion_formulas::Random;

use super::bars::bars;
use super::contestants::Contestant;
use super::grid::{Cell, NAP, PHASE};
use super::hogs::{HOGS, Hogs};
use super::options::Plan;
use super::race::{Figures, Naps, Race};
use super::standing::{leader, medians, regrets};
use super::turns::{Turns, shuffle};
use super::work::{Pace, Steps};
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::Repeated;
use stanchion_study::others::Account;

/// All figures.
pub(crate) struct Trial {
    /// `rounds[cell][contestant]`: one figure a round; the last column is the double's, if there is
    /// one.
    pub(crate) rounds: Vec<Vec<Vec<Figures>>>,
    /// The contestant that entered twice.
    pub(crate) double: Option<usize>,
    /// Rounds that were run to their end.
    pub(crate) complete: usize,
    /// The rounds that were needed for the precision; none if the user stopped the trial.
    pub(crate) repeated: Option<Repeated>,
    /// The share of the processors' time that other programs had in each visit to a cell, where it
    /// is known.
    pub(crate) others: Vec<f64>,
}

impl Trial {
    /// Returns the medians, as `cells[cell][contestant]`.
    pub(crate) fn medians(&self) -> Vec<Vec<Figures>> {
        let row = |row: &Vec<Vec<Figures>>| row.iter().map(|rounds| medians(rounds)).collect();
        self.rounds.iter().map(row).collect()
    }

    /// Forgets the round that was not run to its end, and a double that has run in no other.
    fn keep_complete(&mut self, entered: usize) {
        for row in &mut self.rounds {
            for (column, rounds) in row.iter_mut().enumerate() {
                rounds.truncate(if column < entered { self.complete } else { self.complete - 1 });
            }
            row.retain(|rounds| !rounds.is_empty());
        }
        if self.complete == 1 {
            self.double = None;
        }
    }
}

/// Runs all races, a step each. If the user stops the trial, the rounds that are complete count.
pub(crate) fn run(context: &Context, plan: &Plan) -> Result<Trial, Stop> {
    let entered = plan.contestants.len();
    let rounds = vec![vec![Vec::new(); entered]; plan.cells.len()];
    let mut trial = Trial { rounds, double: None, complete: 0, repeated: None, others: Vec::new() };
    match run_rounds(context, plan, &mut trial) {
        Err(Stop::Interrupted) if trial.complete > 0 => {
            trial.keep_complete(entered);
            Ok(trial)
        }
        done => done.map(|repeated| Trial { repeated: Some(repeated), ..trial }),
    }
}

fn run_rounds(context: &Context, plan: &Plan, trial: &mut Trial) -> Result<Repeated, Stop> {
    let pace = Pace::measure();
    let mut random = Random::new(context.seed);
    let entered = plan.contestants.len();
    plan.precision.repeat(|_| {
        if trial.complete == 1 {
            let setters = plan.setters();
            let double = leader(&regrets(&trial.medians(), &setters), &setters);
            trial.double = Some(double);
            for row in &mut trial.rounds {
                row.push(Vec::new());
            }
        }
        let mut columns: Vec<(usize, &Contestant)> =
            plan.contestants.iter().copied().enumerate().collect();
        columns.extend(trial.double.map(|double| (entered, plan.contestants[double])));
        for (cell, row) in plan.cells.iter().zip(&mut trial.rounds) {
            let turns = Turns::default();
            let race = race(context, plan, cell, pace, &turns);
            let hogs = if cell.hogs {
                Some(Hogs::start(&context.processors, HOGS).map_err(Stop::Failed)?)
            } else {
                None
            };
            let running = hogs.as_ref().map(Hogs::processes).unwrap_or_default();
            let before = Account::now(&context.processors, &running);
            shuffle(&mut columns, &mut random);
            for &(column, contestant) in &columns {
                row[column].push((contestant.race)(&race).0);
                context.step()?;
            }
            let after = Account::now(&context.processors, &running);
            let account = before.zip(after);
            trial.others.extend(account.and_then(|(before, after)| after.others_since(before)));
        }
        trial.complete += 1;
        let row = |row: &Vec<Vec<Figures>>| -> Vec<Figures> {
            row[..entered].iter().filter_map(|rounds| rounds.last().copied()).collect()
        };
        let cells: Vec<Vec<Figures>> = trial.rounds.iter().map(row).collect();
        let judged = bars(plan, &cells, &regrets(&cells, &plan.setters()));
        Ok(judged.iter().filter_map(|bar| bar.figure).collect())
    })
}

fn race<'a>(
    context: &'a Context,
    plan: &Plan,
    cell: &Cell,
    pace: Pace,
    turns: &'a Turns,
) -> Race<'a> {
    // If each thread has a processor, pinning takes the kernel's balancing out of the figures. If
    // there are fewer processors, the kernel's balancing is part of the measurement.
    let enough = cell.threads <= context.processors.len();
    let changes = cell.laps[0] != cell.laps[1];
    Race {
        threads: cell.threads,
        pins: if enough { &context.processors } else { &[] },
        laps: cell
            .laps
            .map(|lap| Steps { inside: pace.steps(lap.inside), outside: pace.steps(lap.outside) }),
        // A short window holds both phases too.
        phase: changes.then(|| Duration::from_nanos(PHASE).min(plan.window / 2)),
        turns,
        naps: cell.naps.map(|every| Naps { every, length: Duration::from_nanos(NAP) }),
        settle: plan.settle(),
        window: plan.window,
        timed: plan.timed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_round_is_forgotten() {
        let figures = |count| vec![Figures::default(); count];
        let trial = |complete, rows: [[usize; 2]; 2]| Trial {
            rounds: rows.iter().map(|row| row.map(figures).into()).collect(),
            double: Some(0),
            complete,
            repeated: None,
            others: Vec::new(),
        };
        let lengths = |trial: &Trial| -> Vec<Vec<usize>> {
            trial.rounds.iter().map(|row| row.iter().map(Vec::len).collect()).collect()
        };
        let mut second = trial(1, [[2, 1], [1, 0]]);
        second.keep_complete(1);
        assert_eq!((lengths(&second), second.double), (vec![vec![1], vec![1]], None));
        let mut third = trial(2, [[3, 2], [2, 1]]);
        third.keep_complete(1);
        assert_eq!((lengths(&third), third.double), (vec![vec![2, 1], vec![2, 1]], Some(0)));
    }
}
