//! `tsp`: the shortest tour through the cities of a TSPLIB file, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example tsp -- \
//!     examples/data/stanchion17.tsp --threads 2 --structure hybrid
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | the tour is the shortest |
//! | 1 | it is wrong: a structure lost a tour or gave it out twice, or the program is wrong |
//! | 2 | the arguments or the file are no good, or the instance is too large |

use examples::tsp::app::{self, Streams};
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let err_is_terminal = err.is_terminal();
    let streams = Streams { out: &mut out, err: &mut err, err_is_terminal };
    ExitCode::from(app::run(std::env::args_os().collect(), streams))
}
