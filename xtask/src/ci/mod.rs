//! `cargo xtask ci`: everything that CI runs, task by task, with what each took.
//!
//! All tasks but `aarch64`, `downstream`, `fuzz`, `tsan` and `weaken` share one target folder and
//! one set of flags, so that a dependency is compiled once. A failing task does not stop the ones
//! after it: a run of CI says all that is wrong.

mod lanes;

use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::{
    aarch64, check_targets, costs, docs, downstream, explored, external, fuzz, house, instructions,
    loom, mpi, package, peers, shell, torture, tsan, weaken,
};

/// A task that CI runs.
struct Task {
    /// Its name, for `--only`.
    name: &'static str,
    /// One line on what it demands.
    about: &'static str,
    /// Runs it.
    run: fn() -> Result,
}

/// In the order in which they run: the cheap ones that fail most often first.
const TASKS: &[Task] = &[
    Task { name: "fmt", about: "every file is formatted by rustfmt.toml", run: fmt },
    Task {
        name: "house",
        about: "rules of the project that no other tool can check",
        run: house::all,
    },
    Task { name: "clippy", about: "no warning in any target of any package", run: clippy },
    Task {
        name: "features",
        about: "no warning with each feature alone and with none; polls with tokio_unstable",
        run: features,
    },
    Task {
        name: "docs",
        about: "the documentation builds without a warning, and every link of the guide leads somewhere",
        run: docs::docs,
    },
    Task {
        name: "test",
        about: "cargo test: unit tests, examples of the docs, all loom models, the simulated machines; no search shrank",
        run: test,
    },
    Task {
        name: "costs",
        about: "every operation costs on the simulated machine what the committed table says, and so do the papers' figures",
        run: costs::all,
    },
    Task {
        name: "instructions",
        about: "the algorithms execute as many instructions as the simulated machines charge",
        run: instructions::all,
    },
    Task {
        name: "busted",
        about: "every check of torture catches the lock broken for it",
        run: torture::busted,
    },
    Task { name: "torture", about: "two seconds of torture for each lock", run: torture::brief },
    Task {
        name: "weaken",
        about: "every memory ordering is needed by the model that WEAKEN.md names",
        run: weaken::all,
    },
    Task {
        name: "downstream",
        about: "strangers' crates, run for real, under loom and simulated",
        run: downstream::downstream,
    },
    Task {
        name: "peers",
        about: "our peers' own tests, with our types in the place of theirs",
        run: peers::peers,
    },
    Task {
        name: "mpi",
        about: "gangs of the ranks of an MPI job, and the same closure as a gang of threads",
        run: mpi::mpi,
    },
    Task {
        name: "package",
        about: "the crates as published, in a stranger's workspace",
        run: package::brief,
    },
    Task {
        name: "fuzz",
        about: "ten seconds of fuzzing for each target, with coverage and AddressSanitizer",
        run: fuzz::brief,
    },
    Task {
        name: "tsan",
        about: "the fence-free locks and user-level threads under ThreadSanitizer",
        run: tsan::tsan,
    },
    Task {
        name: "aarch64",
        about: "the tests of spin, machine and competitive on AArch64, under an emulator",
        run: aarch64::brief,
    },
];

/// The tasks that `--whole` adds: those that take too long for every change, and those with tools
/// that not every machine has.
const WHOLE: &[Task] = &[
    Task {
        name: "loom-whole",
        about: "all of the models that `test` cuts short",
        run: || loom::loom(None, true, false),
    },
    Task {
        name: "aarch64-all",
        about: "the tests of all crates on AArch64, under an emulator",
        run: aarch64::whole,
    },
    Task {
        name: "targets",
        about: "the crates compile for Windows, macOS, FreeBSD and Linux on AArch64",
        run: check_targets::whole,
    },
    Task {
        name: "package-all",
        about: "each package built, tested, documented and installed from the packages alone",
        run: package::whole,
    },
    Task {
        name: "deny",
        about: "licences, advisories, duplicates and sources of all dependencies",
        run: external::deny,
    },
    Task {
        name: "semver",
        about: "no crate's interface breaks what its version promises",
        run: external::semver,
    },
    Task { name: "typos", about: "no word is misspelt", run: external::typos },
    Task {
        name: "minimal",
        about: "the oldest versions of direct dependencies that the manifests admit will do",
        run: external::minimal,
    },
    Task {
        name: "msrv",
        about: "the oldest Rust that the manifests admit compiles everything",
        run: external::msrv,
    },
];

/// All tasks, in the order in which they run.
fn tasks() -> impl Iterator<Item = &'static Task> {
    TASKS.iter().chain(WHOLE)
}

/// `cargo xtask lint` is these.
const LINT: &[&str] = &["fmt", "house", "clippy", "features"];

