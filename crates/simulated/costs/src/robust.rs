//! The defaults where the code measures the machine wrongly.
//!
//! Waiting policies count in times that they measure: the transfer of a line, a call to the kernel,
//! the cost of blocking. A figure may be wrong: the machine was busy, or two processors lie further
//! apart than the line went. A policy that is good on other computers too does not depend on it. So
//! each default is measured with figures that are wrong by [`FACTORS`], and may not be dearer than
//! with right ones by more than [`MOST`].

use stanchion_machine::sync::Arc;
use stanchion_simulator::machines;

use crate::measure::{self, Cost};
use crate::operation::Operation;
use crate::pools::PoolOperation;

/// The factors by which the measured times are wrong.
const FACTORS: [f64; 2] = [0.3, 3.0];

/// The most that a default may cost then, over its cost with right times.
const MOST: f64 = 2.5;

/// The rounds of each thread: so many that the last pause of a waiter counts for little.
const ROUNDS: u64 = 30 * measure::ROUNDS;

/// The numbers of processors.
const PROCESSORS: [usize; 2] = [2, 8];

/// The defaults, and the operations that wait in them.
const DEFAULTS: [&str; 10] = [
    "competitive::Mutex lock, unlock",
    "competitive::RwLock write",
    "lockfree::LockedRing push, pop",
    "lockfree::SegmentedQueue push, pop",
    "LockedStack<Barging> push, pop",
    "LockedArrayHeap<Barging> push, pop",
    "lockfree::FaaArrayQueue push, pop",
    "barrier::CoResident wait",
    "threadpool::Worker join, stolen",
    "threadpool::spawn to a sleeper, 100 us apart",
];

/// Measures the defaults and prints their costs. The error names those that are too dear.
pub(crate) fn check(operations: Vec<Operation>, pools: Vec<PoolOperation>) -> Result<(), String> {
    println!("{:<44} {:>10} {:>12} {:>8} {:>8}", "# default", "processors", "ns", "x 0.3", "x 3");
    let pools: Vec<_> = pools.into_iter().map(Arc::new).collect();
    let mut dear = Vec::new();
    for name in DEFAULTS {
        for processors in PROCESSORS {
            let cost = |factor| {
                let on = measure::simulation(machines::modern(processors), factor);
                let operation = operations.iter().find(|operation| operation.name == name);
                let pool = pools.iter().find(|operation| operation.name == name);
                let cost = match (operation, pool) {
                    (Some(operation), _) => measure::measure(operation, &on, ROUNDS),
                    (_, Some(pool)) => measure::measure_pool(pool, &on, ROUNDS),
                    (None, None) => return Err(format!("no operation is named `{name}`")),
                };
                let Cost { nanos, .. } = cost.map_err(|failure| format!("{name}: {failure}"))?;
                Ok(nanos)
            };
            let right = cost(1.0)?;
            let [low, high] = FACTORS.map(|factor| cost(factor).map(|wrong| wrong / right));
            let (low, high) = (low?, high?);
            println!("{name:<44} {processors:>10} {right:>12.2} {low:>8.2} {high:>8.2}");
            if low.max(high) > MOST {
                dear.push(format!("{name} with {processors} processors: {low:.2}, {high:.2}"));
            }
        }
    }
    if dear.is_empty() {
        return Ok(());
    }
    Err(format!(
        "with measured times that are wrong by 0.3 and by 3 these cost more than {MOST} times as much: {}",
        dear.join("; ")
    ))
}
