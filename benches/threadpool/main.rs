//! `stanchion-threadpool` and its peers: `cargo bench -p benches --bench threadpool`.
//!
//! A *workload* is a number of items, done by a pool with a number of threads. An item is a fork or
//! a task. In each round every contestant does the workload once, in a process of its own, on a
//! pool that has done it once before. The next round has the reverse order. Figures are medians of
//! the rounds.
//!
//! | column | meaning |
//! | --- | --- |
//! | `ns/item` | the time of the run, divided by the items; for latencies the median |
//! | `p99` | the 99th percentile of the items of a latency |
//! | `CPU` | the processor time of the process, divided by the items, in ns |
//! | `regret` | `ns/item`, divided by that of the best peer in the same cell |
//!
//! ```text
//! cargo bench -p benches --bench threadpool -- [FILTER]... [--rounds N] [--scale PERCENT]
//! ```
//!
//! A regret below 1 means that the pool of this workspace is faster. `--help` lists workloads and
//! contestants. A filter is a part of `workload/contestant/cell`, such as `join`, `/rayon` or
//! `2 threads`. `--scale 10` does a tenth of the items.

#[path = "../../crates/contests/src/pools/workload.rs"]
mod contest;
#[path = "../../crates/contests/src/pools/halves.rs"]
mod halves;
#[path = "../../crates/contests/src/pools/joins.rs"]
mod joins;
#[path = "../../crates/contests/src/pools/latency.rs"]
mod latency;
#[path = "../../crates/contests/src/pools/load.rs"]
mod load;
#[path = "../../crates/contests/src/pools/made.rs"]
mod pools;
#[path = "../../crates/contests/src/pools/tasks.rs"]
mod tasks;

use contest::{Options, run};

fn main() {
    let mut workloads = vec![
        joins::tree(),
        joins::fib(),
        tasks::null(),
        tasks::outside(),
        latency::first_after(100),
        latency::first_after(10_000),
        latency::burst(),
        load::crowded(),
        load::idle(),
        halves::first(),
        halves::many(),
        halves::outside(),
    ];
    workloads.extend(halves::after());
    if contest::is_child(&workloads) {
        return;
    }
    if std::env::args().skip(1).any(|argument| argument == "--help" || argument == "-h") {
        return contest::help(&workloads);
    }
    let options = match Options::from_arguments(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(refusal) => {
            eprintln!("{refusal}");
            std::process::exit(2);
        }
    };
    let mut regrets = Vec::new();
    for workload in &workloads {
        run(workload, &options, &mut regrets);
    }
    contest::conclude(&regrets);
}
