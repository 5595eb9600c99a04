//! `regsim`: the parallel register-level simulator at the command line.
//!
//! ```text
//! cargo run --release -p examples --example regsim -- \
//!     examples/data/s5378.bench --cycles 2000 --threads 2 --lock mcs --check
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done, and with `--check` the same checksum as the sequential simulator |
//! | 1 | another checksum |
//! | 2 | the arguments or a file are no good |

use examples::regsim::app;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    ExitCode::from(app::run(std::env::args_os().collect(), &mut out, &mut err))
}
