//! Table 3.1: the costs of the primitive operations of which thread management is made.
//!
//! The claim is the paper's table. Its argument needs only the proportions. A lock and its unlock
//! cost one and a half procedure calls (5.6 : 3.6). An argument and a turn of an empty loop cost
//! less than a call (1 : 3.6 and 2.5 : 3.6).
//!
//! Rule of the verdict: *holds* if each of these three proportions is within one and a half times
//! the paper's, either way, for lock and unlock of the paper's own lock; else *differs*. So a lock
//! costs 1.04 to 2.33 calls.

mod simulated;

use std::hint::black_box;

use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::least;
use stanchion_study::measure::{median, steps, sweep};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{nanos, significant};
use stanchion_study_locks::list::Way;
use stanchion_study_locks::registry::{LOCKS, of_way};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/table3.1",
    paper: Paper::All89,
    title: "Cost of primitive operations",
    claim: "Lock+unlock 5.6 µs, procedure call 3.6 µs, each argument 1 µs, null loop 2.5 µs: a \
     lock costs about one and a half calls.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], simulated::run)),
    },
};

/// The label of the first row.
const LOCK: &str = "lock and unlock (TestAndSet, backoff)";
/// The paper's lock and unlock, in procedure calls.
const PAPER_RATIO: f64 = 5.6 / 3.6;
/// The paper's argument, in procedure calls.
const PAPER_ARGUMENT: f64 = 1.0 / 3.6;
/// The paper's turn of an empty loop, in procedure calls.
const PAPER_TURN: f64 = 2.5 / 3.6;
/// The factor by which a proportion may be off the paper's, either way.
const WITHIN: f64 = 1.5;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let repeats = context.pick(5, 21);
    context.plan(steps(LOCKS.len(), 1, repeats) + 1);
    let on_one_thread = context.pick(10, 40);
    let grid = sweep(
        context,
        LOCKS.len(),
        &[()],
        repeats,
        |lock, ()| (LOCKS[lock].latency)(on_one_thread),
        median,
    )?;
    let locks: Vec<f64> = grid.iter().map(|row| row[0]).collect();
    let plain = Plain::measure(context.pick(200, 1000));
    context.step()?;

    let ours = locks[of_way(Way::Backoff)];
    let ratio = ours / plain.call;
    let verdict = verdict(ours, &plain);
    let rows = LOCKS.iter().zip(&locks);
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(LOCK, "5.6 µs", nanos(ours)),
            Comparison::new("procedure call without arguments", "3.6 µs", nanos(plain.call)),
            Comparison::new("each argument", "1 µs", nanos(plain.argument)),
            Comparison::new("null loop, one turn", "2.5 µs", nanos(plain.turn)),
            Comparison::new(
                "lock and unlock, in calls",
                significant(PAPER_RATIO),
                significant(ratio),
            ),
        ],
        pictures: vec![Picture {
            title: "Lock and unlock, uncontended, around one increment".to_owned(),
            shape: Shape::Rows,
            x: Axis::linear("threads"),
            y: Axis::linear("ns"),
            series: rows.map(|(lock, &cost)| Series::new(lock.name, [(1.0, cost)])).collect(),
        }],
        tables: vec![plain.table()],
        notes: vec![
            "A call is one that the compiler was kept from inlining, less the loop around it; \
             an argument is a sixth of the difference between a call with six and one without, \
             each argument read from memory by the caller and added up by the callee. Each is \
             the least of many runs."
                .to_owned(),
            "On one thread nothing is contended: these are the costs of the fast paths, the \
             increment (about a nanosecond) included."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

fn verdict(lock: f64, plain: &Plain) -> Verdict {
    let proportions = [
        ("lock+unlock", lock / plain.call, PAPER_RATIO),
        ("an argument", plain.argument / plain.call, PAPER_ARGUMENT),
        ("a turn of an empty loop", plain.turn / plain.call, PAPER_TURN),
    ];
    let is_near =
        |&(_, here, paper): &(&str, f64, f64)| (paper / WITHIN..=paper * WITHIN).contains(&here);
    let say = |(what, here, paper): (&str, f64, f64)| {
        format!("{what} costs {} calls (the paper's {})", significant(here), significant(paper))
    };
    Verdict::when(proportions.iter().all(is_near), proportions.map(say).join(", "))
}

/// Costs of plain code, in nanoseconds.
struct Plain {
    /// One pass of an empty loop.
    turn: f64,
    /// A procedure without arguments.
    call: f64,
    /// The increase for one argument more.
    argument: f64,
}

impl Plain {
    const ARGUMENTS: f64 = 6.0;

    fn measure(runs: u32) -> Self {
        const CALLS: u32 = 10_000;
        let turn = least(runs, CALLS, || {
            black_box(());
        });
        let without = least(runs, CALLS, || {
            black_box(none());
        });
        let words = black_box([1u64, 2, 3, 4, 5, 6]);
        let with = least(runs, CALLS, || {
            let [a, b, c, d, e, f] = *black_box(&words);
            black_box(six(a, b, c, d, e, f));
        });
        Self {
            turn,
            call: (without - turn).max(0.01),
            argument: ((with - without) / Self::ARGUMENTS).max(0.0),
        }
    }

    fn table(&self) -> Table {
        let row = |what: &str, paper: f64, here: f64| {
            vec![
                what.to_owned(),
                significant(paper),
                significant(here),
                significant(paper * 1000.0 / here),
            ]
        };
        Table {
            title: "Plain code".to_owned(),
            columns: ["operation", "paper, µs", "here, ns", "times faster"]
                .map(str::to_owned)
                .into(),
            rows: vec![
                row("procedure call", 3.6, self.call),
                row("each argument", 1.0, self.argument),
                row("null loop, one turn", 2.5, self.turn),
            ],
        }
    }
}

#[inline(never)]
fn none() -> u64 {
    black_box(1)
}

#[inline(never)]
fn six(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    black_box(a + b + c + d + e + f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proportion_counts() {
        let judged = |lock: f64, call: f64, argument: f64, turn: f64| {
            verdict(lock, &Plain { turn, call, argument }).name()
        };
        assert_eq!(judged(5.6, 3.6, 1.0, 2.5), "holds");
        assert_eq!(judged(11.2, 7.2, 2.0, 5.0), "holds", "proportions only");
        assert_eq!(judged(8.5, 3.6, 1.0, 2.5), "differs", "a dear lock");
        assert_eq!(judged(3.7, 3.6, 1.0, 2.5), "differs", "a lock that does not exchange");
        assert_eq!(judged(5.6, 3.6, 1.6, 2.5), "differs", "dear arguments");
        assert_eq!(judged(5.6, 3.6, 0.0, 2.5), "differs", "free arguments");
        assert_eq!(judged(5.6, 3.6, 1.0, 1.6), "differs", "a fast loop");
        assert_eq!(judged(5.6, 3.6, 1.0, 3.8), "differs", "a slow loop");
    }
}
