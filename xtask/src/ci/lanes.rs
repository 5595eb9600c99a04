//! All tasks of CI, two at a time.
//!
//! Why not one after the other: a build ends with its largest crate and a test program with its
//! longest model, and one processor of two has nothing to do then. Why not more at a time: each
//! task uses the processors itself.
//!
//! A task is this program again with `ci --only TASK`, and what it prints goes to a file of the
//! target folder's `ci`. It is printed here, undivided, when the task has ended. The lanes share no
//! target folder except at their ends, and cargo lets one build at a time into a folder. A lane
//! that waits there leaves the processors to the other.
//!
//! A task that runs longer than [`LIMIT`] is ended with all that it started. It fails, and says
//! which processes still ran: a test that hangs must not hide what all other tasks found.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Ran, Task, count, tasks};
use crate::failure::{Failure, Result};
use crate::shell;

/// The tasks of the second lane, in the order in which they run; all others are in the first, in
/// the order of [`tasks`]. A lane that is at its end takes the last of the other's.
const SECOND: &[&str] = &["weaken", "downstream", "tsan", "aarch64", "fuzz"];

/// The longest time that a task takes: three times what the longest one takes on two processors.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// Runs all tasks, and says what became of each in the order of [`tasks`].
pub(super) fn run(whole: bool) -> Result<Vec<Ran>> {
    let folder = shell::target().join("ci");
    std::fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    // A copy, because `test` may build this program anew and put it where this one is.
    let program = folder.join("xtask");
    let this = std::env::current_exe().map_err(Failure::file(Path::new("xtask")))?;
    std::fs::copy(&this, &program).map_err(Failure::file(&this))?;
    let (lanes, ran) = (Mutex::new(lanes(whole)), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for own in 0..2 {
            let (lanes, ran, folder, program) = (&lanes, &ran, &folder, &program);
            scope.spawn(move || {
                loop {
                    let next = next(&mut lanes.lock().unwrap_or_else(PoisonError::into_inner), own);
                    let Some(task) = next else { return };
                    println!("\n.... {} has begun", task.name);
                    let (begin, log) = (Instant::now(), folder.join(format!("{}.txt", task.name)));
                    let result = apart(task, program, &log);
                    let took = begin.elapsed();
                    let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
                    print(&log);
                    ran.push(Ran { name: task.name, took, result, skipped: skipped(&log) });
                }
            });
        }
    });
    let mut ran = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    ran.sort_by_key(|ran| tasks().position(|task| task.name == ran.name));
    Ok(ran)
}

type Lane = VecDeque<&'static Task>;

fn lanes(whole: bool) -> [Lane; 2] {
    let all = tasks().take(count(whole));
    let first = all.filter(|task| !SECOND.contains(&task.name)).collect();
    let named = |name: &&str| tasks().find(|task| task.name == *name);
    [first, SECOND.iter().filter_map(named).collect()]
}

/// The next task of lane `own`, or the last of the other.
fn next(lanes: &mut [Lane; 2], own: usize) -> Option<&'static Task> {
    let task = lanes[own].pop_front();
    task.or_else(|| lanes[1 - own].pop_back())
}

/// Runs `task` in a process of its own, which prints to `log`.
fn apart(task: &Task, program: &Path, log: &Path) -> Result {
    let out = File::create(log).map_err(Failure::file(log))?;
    let err = out.try_clone().map_err(Failure::file(log))?;
    let mut command = Command::new(program);
    command.args(["ci", "--only", task.name]).stdin(Stdio::null()).stdout(out).stderr(err);
    let text = format!("cargo xtask ci --only {}", task.name);
    let mut child =
        command.spawn().map_err(|source| Failure::Start { command: text.clone(), source })?;
    let status = shell::within(LIMIT, &mut child, |_| ());
    match status.map_err(|source| Failure::Start { command: text.clone(), source })? {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::verdict(why(log, &text))),
        Err(running) => Err(Failure::verdict(format!(
            "`{text}` did not end within {} minutes and was killed; its output ends where it \
             stood. These processes still ran:\n{running}",
            LIMIT.as_secs() / 60
        ))),
    }
}

/// Returns a task's own last lines: all after the table of what it took, without its summary. The
/// lines of cargo that name the failed test programs come after them.
fn why(log: &Path, command: &str) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    let Some((before, said)) = text.rsplit_once(" FAILED: ") else {
        return format!("`{command}` did not get to its end; its output above says why");
    };
    let said = said.rsplit_once("\nxtask: ").map_or(said, |(said, _)| said).trim_end();
    let programs = before.lines().filter(|line| line.starts_with("error: test failed"));
    [said].into_iter().chain(programs).collect::<Vec<_>>().join("\n")
}

/// The lines in which a task said what it left out.
fn skipped(log: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    text.lines().filter(|line| line.starts_with("SKIPPED: ")).map(str::to_owned).collect()
}

fn print(log: &Path) {
    let mut out = io::stdout().lock();
    // A closed terminal must not stop the run.
    let _ = out.write_all(&std::fs::read(log).unwrap_or_default());
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_in_one_lane() {
        for whole in [false, true] {
            let [first, second] = lanes(whole);
            assert_eq!(first.len() + second.len(), count(whole));
        }
        let [_, second] = lanes(false);
        let names: Vec<_> = second.iter().map(|task| task.name).collect();
        assert_eq!(names, SECOND, "a name that is no task");
    }

    #[test]
    fn a_lane_at_its_end_takes_the_last_of_the_other() {
        let mut lanes = lanes(false);
        let first: Vec<_> =
            std::iter::from_fn(|| next(&mut lanes, 0)).map(|task| task.name).collect();
        assert_eq!(Some(first[0]), tasks().next().map(|task| task.name));
        assert_eq!(first.last(), SECOND.first());
        assert_eq!(first.len(), count(false));
        assert!(next(&mut lanes, 1).is_none());
    }

    #[test]
    fn failures_and_omissions_are_what_the_task_said() {
        let log = std::env::temp_dir().join(format!("stanchion-lanes-{}.txt", std::process::id()));
        std::fs::write(&log, "error: test failed, to rerun pass `-p x`\nnoise\ntest  1.0 s  FAILED\n\ntest FAILED: cargo test: b\nwhy\nxtask: 1 of the tasks failed:\ntest: cargo test: b\n").unwrap();
        let said = why(&log, "x");
        std::fs::write(&log, "noise\nSKIPPED: a part, for a reason\ntest SKIPPED: no\n").unwrap();
        let left_out = skipped(&log);
        std::fs::write(&log, "killed").unwrap();
        let unsaid = why(&log, "x");
        std::fs::remove_file(&log).unwrap();
        assert_eq!(left_out, ["SKIPPED: a part, for a reason"]);
        assert_eq!(said, "cargo test: b\nwhy\nerror: test failed, to rerun pass `-p x`");
        assert!(unsaid.contains("did not get to its end"));
    }
}
