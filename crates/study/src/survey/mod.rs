//! Measures what the primitives of this computer cost: atomic instructions, moving a cache line
//! between processors, sleeping and waking. [`kernel`] reports what the kernel offers for locks.

pub mod atomics;
mod cost;
pub mod description;
pub mod kernel;
pub mod lines;
pub mod switches;
pub mod transfer;

use stanchion_machine::topology;

pub use cost::{Cost, Measured, wait_while};

/// Measures all costs on `processors`, in the order in which they are printed.
pub fn costs(processors: &[usize]) -> Vec<Cost> {
    let mut costs = atomics::costs();
    costs.extend(transfer::costs(processors));
    costs.extend(lines::costs(processors));
    costs.extend(switches::costs(processors));
    costs
}

/// Measures the nanoseconds to fetch a line that another processor has written, or returns why they
/// were not measured.
pub fn fetch() -> Result<f64, String> {
    lines::fetch(&topology::processors())
}
