//! `hanoi`: the towers of the monks, moved by many threads, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example hanoi -- --rounds 200 --threads 64 --lock mcs
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | every disk arrived, in as many moves as there must be |
//! | 1 | something else came out: the lock does not exclude, or the program is wrong |
//! | 2 | the arguments or a file are no good |

mod app;
mod report;

use app::Streams;
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let streams = Streams {
        out_is_terminal: out.is_terminal(),
        err_is_terminal: err.is_terminal(),
        out: &mut out,
        err: &mut err,
    };
    ExitCode::from(app::run(std::env::args_os(), streams))
}
