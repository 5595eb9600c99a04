//! Figure 3: a million insert/delete-min pairs on an initially empty skew heap, 6 µs of other work
//! after each operation.
//!
//! Rule of the verdict: *holds* if the preemption-safe lock takes less time than Herlihy's heap at
//! every level with one processor and with all ("with and without contention"), the ordinary lock
//! degrades (its normalised time grows by more than a quarter from level 1 to level 3 with all
//! processors) and Herlihy's heap does not, and on heaps that begin with entries in them the
//! preemption-safe lock also takes less than Herlihy's heap at level 1; else *differs*. *not
//! judged* with one processor, nor if a ratio that decides is not known precisely enough
//! ([`Precision`]).
//!
//! An extra row makes the sequential heap non-blocking by copying all of it at each operation. The
//! paper expects it to be "much worse".

use super::grid::{Grid, LEVELS, Ratio};
use super::{BASE, judge, peers, real, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/fig3",
    paper: Paper::Ms97,
    title: "1,000,000 insert/delete-min pairs, three skew heaps",
    claim: "The preemption-safe lock wins over the heap without locks, with and without contention; the ordinary lock degrades with the multiprogramming level, the \
     heap without locks does not. The same order on heaps that are not empty.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["challenge"], run_simulated)),
    },
};

const ORDINARY: usize = 0;
const HERLIHY: usize = 2;
const COPIED: usize = 3;

/// Entries of the heaps that are not empty at first: the full copy holds no more.
const ENTRIES: usize = 32;

/// The paper's seconds of the preemption-safe single lock at each level, with one processor and
/// with eleven.
pub(super) const SECONDS: [[f64; 2]; 3] = [[21.0, 27.7], [43.1, 27.4], [65.0, 27.6]];

fn run(context: &Context) -> Result<Outcome, Stop> {
    let precision = Precision::of(EXPERIMENT.id, context);
    let heaps = (real::HEAPS, peers::HEAPS);
    let [of_empty, of_filled] = deciding();
    let (empty, of_empty) = real::run(context, heaps, 0, precision, &of_empty)?;
    let (filled, of_filled) = real::run(context, heaps, ENTRIES, precision, &of_filled)?;
    let outcome = of_empty.outcome(outcome(&empty, &filled), real::notes(&empty, &of_empty));
    Ok(Outcome { verdict: of_filled.judge(outcome.verdict), ..outcome })
}

/// Returns the ratios that the rule uses: of empty heaps, and of heaps with entries.
fn deciding() -> [Vec<Ratio>; 2] {
    let degrades = judge::normalised([ORDINARY], true);
    let wins = [true, false].map(|all| judge::normalised([HERLIHY], all)).concat();
    let filled = Ratio { row: HERLIHY, base: BASE, level: 1, all: true };
    [[degrades, wins].concat(), vec![filled]]
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let empty = simulated::run(context, machine, simulated::HEAPS, 0)?;
    let filled = simulated::run(context, machine, simulated::HEAPS, ENTRIES)?;
    Ok(Outcome { notes: simulated::notes(machine), ..outcome(&empty, &filled) })
}

fn outcome(empty: &Grid, filled: &Grid) -> Outcome {
    let mut comparisons = judge::absolute(empty, SECONDS);
    comparisons.push(judge::against_base(empty, HERLIHY, "above 1"));
    comparisons.push(judge::against_base(empty, COPIED, "“expected to perform much worse”"));
    comparisons.push(Comparison::new(
        format!(
            "Herlihy over the preemption-safe lock, {ENTRIES} entries, level 1, all processors"
        ),
        "above 1",
        significant(filled.normalised(HERLIHY, 1, filled.all())),
    ));
    comparisons.extend(judge::levels(empty, &[(ORDINARY, true), (HERLIHY, false)]));
    let mut pictures = empty.pictures();
    for picture in filled.pictures() {
        let title = format!("{}, {ENTRIES} entries at first", picture.title);
        pictures.push(stanchion_study::outcome::Picture { title, ..picture });
    }
    Outcome {
        comparisons,
        pictures,
        tables: empty.tables(),
        ..Outcome::new(verdict(empty, filled))
    }
}

fn verdict(empty: &Grid, filled: &Grid) -> Verdict {
    if empty.processors() < 2 {
        return judge::alone();
    }
    let columns = [0, empty.all()];
    let least = LEVELS
        .flat_map(|level| columns.map(|column| empty.normalised(HERLIHY, level, column)))
        .fold(f64::INFINITY, f64::min);
    let not_empty = filled.normalised(HERLIHY, 1, filled.all());
    Verdict::when(
        least > 1.0
            && not_empty > 1.0
            && judge::degrades(empty, ORDINARY)
            && !judge::degrades(empty, HERLIHY),
        format!(
            "{} takes at least {} times as long as the {} (levels 1 to 3, 1 and {} processors), {} times with {ENTRIES} entries; from level 1 to 3 the ordinary lock's time grows {} times, \
             its own {}",
            empty.name(HERLIHY),
            significant(least),
            empty.name(BASE),
            empty.processors(),
            significant(not_empty),
            significant(empty.degraded(ORDINARY)),
            significant(empty.degraded(HERLIHY)),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::{grid, only};
    use super::*;

    const NAMES: [&str; 4] = ["ordinary", "safe", "Herlihy", "full copy"];

    fn times(herlihy: f64, growth: f64, ordinary: f64, filled: f64) -> [Grid; 2] {
        let empty = grid(&NAMES, |row, level, _| match row {
            0 => 27.0 + ordinary * level as f64,
            2 => herlihy + growth * level as f64,
            _ => 27.0,
        });
        let filled = grid(&NAMES, |row, _, _| if row == 2 { filled } else { 27.0 });
        [empty, filled]
    }

    fn judged(herlihy: f64, growth: f64, ordinary: f64, filled: f64) -> &'static str {
        let [empty, filled] = times(herlihy, growth, ordinary, filled);
        verdict(&empty, &filled).name()
    }

    #[test]
    fn only_the_ratios_that_are_measured_precisely_decide() {
        let [empty, filled] = times(40.0, 1.0, 20.0, 40.0);
        let [of_empty, of_filled] = deciding();
        let (empty, filled) = (only(&empty, &of_empty), only(&filled, &of_filled));
        assert_eq!(verdict(&empty, &filled).name(), "holds");
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(40.0, 1.0, 20.0, 40.0), "holds");
        assert_eq!(judged(20.0, 1.0, 20.0, 40.0), "differs", "it wins");
        assert_eq!(judged(40.0, 30.0, 20.0, 40.0), "differs", "it degrades");
        assert_eq!(judged(40.0, 1.0, 1.0, 40.0), "differs", "the ordinary lock keeps up");
        assert_eq!(judged(40.0, 1.0, 20.0, 20.0), "differs", "it wins on heaps that are not empty");
    }
}
