//! Programs of this project that stand in for the paper's operating system and its editor, so that
//! figures 1 and 2 have waits on every computer.
//!
//! A stand-in is this command again, run as `stanchion stand-in server 50000` by `stanchion
//! record`, which records it as it records any program. It works on a fixed amount of input from a
//! fixed seed, and ends. No wait is made on purpose: there is no sleep, and every section does work
//! that the program needs. Its figures are shown and decide nothing, because the project that
//! tests the claim has also chosen the sections.
//!
//! Why not in C: the shim sees calls of `pthread_mutex_lock`, and a call from Rust is the same
//! call. One form is the same program on a computer with a compiler and on one without.

mod build;
mod mutex;
mod server;

use std::ffi::OsString;
use std::process::ExitCode;

/// The names of the stand-ins, as the command takes them.
pub const NAMES: [&str; 2] = [SERVER, BUILD];

/// The name of the hidden subcommand that calls [`run`].
const SUBCOMMAND: &str = "stand-in";

pub(crate) const SERVER: &str = "server";
pub(crate) const BUILD: &str = "build";

/// The seed of all input.
const SEED: u64 = 1991;

/// Returns the command that runs the stand-in `name` on so much input.
pub(crate) fn command(name: &str, amount: u32) -> std::io::Result<Vec<OsString>> {
    let this = std::env::current_exe()?.into_os_string();
    Ok(vec![this, SUBCOMMAND.into(), name.into(), amount.to_string().into()])
}

/// Runs the stand-in `name` on so much input: requests of each client of the server, or files of
/// the build.
pub fn run(name: &str, amount: u32) -> ExitCode {
    let done = if name == SERVER { server::run(amount) } else { Ok(build::run(amount)) };
    match done {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns 0 with a probability of 1/2, 1 with 1/4, and so on; `most` takes the rest.
fn halving(random: &mut stanchion_formulas::Random, most: u32) -> u32 {
    random.next_u64().trailing_zeros().min(most)
}