/// Prints the tasks, and with `whole` those that it adds.
pub(crate) fn list(whole: bool) {
    for task in tasks().take(count(whole)) {
        println!("{:11}  {}", task.name, task.about);
    }
}

/// The number of tasks, which are the first of [`tasks`].
fn count(whole: bool) -> usize {
    TASKS.len() + if whole { WHOLE.len() } else { 0 }
}

/// Formatting and clippy.
pub(crate) fn lint() -> Result {
    run(LINT.iter().map(|&name| name.to_owned()).collect::<Vec<_>>().as_slice(), false)
}

/// Runs the tasks named in `only` one after the other, or all of them in [`lanes`], and prints what
/// each took. With `whole`, all are also those of [`WHOLE`].
pub(crate) fn run(only: &[String], whole: bool) -> Result {
    let known = |name: &String| tasks().any(|task| task.name == name);
    if let Some(stranger) = only.iter().find(|name| !known(name)) {
        let names: Vec<_> = tasks().map(|task| task.name).collect();
        return Err(Failure::verdict(format!(
            "no task `{stranger}`; there are: {}",
            names.join(", ")
        )));
    }
    let begin = Instant::now();
    let ran = if only.is_empty() {
        lanes::run(whole)?
    } else {
        let chosen = tasks().filter(|task| only.iter().any(|name| name == task.name));
        chosen.map(here).collect()
    };
    println!();
    for Ran { name, took, result, .. } in &ran {
        println!(
            "{name:11}  {:>8}  {}",
            seconds(*took),
            if result.is_ok() { "ok" } else { "FAILED" }
        );
    }
    println!("{:11}  {:>8}", "all", seconds(begin.elapsed()));
    // Once more and last, so that the end of a long log says what was left out and what was wrong.
    for Ran { name, skipped, .. } in &ran {
        skipped.iter().for_each(|what| println!("\n{name} {what}"));
    }
    let mut failed = Vec::new();
    for Ran { name, result, .. } in &ran {
        if let Err(failure) = result {
            println!("\n{name} FAILED: {failure}");
            failed.push(format!("{name}: {}", first_line(&failure.to_string())));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Tasks(failed)) }
}

/// The result of a task.
struct Ran {
    /// Its name.
    name: &'static str,
    /// The time that it took.
    took: Duration,
    /// Its result.
    result: Result,
    /// The lines in which it said what it left out.
    skipped: Vec<String>,
}

