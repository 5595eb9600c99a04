//! What the primitives of this computer cost: atomic instructions, the way of a cache line from one
//! processor to another, sleeping and waking.

pub mod atomics;
mod cost;
pub mod description;
pub mod lines;
pub mod switches;
pub mod transfer;

use machine::topology;

pub use cost::{Cost, Measured, wait_while};

/// What is measured on the processors that may be used, in the order in which it is printed.
pub fn costs(processors: &[usize]) -> Vec<Cost> {
    let mut costs = atomics::costs();
    costs.extend(transfer::costs(processors));
    costs.extend(lines::costs(processors));
    costs.extend(switches::costs(processors));
    costs
}

/// Nanoseconds for fetching a line that another processor has written, or why that was not
/// measured.
pub fn fetch() -> Result<f64, String> {
    lines::fetch(&topology::processors())
}
