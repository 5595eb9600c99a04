//! `hasher`: a hash of each file below a directory, by one thread a file that reads with plain
//! `std::fs`, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example hasher -- crates
//! cargo run --release -p examples --example hasher -- crates --runtime tokio --cold
//! ```
//!
//! The work is the same with every runtime: only `--runtime` makes the times of two runs differ.
//! `--help` tells what each is good at.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | every file was hashed |
//! | 1 | the same, but something could not be read |
//! | 2 | the arguments are no good, or the runtime cannot be built |

use examples::hasher::app;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    ExitCode::from(app::run(std::env::args_os().collect(), &mut out, &mut err))
}
