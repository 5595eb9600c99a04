//! `cargo xtask repeat`: the test programs again and again, beside other load.
//!
//! A test that fails once in a hundred runs has a defect, or tests one. Alone on a quiet computer
//! it may never fail. So all test programs run many times, half of the rounds beside busy processes
//! and a reader of many files. Documentation tests are no programs and are left out. So are the
//! programs of the twins: loom and the simulated machine do the same in each run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;

use crate::failure::{Failure, Result};
use crate::shell;

/// The programs, the rounds and the load.
#[derive(Args)]
pub(crate) struct Options {
    /// Only programs with this in `PACKAGE/NAME`, as the output prints them
    filter: Option<String>,
    #[arg(long, default_value_t = 10, value_name = "N")]
    /// The number of rounds; each runs every program once
    times: u32,
    #[arg(long, default_value_t = 0, value_name = "K")]
    /// Run every second round beside so many busy processes and one that reads many files
    busy: u32,
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    /// Run so many programs side by side
    jobs: u32,
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    /// The longest time of one program, in seconds
    limit: u64,
    #[arg(long)]
    /// Run those of loom and of the simulated machine too, which do the same in each run; a filter
    /// runs all that it names
    all: bool,
    #[arg(last = true)]
    /// Passed to the test programs
    arguments: Vec<String>,
}

/// A test program.
struct Program {
    /// `PACKAGE/NAME`.
    name: String,
    /// The file that is run.
    file: PathBuf,
    /// The folder in which cargo runs it.
    folder: PathBuf,
}

/// Builds the test programs, runs them, and fails if one of them failed or ran too long.
pub(crate) fn repeat(options: &Options) -> Result {
    let mut programs = programs()?;
    if let Some(filter) = &options.filter {
        let names = programs.iter().map(|program| program.name.clone()).collect::<Vec<_>>();
        programs.retain(|program| program.name.contains(filter.as_str()));
        if programs.is_empty() {
            let names = names.join("\n  ");
            return Err(Failure::verdict(format!(
                "no test program has `{filter}` in its name; there are:\n  {names}"
            )));
        }
    } else if !options.all {
        programs.retain(|program| !is_of_a_twin(&program.name));
    }
    let kept = shell::target().join("repeat");
    std::fs::create_dir_all(&kept).map_err(Failure::file(&kept))?;
    let mut failed: BTreeMap<&str, u32> = BTreeMap::new();
    let mut took: BTreeMap<&str, Duration> = BTreeMap::new();
    let begin = Instant::now();
    for round in 1..=options.times {
        let load = Load::new(if round % 2 == 0 { options.busy } else { 0 })?;
        for end in run_all(&programs, round, options, &kept)? {
            *took.entry(end.program).or_default() += end.took;
            if end.has_failed {
                *failed.entry(end.program).or_default() += 1;
            }
        }
        drop(load);
        let beside = if round % 2 == 0 && options.busy > 0 { " beside load" } else { "" };
        println!(
            "round {round} of {}{beside}: {} programs, {} s so far",
            options.times,
            programs.len(),
            begin.elapsed().as_secs()
        );
    }
    println!("the longest, in seconds a round: {}", longest(&took, options.times));
    if failed.is_empty() {
        return Ok(());
    }
    let lines = failed.iter().map(|(name, times)| format!("{name}: {times} of {}", options.times));
    Err(Failure::verdict(format!(
        "these test programs failed; their output is in {}:\n{}",
        kept.display(),
        lines.collect::<Vec<_>>().join("\n")
    )))
}

/// The end of a program.
struct End<'a> {
    /// Its name.
    program: &'a str,
    /// The time that it took.
    took: Duration,
    /// True if it failed or ran too long.
    has_failed: bool,
}

