//! `cargo xtask aarch64`: the tests of the crates on AArch64, under an emulator.
//!
//! This checks code generation, alignment, widths, the numbers of system calls, and what is written
//! for one processor only. It does not check weak ordering: the host is x86-64. The packages are
//! Debian's, see [`debian`].
//!
//! qemu emulates the program, and passes its system calls on to the kernel of this machine. Some
//! calls it does not know, and then a test cannot see what it is about. [`EXCLUDED`] names each
//! such test, with the reason. If fewer tests were left out than are named there, then a name is
//! wrong, and the task fails.
//!
//! Tests that start a program of the emulated architecture find it emulated, too: see `started.rs`.

use clap::Args;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::debian::{self, Debian};
use crate::failure::{Failure, Result};
use crate::shell;

mod excluded;

use excluded::{EXCLUDED, Excluded, LEFT_OUT};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The bytes of addresses that an emulated program has. The emulator keeps some six bytes for each
/// page that is mapped, and a simulated machine maps 16 TiB where it may.
const ADDRESSES: &str = "0x8000000000";

/// The crates that CI tests; all others are tested by the forge.
const BRIEF: [&str; 3] = ["spin", "machine", "competitive"];

/// The crates to test.
#[derive(Args)]
pub(crate) struct Options {
    /// Folders of `crates`; all of them if none is named
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
    /// Fail where the packages cannot be had, instead of skipping
    #[arg(long)]
    required: bool,
}

/// Runs what CI runs.
pub(crate) fn brief() -> Result {
    let crates = BRIEF.map(str::to_owned).to_vec();
    aarch64(&Options { crates, required: false })
}

/// The tests of all crates, for which CI has no time.
pub(crate) fn whole() -> Result {
    aarch64(&Options { crates: Vec::new(), required: false })
}

/// Tests the crates one after the other, and says what came of each.
pub(crate) fn aarch64(options: &Options) -> Result {
    let crates = chosen(&options.crates)?;
    let Some(debian) = debian::provide_or_skip("tests on AArch64", options.required)? else {
        return Ok(());
    };
    let emulated = Emulated::new(&debian)?;
    let mut wrong = Vec::new();
    let mut said = Vec::new();
    for name in crates {
        match emulated.test(&debian, &name)? {
            Ok(tests) => said.push(format!("{name:16} {tests}")),
            Err(why) => {
                said.push(format!("{name:16} FAILED: {why}"));
                wrong.push(format!("{name} ({why})"));
            }
        }
    }
    println!("\n{}", said.join("\n"));
    if wrong.is_empty() {
        return Ok(());
    }
    let names = wrong.join(", ");
    Err(Failure::verdict(format!("on AArch64 the tests fail of {names}; `cargo xtask aarch64`")))
}

/// The folders of `crates` with tests that can be emulated, or those of them that were asked for.
fn chosen(asked: &[String]) -> Result<Vec<String>> {
    let folder = shell::root().join("crates");
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Failure::file(&folder))? {
        let entry = entry.map_err(Failure::file(&folder))?;
        all.push(entry.file_name().to_string_lossy().into_owned());
    }
    all.sort();
    if let Some(stranger) = asked.iter().find(|name| !all.contains(name)) {
        let names = all.join(", ");
        return Err(Failure::verdict(format!("no crate `{stranger}`; there are: {names}")));
    }
    let wanted = |name: &String| if asked.is_empty() { true } else { asked.contains(name) };
    let (mut left_out, mut chosen) = (Vec::new(), Vec::new());
    for name in all.into_iter().filter(wanted) {
        match LEFT_OUT.iter().find(|(left_out, _)| name == *left_out) {
            Some((_, why)) => left_out.push(format!("{name} is left out: {why}")),
            None => chosen.push(name),
        }
    }
    left_out.iter().for_each(|line| println!("{line}"));
    Ok(chosen)
}

/// The emulator with what it loads into each program.
struct Emulated {
    /// Where programs for the architecture are built.
    build: PathBuf,
    /// A script that runs its arguments under the emulator.
    emulator: PathBuf,
}

