//! Measures what the primitives of this computer cost: atomic instructions, moving a cache line
//! between processors, sleeping and waking. [`kernel`] reports what the kernel offers for locks.

pub mod atomics;
mod cost;
pub mod description;
pub mod fences;
pub mod kernel;
pub mod lines;
pub mod switches;
pub mod transfer;

use std::time::Duration;

use stanchion_machine::topology;

use crate::progress::Part;
pub use cost::{Cost, Measured, wait_while};

/// The time that [`costs`] takes, about.
pub const EXPECTED: Duration = Duration::from_secs(1);

/// Measures all costs on `processors`, in the order in which they are printed, and moves `part`.
pub fn costs(processors: &[usize], part: &Part) -> Vec<Cost> {
    part.plan(5);
    let mut costs = atomics::costs();
    part.step();
    costs.extend(transfer::costs(processors));
    part.step();
    costs.extend(lines::costs(processors));
    part.step();
    costs.extend(switches::costs(processors));
    part.step();
    costs.extend(fences::costs(processors));
    part.step();
    costs
}

/// Measures the nanoseconds to fetch a line that another processor has written, or returns why they
/// were not measured.
pub fn fetch() -> Result<f64, String> {
    lines::fetch(&topology::processors())
}
