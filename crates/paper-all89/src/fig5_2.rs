//! Figure 5.2: threads a second against the computation of a thread, 20 processors, 5 % bus load,
//! by the model.
//!
//! The inputs are those of figure 5.1, fitted to the simulated machine
//! ([`projection`](super::projection)).
//!
//! Rule of the verdict: *holds* if threads that do not compute find the central queue's lock held
//! at least 99 % of the time and local queues at least twice as fast; with more computation that
//! advantage only falls; and at 10 ms it is less than 1 %; else *differs*.

use stanchion_formulas::contention::Equilibrium;
use stanchion_simulator::Machine;

use super::projection::{CENTRAL, Inputs, LOCAL, Queue, share, thousands, times};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{grouped, percent};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig5.2",
    paper: Paper::All89,
    title: "Model projection: grain of parallelism, 20 processors, 5 % bus load",
    claim: "With little computation per thread the lock of a central ready queue is the \
     bottleneck; with enough of it the thread package ceases to matter.",
    bodies: Bodies::Machines {
        real: Body::Never("the bus of this computer cannot be asked what it carries"),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run)),
    },
};

const PROCESSORS: u32 = 20;
const LOAD: f64 = 0.05;
/// Computation of a thread, µs.
const GRAINS: [f64; 16] = [
    0.0, 25.0, 50.0, 75.0, 100.0, 150.0, 200.0, 250.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0,
    900.0, 1000.0,
];
/// A grain beyond the picture, at which the difference is gone.
const COARSE: f64 = 10_000.0;

/// Both queues at one grain.
struct Pair {
    /// The computation of a thread, in microseconds.
    grain: f64,
    /// The model's solution for a central queue.
    central: Equilibrium,
    /// The model's solution for local queues.
    local: Equilibrium,
}

impl Pair {
    /// Returns the rate of local queues over that of a central queue.
    fn advantage(&self) -> f64 {
        self.local.throughput / self.central.throughput
    }
}

fn pairs(inputs: &Inputs) -> Result<Vec<Pair>, Stop> {
    let mut pairs = Vec::new();
    for grain in GRAINS.into_iter().chain([COARSE]) {
        let central = inputs.solve(Queue::Central, grain, LOAD, PROCESSORS)?;
        let local = inputs.solve(Queue::Local, grain, LOAD, PROCESSORS)?;
        pairs.push(Pair { grain, central, local });
    }
    Ok(pairs)
}

fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let inputs = match Inputs::fit(context, machine)? {
        Ok(inputs) => inputs,
        Err(verdict) => return Ok(Outcome::new(verdict)),
    };
    let drawn = pairs(&inputs)?;
    let verdict = verdict(&drawn);
    let ratio = |pair: &Pair| times(pair.advantage());
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
        folded: vec![inputs.table()],
        notes: vec![
            inputs.note(),
            "Bus load is the share of a thread's own computation that is bus time; 5 % of it for each of \
             20 processors is a full bus. So coarse threads are slowed by the bus, with either queue."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

fn verdict(pairs: &[Pair]) -> Verdict {
    let (finest, coarsest) = (&pairs[0], &pairs[pairs.len() - 1]);
    let falls = pairs.is_sorted_by(|finer, coarser| finer.advantage() >= coarser.advantage());
    let (held, least) = (finest.central.busiest_lock, finest.advantage());
    let coarse = coarsest.advantage();
    Verdict::when(
        held >= 0.99 && least >= 2.0 && falls && coarse < 1.01,
        format!(
            "without computation the central lock is held {} of the time and local queues are {} as fast; the advantage {} with computation, and at 10 ms is {}",
            share(held),
            times(least),
            if falls { "only falls" } else { "does not only fall" },
            percent(coarse - 1.0)
        ),
    )
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

/// Returns a table of the busy resources.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |change: fn(&mut Vec<Pair>)| {
            let mut drawn = pairs(&Inputs::round()).expect("it settles");
            change(&mut drawn);
            verdict(&drawn).name()
        };
        assert_eq!(judged(|_| ()), "holds");
        assert_eq!(judged(|pairs| pairs[0].central.busiest_lock = 0.98), "differs", "it is idle");
        assert_eq!(judged(|pairs| drop(pairs.drain(..6))), "differs", "no advantage");
        assert_eq!(judged(|pairs| pairs.swap(2, 3)), "differs", "it rises");
        assert_eq!(judged(|pairs| drop(pairs.drain(8..))), "differs", "it still matters");
    }
}
