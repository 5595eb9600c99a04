//! `cargo xtask downstream`: a stranger's crate, which uses our locks and our machine and is no part of the workspace.
//!
//! Its test is written with `stanchion::machine::model`: run for real as any test, modelled or simulated when the flag is set for the whole build.

use crate::failure::{Failure, Result};
use crate::shell;

const MANIFEST: &str = "examples/downstream/Cargo.toml";

/// Runs the crate's tests for real, then under loom, then on the simulated machine.
pub(crate) fn downstream() -> Result {
    // Its own target folder: with other flags every dependency is another one.
    let build = shell::target().join("downstream");
    let test = || {
        let mut command =
            shell::cargo(["test", "--manifest-path", MANIFEST, "--", "--show-output"]);
        command.env("CARGO_TARGET_DIR", &build);
        command
    };
    let real = shell::run_teed(&mut test())?;
    for machine in ["loom", "simulated"] {
        let flags = format!("--cfg stanchion_{machine}");
        let modelled = shell::run_teed(test().env("RUSTFLAGS", flags))?;
        ran_otherwise(&real, &modelled)?;
    }
    Ok(())
}

/// On another machine a model must have been run otherwise: other counts than the real machine's fixed number of runs.
fn ran_otherwise(real: &str, modelled: &str) -> Result {
    let (real, modelled) = (crate::explored::reported(real), crate::explored::reported(modelled));
    for (name, runs) in &real {
        match modelled.get(name) {
            Some(executions) if executions != runs => {
                println!("{name}: {runs} real runs, {executions} executions")
            }
            _ => {
                return Err(Failure::verdict(format!(
                    "{name}: the cfg made no difference; was it modelled at all?"
                )));
            }
        }
    }
    if real.is_empty() {
        return Err(Failure::verdict(format!(
            "{MANIFEST}: no test reported `model NAME: N executions`"
        )));
    }
    Ok(())
}
