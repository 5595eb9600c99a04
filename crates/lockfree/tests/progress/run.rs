//! The structures and operations of the test, and the report on them.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::child::Operation;
use crate::processors::Shared;
use crate::structures::{Case, Subject};
use crate::tracer::{self, Refused};
use crate::{peers, structures};

/// The operation of the victim, and the number of values before it. A bounded structure has room
/// for four.
const OPERATIONS: [(&str, Operation, u64); 6] = [
    ("put into none", put, 0),
    ("put to four", put, 4),
    ("take from none", take, 0),
    ("take the only one", take, 1),
    ("take one of four", take, 4),
    ("look at four", look, 4),
];

/// After how many instructions of an operation the victim is stopped, evenly spread, unless the
/// environment asks for all.
const LIMIT: usize = 1_000;

fn put(subject: &dyn Subject) {
    subject.put(1_000);
}

fn take(subject: &dyn Subject) {
    subject.take();
}

fn look(subject: &dyn Subject) {
    subject.look();
}

/// The result for a structure.
struct Verdict {
    /// The table's lines, one for each operation that was tried.
    lines: Vec<String>,
    /// Set if the other threads waited for the stopped one.
    blocks: bool,
}

fn judge(case: &Case, processors: &Shared, limit: usize) -> Result<Verdict, Refused> {
    let mut verdict = Verdict { lines: Vec::new(), blocks: false };
    for (name, operation, filled) in OPERATIONS {
        let found = tracer::search(processors, case.make, filled, operation, limit)?;
        let said = match found.waits {
            None => "the others always finish".to_owned(),
            Some(position) => format!("the others wait from instruction {position} on"),
        };
        verdict.lines.push(format!(
            "    {name:18} {:6} instructions, stopped after {:5}: {said}",
            found.instructions, found.stops
        ));
        if found.waits.is_some() {
            // Once is enough to know, and each time costs as long as it takes to call a thread
            // stuck.
            verdict.blocks = true;
            break;
        }
    }
    Ok(verdict)
}

/// The argument of a part: `--part=K/N` takes each N-th structure, from the K-th on.
const PART: &str = "--part=";

/// Runs the test for all structures with names that contain one of the program's arguments, or all.
/// A part of the structures is tested on each of two processors, in a process of its own: a process
/// that forks should have one thread.
pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, names): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.starts_with('-'));
    let cases = [peers::toys(), structures::all(), peers::all()].concat();
    if flags.iter().any(|flag| *flag == "--list") {
        cases.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    let chosen = |case: &&Case| {
        names.is_empty() || names.iter().any(|name| case.name.contains(name.as_str()))
    };
    let cases: Vec<_> = cases.iter().filter(chosen).collect();
    match flags.iter().find_map(|flag| flag.strip_prefix(PART)) {
        Some(part) => run(&cases, part),
        None => run_parts(&arguments),
    }
}

/// Runs both parts at the same time, and prints what they print.
fn run_parts(arguments: &[String]) -> ExitCode {
    let started = ["0/2", "1/2"].map(|part| {
        let program = std::env::current_exe()?;
        Command::new(program).arg(format!("{PART}{part}")).args(arguments).spawn()
    });
    let mut is_right = true;
    for part in started {
        match part.and_then(|mut part| part.wait()) {
            Ok(status) => is_right &= status.success(),
            Err(error) => {
                println!("a part of the test does not run: {error}");
                is_right = false;
            }
        }
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the test for a part of the structures.
fn run(cases: &[&Case], part: &str) -> ExitCode {
    let Some((first, of)) = part
        .split_once('/')
        .and_then(|(first, of)| Some((first.parse().ok()?, of.parse().ok().filter(|&of| of > 0)?)))
    else {
        println!("{PART}{part}: not two numbers such as 0/2");
        return ExitCode::FAILURE;
    };
    let processors = Shared::of(first);
    let everything = std::env::var("STANCHION_PROGRESS").is_ok_and(|value| value == "all");
    let limit = if everything { usize::MAX } else { LIMIT };

    let mut wrong = Vec::new();
    for case in cases.iter().skip(first).step_by(of) {
        let begin = Instant::now();
        match judge(case, &processors, limit) {
            Ok(verdict) => {
                let right = verdict.blocks != case.progress.is_non_blocking();
                // In one piece, because another part prints too.
                let said = if right { "ok" } else { "WRONG" };
                let seconds = begin.elapsed().as_secs_f64();
                let lines: String =
                    verdict.lines.iter().map(|line| format!("\n{line}")).collect();
                println!("{} says {:?}: {said} ({seconds:.1} s){lines}", case.name, case.progress);
                if !right {
                    wrong.push(case.name);
                }
            }
            Err(Refused::Forbidden(error)) => {
                println!("progress: SKIPPED, ptrace is not to be had here: {error}");
                return ExitCode::SUCCESS;
            }
            Err(Refused::Endless) => {
                println!(
                    "progress: SKIPPED, no exclusive access succeeds here while it is stepped"
                );
                return ExitCode::SUCCESS;
            }
            Err(Refused::Failed(why)) => {
                println!("{}: FAILED, {why}", case.name);
                wrong.push(case.name);
            }
        }
    }
    if wrong.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nnot what they say: {}", wrong.join(", "));
    ExitCode::FAILURE
}
