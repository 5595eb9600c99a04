//! Figure 5.4: threads a second against processors, threads of 2 ms, by the model.
//!
//! Why it falls and not only levels off: processors that wait take the bus from the one they wait for. The model shows it by leaving that out:
//! with waiting that costs no bus time the rate stays where it was.
//!
//! Rule of the verdict: *holds* if for every set of inputs ([`projection`](super::projection)), with twice the processors of a central
//! queue's highest rate, at least a third of that rate is lost; local queues lose none of theirs from the one number of processors to the
//! other; and without the bus time of spinning the central queue keeps at least 90 % of its own; else *differs*. (The paper does not say
//! how sharp is sharp.)

use stanchion_model::contention::Equilibrium;

use super::super::context::{Context, Stop};
use super::super::experiment::{Bodies, Experiment, Paper};
use super::super::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use super::projection::{CENTRAL, Inputs, LOCAL, Queue, inputs, share, thousands};
use crate::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig5.4",
    paper: Paper::All89,
    title: "Model projection: processors, threads of 2 ms",
    claim: "With enough processors a central ready queue limits even coarse threads, and then its \
     rate drops sharply, because waiting processors consume resources.",
    bodies: Bodies::formula(run),
};

const GRAIN: f64 = 2_000.0;
/// Bus load, share of computation. The paper's figure does not say; with figure 5.2's 5 % twenty processors fill the bus.
const LOAD: f64 = 0.01;
const MOST: u32 = 120;
/// Further loads, for the table.
const LOADS: [f64; 4] = [0.005, 0.01, 0.02, 0.05];

/// Where the half of a rate is that is not below half yet.
const LATER: &str = "more than twice as many";

/// A central queue from its highest rate on.
struct Fall {
    /// Processors at the highest rate.
    peak: u32,
    /// That rate.
    rate: f64,
    /// Processors at which it is below half, if it ever is up to twice as many.
    half: Option<u32>,
}

fn central(inputs: Inputs, load: f64, processors: u32) -> Result<f64, Stop> {
    inputs.solve(Queue::Central, GRAIN, load, processors).map(|solved| solved.throughput)
}

/// The number of processors at which a central queue's rate is highest, and that rate: up from one, as long as it rises.
fn highest(inputs: Inputs, load: f64) -> Result<(u32, f64), Stop> {
    let (mut peak, mut rate) = (1, central(inputs, load, 1)?);
    loop {
        let next = central(inputs, load, peak + 1)?;
        if next <= rate {
            return Ok((peak, rate));
        }
        (peak, rate) = (peak + 1, next);
    }
}

