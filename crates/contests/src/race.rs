//! Runs cells: in each round every contestant runs once, and the next round has the reverse order.
//! So other programs on the computer slow all contestants alike.

use crate::Options;
use crate::cell::{Against, Cell, Contestant, Figures, Summary};
use crate::report::{Report, Row, Table, Value};
use crate::statistics::{median, quantile};

/// The most cells of which a table of regrets has a column each.
const COLUMNS: usize = 8;

/// The summary of a cell: for each contestant, the figures of all rounds, and the time of an
/// operation without other work.
pub(crate) struct Measured {
    /// The figure of each column, for each contestant.
    pub(crate) figures: Vec<Figures>,
    /// The time of an operation less that of the other work. Empty if there can be none.
    net: Vec<f64>,
}

/// Runs all selected cells and returns a table for each, and one of the regrets of all.
pub(crate) fn contest(
    name: &str,
    cells: Vec<Cell>,
    rounds: usize,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Report {
    let mut report = Report::default();
    race(name, cells, rounds, options, progress, &mut report);
    report
}

/// Does the same, and adds the tables to a report.
pub(crate) fn race(
    name: &str,
    cells: Vec<Cell>,
    rounds: usize,
    options: &Options,
    progress: &mut dyn FnMut(&str),
    report: &mut Report,
) {
    let cells: Vec<Cell> = cells.into_iter().filter_map(|cell| cell.selected(options)).collect();
    let mut regrets = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        progress(&format!("{name}, cell {} of {}: {}", index + 1, cells.len(), cell.title));
        let measured = measure(cell, rounds, options);
        let quotients = quotients(cell, &measured);
        report.table(table(cell, &measured, &quotients));
        regrets.extend(cell.contestants.iter().zip(quotients).map(|(contestant, regret)| Regret {
            contestant: contestant.shown(),
            cell: cell.title.clone(),
            regret,
        }));
    }
    if cells.len() > 1 && cells.iter().all(|cell| cell.against != Against::First) {
        report.table(regret_table(name, &cells, &regrets));
    }
}

/// Runs the contestants of a cell in rounds.
pub(crate) fn measure(cell: &Cell, rounds: usize, options: &Options) -> Measured {
    let mut runs: Vec<Vec<Figures>> = vec![Vec::new(); cell.contestants.len()];
    let mut nets: Vec<Vec<f64>> = vec![Vec::new(); cell.contestants.len()];
    for round in 0..options.rounds.unwrap_or(rounds).max(1) {
        let other = cell.other_work.as_ref().map(|measure| measure(options.effort));
        for which in order(round, cell.contestants.len()) {
            let figures = cell.contestants[which].run(options.effort);
            nets[which].extend(other.map(|other| figures[0] - other));
            runs[which].push(figures);
        }
    }
    let figures = runs.iter().map(|runs| summary(cell, runs)).collect();
    let net = nets.iter_mut().filter(|nets| !nets.is_empty()).map(|nets| median(nets)).collect();
    Measured { figures, net }
}

/// Returns the order of the contestants in a round.
pub(crate) fn order(round: usize, contestants: usize) -> impl Iterator<Item = usize> {
    let last = contestants.saturating_sub(1);
    (0..contestants).map(move |place| if round.is_multiple_of(2) { place } else { last - place })
}

/// Makes one figure of all rounds, for each column.
fn summary(cell: &Cell, runs: &[Figures]) -> Figures {
    let columns = cell.columns.iter().enumerate();
    columns
        .map(|(index, column)| {
            let mut figures: Vec<f64> = runs.iter().map(|run| run[index]).collect();
            match column.summary {
                Summary::Median => median(&mut figures),
                Summary::Largest => quantile(&mut figures, 1.0),
            }
        })
        .collect()
}

/// Returns the time of each contestant, divided by the time that the cell compares with. NaN: there
/// is no such contestant.
fn quotients(cell: &Cell, measured: &Measured) -> Vec<f64> {
    let time = |index: usize| measured.figures[index][0];
    let fastest = |counts: &dyn Fn(&Contestant) -> bool| {
        let all = cell.contestants.iter().enumerate();
        let times = all.filter(|(_, contestant)| counts(contestant)).map(|(index, _)| time(index));
        times.reduce(f64::min).unwrap_or(f64::NAN)
    };
    let unit = match cell.against {
        Against::BestPeer => fastest(&|contestant| contestant.is_peer),
        Against::Best => fastest(&|_| true),
        Against::First => time(0),
    };
    (0..cell.contestants.len()).map(|index| time(index) / unit).collect()
}

fn table(cell: &Cell, measured: &Measured, quotients: &[f64]) -> Table {
    let mut columns: Vec<String> =
        cell.columns.iter().map(|column| column.name.to_owned()).collect();
    let net = !measured.net.is_empty();
    if net {
        columns.insert(1, "net".to_owned());
    }
    columns.push(if cell.against == Against::First { "by first" } else { "regret" }.to_owned());
    let rows = cell.contestants.iter().enumerate().map(|(index, contestant)| {
        let figures = cell.columns.iter().zip(&measured.figures[index]);
        let mut values: Vec<Value> =
            figures.map(|(column, &figure)| Value::number(figure, column.decimals)).collect();
        if net {
            values.insert(1, Value::number(measured.net[index], cell.columns[0].decimals));
        }
        values.push(Value::number(quotients[index], 2));
        Row { name: contestant.shown(), values }
    });
    Table { title: cell.title.clone(), columns, rows: rows.collect() }
}

/// The regret of a contestant in a cell.
struct Regret {
    /// The contestant's name in tables.
    contestant: String,
    /// The cell's title.
    cell: String,
    /// The contestant's time, divided by that of the best.
    regret: f64,
}

/// Returns a table with the worst and the mean regret of each contestant, and the cell of the worst
/// one.
fn regret_table(name: &str, cells: &[Cell], regrets: &[Regret]) -> Table {
    let each = cells.len() <= COLUMNS;
    let mut columns: Vec<String> = ["worst", "mean", "cells"].map(str::to_owned).into();
    if each {
        columns.extend(cells.iter().map(|cell| cell.title.clone()));
    } else {
        columns.push("worst in".to_owned());
    }
    let mut names: Vec<&str> = Vec::new();
    for regret in regrets {
        if !names.contains(&regret.contestant.as_str()) {
            names.push(&regret.contestant);
        }
    }
    let rows = names.into_iter().filter_map(|contestant| {
        let known = |regret: &&Regret| regret.contestant == contestant && !regret.regret.is_nan();
        let all: Vec<&Regret> = regrets.iter().filter(known).collect();
        let worst = all.iter().max_by(|one, other| one.regret.total_cmp(&other.regret))?;
        let logarithms = all.iter().map(|regret| regret.regret.ln()).sum::<f64>();
        let mut values = vec![
            Value::number(worst.regret, 2),
            Value::number((logarithms / all.len() as f64).exp(), 2),
            Value::number(all.len() as f64, 0),
        ];
        if each {
            values.extend(cells.iter().map(|cell| {
                let regret = all.iter().find(|regret| regret.cell == cell.title);
                regret.map_or(Value::Missing, |regret| Value::number(regret.regret, 2))
            }));
        } else {
            values.push(Value::Text(worst.cell.clone()));
        }
        Some(Row { name: contestant.to_owned(), values })
    });
    let (title, rows) = (format!("{name}: regrets, with their geometric mean"), rows.collect());
    Table { title, columns, rows }
}
