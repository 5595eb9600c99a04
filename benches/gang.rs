//! `stanchion-gang` and its peers: `cargo bench -p benches --bench gang`.
//!
//! The groups are:
//!
//! - `switch`: the processor time of a yield between two threads, and of one that
//!   `machine::presence` sees.
//! - `pair`: crossings of a barrier by two threads, each on a processor of its own.
//! - `grid`: crossings by 2, 4, 8 and 16 threads.
//! - `gangs`: crossings by gangs that take turns, and by groups of threads without coordination.
//!   The figure is the time of the crossings of all groups together.
//!
//! The contests `barriers`, `gangs`, `slots` and `idle` of `stanchion-contests` measure regret over
//! many more cells, processor time, tails, and the switch from one gang to another.

mod cells;
mod suite;

use stanchion_contests::gangs;

fn main() {
    suite::main(
        "gang",
        "about 3 minutes, with --quick 1",
        &[|criterion| cells::measure(criterion, gangs::cells())],
    );
}
