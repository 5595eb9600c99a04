//! `hanoi`: the towers of the monks, moved by many threads, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example hanoi -- --rounds 200 --threads 64 --lock mcs
//! ```
//!
//! With a policy its waits can be recorded, and the thresholds that would have been best be used in
//! the next run, which is the row *Opt-known* of the paper's table 4:
//!
//! ```text
//! hanoi --policy fixed-spin --waits waits.json
//! stanchion advise waits.json --thresholds thresholds.json
//! hanoi --policy optimal-online=thresholds.json
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | every disk arrived, in as many moves as there must be |
//! | 1 | something else came out: the lock does not exclude, or the program is wrong |
//! | 2 | the arguments or a file are no good |

use examples::hanoi::app::{self, Streams};
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
    ExitCode::from(app::run(std::env::args_os().collect(), streams))
}
