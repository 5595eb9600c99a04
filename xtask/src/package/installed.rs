//! The commands, installed from their packages alone, and run.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::assemble::read;
use super::members::Member;
use super::registry::Registry;
use crate::failure::{Failure, Result};
use crate::shell;

/// The experiments that every run tries with the installed command.
const EXPERIMENT: &str = "all89/fig3.1";

/// Installs the programs of `member`, prints how long that took and by which profile they were
/// built, and runs what our command can do.
pub(crate) fn installed(member: &Member, registry: &Registry, whole: bool) -> Result {
    let root = registry.path("installed");
    let begin = Instant::now();
    let mut install = registry.cargo(&registry.path(""), &["install", "--locked", "--root"]);
    install.arg(&root).arg(&member.name).args(["--version", &member.version]);
    shell::run(&mut install)?;
    let manifest = read(&registry.path("registry").join(member.full_name()).join("Cargo.toml"))?;
    println!("installed in {:.0} s, built by", begin.elapsed().as_secs_f64());
    println!("{}", profile(&manifest));
    for program in &member.programs {
        let program = root.join("bin").join(program);
        shell::run(Command::new(&program).arg("--help"))?;
        if member.programs.len() == 1 && program.file_name() == Some(OsStr::new("stanchion")) {
            studies(&program, registry, whole)?;
            records(&program, registry)?;
            patches(&program, registry)?;
        }
    }
    Ok(())
}

/// Returns the profile in `manifest` by which cargo builds what it installs.
fn profile(manifest: &str) -> String {
    let lines = manifest.lines().skip_while(|line| *line != "[profile.release]");
    let lines: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    if lines.is_empty() { "cargo's own release profile".to_owned() } else { lines.join("\n") }
}

/// Runs experiments far away from the workspace: `study --quick`, of one experiment or of all.
fn studies(program: &Path, registry: &Registry, whole: bool) -> Result {
    let out = registry.path("study");
    let mut study = Command::new(program);
    study.args(["study", "--quick", "--out"]).arg(&out).current_dir(registry.path(""));
    if !whole {
        study.arg(EXPERIMENT);
    }
    shell::run(&mut study)?;
    demand(&out.join("report.html"))
}

/// Records the waits of a program that knows nothing of us.
fn records(program: &Path, registry: &Registry) -> Result {
    let stranger = compiled(registry)?;
    let waits = registry.path("waits.json");
    let cache = registry.path("cache");
    fs::create_dir_all(&cache).map_err(Failure::file(&cache))?;
    for more in [&[][..], &["--lock", "random-walk"]] {
        let mut record = Command::new(program);
        record.args(["record", "--output"]).arg(&waits).args(more).arg("--").arg(&stranger);
        registry.environment(&mut record);
        // The shim is built here for the first of the two runs, and found by the second.
        record.env("XDG_CACHE_HOME", &cache).current_dir(registry.path(""));
        shell::run(&mut record)?;
        demand(&waits)?;
        fs::remove_file(&waits).map_err(Failure::file(&waits))?;
    }
    Ok(())
}

/// Writes the recorded packages, and builds their recorder. The others would resolve to
/// optional dependencies that the registry lacks.
fn patches(program: &Path, registry: &Registry) -> Result {
    let folder = registry.path("recorded-locks");
    let mut patch = Command::new(program);
    shell::run(patch.arg("patch").arg(&folder).current_dir(registry.path("")))?;
    demand(&folder.join("lock_api-0.4/Cargo.toml"))?;
    demand(&folder.join("lock_api-0.5/Cargo.toml"))?;
    demand(&folder.join("parking_lot_core-0.9/build.rs"))?;
    demand(&folder.join("parking_lot_core-0.10/Cargo.toml"))?;
    shell::run(&mut registry.cargo(&folder.join("order"), &["build"]))
}

/// A program in C with two threads that want one mutex.
const STRANGER: &str = r#"
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused) {
    for (int round = 0; round < 50; round++) {
        pthread_mutex_lock(&lock);
        usleep(200);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

fn compiled(registry: &Registry) -> Result<PathBuf> {
    let (source, program) = (registry.path("stranger.c"), registry.path("stranger"));
    super::assemble::write(&source, STRANGER)?;
    let mut compiler = Command::new("cc");
    shell::run(compiler.arg("-pthread").arg("-o").arg(&program).arg(&source))?;
    Ok(program)
}

fn demand(file: &Path) -> Result {
    if file.is_file() {
        return Ok(());
    }
    Err(Failure::verdict(format!("{} was not written", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_that_of_the_package() {
        let manifest =
            "[lib]\n\n[profile.release]\nlto = \"thin\"\ncodegen-units = 1\n\n[profile.bench]\n";
        assert_eq!(profile(manifest), "[profile.release]\nlto = \"thin\"\ncodegen-units = 1");
        assert_eq!(profile("[lib]\n"), "cargo's own release profile");
    }
}
