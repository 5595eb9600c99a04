//! The structures of `stanchion-lockfree` and their peers.
//!
//! Run it with `cargo bench -p benches --bench lockfree`.
//!
//! A *pair* is two operations on one structure that is empty at first: a push and a pop, or two
//! additions. Threads do pairs for a window of time. After each operation they do other work for a
//! number of nanoseconds. In each round every contestant has one window, so that other programs on
//! the computer slow all of them alike. The next round has the reverse order. Figures are medians
//! of the rounds.
//!
//! The columns are:
//!
//! - `ns/pair`: the window, divided by the pairs of all threads. With 2 processors and other work
//!   of 500 ns, 500 ns of it are that work.
//! - `net`: `ns/pair` less the time that the threads take for the other work alone, in the same
//!   round.
//! - `regret`: `ns/pair`, divided by that of the best peer in the same cell. Below 1, the structure
//!   of this workspace is faster.
//! - `CPU`: the processor time of all threads, divided by all pairs, in ns.
//! - `p99.9` and `longest`: of one operation. Every 32nd pair is timed.
//! - `least/most`: the fewest pairs of a thread, divided by the most pairs of a thread.
//! - `granted`: the share of the computer's processor time that the threads got. Below 90 %,
//!   another program was running or the threads slept.
//!
//! Values that threads hand to other threads have families of their own: see `handover.rs`.
//!
//! ```text
//! cargo bench -p benches --bench lockfree -- [FILTER]... [--rounds N] [--window MS]
//! ```
//!
//! On a computer that runs other programs too, give the benchmark precedence. As root, run
//! `echo -20 > /proc/self/autogroup; nice -n -20 target/release/deps/lockfree-…` (the program that
//! cargo names), and check that `granted` is near 100 %.
//!
//! A filter is a part of `family/contestant/cell`, such as `queues`, `/Ring` or `2 threads`. The
//! best peer is then the best of those that run.

#[path = "../../crates/contests/src/structures/window.rs"]
mod contest;
#[path = "../../crates/contests/src/structures/counters.rs"]
mod counters;
#[path = "../../crates/contests/src/handover.rs"]
mod handover;
#[path = "../../crates/contests/src/structures/heaps.rs"]
mod heaps;
#[path = "../../crates/contests/src/structures/queues.rs"]
mod queues;
#[path = "../../crates/contests/src/structures/reclamation.rs"]
mod reclamation;
mod report;
#[path = "../../crates/contests/src/structures/stacks.rs"]
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
    handover::run(&options);
}
