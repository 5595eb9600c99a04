//! Figure 3.1: elapsed time to create, start and finish a million null threads, five strategies.
//!
//! Rule of the verdict, with one processor, where no thread waits for a lock: *holds* if multiple
//! locks take longer than a single lock, local free lists less than multiple locks, and an idle
//! queue longer than local free lists; else *differs*. *not judged* if a time that decides is not
//! known precisely enough ([`Precision`]).

use stanchion_simulator::Machine;

use super::threads::grid::Grid;
use super::threads::{FREE_LIST, IDLE, MULTIPLE, SINGLE, real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::{nanos, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig3.1",
    paper: Paper::All89,
    title: "Elapsed time of 1,000,000 null threads, five strategies",
    claim: "On one processor multiple locks are slower than a single lock, a local free list is faster than multiple locks, an idle queue slower than a local \
            free list.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run_simulated)),
    },
};

fn run(context: &Context) -> Result<Outcome, Stop> {
    let precision = Precision::of(EXPERIMENT.id, context);
    let decides = |row, column| column == 0 && [SINGLE, MULTIPLE, FREE_LIST, IDLE].contains(&row);
    let (grid, repeated) = real::run(context, 0, precision, decides)?;
    Ok(repeated.outcome(outcome(&grid), real::notes(context, &repeated)))
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let place = simulated::Place::of(machine);
    let grid = simulated::run(context, &place, 0.0)?;
    Ok(Outcome { notes: simulated::notes(context, &place), ..outcome(&grid) })
}

/// Pairs of strategies, the one that is slower in the paper first, with one processor.
const SLOWER: [(usize, usize); 3] = [(MULTIPLE, SINGLE), (MULTIPLE, FREE_LIST), (IDLE, FREE_LIST)];

fn outcome(grid: &Grid) -> Outcome {
    let mut comparisons = vec![Comparison::new(
        "a thread with a local free list, one processor",
        "an order of magnitude below PRESTO's 600 µs",
        nanos(grid.pace(FREE_LIST, 0)),
    )];
    comparisons.extend(SLOWER.map(|(slower, faster)| {
        Comparison::new(
            format!("{} over {}, one processor", grid.name(slower), grid.name(faster)),
            "above 1",
            significant(ratio(grid, (slower, faster))),
        )
    }));
    Outcome {
        comparisons,
        pictures: vec![grid.picture(
            "Elapsed time for a million null threads",
            "seconds",
            |pace| pace / 1e3,
        )],
        tables: grid.tables(),
        ..Outcome::new(verdict(grid))
    }
}

fn ratio(grid: &Grid, (slower, faster): (usize, usize)) -> f64 {
    grid.pace(slower, 0) / grid.pace(faster, 0)
}

fn verdict(grid: &Grid) -> Verdict {
    let [multiple, free_list, idle] = SLOWER.map(|pair| ratio(grid, pair));
    Verdict::when(
        multiple > 1.0 && free_list > 1.0 && idle > 1.0,
        format!(
            "with one processor multiple locks take {} times as long as a single lock and {} times as long as local free lists, an idle queue {} times as long as \
             these",
            significant(multiple),
            significant(free_list),
            significant(idle)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::threads::grid::tests::grid;
    use super::*;

    fn judged(paces: [f64; 5]) -> &'static str {
        verdict(&grid(&[1, 20], |row, count| if count == 1 { paces[row] } else { 1.0 })).name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged([60.0, 80.0, 50.0, 55.0, 50.0]), "holds");
        assert_eq!(judged([90.0, 80.0, 50.0, 55.0, 50.0]), "differs", "a single lock is slower");
        assert_eq!(judged([60.0, 80.0, 85.0, 90.0, 50.0]), "differs", "local lists are slower");
        assert_eq!(judged([60.0, 80.0, 50.0, 49.0, 50.0]), "differs", "an idle queue is faster");
    }
}
