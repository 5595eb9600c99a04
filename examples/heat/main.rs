//! `heat`: how warmth spreads in a plate, by gangs of threads or by the ranks of an MPI job, at the
//! command line.
//!
//! ```text
//! cargo run --release -p examples --example heat -- --gangs 3 --members 2
//! cargo build --release -p examples --example heat --features mpi
//! mpirun -n 4 target/release/examples/heat --mpi --picture heat.png
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done; with `--check` one thread without a gang came to the same |
//! | 1 | it did not, or a gang did not end well |
//! | 2 | the arguments are no good, the gangs cannot be started, or the picture cannot be written |

use examples::heat::app;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    ExitCode::from(app::run(std::env::args_os().collect(), &mut out, &mut err))
}
