//! `wordcount`: counts the words in the files of a directory, over a pool of threads, at the
//! command line.
//!
//! ```text
//! cargo run --release -p examples --example wordcount -- crates --top 10
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | all that is text was counted |
//! | 1 | the same, but something could not be read |
//! | 2 | the arguments are no good, or the pool cannot be built |

use examples::wordcount::app;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    ExitCode::from(app::run(std::env::args_os().collect(), &mut out, &mut err))
}
