//! Figure 5.4: threads a second against processors, threads of 2 ms, by the model.
//!
//! Why the rate falls and does not only level off: processors that wait for a lock take the bus
//! from its holder. The model shows it by leaving that out: if waiting cost no bus time, the rate
//! would stay at its highest.
//!
//! The inputs are those of figure 5.1, fitted to the simulated machine
//! ([`projection`](super::projection)).
//!
//! Rule of the verdict: *holds* if, from the number of processors of a central queue's highest rate
//! to twice as many,
//!
//! 1. the central queue loses at least a third of that rate;
//! 2. local queues lose none of theirs;
//! 3. the central queue keeps at least 90 % of its rate if spinning costs no bus time;
//!
//! else *differs*. (The paper does not say how sharp is sharp.)

use stanchion_formulas::contention::Equilibrium;
use stanchion_simulator::Machine;

use super::projection::{CENTRAL, Inputs, LOCAL, Queue, share, thousands};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig5.4",
    paper: Paper::All89,
    title: "Model projection: processors, threads of 2 ms",
    claim: "With enough processors a central ready queue limits even coarse threads, and then its \
     rate drops sharply, because waiting processors consume resources.",
    bodies: Bodies::Machines {
        real: Body::Never("the bus of this computer cannot be asked what it carries"),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run)),
    },
};

const GRAIN: f64 = 2_000.0;
/// The bus load, as a share of computation. The paper's figure does not say. With figure 5.2's 5 %
/// twenty processors fill the bus.
const LOAD: f64 = 0.01;
const MOST: u32 = 120;
/// Further loads, for the table.
const LOADS: [f64; 4] = [0.005, 0.01, 0.02, 0.05];

/// The text for a rate that is not below half yet.
const LATER: &str = "more than twice as many";

/// A central queue from its highest rate on.
struct Fall {
    /// Processors at the highest rate.
    peak: u32,
    /// The highest rate.
    rate: f64,
    /// Processors at which it is below half, if it ever is up to twice as many.
    half: Option<u32>,
}

fn central(inputs: &Inputs, load: f64, processors: u32) -> Result<f64, Stop> {
    inputs.solve(Queue::Central, GRAIN, load, processors).map(|solved| solved.throughput)
}

/// Returns the number of processors at which a central queue's rate is highest, and that rate. The
/// search goes up from one processor as long as the rate rises.
fn highest(inputs: &Inputs, load: f64) -> Result<(u32, f64), Stop> {
    let (mut peak, mut rate) = (1, central(inputs, load, 1)?);
    loop {
        let next = central(inputs, load, peak + 1)?;
        if next <= rate {
            return Ok((peak, rate));
        }
        (peak, rate) = (peak + 1, next);
    }
}

/// Returns the highest rate, and the number of processors at which the rate is half of it.
fn fall(inputs: &Inputs, load: f64) -> Result<Fall, Stop> {
    let (peak, rate) = highest(inputs, load)?;
    for processors in peak + 1..=2 * peak {
        if central(inputs, load, processors)? < 0.5 * rate {
            return Ok(Fall { peak, rate, half: Some(processors) });
        }
    }
    Ok(Fall { peak, rate, half: None })
}

fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let inputs = match Inputs::fit(context, machine)? {
        Ok(inputs) => inputs,
        Err(verdict) => return Ok(Outcome::new(verdict)),
    };
    let drawn = curves(&inputs)?;
    let fallen = fall(&inputs, LOAD)?;
    let kept = Kept::of(&inputs, &fallen)?;
    let verdict = kept.verdict();
    let half = fallen.half.map_or_else(|| LATER.to_owned(), |half| half.to_string());
    let mut loads = Vec::new();
    for load in LOADS {
        loads.push(load_row(&inputs, load)?);
        context.go_on()?;
    }
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "processors at the central queue's highest rate",
                "–",
                format!(
                    "{} ({} thousand threads a second)",
                    fallen.peak,
                    significant(1e6 * fallen.rate)
                ),
            ),
            Comparison::new("processors at half of that rate", "sharp drop-off", half),
        ],
        pictures: vec![picture(&drawn)],
        tables: vec![limits(&drawn), table(loads)],
        folded: vec![inputs.table()],
        notes: vec![
            inputs.note(),
            "Bus load is 1 % of computation; the paper does not print its own. At figure 5.2's 5 % twenty \
             processors fill the bus, and it limits both queues before the lock does."
                .to_owned(),
            "Where lock and bus are both nearly full, the paper's way of iterating between the two levels of \
             the model swings between two answers; stanchion_formulas::contention halves the interval there."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

/// The rates with twice as many processors as the central queue's highest rate takes. Each is a
/// share of the same queue's rate with as many as that.
struct Kept {
    /// For a central queue.
    central: f64,
    /// For a central queue if waiting cost no bus time.
    quiet: f64,
    /// For local queues.
    local: f64,
}

impl Kept {
    fn of(inputs: &Inputs, fallen: &Fall) -> Result<Self, Stop> {
        let (peak, twice) = (fallen.peak, 2 * fallen.peak);
        let spread = |processors| inputs.solve(Queue::Local, GRAIN, LOAD, processors);
        let without = inputs.without_spinning();
        Ok(Self {
            central: central(inputs, LOAD, twice)? / fallen.rate,
            quiet: central(&without, LOAD, twice)? / central(&without, LOAD, peak)?,
            local: spread(twice)?.throughput / spread(peak)?.throughput,
        })
    }

    fn verdict(&self) -> Verdict {
        let Self { central, quiet, local } = *self;
        Verdict::when(
            central <= 2.0 / 3.0 && local >= 1.0 && quiet >= 0.9,
            format!(
                "with twice the processors of its highest rate the central queue keeps {} of that, without the bus time of spinning {}; local queues {}",
                share(central),
                share(quiet),
                share(local)
            ),
        )
    }
}

/// One number of processors.
struct Point {
    /// The number on the axis.
    processors: u32,
    /// The model's solution for a central queue.
    central: Equilibrium,
    /// The solution for a central queue if waiting cost no bus time.
    quiet: Equilibrium,
    /// The model's solution for local queues.
    local: Equilibrium,
}

fn curves(inputs: &Inputs) -> Result<Vec<Point>, Stop> {
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

/// Returns a table of the busy resources.
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

fn load_row(inputs: &Inputs, load: f64) -> Result<Vec<String>, Stop> {
    let found = fall(inputs, load)?;
    let local = inputs.solve(Queue::Local, GRAIN, load, found.peak)?;
    Ok(vec![
        format!("{}\u{a0}%", 100.0 * load),
        found.peak.to_string(),
        significant(1e6 * found.rate),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |central, quiet, local| Kept { central, quiet, local }.verdict().name();
        assert_eq!(judged(0.6, 0.95, 1.1), "holds");
        assert_eq!(judged(0.7, 0.95, 1.1), "differs", "no sharp drop");
        assert_eq!(judged(0.6, 0.8, 1.1), "differs", "it is not the spinning");
        assert_eq!(judged(0.6, 0.95, 0.9), "differs", "local queues lose too");
    }

    #[test]
    fn a_rate_rises_to_its_highest_and_falls() {
        let inputs = Inputs::round();
        let fallen = fall(&inputs, LOAD).expect("it settles");
        assert!((40..80).contains(&fallen.peak), "{}", fallen.peak);
        assert!(fallen.half.is_some_and(|half| half > fallen.peak));
        let kept = Kept::of(&inputs, &fallen).expect("it settles");
        assert_eq!(kept.verdict().name(), "holds");
    }
}
