//! Figure 3.2: null threads a second, the inverse of figure 3.1.
//!
//! Rule of the verdict: *holds* if
//!
//! 1. every strategy with a central ready queue comes to nine tenths of its highest rate with at
//!    most six processors ("only a few concurrent thread operations");
//! 2. local ready queues come to at least one and a quarter of the highest rate of any of them;
//! 3. local ready queues too are at nine tenths before all processors take part, and with all the
//!    bus is at least nine tenths occupied. If the bus of the machine cannot be measured, its part
//!    is left out;
//!
//! else *differs*. *not judged* with fewer than eight processors, where a few cannot be told from
//! all.

use stanchion_simulator::Machine;

use super::threads::grid::{Cell, Grid};
use super::threads::{CENTRAL_ELSE_LOCAL, PROBE, READY, SINGLE, real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Table, Verdict};
use stanchion_study::units::{nanos, percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig3.2",
    paper: Paper::All89,
    title: "The same as threads per second",
    claim: "Only local ready queues keep rising; a central ready queue stops at a few concurrent operations; local ready queues level off when the bus is full.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run_simulated)),
    },
};

/// Strategies with one ready queue.
const CENTRAL: std::ops::Range<usize> = SINGLE..READY;
/// The share of the highest rate that is as good as the highest.
const NEAR: f64 = 0.9;
/// "Only a few."
const FEW: usize = 6;
/// The number of processors below which the claim cannot be seen.
const LEAST: usize = 8;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let precision = Precision::of(EXPERIMENT.id, context);
    let decides = |row, _| context.processors.len() >= LEAST && row <= READY;
    let (grid, repeated) = real::run(context, 0, precision, decides)?;
    Ok(repeated.outcome(outcome(&grid), real::notes(context, &repeated)))
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let place = simulated::Place::of(machine);
    let grid = simulated::run(context, &place, 0.0)?;
    let mut outcome = outcome(&grid);
    outcome.tables.push(queues(&simulated::queues(context, &place)?, grid.processors()));
    Ok(Outcome { notes: simulated::notes(context, &place), ..outcome })
}

fn outcome(grid: &Grid) -> Outcome {
    let all = grid.all();
    let mut comparisons: Vec<Comparison> = (SINGLE..=READY)
        .map(|row| {
            Comparison::new(
                format!("{}: processors at nine tenths of its highest rate", grid.name(row)),
                if row == READY { "more, until the bus is full" } else { "“only a few”" },
                grid.reaches(row, NEAR).to_string(),
            )
        })
        .collect();
    comparisons.push(Comparison::new(
        "local ready queues: 1000s of threads a second with all processors",
        "rising",
        grid.thousands(READY, all),
    ));
    let hybrids = [CENTRAL_ELSE_LOCAL, PROBE].into_iter().filter(|&row| row < grid.rows());
    comparisons.extend(hybrids.map(|hybrid| {
        Comparison::new(
            format!(
                "{}: its rate over that of local ready queues, all processors",
                grid.name(hybrid)
            ),
            "not measured; complexity \"may outweigh any benefits\" (sec3.6)",
            significant(grid.rate(hybrid, all) / grid.rate(READY, all)),
        )
    }));
    Outcome {
        comparisons,
        pictures: vec![grid.picture(
            "Rate of thread creation",
            "1000s of threads a second",
            |pace| 1e6 / pace,
        )],
        tables: grid.tables(),
        ..Outcome::new(verdict(grid))
    }
}

/// Returns a table of the rates with fewer ready queues than processors.
fn queues(measured: &[(usize, Cell)], processors: usize) -> Table {
    let row = |&(queues, cell): &(usize, Cell)| {
        let bus = cell.bus.map_or_else(|| "–".to_owned(), percent);
        vec![queues.to_string(), nanos(cell.pace), bus]
    };
    Table {
        title: format!("Local ready queues shared by several of {processors} processors"),
        columns: ["queues", "time for a thread", "bus occupied"].map(str::to_owned).into(),
        rows: measured.iter().map(row).collect(),
    }
}

fn verdict(grid: &Grid) -> Verdict {
    if grid.processors() < LEAST {
        return Verdict::NotJudged(format!(
            "with {} processors a few concurrent operations cannot be told from all; it takes {LEAST}",
            grid.processors()
        ));
    }
    let slowest = CENTRAL.map(|row| grid.reaches(row, NEAR)).max().unwrap_or(0);
    let central = CENTRAL.map(|row| grid.highest(row)).fold(0.0, f64::max);
    let advantage = grid.highest(READY) / central;
    let level = grid.reaches(READY, NEAR);
    let bus = grid.cell(READY, grid.all()).bus;
    let is_full = bus.is_none_or(|bus| bus >= NEAR);
    Verdict::when(
        slowest <= FEW && advantage >= 1.25 && level < grid.processors() && is_full,
        format!(
            "central queues are near their highest rate with at most {slowest} processors; local ready queues come to {} times that, with {level}{}",
            significant(advantage),
            bus.map_or_else(String::new, |bus| format!(
                ", and with {} the bus is occupied for {} of the time",
                grid.processors(),
                percent(bus)
            ))
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::threads::grid::tests::grid;
    use super::*;

    /// Central queues stop at `few` processors, local ones at `level`.
    fn judged(few: usize, level: usize) -> &'static str {
        let stops = |row| if row == READY { level } else { few };
        verdict(&grid(&[1, 2, 4, 8, 16, 20], |row, count| 60.0 / stops(row).min(count) as f64))
            .name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(4, 16), "holds");
        assert_eq!(judged(8, 16), "differs", "eight are not a few");
        assert_eq!(judged(4, 4), "differs", "local queues stop too");
        assert_eq!(judged(4, 20), "differs", "they do not level off");
        assert_eq!(verdict(&grid(&[1, 2], |_, _| 1.0)).name(), "not judged");
    }
}
