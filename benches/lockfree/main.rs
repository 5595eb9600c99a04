//! The structures of `stanchion-lockfree` and their peers: `cargo bench -p benches --bench lockfree`.
//!
//! A *pair* is two operations on one structure that is empty at first: a push and a pop, two additions. Threads do pairs for a window of time, with
//! other work of so many nanoseconds after each operation. In each round every contestant has one window, so that what else the computer
//! does hits all alike; the next round goes in the other order. Figures are medians of the rounds.
//!
//! | column | meaning |
//! | --- | --- |
//! | `ns/pair` | the window by all pairs of all threads: with 2 processors and other work of 500 ns, 500 of it are that work |
//! | `net` | that less what the threads take for the other work alone, in the same round |
//! | `regret` | `ns/pair` by that of the best peer in the same cell: below 1 we win |
//! | `CPU` | processor time of all threads by all pairs, in ns |
//! | `p99.9`, `longest` | of one operation, every 32nd pair looked at |
//! | `least/most` | the pairs of the thread that did fewest by those of the one that did most |
//! | `granted` | the processor time that the threads got, of what the computer could have given them: below 90 % somebody else was running, or they slept |
//!
//! ```text
//! cargo bench -p benches --bench lockfree -- [FILTER]... [--rounds N] [--window MS]
//! ```
//!
//! On a computer that does other things too, give it precedence: as root, `echo -20 > /proc/self/autogroup; nice -n -20
//! target/release/deps/lockfree-…` (the program that cargo names), and see that `granted` is near 100 %.
//!
//! A filter is a part of `family/contestant/cell`, such as `queues`, `/Ring` or `2 threads`; the best peer is then the best of those that run.

mod contest;
mod counters;
mod heaps;
mod queues;
mod reclamation;
mod report;
mod stacks;

use contest::{Options, run};

fn main() {
    let options = match Options::from_arguments(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(refusal) => {
            eprintln!("{refusal}");
            std::process::exit(2);
        }
    };
    for family in [
        queues::bounded(),
        queues::unbounded(),
        stacks::family(),
        heaps::family(),
        counters::family(),
        reclamation::family(),
    ] {
        run(&family, &options);
    }
}
