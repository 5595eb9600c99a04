//! `stanchion-gang` and its peers: `cargo bench -p benches --bench gang`.
//!
//! The sections are:
//!
//! - `switch`: the cost for a thread to be seen by `machine::presence`. Two threads give one
//!   processor to each other.
//! - `slots`: a switch from one gang's slot to another's, in each mode.
//! - `gangs`: gangs that take turns, against groups of threads without coordination, and an
//!   executor that has nothing to do.
//! - `pair`: crossings of a barrier by two threads, each on a processor of its own.
//! - `grid`: crossings by 2, 4, 8 and 16 threads, with work between them, beside other threads that
//!   compute.
//!
//! In each round every contestant runs once in every cell, for as long as `--milliseconds` says.
//! The next round has the reverse order. Figures are medians of the rounds.
//!
//! | column | meaning |
//! | --- | --- |
//! | `ns` | the time of the run, divided by its crossings |
//! | `CPU` | the processor time of all members, divided by the crossings, in ns |
//! | `p99` | the 99th percentile of one member's waits, in ns |
//! | `regret` | `ns`, divided by that of the best contestant in the same cell |

#[path = "../../crates/contests/src/gangs/barriers.rs"]
mod barriers;
#[path = "../../crates/contests/src/gangs/groups.rs"]
mod gangs;
mod known;
#[path = "../../crates/contests/src/gangs/crossing.rs"]
mod measure;
#[path = "../shared/options.rs"]
mod options;
#[path = "../../crates/contests/src/gangs/yields.rs"]
mod seen;
#[path = "../../crates/contests/src/gangs/slots.rs"]
mod slots;
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
    if options.wants_section("switch") {
        seen::run(&options);
    }
    if options.wants_section("slots") {
        slots::run(&options);
    }
    if options.wants_section("gangs") {
        gangs::run(&options);
    }
    for (section, cells) in [("pair", barriers::pair()), ("grid", barriers::grid())] {
        if options.wants_section(section) {
            barriers::run(section, &cells, &options);
        }
    }
}
