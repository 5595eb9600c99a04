//! The orders in which the program took its locks: possible deadlocks, as lines for people.

use std::collections::BTreeSet;

use stanchion_order::Mode;
use stanchion_order::foreign::{Cycle, Findings, Losses, Recursion, Step, Use};
use stanchion_study::units::{count, grouped_count};

use super::names::Names;

/// The most findings of each kind that are printed.
const SHOWN: usize = 20;

/// The most calls of a path that are printed.
const CALLS: usize = 12;

/// Returns the lines on what was found. The same finding in several processes is printed once.
pub(super) fn lines(findings: &Findings, program: &str) -> Vec<String> {
    let mut names = Names::new();
    let cycles: Vec<_> = findings.cycles.iter().map(|cycle| of_cycle(cycle, &mut names)).collect();
    let recursions: Vec<_> =
        findings.recursions.iter().map(|found| of_recursion(found, &mut names)).collect();
    let (cycles, recursions) = (different(cycles), different(recursions));
    let pairs = grouped_count(findings.pairs as u64, "pair");
    let mut lines = vec![match cycles.len() {
        0 => format!("stanchion: {program} took no locks in orders that could deadlock"),
        number => format!("stanchion: {} of {program}", count(number, "possible deadlock")),
    }];
    for found in [&cycles, &recursions] {
        lines.extend(found.iter().take(SHOWN).flatten().cloned());
        if found.len() > SHOWN {
            lines.push(format!("and {} more", found.len() - SHOWN));
        }
    }
    lines.push(format!("{pairs} of a held and a taken lock were seen"));
    lines.extend(of_losses(&findings.losses));
    lines
}

/// Returns the findings without those that have the same lines as one before.
fn different(all: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut before = BTreeSet::new();
    // Numbers of threads and locks say nothing in another process.
    let without_numbers = |lines: &[String]| {
        let digits = |c: char| c.is_ascii_digit();
        let known = lines.iter().map(|line| match line.trim_start().starts_with("thread") {
            true => line.replace(digits, ""),
            false => line.clone(),
        });
        known.collect::<Vec<_>>()
    };
    all.into_iter().filter(|lines| before.insert(without_numbers(lines))).collect()
}

fn of_cycle<'t>(cycle: &'t Cycle, names: &mut Names<'t>) -> Vec<String> {
    let mut lines = vec![format!("possible deadlock of {}", count(cycle.steps.len(), "thread"))];
    if cycle.needs_writer {
        lines.push(
            "  (only while other threads wait to write each lock that two of these read)"
                .to_owned(),
        );
    }
    cycle.steps.iter().for_each(|step| of_step(step, "took", names, &mut lines));
    lines
}

fn of_recursion<'t>(found: &'t Recursion, names: &mut Names<'t>) -> Vec<String> {
    let title = if found.is_fatal {
        "a thread blocks itself, unless the first release was not seen"
    } else {
        "recursive read: it blocks forever if a writer waits in between"
    };
    let mut lines = vec![title.to_owned()];
    of_step(&found.step, "took again", names, &mut lines);
    lines
}

fn of_step<'t>(step: &'t Step, verb: &str, names: &mut Names<'t>, lines: &mut Vec<String>) {
    let (held, taken) = (of_use(&step.held, names), of_use(&step.taken, names));
    let held_in = of_place(&step.held, names);
    lines.push(format!("  thread {} held {held}, taken in {held_in}", step.thread));
    lines.push(format!("  thread {} {verb} {taken}", step.thread));
    let calls = match &step.path {
        Some(path) => names.calls(path),
        None => vec![of_place(&step.taken, names)],
    };
    for (index, call) in calls.iter().take(CALLS).enumerate() {
        lines.push(format!("      {} {call}", if index == 0 { "in" } else { "called from" }));
    }
}

/// Returns the function in which a lock was taken.
fn of_place<'t>(used: &'t Use, names: &mut Names<'t>) -> String {
    let calls = used.place.as_deref().map(|place| names.calls(place)).unwrap_or_default();
    // The call itself, and the functions that were inlined there.
    if calls.is_empty() { "an unknown function".to_owned() } else { calls.join(" < ") }
}

/// Returns a lock with its name and its mode.
fn of_use<'t>(used: &'t Use, names: &mut Names<'t>) -> String {
    let name = used.name.as_deref().map(|name| names.of(name).1);
    let name = name.map_or_else(String::new, |name| format!(" ({name})"));
    let mode = if used.mode == Mode::Exclusive { "" } else { ", to read" };
    format!("lock {}{name}{mode}", used.lock)
}

fn of_losses(losses: &Losses) -> Vec<String> {
    let all = [
        (losses.unseen_releases, "locks left the graph, because a release was not seen"),
        (losses.too_deep, "acquisitions by threads that held more than 16 locks"),
        (losses.unidentified, "acquisitions of robust, shared and priority mutexes"),
        (losses.cut_acquisitions, "acquisitions for which the table had no room"),
        (losses.cut_searches, "searches that ended early"),
        (losses.cut_contexts, "pairs under more sets of held locks than are kept"),
        (losses.cut_findings, "findings beyond those that are kept"),
    ];
    let some = all.into_iter().filter(|&(number, _)| number > 0);
    some.map(|(number, of)| format!("not recorded: {of}: {number}")).collect()
}
