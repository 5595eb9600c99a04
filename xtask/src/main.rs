//! `cargo xtask`: every check of the project as a named task, the same here and in CI.
//!
//! | task | what it demands |
//! | --- | --- |
//! | `ci` | all that CI runs, with the time of each; `--whole` adds the slow tasks |
//! | `lint` | formatting, clippy with every feature alone, `house`; no warning |
//! | `docs` | the packages' docs build, every link of the guide leads somewhere, the book builds |
//! | `house` | no real primitive, long file or work left; circles and prose never get worse |
//! | `loom` | every model passes, and none explores less than it used to |
//! | `weaken` | every memory ordering is needed: weakened, some model fails |
//! | `costs` | each operation has as many misses, transfers and exchanges, simulated, as before |
//! | `instructions` | the algorithms execute as many instructions as simulated machines charge |
//! | `torture` | real threads, more than processors, stalled at random: exclusion and progress |
//! | `busted` | each of torture's checks catches the lock that is broken for it |
//! | `tsan` | ThreadSanitizer finds races in broken locks only |
//! | `fuzz` | bytes that fuzzing invents break no reader and no structure |
//! | `aarch64` | the tests pass on AArch64, under an emulator; needs Debian's packages |
//! | `check-targets` | the crates compile for other systems; needs Debian's packages |
//! | `downstream` | crates outside of the workspace build, and our loom machine models them |
//! | `mpi` | a gang can be the ranks of an MPI job; needs Open MPI and libclang |
//! | `peers` | our peers' own tests pass with our types in the place of theirs |
//! | `times` | nothing: measures what the first hour takes, and rewrites the places that say so |
//! | `deny`, `semver`, `typos` | licences, advisories, interfaces, spelling; each needs its tool |
//! | `minimal`, `msrv` | the oldest dependencies and the oldest Rust that the manifests admit |
//! | `package` | the packages build, run and install, feature by feature, without the workspace |
//! | `lines` | nothing: prints the lines of code of each crate, and the change since a revision |
//! | `repeat` | no test program fails in many runs, beside other load |
//! | `twins` | nothing: writes the manifests of the twins from those of their crates |
//! | `renamed` | every test and experiment of a revision is there, or in a map of renamed ones |

mod aarch64;
mod check_targets;
mod ci;
mod costs;
mod debian;
mod docs;
mod downstream;
mod explored;
mod external;
mod failure;
mod fuzz;
mod house;
mod instructions;
mod lines;
mod loom;
mod mpi;
mod orderings;
mod package;
mod peers;
mod renamed;
mod repeat;
mod shell;
mod times;
mod torture;
mod tsan;
mod twins;
mod weaken;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs the tasks of CI, locally and under the same names.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    /// The task to run.
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that CI runs, with what each task took
    Ci {
        /// Only these tasks, by name; may be repeated
        #[arg(long, value_name = "TASK")]
        only: Vec<String>,
        /// Name the tasks and end
        #[arg(long)]
        list: bool,
        /// Also what takes too long for every change, or needs tools that not every machine has
        #[arg(long)]
        whole: bool,
    },
    /// Formatting and clippy, warnings denied
    Lint,
    /// Rules of the project that no other tool can check
    House(house::Options),
    /// Documentation of the packages, warnings denied, and the guide: its links, and the book
    /// where mdbook is installed
    Docs,
    /// Run the loom models and compare how much they explored
    Loom {
        /// Only models with this in their names
        filter: Option<String>,
        /// Also what every run of CI leaves out of the longest models
        #[arg(long, conflicts_with = "update")]
        whole: bool,
        /// Accept the numbers of this run as the committed table
        #[arg(long)]
        update: bool,
    },
    /// Count what each operation costs on the simulated machine, and compare with the committed
    /// table
    Costs(costs::Options),
    /// Count the instructions between the algorithms' accesses, which simulated machines charge
    Instructions(instructions::Options),
    /// Weaken each memory ordering in turn and demand that a named model fails
    Weaken(weaken::Options),
    /// Torture locks with real threads, random stalls and too few processors
    Torture(torture::Options),
    /// Torture the locks that are broken on purpose; each must be caught
    Busted,
    /// Run the fence-free locks and user-level threads under ThreadSanitizer
    Tsan,
    /// Fuzz on the stable compiler, with coverage and AddressSanitizer
    Fuzz(fuzz::Options),
    /// Run the crates' tests on AArch64, under an emulator, with Debian's compiler
    Aarch64(aarch64::Options),
    /// Check that the crates compile for Windows, macOS, FreeBSD and Linux on AArch64
    CheckTargets(check_targets::Options),
    /// Build, run and model strangers' crates, and the first example of each README
    Downstream {
        /// Only the examples of the READMEs
        #[arg(long)]
        readmes: bool,
    },
    /// Run gangs as ranks of MPI jobs; needs Open MPI and libclang
    Mpi,
    /// Run our peers' own tests over our types
    Peers(peers::Options),
    /// Measure `cargo study --quick`, `cargo test` and `cargo bench -- --quick`, and rewrite the
    /// pages and the help that say how long they take
    Times(times::Options),
    /// Licences, advisories, duplicates and sources of all dependencies; needs cargo-deny
    Deny,
    /// No crate's interface breaks what its version promises; needs cargo-semver-checks
    Semver(external::Semver),
    /// No word is misspelt; needs typos
    Typos,
    /// The oldest versions of direct dependencies that the manifests admit will do
    Minimal,
    /// The oldest Rust that the manifests admit compiles everything
    Msrv,
    /// Package each published crate; build, test and install it from the packages alone
    Package(package::Options),
    /// Count the lines of code of each crate, comments, blank lines and tests apart
    Lines(lines::Options),
    /// Check that the maps of renamed tests account for each test and experiment of a revision
    Renamed(renamed::Options),
    /// Write the manifests of the twins from those of their crates
    Twins,
    /// Run the test programs again and again, beside load, and keep what fails
    Repeat(repeat::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Ci { list: true, whole, .. } => {
            ci::list(whole);
            Ok(())
        }
        Task::Ci { only, list: false, whole } => ci::run(&only, whole),
        Task::Lint => ci::lint(),
        Task::House(options) => house::house(&options),
        Task::Docs => docs::docs(),
        Task::Loom { filter, whole, update } => loom::loom(filter.as_deref(), whole, update),
        Task::Costs(options) => costs::costs(&options),
        Task::Instructions(options) => instructions::instructions(&options),
        Task::Weaken(options) => weaken::weaken(&options),
        Task::Torture(options) => torture::torture(&options),
        Task::Busted => torture::busted(),
        Task::Tsan => tsan::tsan(),
        Task::Fuzz(options) => fuzz::fuzz(&options),
        Task::Aarch64(options) => aarch64::aarch64(&options),
        Task::CheckTargets(options) => check_targets::check_targets(&options),
        Task::Downstream { readmes: true } => downstream::readmes(),
        Task::Downstream { readmes: false } => downstream::downstream(),
        Task::Mpi => mpi::mpi(),
        Task::Peers(options) => peers::selected(&options),
        Task::Times(options) => times::times(&options),
        Task::Deny => external::deny(),
        Task::Semver(options) => external::semver_against(options.baseline_rev.as_deref()),
        Task::Typos => external::typos(),
        Task::Minimal => external::minimal(),
        Task::Msrv => external::msrv(),
        Task::Package(options) => package::package(&options),
        Task::Lines(options) => lines::lines(&options),
        Task::Renamed(options) => renamed::renamed(&options),
        Task::Twins => twins::twins(),
        Task::Repeat(options) => repeat::repeat(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