/// Runs each program once, `options.jobs` side by side. Says what failed, and keeps its output.
fn run_all<'a>(
    programs: &'a [Program],
    round: u32,
    options: &Options,
    kept: &Path,
) -> Result<Vec<End<'a>>> {
    let waiting = Mutex::new(programs.iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut ends = Vec::new();
        while let Some(program) = next() {
            let log = kept.join(format!("{round}-{}.txt", program.name.replace('/', "-")));
            let started = Instant::now();
            let why = run(program, options, &log)?;
            let (took, has_failed) = (started.elapsed(), why.is_some());
            ends.push(End { program: &program.name, took, has_failed });
            match why {
                Some(why) => println!("round {round}: {} {why}: {}", program.name, log.display()),
                None => std::fs::remove_file(&log).map_err(Failure::file(&log))?,
            }
        }
        Ok(ends)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        });
        ends.collect::<Result<Vec<_>>>().map(|ends| ends.into_iter().flatten().collect())
    })
}

/// Returns the ten programs that took longest, with their mean seconds.
fn longest(took: &BTreeMap<&str, Duration>, rounds: u32) -> String {
    let mut sorted: Vec<_> = took.iter().collect();
    sorted.sort_by_key(|&(_, &took)| std::cmp::Reverse(took));
    let mean = |took: &Duration| took.as_secs_f64() / f64::from(rounds.max(1));
    let told = sorted.iter().take(10).map(|(name, took)| format!("{name} {:.1}", mean(took)));
    told.collect::<Vec<_>>().join(", ")
}

/// Returns whether the program runs under loom or on the simulated machine.
fn is_of_a_twin(name: &str) -> bool {
    let package = name.split('/').next().unwrap_or_default();
    package.ends_with("-loom") || package.ends_with("-simulated")
}

/// Runs a program once. Returns in what way it failed, if it did.
fn run(program: &Program, options: &Options, log: &Path) -> Result<Option<String>> {
    let out = File::create(log).map_err(Failure::file(log))?;
    let err = out.try_clone().map_err(Failure::file(log))?;
    let mut command = Command::new(&program.file);
    command.args(&options.arguments).current_dir(&program.folder);
    // As cargo does for the programs that it runs.
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    let failed = |source| Failure::Start { command: program.name.clone(), source };
    let mut child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().map_err(failed)?;
    let limit = Duration::from_secs(options.limit);
    Ok(match shell::within(limit, &mut child, |process| stacks(process, log)).map_err(failed)? {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("failed ({status})")),
        Err(_) => Some(format!("ran longer than {} s", options.limit)),
    })
}

/// Appends the stacks of all threads of a process to `log`, if there is a debugger.
fn stacks(process: u32, log: &Path) {
    let Ok(mut out) = File::options().append(true).open(log) else { return };
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-p", &process.to_string(), "-ex", "thread apply all bt"]);
    let said = match gdb.stdin(Stdio::null()).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => format!("no stacks: gdb: {error}"),
    };
    let _ = writeln!(out, "\nIt ran too long.\n{said}");
}

/// Builds the test programs, and returns them by name.
fn programs() -> Result<Vec<Program>> {
    let build = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let messages = shell::output(&mut shell::cargo(build))?;
    let mut programs: Vec<_> = messages.lines().filter_map(program).collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// Returns the test program that a message of cargo is about, if it is about one.
fn program(message: &str) -> Option<Program> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let file = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = message["package_id"].as_str()?.rsplit(['/', '#']).next()?;
    let package = match folder.file_name() {
        // `path+file:///…/NAME#VERSION`: the folder's name is the package's unless cargo says
        // otherwise before an `@`.
        Some(name) if !package.contains('@') => name.to_string_lossy().into_owned(),
        _ => package.split('@').next()?.to_owned(),
    };
    let name = format!("{package}/{}", message["target"]["name"].as_str()?);
    Some(Program { name, file, folder })
}

/// Processes that keep the computer busy, until this is dropped or this program has ended.
struct Load(Vec<Child>);

