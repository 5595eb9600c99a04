//! `stanchion-threadpool` and its peers: `cargo bench -p benches --bench threadpool`.
//!
//! The groups are:
//!
//! - `join, tree sum` and `join, Fibonacci`: the time of a fork.
//! - `null tasks` and `tasks from outside`: the time of a task.
//! - `crowded`: the time of an item of 1 µs, with 8 threads beside two others that compute.
//! - `first task` and `burst`: the time until a sleeping pool runs a task, or as many as it has
//!   threads.
//! - `halves`: a fork of two halves of 8 ms each, after other work.
//! - `many, fib 30`: one computation with more threads than processors.
//! - `outside, join`: a fork that a thread outside of the pool asks for.
//!
//! Every sample has a process of its own, where no other pool has left threads behind. For the last
//! four it is the median of several items. The contests `pools`, `latencies` and `idle` of
//! `stanchion-contests` measure the same with 99th percentiles, processor time and regret.

mod cells;
mod suite;

use stanchion_contests::{pools, serve_run};

fn main() {
    // This process is to do one run of a benchmark.
    if serve_run() {
        return;
    }
    suite::main(
        "threadpool",
        "about 4 minutes, with --quick 1",
        &[|criterion| cells::measure(criterion, pools::cells())],
    );
}
