//! Where threads are now, as lines for people.

use std::cmp::Reverse;

use stanchion_study::units::{count, grouped_count};

use super::lock_text;
use super::locks::WaitView;
use super::view::{ProcessView, ThreadView, View};

/// The most threads of a process that are shown.
const THREADS: usize = 100;
/// The most waits that were left and are shown.
const LEFT: usize = 12;
/// The width of a thread's name.
const NAME: usize = 16;

/// Returns the lines.
pub(super) fn lines(view: &View) -> Vec<String> {
    let mut lines = Vec::new();
    for process in &view.processes {
        of_process(process, &mut lines);
    }
    if view.processes.is_empty() {
        lines.push("no process of the program is there any more".to_owned());
    }
    if view.unseen > 0 {
        let waits = grouped_count(view.unseen, "wait");
        lines.push(format!("{waits} so far found no room in the table of current waits"));
    }
    let are_recorded = view.processes.iter().any(|process| process.locks.is_some());
    lines.push(
        if are_recorded {
            "Other locks of Rust than those recorded store no owner, so it is not known which thread holds them."
        } else {
            "The locks of Rust store no owner, so it is not known which thread holds them."
        }
        .to_owned(),
    );
    lines
}

/// Returns lines on the waits that were left.
pub(super) fn left(waits: &[(usize, WaitView)]) -> Vec<String> {
    if waits.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        "Waits that had not ended (of threads that were cancelled too), and for how long:"
            .to_owned(),
    ];
    for (number, wait) in waits.iter().take(LEFT) {
        lines.push(format!("  {:9} {number:>9} {:>10.1?}  {}", wait.kind, wait.length, wait.name));
    }
    if waits.len() > LEFT {
        lines.push(format!("  and {} more", waits.len() - LEFT));
    }
    lines
}

fn of_process(process: &ProcessView, lines: &mut Vec<String>) {
    let (id, name) = (process.id, &process.name);
    if process.threads.is_empty() {
        lines.push(format!("the process {id} ({name}) has ended"));
        return;
    }
    let waiting = process.threads.iter().filter(|thread| thread.wait.is_some()).count();
    let all = process.threads.len() + process.more;
    let seen = match (process.has_shim, &process.locks) {
        (true, None) => "in waits that the shim sees",
        (true, Some(_)) => "in waits that the shim sees or that are recorded",
        (false, _) => "in waits that are recorded",
    };
    let unseen = if process.has_shim { "not seen by the shim" } else { "not recorded" };
    lines.push(format!(
        "the process {id} ({name}): {}, of which {waiting} {seen}",
        count(all, "thread")
    ));
    lines.push(format!("{:>8}  {:NAME$}  {:>9}  waits for", "thread", "name", "for"));
    let mut threads: Vec<&ThreadView> = process.threads.iter().collect();
    threads.sort_by_key(|thread| Reverse(thread.wait.as_ref().map(|wait| wait.length)));
    lines.extend(threads.iter().take(THREADS).map(|thread| of_thread(thread, unseen)));
    let more = all.saturating_sub(THREADS);
    if more > 0 {
        lines.push(format!("and {more} more, which wait for less time or are {unseen}"));
    }
    if let Some(locks) = &process.locks {
        lock_text::append(locks, process, lines);
    }
}

fn of_thread(thread: &ThreadView, unseen: &str) -> String {
    let name: String = thread.name.chars().take(NAME).collect();
    let (length, waits) = match &thread.wait {
        Some(wait) => {
            let length = format!("{:.1?}", wait.length);
            let mut waits = format!("{}  {}", wait.kind, wait.name);
            if wait.address != 0 {
                waits.push_str(&format!(" ({:#x})", wait.address));
            }
            if thread.is_elsewhere {
                waits.push_str("; but /proc said: ");
                waits.push_str(&thread.activity);
            }
            (length, waits)
        }
        None => ("–".to_owned(), format!("{unseen}: {}", thread.activity)),
    };
    format!("{:>8}  {name:NAME$}  {length:>9}  {waits}", thread.id)
}
