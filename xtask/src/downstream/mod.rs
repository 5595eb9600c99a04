//! `cargo xtask downstream`: strangers' crates, which use our locks and our machine and are no part
//! of the workspace.
//!
//! Their tests are written with `stanchion::machine::model`: run for real as any test, modelled or
//! simulated when the flag is set for the whole build. The second of them also simulates itself and
//! draws what it saw. A third one is a program over dashmap, with the patches.

mod first;

pub(crate) use first::examples as readmes;

use crate::failure::{Failure, Result};
use crate::shell;

/// Their manifests.
pub(crate) const MANIFESTS: [&str; 2] =
    ["examples/downstream/Cargo.toml", "examples/bounded_buffer/Cargo.toml"];

/// The manifest of a program that is rebuilt with the patches. Its tests are theirs.
const PATCHED: &str = "examples/guarded_map/Cargo.toml";

/// The manifest of a program without an allocator, which is built with the features apart.
pub(crate) const NO_HEAP: &str = "examples/no_heap/Cargo.toml";

/// Runs their tests for real, then under loom, then on the simulated machine; then the simulation
/// that is an example to users, and the first example of each README.
pub(crate) fn downstream() -> Result {
    readmes()?;
    MANIFESTS.into_iter().try_for_each(on_all_machines)?;
    let mut patched = shell::cargo(["test", "--manifest-path", PATCHED, "--all-targets"]);
    shell::run(patched.env("CARGO_TARGET_DIR", shell::target().join("patched")))?;
    let mut example = shell::cargo(["run", "--manifest-path", MANIFESTS[1]]);
    example.env("CARGO_TARGET_DIR", shell::target().join("downstream"));
    shell::run(example.env("RUSTFLAGS", "--cfg stanchion_simulated"))
}

fn on_all_machines(manifest: &str) -> Result {
    // Its own target folder: with other flags every dependency is another one.
    let build = shell::target().join("downstream");
    let test = || {
        let mut command =
            shell::cargo(["test", "--manifest-path", manifest, "--", "--show-output"]);
        command.env("CARGO_TARGET_DIR", &build);
        command
    };
    let real = shell::run_teed(&mut test())?;
    for machine in ["loom", "simulated"] {
        let flags = format!("--cfg stanchion_{machine}");
        let modelled = shell::run_teed(test().env("RUSTFLAGS", flags))?;
        ran_otherwise(manifest, &real, &modelled)?;
    }
    Ok(())
}

/// On another machine a model must have been run otherwise: other counts than the real machine's
/// fixed number of runs.
fn ran_otherwise(manifest: &str, real: &str, modelled: &str) -> Result {
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
            "{manifest}: no test reported `model NAME: N executions`"
        )));
    }
    Ok(())
}
