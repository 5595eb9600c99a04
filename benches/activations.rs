//! `stanchion-activations` and its peers: `cargo bench -p benches --bench activations`.
//!
//! The groups are:
//!
//! - `fork`: a thread that does nothing is made, run and joined (the Null Fork of 1992), alone and
//!   a hundred together.
//! - `signal`: two threads wake each other in turn (Signal-Wait).
//! - `blocked`: each thread blocks in the kernel for 1 ms and computes for 1 ms, over and over.
//! - `hogs`: phases of short threads, beside others that want the processors all the time.
//! - `waits`: threads of a program wait in user space while others block: permits, times, channels,
//!   a crawler, connections. The figure is the time of a program.
//! - `hash`: the files of a directory are hashed, one thread each, with their content in memory and
//!   without. The figures are the time and the processor time of a file.
//!
//! The contests of the same names of `stanchion-contests` measure processor time too, and its
//! contest `upcall` the time until another thread runs in place of a blocked one.

mod cells;
mod hash_files;
mod suite;

use stanchion_contests::threads;

fn main() {
    suite::main(
        "activations",
        "about 4 minutes, with --quick 1",
        &[|criterion| cells::measure(criterion, threads::cells()), hash_files::measure],
    );
}
