//! Running commands: where, how long, and what they printed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a folder of the workspace").to_owned()
}

/// Where builds go: `CARGO_TARGET_DIR` or `target`.
pub(crate) fn target() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(chosen.unwrap_or_else(|| PathBuf::from("target")))
}

/// The Rust files under `folder`, from the root, with `/`, sorted; nothing that was built.
pub(crate) fn sources(folder: &str) -> Result<Vec<String>> {
    let full = root().join(folder);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&full).map_err(Failure::file(&full))? {
        let entry = entry.map_err(Failure::file(&full))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        // Not through links: what they point to has a path of its own.
        if entry.file_type().map_err(Failure::file(&full))?.is_dir() {
            if name != "target" {
                paths.extend(sources(&path)?);
            }
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// `cargo` with `arguments`, started in the root.
pub(crate) fn cargo<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments).stdin(Stdio::null());
    // What `cargo run` set for this process is not meant for the cargo that it starts.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(program.to_string_lossy().into_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs `command` with its output on this terminal; failing is an error.
pub(crate) fn run(command: &mut Command) -> Result {
    let text = announce(command);
    let status =
        command.status().map_err(|source| Failure::Start { command: text.clone(), source })?;
    ended(status, text)
}

/// Runs `command` with its standard output on this terminal and returned; failing is an error.
pub(crate) fn run_teed(command: &mut Command) -> Result<String> {
    let text = line(command);
    let (status, seen) = run_seen(command)?;
    ended(status, text).map(|()| seen)
}

/// Runs `command` with its standard output on this terminal and returned, however it ends.
pub(crate) fn run_seen(command: &mut Command) -> Result<(ExitStatus, String)> {
    run_showing(command, |_| true)
}

/// Runs `command` and returns its standard output, however it ends; the lines that `shown` says are
/// on this terminal too.
pub(crate) fn run_showing(
    command: &mut Command,
    mut shown: impl FnMut(&str) -> bool,
) -> Result<(ExitStatus, String)> {
    let text = announce(command);
    let failed_start = |source| Failure::Start { command: text.clone(), source };
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed_start)?;
    let mut seen = String::new();
    let pipe = child.stdout.take().expect("standard output was asked for");
    // Test programs may print bytes that are no UTF-8: split by bytes, convert leniently.
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line.map_err(failed_start)?;
        let line = String::from_utf8_lossy(&line);
        if shown(&line) {
            // A closed terminal must not stop the run.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    let status = child.wait().map_err(failed_start)?;
    Ok((status, seen))
}

/// Runs `command` quietly and returns its standard output; its standard error stays on this
/// terminal.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let text = line(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| Failure::Start { command: text.clone(), source })?;
    ended(output.status, text)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The longest that [`run_limited`] waits for a command that uses no processor time.
const ASLEEP: Duration = Duration::from_secs(600);

/// The signals by which the system ends what has used up its processor time.
const OUT_OF_TIME: i32 = 24;
const KILLED: i32 = 9;

/// The end of a command with a time limit.
pub(crate) struct Ended {
    /// `None`: it ran out of time and was killed.
    pub(crate) status: Option<ExitStatus>,
    /// Everything that it printed, on both streams.
    pub(crate) output: String,
}

/// Runs `command` for at most `limit` of processor time, its output going through the file `log`.
///
/// Not of the clock's time: what a busy computer makes slow is not late. Only what sleeps for ever
/// is ended by the clock, after [`ASLEEP`].
pub(crate) fn run_limited(command: &Command, limit: Duration, log: &Path) -> Result<Ended> {
    let text = line(command);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -t "$0" && exec "$@""#]);
    limited.arg(limit.as_secs().max(1).to_string());
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    let failed_start = |source| Failure::Start { command: text.clone(), source };
    let out = File::create(log).map_err(Failure::file(log))?;
    let err = out.try_clone().map_err(Failure::file(log))?;
    let mut child =
        limited.stdin(Stdio::null()).stdout(out).stderr(err).spawn().map_err(failed_start)?;
    let status = within(ASLEEP, &mut child, |_| ()).map_err(failed_start)?.ok();
    let status = status.filter(|it| !matches!(it.signal(), Some(KILLED | OUT_OF_TIME)));
    let output = std::fs::read(log).map_err(Failure::file(log))?;
    Ok(Ended { status, output: String::from_utf8_lossy(&output).into_owned() })
}

/// Waits for `child` to end, at most for `limit`. Then calls `late` with its number, kills it with
/// all that it has started, and returns these processes, a line each.
///
/// They stay in the process group of this program, so that an interrupt at the terminal ends them.
pub(crate) fn within(
    limit: Duration,
    child: &mut Child,
    late: impl FnOnce(u32),
) -> io::Result<Result<ExitStatus, String>> {
    let begin = Instant::now();
    let mut nap = Duration::from_micros(500);
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Ok(status));
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(10));
    }
    late(child.id());
    Ok(Err(end(child)?))
}

