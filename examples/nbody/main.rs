//! `nbody`: a cluster of stars under its own gravitation, over a pool of threads or threads of
//! another kind, at the command line.
//!
//! ```text
//! cargo run --release -p examples --example nbody -- \
//!     --bodies 20000 --steps 50 --strategy work-stealing
//! cargo run --release -p examples --example nbody -- --runtime activations --memory 50
//! cargo run --release -p examples --example nbody -- --bodies 6000 --steps 4 \
//!     --runtime kernel,user,activations,activations-stay --memory 50 --miss 5ms
//! ```
//!
//! With `--memory` a run is small unless its size is given. The second command line has 1,200
//! misses: a minute of them in all. They take six seconds if sixteen at a time are waited for, as
//! by the threads that `--runtime activations` makes. They take nearly a minute with `user`.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done, and every run came to the same positions; with `--check` also one thread alone |
//! | 1 | other positions |
//! | 2 | see below |
//!
//! Code 2: the arguments are no good, the pool cannot be built, the frames cannot be written, a
//! block cannot be read, or a copy failed.

use examples::nbody::app;
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let progress = err.is_terminal();
    ExitCode::from(app::run(std::env::args_os().collect(), &mut out, &mut err, progress))
}