/// Runs `task` in this process.
fn here(task: &Task) -> Ran {
    println!("\n==== {}: {}", task.name, task.about);
    let begin = Instant::now();
    let result = (task.run)();
    if let Err(failure) = &result {
        println!("\n{}: {failure}", task.name);
    }
    Ran { name: task.name, took: begin.elapsed(), result, skipped: Vec::new() }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn fmt() -> Result {
    shell::run(&mut shell::cargo(["fmt", "--all", "--check"]))?;
    // The strangers' crates are no members, so `--all` does not see them.
    downstream::MANIFESTS.into_iter().chain([downstream::NO_HEAP]).try_for_each(|manifest| {
        shell::run(&mut shell::cargo(["fmt", "--manifest-path", manifest, "--check"]))
    })
}

fn clippy() -> Result {
    shell::run(&mut shell::cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The packages with features, and the sets to be checked apart from the default one.
pub(crate) const FEATURES: &[(&str, &[&str])] = &[
    ("stanchion-machine", &["", "std", "alloc"]),
    ("stanchion-spin", &["", "std", "alloc", "lock_api_04", "serde", "arc_lock"]),
    ("stanchion-competitive", &["", "serde", "arc_lock", "lock_api_04", "wait_files"]),
    (
        "stanchion",
        &[
            "",
            "std",
            "alloc",
            "spin",
            "competitive",
            "lockfree",
            "threadpool",
            "gang",
            "activations",
            "linearizability",
            "formulas",
            "simulator",
            "spin,lock_api_04",
            "spin,competitive,serde,arc_lock,lock_api_04,wait_files",
        ],
    ),
    ("stanchion-watch", &["", "tokio", "rayon", "threadpool", "metrics", "tracing"]),
];

fn features() -> Result {
    for (package, sets) in FEATURES {
        for set in *sets {
            let mut command = shell::cargo(["clippy", "-p", package, "--no-default-features"]);
            if !set.is_empty() {
                command.args(["--features", set]);
            }
            shell::run(command.args(["--", "-D", "warnings"]))?;
        }
    }
    // The hooks of polls, which stable tokio does not have.
    let mut polls = shell::cargo(["test", "-p", "stanchion-watch", "--test", "pools"]);
    polls.env("RUSTFLAGS", "--cfg tokio_unstable");
    shell::run(polls.env("CARGO_TARGET_DIR", shell::target().join("tokio_unstable")))?;
    // Links and runs a program that has no allocator.
    let mut bare = shell::cargo(["run", "--manifest-path", downstream::NO_HEAP]);
    shell::run(bare.env("CARGO_TARGET_DIR", shell::target().join("no_heap")))
}

/// `cargo test`, the command of the README; its output also carries what the models explored.
fn test() -> Result {
    let mut command =
        shell::cargo(["test", "--workspace", "--no-fail-fast", "--", "--show-output"]);
    let mut section = Section::default();
    let (status, output) =
        shell::run_showing(&mut command, |line| section.of(line) != Section::Successes)?;
    let tally = tally(&output);
    println!("\n{} passed, {} failed, {} ignored", tally[0], tally[1], tally[2]);
    if !status.success() {
        let tests = failed_tests(&output);
        return Err(Failure::verdict(format!("cargo test: {tests}\n{}", failures(&output))));
    }
    explored::check(&output, true)
}

/// Where in a test program's output a line stands.
#[derive(Clone, Copy, Default, PartialEq)]
enum Section {
    #[default]
    Progress,
    /// Output of the tests that passed: pages of panics that were wanted. Among them one that was
    /// not would go unseen.
    Successes,
    Failures,
}

impl Section {
    fn of(&mut self, line: &str) -> Self {
        *self = match line {
            "successes:" => Self::Successes,
            "failures:" => Self::Failures,
            _ if line.starts_with("test result: ") => Self::Progress,
            _ => *self,
        };
        *self
    }
}

/// Returns the names of the tests that failed, or what else may be wrong if none did.
pub(crate) fn failed_tests(output: &str) -> String {
    let test = |line| str::strip_prefix(line, "test ")?.strip_suffix(" ... FAILED");
    let names: Vec<_> = output.lines().filter_map(test).collect();
    if names.is_empty() { "a program died or does not compile".into() } else { names.join(", ") }
}

/// The most characters of a failure that the last lines repeat.
const SHORT: usize = 300;

/// Returns the first line of `text`, cut at [`SHORT`] characters: the very end of a long log names
/// what failed, also where only its end is kept.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(SHORT).collect()
}

/// The most lines of failures that are repeated at the end.
const REPEATED: usize = 200;

/// Returns the output of the tests that failed, and their names.
fn failures(output: &str) -> String {
    let mut section = Section::default();
    let lines = output.lines().filter(|line| section.of(line) == Section::Failures);
    let mut lines: Vec<_> = lines.take(REPEATED + 1).collect();
    if lines.len() > REPEATED {
        lines[REPEATED] = "(more is above)";
    }
    lines.join("\n")
}

/// Tests passed, failed, ignored and filtered out, over all programs of a run.
pub(crate) fn tally(output: &str) -> [u64; 4] {
    let mut tally = [0; 4];
    for line in output.lines().filter(|line| line.starts_with("test result: ")) {
        let words: Vec<_> = line.split([' ', ';', '.']).collect();
        for (count, name) in tally.iter_mut().zip(["passed", "failed", "ignored", "filtered"]) {
            let place = words.iter().position(|word| *word == name);
            let before = place.and_then(|place| words.get(place.checked_sub(1)?));
            *count += before.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tally_is_of_all_programs() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 5 filtered out; finished in 0.00s\n\
                      noise\ntest result: FAILED. 40 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(tally(output), [43, 2, 1, 5]);
    }

    #[test]
    fn only_what_failed_is_repeated() {
        let output = "test a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\nwanted\n\nfailures:\n\n---- b stdout ----\nwhy\n\n\
                      test result: FAILED. 1 passed; 1 failed\ntest c ... ok";
        assert_eq!(failures(output), "failures:\n\n---- b stdout ----\nwhy\n");
        assert_eq!(failed_tests(output), "b");
        assert!(failed_tests("test a ... ok").contains("died"));
        assert_eq!(first_line("why\nmore"), "why");
        assert_eq!(first_line(&"é".repeat(2 * SHORT)).chars().count(), SHORT);
        let long = format!("failures:\n{}", "line\n".repeat(2 * REPEATED));
        assert_eq!(failures(&long).lines().count(), REPEATED + 1);
        assert!(failures(&long).ends_with("(more is above)"));
    }

    #[test]
    fn tasks_have_names_of_their_own_and_lint_names_some() {
        for task in tasks() {
            assert_eq!(tasks().filter(|other| other.name == task.name).count(), 1, "{}", task.name);
        }
        assert!(LINT.iter().all(|name| TASKS.iter().any(|task| task.name == *name)));
    }

    #[test]
    fn an_unknown_task_is_refused_with_the_known_ones() {
        let refused = run(&["no-such".to_owned()], false).unwrap_err().to_string();
        assert!(refused.contains("no-such") && refused.contains("clippy"), "{refused}");
    }
}
