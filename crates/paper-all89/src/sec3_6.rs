//! The end of section 3.6: two hybrids that the paper names, doubts, and did not build.
//!
//! > For example, both central and per-processor ready queues could be used, by placing created
//! > threads in a local queue if the lock on the central queue is busy. As another example, a
//! > creating processor could probe randomly to find an idle processor, and if none were found,
//! > place the thread in a central queue. The drawback to any such approach is that complexity adds
//! > cost which may outweigh any benefits.
//!
//! A hybrid is "to combine the advantages of some of the alternatives", its *parents*: one is good
//! where the other is not. So all are measured in the *situations* of figures 3.1 and 3.4: null
//! threads on one processor and on all; a thread while processors idle, with as many threads as
//! processors, and with more. In a situation a strategy is *behind* by its time over that of the
//! better parent. Its *worst* is the largest of these ratios.
//!
//! | hybrid | parents |
//! | --- | --- |
//! | central else local | local free lists (a central queue), local ready queues |
//! | probe idle else central | idle queue, local free lists (a central queue) |
//!
//! Rule of the verdict: *holds* if no hybrid is worth its complexity, that is, if the worst of some
//! parent of each hybrid is no larger than the hybrid's own; else *differs*. *not judged* with
//! fewer than eight processors.

use stanchion_simulator::Machine;

use super::fig3_4::{Curves, PROCESSORS};
use super::threads::grid::Grid;
use super::threads::{CENTRAL_ELSE_LOCAL, FREE_LIST, IDLE, PROBE, READY, real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{nanos, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/sec3.6",
    paper: Paper::All89,
    title: "Two hybrids: a local queue if the central one is busy; a probe for an idle processor, else a central queue",
    claim: "Complexity adds cost which may outweigh any benefits of hybrids: neither is worth it.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run_simulated)),
    },
};

/// The number of processors below which the situations cannot be told apart.
const LEAST: usize = 8;

/// A hybrid, after its parents.
const FAMILIES: [[usize; 3]; 2] =
    [[FREE_LIST, READY, CENTRAL_ELSE_LOCAL], [IDLE, FREE_LIST, PROBE]];

const SITUATIONS: [&str; 5] = [
    "null threads, one processor",
    "null threads, all processors",
    "while processors idle",
    "as many threads as processors",
    "more threads than processors",
];

/// A strategy, and the cost of a thread in each situation.
struct Row {
    /// The label of the strategy.
    name: &'static str,
    /// Nanoseconds for a thread, by situation.
    costs: [f64; SITUATIONS.len()],
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let processors = context.processors.len();
    if processors < 2 {
        return Ok(Outcome::new(too_few(processors)));
    }
    let precision = Precision::of(EXPERIMENT.id, context);
    let decides = |row, _| processors >= LEAST && FAMILIES.concat().contains(&row);
    let (grid, repeated) =
        real::run_on(context, 0, (vec![1, processors], &[]), precision, decides)?;
    let curves = Curves { processors, rows: real::latencies(context, false)? };
    Ok(repeated
        .outcome(outcome(processors, &rows(&grid, &curves)), real::notes(context, &repeated)))
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

/// A hybrid and its parents.
struct Family<'a> {
    /// The two parents, then the hybrid.
    members: [&'a Row; 3],
    /// The time of each member over that of the better parent, by situation.
    behind: [[f64; SITUATIONS.len()]; 3],
}

impl<'a> Family<'a> {
    fn of(rows: &'a [Row], members: [usize; 3]) -> Self {
        let members = members.map(|member| &rows[member]);
        let [one, other, _] = members.map(|row| row.costs);
        let behind = members.map(|row| {
            std::array::from_fn(|situation| {
                row.costs[situation] / one[situation].min(other[situation])
            })
        });
        Self { members, behind }
    }

    /// Returns the largest ratio by which a member is behind, and the situation of that.
    fn worst(&self, member: usize) -> (f64, &'static str) {
        let behind = self.behind[member].into_iter().zip(SITUATIONS);
        behind.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((1.0, SITUATIONS[0]))
    }