impl Emulated {
    fn new(debian: &Debian) -> Result<Self> {
        let build = shell::target().join("aarch64");
        fs::create_dir_all(&build).map_err(Failure::file(&build))?;
        let (emulator, library) = (build.join("emulator"), build.join("libstarted.so"));
        let mut compile = Command::new(debian.rustc());
        compile.args(["--edition", "2024", "-O", "-Cstrip=symbols", "--crate-type", "cdylib"]);
        compile.args(["--target", TARGET, &linker(debian), &sysroot(debian), "-o"]).arg(&library);
        compile.arg(shell::root().join("xtask/src/aarch64/started.rs"));
        shell::run(compile.env("STANCHION_EMULATOR", &emulator))?;
        // GLib before 2.76 has an allocator with locks of its own. A child that was forked while
        // another thread held one of them waits for it for ever; malloc's locks are free in a
        // child. (https://gitlab.com/qemu-project/qemu/-/issues/285)
        let text = format!(
            "#!/bin/sh\n\
             export LD_LIBRARY_PATH='{}'\n\
             export G_SLICE=always-malloc\n\
             exec '{}' -R {ADDRESSES} -L '{}' -U LD_LIBRARY_PATH -E LD_PRELOAD='{}' \"$@\"\n",
            debian.libraries(),
            debian.program("qemu-aarch64").display(),
            debian.root().join("usr/aarch64-linux-gnu").display(),
            library.display(),
        );
        debian::script(&emulator, &text)?;
        Ok(Self { build, emulator })
    }

    /// Runs the tests of a crate, examples of the documentation apart. Returns how many passed, or
    /// what is wrong.
    fn test(&self, debian: &Debian, name: &str) -> Result<Result<String, String>> {
        let manifest = shell::root().join("crates").join(name).join("Cargo.toml");
        let mut command = debian.cargo(&["test", "--no-fail-fast", "--target", TARGET]);
        command.args(["--lib", "--bins", "--tests", "--manifest-path"]).arg(manifest);
        command.args(["--", "--exact"]);
        let excluded: Vec<_> = EXCLUDED.iter().filter(|excluded| excluded.of == name).collect();
        for Excluded { why, tests, .. } in &excluded {
            for test in *tests {
                println!("{name}: {test} is excluded: {why}");
                command.args(["--skip", test]);
            }
        }
        let flags = format!("{} {}", linker(debian), sysroot(debian));
        command.env("CARGO_TARGET_DIR", &self.build);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", flags);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &self.emulator);
        // Emulated threads are slow, and tests have threads of their own. A backtrace takes
        // seconds.
        command.env("RUST_TEST_THREADS", "2").env("RUST_BACKTRACE", "0");
        let (status, output) = shell::run_seen(&mut command)?;
        let [passed, failed, ignored, left_out] = crate::ci::tally(&output);
        if !status.success() || failed > 0 {
            let tests = crate::ci::failed_tests(&output);
            return Ok(Err(format!("{failed} failed of {}: {tests}", passed + failed)));
        }
        let listed: usize = excluded.iter().map(|excluded| excluded.tests.len()).sum();
        // More is no fault: a test that starts its program again for one test leaves out the
        // others.
        if left_out < listed as u64 {
            let why = format!(
                "{left_out} tests were excluded and {listed} are listed in excluded.rs: a name is wrong"
            );
            return Ok(Err(why));
        }
        Ok(Ok(format!("{passed:4} passed, {ignored} ignored, {listed} excluded")))
    }
}

fn linker(debian: &Debian) -> String {
    format!("-Clinker={}", debian.program("aarch64-linux-gnu-gcc").display())
}

fn sysroot(debian: &Debian) -> String {
    format!("-Clink-arg=--sysroot={}", debian.root().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_names_crates() {
        let all = chosen(&[]).unwrap();
        assert!(BRIEF.iter().all(|name| all.iter().any(|one| one == name)), "{all:?}");
        assert!(
            EXCLUDED.iter().all(|excluded| all.iter().any(|one| one == excluded.of)),
            "{all:?}"
        );
        for (name, _) in LEFT_OUT {
            assert!(shell::root().join("crates").join(name).exists(), "{name}");
        }
    }

    #[test]
    fn an_unknown_crate_is_refused_with_the_known_ones() {
        let refused = chosen(&["no-such".to_owned()]).unwrap_err().to_string();
        assert!(refused.contains("no-such") && refused.contains("spin"), "{refused}");
    }
}
