//! `stanchion-activations` and its peers: `cargo bench -p benches --bench activations`.
//!
//! The sections are:
//!
//! - `fork`: a thread that does nothing is made, run and joined (the Null Fork of 1992), alone and
//!   a hundred together.
//! - `signal`: two threads wake each other in turn (Signal-Wait).
//! - `blocked`: each thread blocks in the kernel for 1 ms and computes for 1 ms, over and over. The
//!   figure is the used share of the processors.
//! - `upcall`: the time until another thread runs in place of a blocked one.
//! - `hash`: the files of a directory are hashed, one thread each, with their content in memory and
//!   without.
//! - `waits`: threads of a program wait in user space while others block: permits, times, channels,
//!   a crawler.
//! - `hogs`: phases of short threads, beside others that want the processors all the time.
//!
//! In each round every contestant runs once in every cell. The next round has the reverse order.
//! Figures are medians of the rounds. `CPU` is the processor time of the whole process, divided by
//! the operations.

#[path = "../../crates/contests/src/threads/blocked.rs"]
mod blocked;
#[path = "../../examples/hasher/cold.rs"]
mod cold;
mod contest;
#[expect(dead_code, reason = "what they say of themselves is for a help")]
#[path = "../../examples/hasher/crews.rs"]
mod crews;
#[path = "../../crates/contests/src/threads/fork.rs"]
mod fork;
#[path = "../../examples/hasher/hash.rs"]
mod hash;
mod hash_files;
#[path = "../../crates/contests/src/threads/hogs.rs"]
mod hogs;
mod known;
#[path = "../../crates/contests/src/threads/measure.rs"]
mod measure;
#[path = "../shared/options.rs"]
mod options;
#[path = "../../crates/contests/src/threads/signal.rs"]
mod signal;
#[path = "../../crates/contests/src/threads/upcall.rs"]
mod upcall;
#[path = "../../crates/contests/src/threads/waits.rs"]
mod waits;
#[path = "../../examples/hasher/walk.rs"]
mod walk;
#[path = "../../crates/contests/src/work.rs"]
mod work;

use options::{Options, Stop};

fn main() {
    let options = match Options::from_arguments(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(Stop::Help) => return print!("{}", known::HELP),
        Err(Stop::Refused(refusal)) => {
            eprintln!("{refusal}");
            std::process::exit(2);
        }
    };
    type Section = (&'static str, fn(&Options));
    let sections: [Section; 7] = [
        ("fork", fork::run),
        ("signal", signal::run),
        ("blocked", blocked::run),
        ("upcall", upcall::run),
        ("hash", hash_files::run),
        ("hogs", hogs::run),
        ("waits", waits::run),
    ];
    for (name, run) in sections {
        if options.wants_section(name) {
            run(&options);
        }
    }
}
