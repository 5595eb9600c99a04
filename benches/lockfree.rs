//! The structures of `stanchion-lockfree` and their peers: `cargo bench -p benches --bench
//! lockfree`.
//!
//! The groups are:
//!
//! - `bounded queues`, `unbounded queues`, `stacks`, `heaps`, `counters` and `reclamation`, with 1,
//!   2, 4 and 8 threads, each on one of the processors: a push and a pop, or two additions, on a
//!   structure that is empty at first. The figure is the time of a window, divided by the pairs of
//!   all threads.
//! - `between two threads` and `pipeline`: a value that threads hand to other threads.
//! - `heaps of N entries`: one thread, which takes the smallest entry out and puts it in again.
//!
//! The contests `structures` and `handover` of `stanchion-contests` measure the same with other
//! work between the operations, and tails, fairness, processor time and regret.

mod cells;
mod heaps;
mod suite;

use stanchion_contests::{handover, structures};

fn main() {
    suite::main(
        "lockfree",
        "about 3 minutes, with --quick 1",
        &[
            |criterion| cells::measure(criterion, structures::cells()),
            |criterion| cells::measure(criterion, handover::cells()),
            heaps::measure,
        ],
    );
}