/// Kills `child` with all that it has started, and returns these processes, a line each: number,
/// state, command, and the names of its threads. The harness of cargo's tests names a thread by the
/// test that it runs.
pub(crate) fn end(child: &mut Child) -> io::Result<String> {
    let mut family = family(child.id());
    let lines: Vec<_> = family.iter().map(|process| process.line.clone()).collect();
    // Stopped, none of them starts another one. What was started before the stop is found again.
    loop {
        signal("STOP", &family)?;
        let now = self::family(child.id());
        let grown = now.len() > family.len();
        family = now;
        if !grown {
            break;
        }
    }
    signal("KILL", &family)?;
    child.wait()?;
    Ok(lines.join("\n"))
}

/// A process that runs.
struct Process {
    /// Its own number.
    number: u32,
    /// The number of the process that started it.
    parent: u32,
    /// Number, state, command and threads.
    line: String,
}

/// Sends a signal to `processes`. Those that have ended meanwhile do not matter.
fn signal(name: &str, processes: &[Process]) -> io::Result<()> {
    let numbers = processes.iter().map(|process| process.number.to_string());
    let numbers = numbers.collect::<Vec<_>>().join(" ");
    // The shell has it built in: not every system has a program for it.
    let script = format!("kill -{name} {numbers}");
    Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status().map(|_| ())
}

/// Returns the process `root` and all that descend from it.
fn family(root: u32) -> Vec<Process> {
    let mut strangers = running();
    let mut family: Vec<Process> = strangers.extract_if(.., |it| it.number == root).collect();
    let mut looked_at = 0;
    while let Some(parent) = family.get(looked_at).map(|process| process.number) {
        family.extend(strangers.extract_if(.., |it| it.parent == parent));
        looked_at += 1;
    }
    family
}

/// Returns the names of a process's threads but the first, in parentheses.
fn threads(process: &Path) -> String {
    let tasks = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let mut numbered: Vec<(u32, String)> = tasks
        .filter_map(|task| {
            let number = task.file_name().to_string_lossy().parse().ok()?;
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            Some((number, name.trim_end().to_owned()))
        })
        .collect();
    numbered.sort();
    let mut names: Vec<_> = numbered.into_iter().skip(1).map(|(_, name)| name).collect();
    names.dedup();
    if names.is_empty() { String::new() } else { format!(" (threads: {})", names.join(", ")) }
}

/// The most characters of a command that are told: some have all their tests as arguments.
const LONGEST_COMMAND: usize = 300;

/// Returns all processes that run.
fn running() -> Vec<Process> {
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let Ok(number) = entry.file_name().to_string_lossy().parse() else { continue };
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        // After the name, which is in parentheses: state, parent.
        let Some((_, after)) = stat.rsplit_once(") ") else { continue };
        let mut fields = after.split(' ');
        let state = fields.next().unwrap_or_default();
        let Some(parent) = fields.next().and_then(|text| text.parse().ok()) else { continue };
        // A zombie has ended, and its parent does not know yet.
        if state == "Z" {
            continue;
        }
        let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let command: String = command.trim_end().chars().take(LONGEST_COMMAND).collect();
        let line = format!("{number:>8} {state} {command}{}", threads(&entry.path()));
        processes.push(Process { number, parent, line });
    }
    processes
}

fn announce(command: &Command) -> String {
    let text = line(command);
    let _ = writeln!(std::io::stdout(), "\n$ {text}");
    text
}

fn ended(status: ExitStatus, command: String) -> Result {
    if status.success() { Ok(()) } else { Err(Failure::Command { command, status }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_ended_with_what_it_started() {
        let script = "sleep 60 & echo $!; wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell.spawn().unwrap();
        let mut started = String::new();
        let mut out = io::BufReader::new(child.stdout.take().unwrap());
        io::BufRead::read_line(&mut out, &mut started).unwrap();
        let running = within(Duration::ZERO, &mut child, |_| ()).unwrap().unwrap_err();
        assert!(running.contains(script), "{running}");
        assert!(running.contains(&format!("{} ", started.trim())), "{running}");
        // The end of its output: the last process that had it open has ended.
        assert_eq!(io::Read::read(&mut out, &mut [0; 8]).unwrap(), 0);

        let mut child = Command::new("true").spawn().unwrap();
        assert!(within(Duration::MAX, &mut child, |_| ()).unwrap().unwrap().success());
    }

    #[test]
    fn threads_are_named() {
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let (begins, begun) = std::sync::mpsc::channel::<()>();
        let named = std::thread::Builder::new().name("tests::one_that".into());
        let runs = move || (begins.send(()).unwrap(), end.recv().is_err());
        let thread = named.spawn(runs).unwrap();
        begun.recv().unwrap();
        let names = threads(Path::new("/proc/self"));
        assert!(names.contains("tests::one_that"), "{names}");
        drop(ends);
        thread.join().unwrap();
    }
}
