//! `nbody`: a cluster of stars under its own gravitation, over a pool of threads, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example nbody -- --bodies 20000 --steps 50 --strategy work-stealing
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done, and every strategy came to the same places; with `--check` also one thread without a pool |
//! | 1 | other places |
//! | 2 | the arguments are no good, the pool cannot be built, or the frames cannot be written |

mod app;
mod picture;
mod report;

use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let progress = err.is_terminal();
    ExitCode::from(app::run(std::env::args_os(), &mut out, &mut err, progress))
}
