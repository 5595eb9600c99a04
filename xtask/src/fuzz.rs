//! `cargo xtask fuzz`: the fuzz targets, guided by coverage and under AddressSanitizer, on the
//! stable compiler and without cargo-fuzz.
//!
//! Why not cargo-fuzz in CI: it wants a nightly compiler, and CI has one compiler. What it passes
//! to the compiler can be passed here: the coverage of LLVM is a pass like others, and
//! `RUSTC_BOOTSTRAP=1` admits the sanitizer, as in `tsan`. For long searches and for minimizing,
//! the targets are those of cargo-fuzz: `cargo +nightly fuzz run TARGET`.
//!
//! What is found stays in `fuzz/artifacts/TARGET`; `cargo xtask fuzz TARGET --input FILE` runs it
//! again.

use clap::Args;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The targets, and where their first inputs are.
const TARGETS: [(&str, &str); 4] = [
    ("bench_netlist", "examples/data"),
    ("lockfree_operations", "fuzz/seeds/lockfree_operations"),
    ("tsplib", "examples/data"),
    ("wait_file", "fuzz/seeds/wait_file"),
];

/// Where AddressSanitizer's runtime comes with the toolchain and the recipe was tried.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The flags that cargo-fuzz passes.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer \
    -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1";

/// The targets to fuzz, and the time for it.
#[derive(Args)]
pub(crate) struct Options {
    /// Only this target
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run this input once instead
    #[arg(long, value_name = "FILE", requires = "target")]
    input: Option<PathBuf>,
}

/// Runs what CI runs.
pub(crate) fn brief() -> Result {
    fuzz(&Options { target: None, seconds: 10, input: None })
}

/// Builds the targets and runs them; says loudly why not where it cannot.
pub(crate) fn fuzz(options: &Options) -> Result {
    let chosen = |name: &str| options.target.as_deref().is_none_or(|target| target == name);
    let names = TARGETS.map(|(name, _)| name);
    if let Some(target) = options.target.as_deref().filter(|target| !names.contains(target)) {
        let known = names.join(", ");
        return Err(Failure::verdict(format!("no target `{target}`; there are: {known}")));
    }
    let version = shell::output(Command::new("rustc").arg("-vV").current_dir(shell::root()))?;
    if !version.lines().any(|line| line.strip_prefix("host: ") == Some(HOST)) {
        println!(
            "SKIPPED: fuzzing with AddressSanitizer on a stable toolchain was tried on {HOST}"
        );
        return Ok(());
    }
    let build = shell::target().join("fuzz");
    let mut command = shell::cargo(["build", "--package", "stanchion-fuzz", "--target", HOST]);
    names.iter().filter(|name| chosen(name)).for_each(|name| _ = command.args(["--bin", name]));
    command.env("CARGO_TARGET_DIR", &build).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS);
    command
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    shell::run(&mut command)?;

    let mut found = Vec::new();
    for (name, seeds) in TARGETS.into_iter().filter(|(name, _)| chosen(name)) {
        let mut run = Command::new(build.join(HOST).join("debug").join(name));
        run.current_dir(shell::root());
        if let Some(input) = &options.input {
            run.arg(input);
        } else {
            let corpus = shell::root().join("fuzz/corpus").join(name);
            let artifacts = shell::root().join("fuzz/artifacts").join(name);
            for folder in [&corpus, &artifacts] {
                std::fs::create_dir_all(folder).map_err(Failure::file(folder))?;
            }
            run.args([
                "-verbosity=0",
                "-print_funcs=0",
                "-print_final_stats=1",
                "-max_len=4096",
                "-timeout=20",
            ]);
            run.arg(format!("-max_total_time={}", options.seconds));
            run.arg(format!("-artifact_prefix={}/", artifacts.display()));
            run.arg(corpus);
            let seeds = shell::root().join(seeds);
            if seeds.exists() {
                run.arg(seeds);
            }
        }
        if shell::run(&mut run).is_err() {
            found.push(name);
        }
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(Failure::verdict(format!("fuzzing broke {}; the inputs are above", found.join(", "))))
    }
}
