//! `cargo xtask tsan`: the fence-free locks under ThreadSanitizer, on stable.
//!
//! `RUSTC_BOOTSTRAP=1` admits the flag, `-Cunsafe-allow-abi-mismatch=sanitizer` admits a std that is not instrumented. The price of the
//! latter is that only a program which keeps away from std's own synchronization is judged fairly: see `torture`'s `sanitized`.
//! A lock that must be reported and is not fails the task, so a lane that has gone blind does not look green.

use std::process::Command;
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::shell;

/// Where ThreadSanitizer's runtime comes with the toolchain and the recipe was tried.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// How often a lock that is broken on purpose is tried before it counts as not caught.
const ATTEMPTS: u32 = 10;

/// A lock of two threads takes about a second.
const TIME: Duration = Duration::from_secs(60);

/// Builds and runs; says loudly why not where it cannot.
pub(crate) fn tsan() -> Result {
    let Some((host, library)) = toolchain()? else { return Ok(()) };
    let build = shell::target().join("tsan");
    let mut command = shell::cargo([
        "build",
        "--package",
        "torture",
        "--no-default-features",
        "--bin",
        "sanitized",
    ]);
    command.args(["--target", &host]).env("CARGO_TARGET_DIR", &build).env("RUSTC_BOOTSTRAP", "1");
    command.env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer");
    println!("runtime: {library}");
    shell::run(&mut command)?;
    let program = build.join(&host).join("debug/sanitized");
    let names = shell::output(&mut Command::new(&program))?;
    let mut wrong = Vec::new();
    for name in names.lines() {
        let log = build.join("report");
        let busted = name.starts_with("busted");
        // On a busy machine the threads of a short run may never meet, and then there is nothing to report.
        let mut attempts = if busted { ATTEMPTS } else { 1 };
        let (ended, reported) = loop {
            let mut run = Command::new(&program);
            run.arg(name).env("TSAN_OPTIONS", "halt_on_error=1:exitcode=66");
            let ended = shell::run_limited(&run, TIME, &log)?;
            let reported = ended.output.contains("WARNING: ThreadSanitizer: data race");
            attempts -= 1;
            if reported || attempts == 0 {
                break (ended, reported);
            }
        };
        let clean = ended.status.is_some_and(|status| status.success()) && !reported;
        let right = if busted { reported } else { clean };
        let found = match (reported, ended.status) {
            (true, _) => "data race",
            (false, None) => "out of time",
            (false, Some(_)) if clean => "clean",
            (false, Some(_)) => "failed",
        };
        println!("{name:24} {found:12} {}", if right { "as it must" } else { "WRONG" });
        if !right {
            println!("{}", ended.output);
            wrong.push(name.to_owned());
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::verdict(format!("ThreadSanitizer: {}", wrong.join(", "))))
    }
}

/// The host and the runtime's path, or `None` with the reason printed.
fn toolchain() -> Result<Option<(String, String)>> {
    let version = shell::output(Command::new("rustc").arg("-vV").current_dir(shell::root()))?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
    if !TARGETS.contains(&host.as_str()) {
        println!(
            "SKIPPED: no ThreadSanitizer for {host} with a stable toolchain; the lane runs on {}",
            TARGETS.join(" and ")
        );
        return Ok(None);
    }
    let libraries = shell::output(
        Command::new("rustc").args(["--print", "target-libdir"]).current_dir(shell::root()),
    )?;
    let folder = std::path::PathBuf::from(libraries.trim());
    let files = std::fs::read_dir(&folder).map_err(Failure::file(&folder))?;
    let names =
        files.filter_map(|file| Some(file.ok()?.file_name().to_string_lossy().into_owned()));
    match names.into_iter().find(|name| name.contains("rt.tsan")) {
        Some(name) => Ok(Some((host, name))),
        None => {
            println!(
                "SKIPPED: this toolchain brings no ThreadSanitizer runtime (librustc-*_rt.tsan.a) for {host}"
            );
            Ok(None)
        }
    }
}