    fn worst_shown(&self, member: usize) -> String {
        let (behind, situation) = self.worst(member);
        format!("{} ({situation})", significant(behind))
    }

    /// Returns whether the worst of the hybrid is no better than that of one of its parents.
    fn is_in_vain(&self) -> bool {
        let [one, other, hybrid] = [0, 1, 2].map(|member| self.worst(member).0);
        one.min(other) <= hybrid
    }

    fn comparisons(&self) -> [Comparison; 3] {
        let [one, other, hybrid] = self.members.map(|row| row.name);
        let parent = |member: usize, name: &str| {
            Comparison::new(
                format!("{hybrid}: its parent {name} at worst behind the better one"),
                "–",
                self.worst_shown(member),
            )
        };
        let own = "at worst behind its better parent";
        [
            parent(0, one),
            parent(1, other),
            Comparison::new(
                format!("{hybrid}: {own}"),
                "not measured: complexity \"may outweigh any benefits\"",
                self.worst_shown(2),
            ),
        ]
    }

    fn picture(&self, processors: usize) -> Picture {
        let line = |(row, behind): (&&Row, &[f64; SITUATIONS.len()])| {
            let points = behind.iter().enumerate();
            Series::new(row.name, points.map(|(index, &behind)| (index as f64 + 1.0, behind)))
        };
        Picture {
            title: format!("{}, {processors} processors", self.members[2].name),
            shape: Shape::Lines,
            x: Axis::linear("situation, as numbered in the table"),
            y: Axis::linear("time over that of the better parent"),
            series: self.members.iter().zip(&self.behind).map(line).collect(),
        }
    }

    fn said(&self) -> String {
        let [one, other, hybrid] = [0, 1, 2].map(|member| {
            format!("{} {}", self.members[member].name, significant(self.worst(member).0))
        });
        format!("{hybrid}, its parents {one} and {other}")
    }
}

fn outcome(processors: usize, rows: &[Row]) -> Outcome {
    let families = FAMILIES.map(|members| Family::of(rows, members));
    Outcome {
        comparisons: families.iter().flat_map(Family::comparisons).collect(),
        pictures: families.iter().map(|family| family.picture(processors)).collect(),
        tables: vec![table(rows)],
        ..Outcome::new(verdict(processors, &families))
    }
}

fn table(rows: &[Row]) -> Table {
    let mut columns = vec!["strategy".to_owned()];
    columns.extend((1..).zip(SITUATIONS).map(|(number, name)| format!("{number}: {name}")));
    let row = |row: &Row| {
        let costs = row.costs.iter().map(|&cost| nanos(cost));
        std::iter::once(row.name.to_owned()).chain(costs).collect()
    };
    let title = "What a thread costs".to_owned();
    Table { title, columns, rows: rows.iter().map(row).collect() }
}

fn verdict(processors: usize, families: &[Family<'_>]) -> Verdict {
    if processors < LEAST {
        return too_few(processors);
    }
    let said: Vec<String> = families.iter().map(Family::said).collect();
    Verdict::when(
        families.iter().all(Family::is_in_vain),
        format!("at worst behind the better parent: {}", said.join("; ")),
    )
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
        outcome(18, &rows).verdict.name()
    }

    #[test]
    fn either_hybrid_may_be_worth_it() {
        assert_eq!(judged(300.0, 400.0), "holds");
        assert_eq!(judged(299.0, 400.0), "differs");
        assert_eq!(judged(400.0, 299.0), "differs");
        assert_eq!(verdict(4, &[]).name(), "not judged");
    }

    #[test]
    fn what_both_parents_are_bad_at_does_not_count() {
        let mut rows: Vec<Row> = (0..=PROBE).map(|_| row(0, 100.0)).collect();
        for slow in [IDLE, FREE_LIST, PROBE] {
            rows[slow] = row(1, 500.0);
        }
        rows[PROBE].costs[3] = 150.0;
        assert_eq!(Family::of(&rows, FAMILIES[1]).worst(2), (1.5, SITUATIONS[3]));
    }
}
