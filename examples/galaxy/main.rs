//! `galaxy`: a near-collision of two galaxies at the command line.
//!
//! ```text
//! cargo run --release -p examples --example galaxy -- \
//!     --stars 20000 --threads 2 --frames frames --lock mcs --check
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done, and with `--check` the same checksum as the sequential program |
//! | 1 | another checksum, or another display than there are stars |
//! | 2 | the arguments or a file are no good, or the frames cannot be written |

use examples::galaxy::app;
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let progress = err.is_terminal();
    ExitCode::from(app::run(std::env::args_os().collect(), &mut out, &mut err, progress))
}
