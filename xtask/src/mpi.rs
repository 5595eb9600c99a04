//! `cargo xtask mpi`: gangs that have the ranks of an MPI job as members.
//!
//! The program of `crates/gang/examples` does everything that a member can do, and everything that
//! can go wrong. Then the example `heat` warms the same plate by threads and by ranks: to the same
//! checksum.

use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The acts of member 1, and the numbers of ranks with which each is tried.
const RUNS: &[(&str, &[&str])] = &[
    ("all", &["1", "4"]),
    ("returns", &["3"]),
    ("leaves", &["2"]),
    ("panics", &["3"]),
    ("differs", &["3"]),
    ("exchanged", &["2"]),
];

const PLATE: &[&str] = &["--side", "48", "--steps", "200", "--check"];

pub(crate) fn mpi() -> Result {
    let mut build = shell::cargo(["build", "-p", "stanchion-gang", "-p", "examples"]);
    let both = ["--example", "ranks", "--example", "heat"];
    build.args(["--features", "stanchion-gang/mpi,examples/mpi"]).args(both);
    shell::run(&mut build)?;
    for (what, numbers) in RUNS {
        for number in *numbers {
            shell::run(job(number, "ranks").arg(what))?;
        }
    }
    let mut threads = Command::new(example("heat"));
    threads.args(["--gangs", "1", "--members", "2"]).args(PLATE);
    let threads = checksum(&shell::run_teed(&mut threads)?)?;
    let ranks = checksum(&shell::run_teed(job("4", "heat").arg("--mpi").args(PLATE))?)?;
    if threads != ranks {
        return Err(Failure::verdict(format!("heat: `{threads}` by threads, `{ranks}` by ranks")));
    }
    Ok(())
}

fn example(name: &str) -> std::path::PathBuf {
    shell::target().join("debug/examples").join(name)
}

/// So many ranks of an example, on this machine.
fn job(ranks: &str, name: &str) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", ranks]).arg(example(name));
    // Open MPI asks this of root, as which CI runs in a container.
    for allow in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(allow, "1");
    }
    command
}

fn checksum(report: &str) -> Result<String> {
    let line = report.lines().find(|line| line.starts_with("checksum"));
    let line = line.filter(|line| line.ends_with(", the same as sequentially"));
    line.map(str::to_owned).ok_or_else(|| {
        Failure::verdict(format!("heat says of no checksum that it is right:\n{report}"))
    })
}
