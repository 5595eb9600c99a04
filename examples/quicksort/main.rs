//! `quicksort`: numbers sorted over a shared queue or stack, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example quicksort -- --queue michael-scott --level 3
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | the numbers are sorted |
//! | 1 | they are not: the structure lost something or gave it out twice, or the program is wrong |
//! | 2 | the arguments are no good |

use examples::quicksort::app::{self, Streams};
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let err_is_terminal = err.is_terminal();
    let streams = Streams { out: &mut out, err: &mut err, err_is_terminal };
    ExitCode::from(app::run(std::env::args_os().collect(), streams))
}
