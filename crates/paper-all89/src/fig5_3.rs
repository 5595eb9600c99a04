//! Figure 5.3: threads a second against bus load, 20 processors, threads of 200 µs, by the model.
//!
//! The inputs are those of figure 5.1, fitted to the simulated machine
//! ([`projection`](super::projection)).
//!
//! Rule of the verdict: *holds* if
//!
//! 1. both rates fall with each step of bus load;
//! 2. at 40 % the bus is at least 99 % busy with local queues, and their rate is less than half of
//!    their rate without load;
//! 3. the advantage of local queues over a central one (in per cent) is then less than half of the
//!    advantage without load;
//!
//! else *differs*.

use stanchion_formulas::contention::Equilibrium;
use stanchion_simulator::Machine;

use super::projection::{CENTRAL, Inputs, LOCAL, Queue, share, thousands};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig5.3",
    paper: Paper::All89,
    title: "Model projection: bus load, 20 processors, threads of 200 µs",
    claim: "Bus load limits the rate with local ready queues and, since it makes critical sections \
     longer, with a central one too; it reduces the difference.",
    bodies: Bodies::Machines {
        real: Body::Never("the bus of this computer cannot be asked what it carries"),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run)),
    },
};

const PROCESSORS: u32 = 20;
const GRAIN: f64 = 200.0;
/// Share of a thread's computation that is bus time, in per cent.
const LOADS: [u32; 13] = [0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40];

/// Both queues at one load.
struct Pair {
    /// The share of a thread's computation that is bus time, in per cent.
    load: u32,
    /// The model's solution for a central queue.
    central: Equilibrium,
    /// The model's solution for local queues.
    local: Equilibrium,
}

impl Pair {
    /// Returns the advantage of local queues over a central queue, as a share of the latter's rate.
    fn gain(&self) -> f64 {
        self.local.throughput / self.central.throughput - 1.0
    }
}

fn pairs(inputs: &Inputs) -> Result<Vec<Pair>, Stop> {
    let mut pairs = Vec::new();
    for load in LOADS {
        let share = f64::from(load) / 100.0;
        let central = inputs.solve(Queue::Central, GRAIN, share, PROCESSORS)?;
        let local = inputs.solve(Queue::Local, GRAIN, share, PROCESSORS)?;
        pairs.push(Pair { load, central, local });
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
    let (none, full) = (&drawn[0], &drawn[drawn.len() - 1]);
    let gain = |pair: &Pair| format!("+{}", share(pair.gain()));
    let rate =
        |solved: &Equilibrium| format!("{} thousand a second", significant(thousands(solved)));
    Ok(Outcome {
        comparisons: vec![
            Comparison::new("local queues over the central one, no load", "more", gain(none)),
            Comparison::new("the same, 40 %", "less", gain(full)),
            Comparison::new("local queues, 40 %", "limited by the bus", rate(&full.local)),
            Comparison::new("central queue, 40 %", "limited too", rate(&full.central)),
        ],
        pictures: vec![picture(&drawn)],
        tables: vec![limits(&drawn)],
        folded: vec![inputs.table()],
        notes: vec![
            inputs.note(),
            "Up to about 5 % the difference may grow before it shrinks: load first makes the one critical \
             section longer, and with it the wait of all; then the bus itself is full."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

fn verdict(pairs: &[Pair]) -> Verdict {
    let falls = pairs.is_sorted_by(|less, more| {
        less.local.throughput > more.local.throughput
            && less.central.throughput > more.central.throughput
    });
    let (none, full) = (&pairs[0], &pairs[pairs.len() - 1]);
    let bus = full.local.bus_utilization;
    let left = full.local.throughput / none.local.throughput;
    let kept = full.gain() / none.gain();
    Verdict::when(
        falls && bus >= 0.99 && left < 0.5 && kept < 0.5,
        format!(
            "both rates {} with load; at 40\u{a0}% the bus is {} busy, local queues have {} of their rate left and {} of what they had over a central one",
            if falls { "fall" } else { "do not only fall" },
            share(bus),
            share(left),
            share(kept)
        ),
    )
}

fn picture(pairs: &[Pair]) -> Picture {
    let over = |of: fn(&Pair) -> &Equilibrium| -> Vec<(f64, f64)> {
        pairs.iter().map(|pair| (f64::from(pair.load), thousands(of(pair)))).collect()
    };
    Picture {
        title: "Threads a second against bus load, 20 processors, threads of 200 µs".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("bus load of a thread's computation, %"),
        y: Axis::linear("1000s of threads a second"),
        series: vec![
            Series::new(LOCAL, over(|pair| &pair.local)),
            Series::new(CENTRAL, over(|pair| &pair.central)),
        ],
    }
}

/// Returns a table of the busy resources.
fn limits(pairs: &[Pair]) -> Table {
    let rows = pairs.iter().filter(|pair| [0, 2, 5, 10, 20, 40].contains(&pair.load)).map(|pair| {
        vec![
            format!("{}\u{a0}%", pair.load),
            share(pair.central.busiest_lock),
            share(pair.central.waiting),
            share(pair.central.bus_utilization),
            significant(pair.central.bus_response),
            share(pair.local.bus_utilization),
            significant(pair.local.bus_response),
        ]
    });
    Table {
        title: "What limits: how busy lock and bus are, and how much longer a bus access takes than on an \
                idle bus"
            .to_owned(),
        columns: [
            "load",
            "central: lock held",
            "central: waiting",
            "central: bus",
            "central: access",
            "local: bus",
            "local: access",
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
        assert_eq!(judged(|pairs| pairs.swap(10, 11)), "differs", "a rate rises");
        assert_eq!(
            judged(|pairs| pairs[12].local.bus_utilization = 0.98),
            "differs",
            "the bus is idle"
        );
        assert_eq!(judged(|pairs| pairs.truncate(4)), "differs", "the load is small");
        assert_eq!(
            judged(|pairs| pairs[12].central.throughput *= 0.5),
            "differs",
            "the difference stays"
        );
    }
}