impl Load {
    /// Starts `busy` processes that compute, and one that reads files; none for 0.
    fn new(busy: u32) -> Result<Self> {
        let mut load = Self(Vec::new());
        if busy == 0 {
            return Ok(load);
        }
        // Each asks now and then whether this program is still there.
        let own = std::process::id().to_string();
        let computes = "while kill -0 $0 2>/dev/null; do \
            i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done";
        let reads = "while kill -0 $0 2>/dev/null; do \
            find \"$1\" -type f -size -64k -exec cat {} + >/dev/null; done";
        for script in std::iter::repeat_n(computes, busy as usize).chain([reads]) {
            let mut command = Command::new("sh");
            command.args(["-c", script, &own]).arg(shell::root()).stderr(Stdio::null());
            let start = command.stdin(Stdio::null()).spawn();
            let failed = |source| Failure::Start { command: script.to_owned(), source };
            load.0.push(start.map_err(failed)?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = shell::end(child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_test_that_was_linked() {
        let message = |id: &str, test: bool, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","manifest_path":"/w/crates/spin/Cargo.toml","target":{{"name":"locks"}},"profile":{{"test":{test}}},"executable":{file}}}"#
            )
        };
        let id = "path+file:///w/crates/spin#stanchion-spin@0.1.0";
        let found = program(&message(id, true, r#""/t/locks-1""#)).unwrap();
        assert_eq!(found.name, "stanchion-spin/locks");
        assert_eq!(found.file, Path::new("/t/locks-1"));
        assert_eq!(found.folder, Path::new("/w/crates/spin"));
        let same = program(&message("path+file:///w/xtask#0.1.0", true, r#""/t/x""#)).unwrap();
        assert_eq!(same.name, "spin/locks");
        assert!(program(&message(id, true, "null")).is_none());
        assert!(program(&message(id, false, r#""/t/locks-1""#)).is_none());
        assert!(program("no message").is_none());
    }

    #[test]
    fn each_program_runs_once_however_many_run_side_by_side() {
        let kept = std::env::temp_dir().join(format!("repeat-{}", std::process::id()));
        std::fs::create_dir_all(&kept).unwrap();
        let named = |name: &str, file: &str| Program {
            name: name.to_owned(),
            file: PathBuf::from(file),
            folder: PathBuf::from("/"),
        };
        let programs = [
            named("a/x", "true"),
            named("b/y", "false"),
            named("c/z", "true"),
            named("d/w", "true"),
        ];
        for jobs in [1, 3, 9] {
            let options = Options {
                filter: None,
                times: 1,
                busy: 0,
                jobs,
                limit: 600,
                all: false,
                arguments: Vec::new(),
            };
            let mut ends = run_all(&programs, 1, &options, &kept).unwrap();
            ends.sort_by_key(|end| end.program);
            let told: Vec<_> = ends.iter().map(|end| (end.program, end.has_failed)).collect();
            assert_eq!(told, [("a/x", false), ("b/y", true), ("c/z", false), ("d/w", false)]);
            assert!(kept.join("1-b-y.txt").exists() && !kept.join("1-a-x.txt").exists());
        }
        std::fs::remove_dir_all(&kept).unwrap();
    }

    #[test]
    fn the_longest_come_first() {
        let second = Duration::from_secs(1);
        let took = BTreeMap::from([("a/x", second), ("b/y", 3 * second), ("c/z", 2 * second)]);
        assert_eq!(longest(&took, 2), "b/y 1.5, c/z 1.0, a/x 0.5");
    }

    #[test]
    fn only_twins_are_twins() {
        assert!(is_of_a_twin("stanchion-spin-loom/locks"));
        assert!(is_of_a_twin("stanchion-gang-simulated/barriers"));
        assert!(!is_of_a_twin("stanchion-simulator/together"));
        assert!(!is_of_a_twin("stanchion-lockfree/loom-simulated"));
    }

    #[test]
    fn load_ends_with_its_value() {
        let mut load = Load::new(1).unwrap();
        assert_eq!(load.0.len(), 2);
        assert!(load.0.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
        let processes: Vec<_> = load.0.iter().map(Child::id).collect();
        drop(load);
        for process in processes {
            assert!(!std::path::Path::new(&format!("/proc/{process}")).exists(), "{process}");
        }
    }
}
