//! `cargo xtask tsan`: the fence-free locks and user-level threads under ThreadSanitizer, on
//! stable.
//!
//! `RUSTC_BOOTSTRAP=1` admits the flag, `-Cunsafe-allow-abi-mismatch=sanitizer` admits a std that
//! is not instrumented. The price of the latter is that only a program which keeps away from std's
//! own synchronization is judged fairly: see `torture`'s `sanitized`. User-level threads are judged
//! by the tests of their crate, which do not keep away, so std is built with them. The crate itself
//! tells ThreadSanitizer of their switches of stacks, with the cfg `stanchion_tsan`.
//!
//! If a race that must be reported is not, the task fails. So a lane that has gone blind does not
//! look green.
//!
//! Not `simulator`: its coroutines switch stacks as well, but all of a run is one kernel thread.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::debian::{self, Provided};
use crate::failure::{Failure, Result};
use crate::shell;

/// Where ThreadSanitizer's runtime comes with the toolchain and the recipe was tried.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// The number of tries after which a lock that is broken on purpose counts as not caught.
const ATTEMPTS: u32 = 10;

/// A lock of two threads takes about a second.
const TIME: Duration = Duration::from_secs(60);

/// The tests of user-level threads. Not `fork`, because ThreadSanitizer starts no thread in a child
/// that was forked beside others, and not `many`, because it knows some 8,000 stacks at a time.
const TESTS: [&str; 7] =
    ["foreign", "heartbeats", "metrics", "stacks", "stalled", "stops", "together"];
/// The modules of `together` that nothing has tried under ThreadSanitizer yet.
const LEFT_OUT: [&str; 3] = ["channels::", "order::", "own_kernel_threads::"];

const REPORT: &str = "WARNING: ThreadSanitizer: data race";
const FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
const OPTIONS: &str = "halt_on_error=1:exitcode=66";
/// The options for races that must be reported. A race is reported only while the first of the two
/// accesses is in the history of its thread. On a busy machine a thread does much between them.
const LONG_HISTORY: &str = "halt_on_error=1:exitcode=66:history_size=7";

/// Builds and runs; says loudly why not where it cannot.
pub(crate) fn tsan() -> Result {
    let Some((host, library)) = toolchain()? else { return Ok(()) };
    println!("runtime: {library}");
    let mut wrong = locks(&host)?;
    wrong.extend(threads(&host)?);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::verdict(format!("ThreadSanitizer: {}", wrong.join(", "))))
    }
}

/// Checks the locks, in a program that keeps away from std. Returns the names of those that are not
/// as they must be.
fn locks(host: &str) -> Result<Vec<String>> {
    let build = shell::target().join("tsan");
    let mut command = shell::cargo([
        "build",
        "--package",
        "torture",
        "--no-default-features",
        "--bin",
        "sanitized",
    ]);
    command.args(["--target", host]).env("CARGO_TARGET_DIR", &build).env("RUSTC_BOOTSTRAP", "1");
    shell::run(command.env("RUSTFLAGS", FLAGS))?;
    let program = build.join(host).join("debug/sanitized");
    let names = shell::output(&mut Command::new(&program))?;
    let mut wrong = Vec::new();
    for name in names.lines() {
        let mut run = Command::new(&program);
        run.arg(name).env("TSAN_OPTIONS", OPTIONS);
        if !judged(name, &run, name.starts_with("busted"))? {
            wrong.push(name.to_owned());
        }
    }
    Ok(wrong)
}

/// Returns the lines that name failed tests and the places of their panics. If there is no such
/// line, ThreadSanitizer or a signal has ended the program, and its output above says why.
fn told(seen: &str) -> String {
    let tells = |line: &&str| line.ends_with("... FAILED") || line.contains("panicked at");
    let lines: Vec<&str> = seen.lines().filter(tells).collect();
    if lines.is_empty() { "no test failed by itself".to_owned() } else { lines.join("; ") }
}

/// Runs the tests of user-level threads, with a std that is built for it. The crate tells
/// ThreadSanitizer of their switches of stacks. Returns the names of the tests that are not as they
/// must be.
///
/// These use std's locks and channels, so nothing less would do. Each report in them is a race: the
/// fences of `activations` decide which thread is woken, and order no plain memory.
///
/// If the toolchain has std's source, then std is built from that. Otherwise Debian's compiler,
/// source and runtime are used.
fn threads(host: &str) -> Result<Vec<String>> {
    let sysroot = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    let debian = if source.exists() {
        None
    } else {
        match debian::provide()? {
            Provided::Unpacked(debian) => Some(debian),
            Provided::Missing(why) => {
                println!(
                    "SKIPPED: user-level threads; std is built for them, and neither has this \
                     toolchain its source (`rustup component add rust-src`) nor Debian: {why}"
                );
                return Ok(Vec::new());
            }
        }
    };
    let test = |names: &[&str]| {
        let arguments = ["test", "-Zbuild-std", "--package", "stanchion-activations"];
        let mut command = match &debian {
            None => shell::cargo(arguments),
            Some(debian) => debian.cargo(&arguments),
        };
        command.args(["--no-fail-fast", "--target", host]);
        names.iter().for_each(|name| _ = command.args(["--test", name]));
        command.env("CARGO_TARGET_DIR", shell::target().join("tsan")).env("RUSTC_BOOTSTRAP", "1");
        command.env("RUSTFLAGS", format!("--cfg stanchion_tsan {FLAGS}"));
        // Of each panic that is wanted, a backtrace takes a second.
        command.env("TSAN_OPTIONS", OPTIONS).env("RUST_BACKTRACE", "0");
        command
    };
    let mut wrong = Vec::new();
    let mut tests = test(&TESTS);
    tests.arg("--");
    LEFT_OUT.iter().for_each(|module| _ = tests.args(["--skip", module]));
    let (status, seen) = shell::run_seen(&mut tests)?;
    if !status.success() {
        wrong.push(format!("tests of stanchion-activations ({})", told(&seen)));
    }
    let races = shell::output(test(&["races"]).args(["--", "--list"]))?;
    for name in races.lines().filter_map(|line| line.strip_suffix(": test")) {
        let mut race = test(&["races"]);
        race.args(["--", "--exact", name]).env("TSAN_OPTIONS", LONG_HISTORY);
        if !judged(name, &race, true)? {
            wrong.push(name.to_owned());
        }
    }
    Ok(wrong)
}

/// Runs `command`, and prints the result. Returns whether that is as it must be: a report if it is
/// `busted`, else no report and success.
fn judged(name: &str, command: &Command, busted: bool) -> Result<bool> {
    let log = shell::target().join("tsan").join("report");
    // On a busy machine the threads of a short run may never meet, and then there is nothing to
    // report.
    let mut attempts = if busted { ATTEMPTS } else { 1 };
    let (ended, reported) = loop {
        let ended = shell::run_limited(command, TIME, &log)?;
        let reported = ended.output.contains(REPORT);
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
    println!("{name:40} {found:12} {}", if right { "as it must" } else { "WRONG" });
    if !right {
        println!("{}", ended.output);
    }
    Ok(right)
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_failed_test_is_named_with_its_place() {
        let seen = "test one ... ok\ntest two ... FAILED\nthread 'two' panicked at a.rs:1:2:\nno";
        let told = super::told(seen);
        assert_eq!(told, "test two ... FAILED; thread 'two' panicked at a.rs:1:2:");
        assert_eq!(super::told("running 1 test"), "no test failed by itself");
    }
}
