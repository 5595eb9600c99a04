//! Figure 5.2: threads a second against the computation of a thread, 20 processors, 5 % bus load, by the model.
//!
//! Rule of the verdict: *holds* if for every set of inputs ([`projection`](super::projection)) threads that do not compute find the central
//! queue's lock held at least 99 % of the time and local queues at least twice as fast; with more computation that advantage only falls; and
//! at 10 ms it is less than 1 %; else *differs*.

use stanchion_model::contention::Equilibrium;

use super::super::context::{Context, Stop};
use super::super::experiment::{Bodies, Experiment, Paper};
use super::super::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use super::projection::{CENTRAL, Inputs, LOCAL, Queue, inputs, share, thousands};
use crate::units::{grouped, percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig5.2",
    paper: Paper::All89,
    title: "Model projection: grain of parallelism, 20 processors, 5 % bus load",
    claim: "With little computation per thread the lock of a central ready queue is the \
     bottleneck; with enough of it the thread package ceases to matter.",
    bodies: Bodies::formula(run),
};

const PROCESSORS: u32 = 20;
const LOAD: f64 = 0.05;
/// Computation of a thread, µs.
const GRAINS: [f64; 16] = [
    0.0, 25.0, 50.0, 75.0, 100.0, 150.0, 200.0, 250.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0,
    900.0, 1000.0,
];
/// Beyond the picture: where the difference is gone.
const COARSE: f64 = 10_000.0;

/// Both queues at one grain.
struct Pair {
    grain: f64,
    central: Equilibrium,
    local: Equilibrium,
}

impl Pair {
    /// How much faster local queues are.
    fn advantage(&self) -> f64 {
        self.local.throughput / self.central.throughput
    }
}

fn pairs(inputs: Inputs) -> Result<Vec<Pair>, Stop> {
    let mut pairs = Vec::new();
    for grain in GRAINS.into_iter().chain([COARSE]) {
        let central = inputs.solve(Queue::Central, grain, LOAD, PROCESSORS)?;
        let local = inputs.solve(Queue::Local, grain, LOAD, PROCESSORS)?;
        pairs.push(Pair { grain, central, local });
    }
    Ok(pairs)
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let sets = Inputs::all();
    context.plan(sets.len() + 1);
    let drawn = pairs(Inputs::drawn())?;
    context.step()?;
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut held, mut coarse): (f64, f64) = (1.0, 1.0);
    let mut falls = true;
    for set in sets {
        let pairs = pairs(set)?;
        let (finest, coarsest) = (&pairs[0], &pairs[pairs.len() - 1]);
        least = least.min(finest.advantage());
        most = most.max(finest.advantage());
        held = held.min(finest.central.busiest_lock);
        coarse = coarse.max(coarsest.advantage());
        falls &= pairs.is_sorted_by(|finer, coarser| finer.advantage() >= coarser.advantage());
        context.step()?;
    }
    let verdict = Verdict::when(
        held >= 0.99 && least >= 2.0 && falls && coarse < 1.01,
        format!(
            "without computation the central lock is held {} of the time and local queues are {} to {} \
             times as fast; the advantage {} with computation, and at 10 ms is at most {}",
            share(held),
            significant(least),
            significant(most),
            if falls { "only falls" } else { "does not only fall" },
            percent(coarse - 1.0)
        ),
    );
    let ratio = |pair: &Pair| format!("{} times", significant(pair.advantage()));
    let grain = |wanted: f64| {
        drawn.iter().find(|pair| pair.grain == wanted).map_or_else(|| "–".to_owned(), ratio)
    };
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "local queues against the central one, no computation",
                "central lock is a bottleneck",
                grain(0.0),
            ),
            Comparison::new("the same, 1,000 µs", "approaching", grain(1000.0)),
            Comparison::new("the same, 10,000 µs", "ceases to matter", grain(COARSE)),
        ],
        pictures: vec![picture(&drawn)],
        tables: vec![limits(&drawn)],
        folded: vec![inputs()],
        notes: vec![
            "Bus load is the share of a thread's own computation that is bus time; 5 % of it for each of \
             20 processors is a full bus. So coarse threads are slowed by the bus, with either queue."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

fn picture(pairs: &[Pair]) -> Picture {
    let over = |of: fn(&Pair) -> &Equilibrium| -> Vec<(f64, f64)> {
        let shown = pairs.iter().filter(|pair| pair.grain < COARSE);
        shown.map(|pair| (pair.grain, thousands(of(pair)))).collect()
    };
    Picture {
        title: "Threads a second against computation, 20 processors, 5 % bus load".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("computation of a thread, µs"),
        y: Axis::linear("1000s of threads a second"),
        series: vec![
            Series::new(LOCAL, over(|pair| &pair.local)),
            Series::new(CENTRAL, over(|pair| &pair.central)),
        ],
    }
}

/// What is busy.
fn limits(pairs: &[Pair]) -> Table {
    let shown = [0.0, 100.0, 200.0, 500.0, 1000.0, COARSE];
    let rows = pairs.iter().filter(|pair| shown.contains(&pair.grain)).map(|pair| {
        vec![
            format!("{}\u{a0}µs", grouped(pair.grain as u64)),
            share(pair.central.busiest_lock),
            share(pair.central.waiting),
            share(pair.central.bus_utilization),
            share(pair.local.busiest_lock),
            share(pair.local.bus_utilization),
        ]
    });
    Table {
        title: "What limits: how busy locks and bus are, and how long processors wait for locks"
            .to_owned(),
        columns: [
            "computation",
            "central: lock held",
            "central: waiting",
            "central: bus",
            "local: each lock held",
            "local: bus",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect(),
    }
}