/// The highest rate, and where the half of it is.
fn fall(inputs: Inputs, load: f64) -> Result<Fall, Stop> {
    let (peak, rate) = highest(inputs, load)?;
    for processors in peak + 1..=2 * peak {
        if central(inputs, load, processors)? < 0.5 * rate {
            return Ok(Fall { peak, rate, half: Some(processors) });
        }
    }
    Ok(Fall { peak, rate, half: None })
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let sets = Inputs::all();
    context.plan(sets.len() + LOADS.len() + 1);
    let drawn = curves(Inputs::drawn())?;
    context.step()?;
    let fallen = fall(Inputs::drawn(), LOAD)?;

    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    let (mut local, mut quiet) = (f64::INFINITY, f64::INFINITY);
    for set in sets {
        let (peak, rate) = highest(set, LOAD)?;
        let kept = central(set, LOAD, 2 * peak)? / rate;
        (least, most) = (least.min(kept), most.max(kept));
        let spread = |processors| set.solve(Queue::Local, GRAIN, LOAD, processors);
        local = local.min(spread(2 * peak)?.throughput / spread(peak)?.throughput);
        let without = set.without_spinning();
        quiet = quiet.min(central(without, LOAD, 2 * peak)? / central(without, LOAD, peak)?);
        context.step()?;
    }
    let verdict = Verdict::when(
        most <= 2.0 / 3.0 && local >= 1.0 && quiet >= 0.9,
        format!(
            "with twice the processors of its highest rate the central queue keeps {} to {} of that, without \
             the bus time of spinning at least {}; local queues at least {}",
            share(least),
            share(most),
            share(quiet),
            share(local)
        ),
    );
    let half = fallen.half.map_or_else(|| LATER.to_owned(), |half| half.to_string());
    let mut loads = Vec::new();
    for load in LOADS {
        loads.push(load_row(load)?);
        context.step()?;
    }
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "processors at the central queue's highest rate",
                "–",
                format!(
                    "{} ({} thousand threads a second)",
                    fallen.peak,
                    significant(1e3 * fallen.rate)
                ),
            ),
            Comparison::new("processors at half of that rate", "sharp drop-off", half),
        ],
        pictures: vec![picture(&drawn)],
        tables: vec![limits(&drawn), table(loads)],
        folded: vec![inputs()],
        notes: vec![
            "Bus load is 1 % of computation; the paper does not print its own. At figure 5.2's 5 % twenty \
             processors fill the bus, and it limits both queues before the lock does."
                .to_owned(),
            "Where lock and bus are both nearly full, the paper's way of iterating between the two levels of \
             the model swings between two answers; stanchion_model::contention halves the interval there."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

/// One number of processors.
struct Point {
    processors: u32,
    central: Equilibrium,
    quiet: Equilibrium,
    local: Equilibrium,
}

fn curves(inputs: Inputs) -> Result<Vec<Point>, Stop> {
    let mut points = Vec::new();
    for processors in [1].into_iter().chain((4..=MOST).step_by(4)) {
        points.push(Point {
            processors,
            central: inputs.solve(Queue::Central, GRAIN, LOAD, processors)?,
            quiet: inputs.without_spinning().solve(Queue::Central, GRAIN, LOAD, processors)?,
            local: inputs.solve(Queue::Local, GRAIN, LOAD, processors)?,
        });
    }
    Ok(points)
}

fn picture(points: &[Point]) -> Picture {
    let over = |of: fn(&Point) -> &Equilibrium| -> Vec<(f64, f64)> {
        points.iter().map(|point| (f64::from(point.processors), thousands(of(point)))).collect()
    };
    Picture {
        title: "Threads a second against processors, threads of 2 ms, 1 % bus load".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("processors"),
        y: Axis::linear("1000s of threads a second"),
        series: vec![
            Series::new(LOCAL, over(|point| &point.local)),
            Series::new(CENTRAL, over(|point| &point.central)),
            Series::new("central, if waiting cost no bus time", over(|point| &point.quiet))
                .dotted(),
        ],
    }
}

/// What is busy.
fn limits(points: &[Point]) -> Table {
    let rows = points.iter().filter(|point| point.processors % 20 == 0).map(|point| {
        vec![
            point.processors.to_string(),
            share(point.central.busiest_lock),
            share(point.central.waiting),
            share(point.central.bus_utilization),
            share(point.central.bus_spinning),
            significant(point.central.bus_response),
            share(point.local.bus_utilization),
        ]
    });
    Table {
        title: "What limits: how busy lock and bus are, and how much longer a bus access takes than on an \
                idle bus"
            .to_owned(),
        columns: [
            "processors",
            "central: lock held",
            "central: waiting",
            "central: bus",
            "of that, spinning",
            "central: access",
            "local: bus",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect(),
    }
}

fn load_row(load: f64) -> Result<Vec<String>, Stop> {
    let found = fall(Inputs::drawn(), load)?;
    let local = Inputs::drawn().solve(Queue::Local, GRAIN, load, found.peak)?;
    Ok(vec![
        format!("{}\u{a0}%", 100.0 * load),
        found.peak.to_string(),
        significant(1e3 * found.rate),
        found.half.map_or_else(|| LATER.to_owned(), |half| half.to_string()),
        share(local.bus_utilization),
    ])
}

fn table(rows: Vec<Vec<String>>) -> Table {
    Table {
        title: "The central queue's highest rate, for other bus loads".to_owned(),
        columns: [
            "bus load",
            "processors there",
            "1000s of threads a second",
            "processors at half of it",
            "bus of local queues there",
        ]
        .map(str::to_owned)
        .into(),
        rows,
    }
}
