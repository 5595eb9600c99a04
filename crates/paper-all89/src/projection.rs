//! The queueing model of section 5, with inputs fitted to the simulated machine. Figure 5.1
//! compares it with a simulation, and figures 5.2 to 5.4 project it.
//!
//! The paper's model has measured inputs, and the paper prints few of them. Here they are measured
//! as in the paper (section 5.1). Processors with copies of all data give the demands of thread
//! management. The amount by which spinning slows others gives the demand of spinning. Nothing is
//! fitted to the rates that the model predicts.
//!
//! "Central" is the paper's *local freelist*: lists of free blocks for each processor, one ready
//! queue for all. "Local" is its *local readyq*, where each processor also has a ready queue. A
//! thread is enqueued once and dequeued once, so it visits two queues.

use stanchion_formulas::contention::{self, Demand, Equilibrium, Lock, Workload};
use stanchion_simulator::Machine;

use super::threads::simulated::{self, Demands, Place, VISITS};
use stanchion_simulated_locks::bus;
use stanchion_study::context::{Context, Stop};
use stanchion_study::outcome::{Table, Verdict};
use stanchion_study::units::{nanos, percent, significant};

/// The queue in which a ready thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Central,
    Local,
}

pub(super) const CENTRAL: &str = "central ready queue";
pub(super) const LOCAL: &str = "local ready queues";

/// The model's inputs for a thread package and its machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs {
    /// The times of a thread with a central queue.
    central: Demands,
    /// The times of a thread with local queues.
    local: Demands,
    /// The bus time that a waiting processor asks for in each section that goes by, in ns.
    spinning: f64,
    /// Nanoseconds of the machine for one of the Symmetry.
    speed: f64,
}

impl Inputs {
    /// Measures the inputs, or says why that cannot be done on this machine.
    pub(super) fn fit(context: &Context, machine: &Machine) -> Result<Result<Self, Verdict>, Stop> {
        if bus::miss(machine).is_none() {
            return Ok(Err(Verdict::NotJudged(format!("{} has no one bus", machine.name))));
        }
        let place = Place::of(machine);
        let Some(spinning) = simulated::spinning(context, &place)? else {
            let few = "has too few processors to see what spinning asks for";
            return Ok(Err(Verdict::NotJudged(format!("{} {few}", machine.name))));
        };
        let [central, local] = simulated::demands(context, &place)?;
        Ok(Ok(Self { central, local, spinning, speed: place.speed }))
    }

    fn demands(&self, queue: Queue) -> Demands {
        match queue {
            Queue::Central => self.central,
            Queue::Local => self.local,
        }
    }

    /// Returns the same inputs, but with processors that wait and put no load on the bus.
    pub(super) fn without_spinning(self) -> Self {
        Self { spinning: 0.0, ..self }
    }

    /// Solves the model for `processors` with threads that compute for `user` µs of the Symmetry. A
    /// share `load` of that time (0 to 1) is on the bus.
    pub(super) fn solve(
        &self,
        queue: Queue,
        user: f64,
        load: f64,
        processors: u32,
    ) -> Result<Equilibrium, Stop> {
        let Demands { outside, section, .. } = self.demands(queue);
        let copies = if queue == Queue::Local { processors } else { 1 };
        let work = Workload {
            user: Demand::with_share(1e3 * user * self.speed, load),
            outside,
            locks: vec![Lock::spread(VISITS, section, copies)],
            spinning: self.spinning,
        };
        contention::solve(&work, processors).map_err(|error| Stop::Failed(error.to_string()))
    }

    /// Returns a table of the inputs, for the reader of a figure.
    pub(super) fn table(&self) -> Table {
        let row = |(name, queue): (&str, Queue)| {
            let Demands { outside, section, .. } = self.demands(queue);
            let demands =
                [outside.alone(), outside.bus, section.alone(), section.bus, self.spinning];
            std::iter::once(name.to_owned()).chain(demands.map(nanos)).collect()
        };
        Table {
            title: "What the model takes".to_owned(),
            columns: [
                "strategy",
                "outside sections",
                "of it on the bus",
                "a critical section (of two)",
                "of it on the bus",
                "spinning, each section",
            ]
            .map(str::to_owned)
            .into(),
            rows: [(CENTRAL, Queue::Central), (LOCAL, Queue::Local)].map(row).into(),
        }
    }

    /// Returns the note on the accuracy of the inputs.
    pub(super) fn note(&self) -> String {
        format!(
            "The inputs are fitted as in section 5.1, on processors with private copies of all data; the fitted curves lie within {} of what was measured there. A processor that \
             waits for a lock asks for {} of bus in each section that goes by.",
            percent(self.central.worst.max(self.local.worst)),
            nanos(self.spinning),
        )
    }

    /// Returns a package in round figures, for tests: 60 µs for a thread, two sections of 10 µs,
    /// and 6 µs of all that on the bus.
    #[cfg(test)]
    pub(super) fn round() -> Self {
        let demands = Demands {
            outside: Demand { bus: 3_300.0, cache: 36_700.0 },
            section: Demand { bus: 1_350.0, cache: 8_650.0 },
            worst: 0.0,
        };
        Self { central: demands, local: demands, spinning: 600.0, speed: 1.0 }
    }
}

/// Returns the rate in thousands of threads a second.
pub(super) fn thousands(solved: &Equilibrium) -> f64 {
    1e6 * solved.throughput
}

/// Formats a share of 1 in whole per cent.
pub(super) fn share(value: f64) -> String {
    format!("{:.0}\u{a0}%", 100.0 * value)
}

/// Formats a ratio as a number of times.
pub(super) fn times(ratio: f64) -> String {
    format!("{} times", significant(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_what_it_takes() {
        for queue in [Queue::Central, Queue::Local] {
            let alone = Inputs::round().solve(queue, 300.0, 0.05, 1).expect("it settles");
            assert!((alone.cycle - 360_000.0).abs() < 1e-3);
            assert!((alone.bus_utilization * alone.cycle - 21_000.0).abs() < 1e-3);
            let many = Inputs::round().solve(queue, 300.0, 0.0, 20).expect("it settles");
            assert!(many.throughput > 10.0 * alone.throughput);
        }
        assert_eq!(Inputs::round().table().rows.len(), 2);
    }
}
