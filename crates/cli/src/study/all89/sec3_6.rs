//! Section 3.6, its end: two hybrids, which the paper names, did not build, and doubts.
//!
//! > For example, both central and per-processor ready queues could be used, by placing created threads in a local queue if the lock on the central
//! > queue is busy. As another example, a creating processor could probe randomly to find an idle processor, and if none were found, place the
//! > thread in a central queue. The drawback to any such approach is that complexity adds cost which may outweigh any benefits.
//!
//! What the advantages are that a hybrid combines, the paper says of its *parents*: one is good where the other is not. So each is measured in all
//! *situations* of figures 3.1 and 3.4: null threads on one processor and on all; a thread while processors idle, with as many threads as
//! processors, and beyond. *Behind* is its time over the shortest of the paper's five there, and its *worst* is the largest of these.
//!
//! | hybrid | parents |
//! | --- | --- |
//! | central else local | local free lists (a central queue), local ready queues |
//! | probe idle else central | idle queue, local free lists (a central queue) |
//!
//! Rule of the verdict: *holds* if no hybrid is worth its complexity, that is, if the worst of each is no better than that of the better of its two
//! parents; else *differs*. *not judged* with fewer than eight processors.

use stanchion_simulator::Machine;

use super::super::context::{Context, Stop};
use super::super::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use super::super::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use super::fig3_4::{Curves, PROCESSORS};
use super::threads::grid::Grid;
use super::threads::{CENTRAL_ELSE_LOCAL, FREE_LIST, IDLE, PAPER, PROBE, READY, real, simulated};
use crate::units::{nanos, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/sec3.6",
    paper: Paper::All89,
    title: "Two hybrids: a local queue if the central one is busy; a probe for an idle processor, else a central queue",
    claim: "Complexity adds cost which may outweigh any benefits of hybrids: neither is worth it.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated { machines: &["symmetry-a"], run: run_simulated }),
    },
};

/// Processors below which the situations are not there to be told apart.
const LEAST: usize = 8;

/// A hybrid and what it is made of.
const HYBRIDS: [(usize, [usize; 2]); 2] =
    [(CENTRAL_ELSE_LOCAL, [FREE_LIST, READY]), (PROBE, [IDLE, FREE_LIST])];

const SITUATIONS: [&str; 5] = [
    "null threads, one processor",
    "null threads, all processors",
    "while processors idle",
    "as many threads as processors",
    "more threads than processors",
];

/// A strategy, and what a thread costs in each situation, ns.
struct Row {
    name: &'static str,
    costs: [f64; SITUATIONS.len()],
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let processors = context.processors.len();
    if processors < 2 {
        return Ok(Outcome::new(too_few(processors)));
    }
    let grid = real::run_on(context, 0, vec![1, processors], &[])?;
    let curves = Curves { processors, rows: real::latencies(context, false)? };
    Ok(Outcome { notes: real::notes(context), ..outcome(processors, &rows(&grid, &curves)) })
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let processors = machine.processors.min(PROCESSORS);
    if processors < 2 {
        return Ok(Outcome::new(too_few(processors)));
    }
    let place = simulated::Place::of(&Machine { processors, ..machine.clone() });
    let grid = simulated::run_on(context, &place, 0.0, vec![1, processors])?;
    let curves = Curves { processors, rows: simulated::latencies(context, &place, processors)? };
    let notes = simulated::notes(context, &place);
    Ok(Outcome { notes, ..outcome(processors, &rows(&grid, &curves)) })
}

fn too_few(processors: usize) -> Verdict {
    Verdict::NotJudged(format!(
        "with {processors} processors the situations cannot be told apart; it takes {LEAST}"
    ))
}

fn rows(grid: &Grid, curves: &Curves) -> Vec<Row> {
    let row = |row: usize| Row {
        name: grid.name(row),
        costs: [
            grid.pace(row, 0),
            grid.pace(row, grid.all()),
            curves.while_idle(row),
            curves.at(row, curves.processors),
            curves.beyond(row),
        ],
    };
    (0..grid.rows()).map(row).collect()
}

/// The shortest of the paper's five in a situation.
fn best(rows: &[Row], situation: usize) -> f64 {
    rows[..PAPER].iter().map(|row| row.costs[situation]).fold(f64::INFINITY, f64::min)
}

/// How far behind the best of the paper's five `row` is where it is furthest, and in which situation that is.
fn worst(rows: &[Row], row: usize) -> (f64, usize) {
    let behind = |situation| (rows[row].costs[situation] / best(rows, situation), situation);
    let worst = (0..SITUATIONS.len()).map(behind).max_by(|one, other| one.0.total_cmp(&other.0));
    worst.unwrap_or((1.0, 0))
}

fn outcome(processors: usize, rows: &[Row]) -> Outcome {
    let comparison = |(hybrid, parents): (usize, [usize; 2])| {
        let (behind, situation) = worst(rows, hybrid);
        let of = |parent: usize| {
            let (behind, situation) = worst(rows, parent);
            format!("{} {} ({})", rows[parent].name, significant(behind), SITUATIONS[situation])
        };
        Comparison::new(
            format!("{}: its worst, against {}", rows[hybrid].name, parents.map(of).join(", ")),
            "no better than its parents",
            format!("{} ({})", significant(behind), SITUATIONS[situation]),
        )
    };
    let line = |row: &Row| {
        let behind = |situation: usize| {
            (situation as f64 + 1.0, row.costs[situation] / best(rows, situation))
        };
        Series::new(row.name, (0..SITUATIONS.len()).map(behind))
    };
    let parents = [FREE_LIST, IDLE, READY, CENTRAL_ELSE_LOCAL, PROBE];
    Outcome {
        comparisons: HYBRIDS.map(comparison).into(),
        pictures: vec![Picture {
            title: format!("Time over the shortest of the paper's five, {processors} processors"),
            shape: Shape::Lines,
            x: Axis::linear("situation, as in the table"),
            y: Axis::log("times the best"),
            series: parents.map(|row| line(&rows[row])).into(),
        }],
        tables: vec![table(rows)],
        ..Outcome::new(verdict(processors, rows))
    }
}

fn table(rows: &[Row]) -> Table {
    let mut columns = vec!["strategy".to_owned()];
    columns.extend((1..).zip(SITUATIONS).map(|(number, name)| format!("{number}: {name}")));
    columns.push("worst".to_owned());
    let row = |(index, row): (usize, &Row)| {
        let costs = row.costs.iter().map(|&cost| nanos(cost));
        let worst = significant(worst(rows, index).0);
        std::iter::once(row.name.to_owned()).chain(costs).chain([worst]).collect()
    };
    Table {
        title:
            "What a thread costs, and how far behind the best of the paper's five it is at worst"
                .to_owned(),
        columns,
        rows: rows.iter().enumerate().map(row).collect(),
    }
}

fn verdict(processors: usize, rows: &[Row]) -> Verdict {
    if processors < LEAST {
        return too_few(processors);
    }
    let judged = HYBRIDS.map(|(hybrid, parents)| {
        let parents = parents.map(|parent| worst(rows, parent).0);
        let (behind, better) = (worst(rows, hybrid).0, parents[0].min(parents[1]));
        let said = format!(
            "{} is at worst {} times behind, the better of its parents {}",
            rows[hybrid].name,
            significant(behind),
            significant(better)
        );
        (behind >= better, said)
    });
    Verdict::when(judged.iter().all(|(holds, _)| *holds), judged.map(|(_, said)| said).join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strategy that costs 100 in every situation but one.
    fn row(but: usize, cost: f64) -> Row {
        let mut costs = [100.0; SITUATIONS.len()];
        costs[but] = cost;
        Row { name: "a strategy", costs }
    }

    /// Where the parents are three times behind, and the hybrids so much.
    fn judged(central_else_local: f64, probe: f64) -> &'static str {
        let mut rows: Vec<Row> = (0..=PROBE).map(|_| row(0, 100.0)).collect();
        rows[FREE_LIST] = row(1, 300.0);
        rows[READY] = row(2, 300.0);
        rows[IDLE] = row(4, 300.0);
        rows[CENTRAL_ELSE_LOCAL] = row(3, central_else_local);
        rows[PROBE] = row(0, probe);
        verdict(18, &rows).name()
    }

    #[test]
    fn either_hybrid_may_be_worth_it() {
        assert_eq!(judged(300.0, 400.0), "holds");
        assert_eq!(judged(299.0, 400.0), "differs");
        assert_eq!(judged(400.0, 299.0), "differs");
        assert_eq!(verdict(4, &[]).name(), "not judged");
    }

    #[test]
    fn behind_is_against_the_papers_five() {
        let mut rows: Vec<Row> = (0..=PROBE).map(|_| row(0, 100.0)).collect();
        rows[PAPER] = row(0, 1.0);
        rows[PROBE] = row(0, 250.0);
        assert_eq!(worst(&rows, PROBE), (2.5, 0));
    }
}
