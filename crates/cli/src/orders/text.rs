//! The orders of locks as text.

use stanchion_study::units::{count, grouped_count};

use super::{Cycle, Lock, Orders, Step};

/// The most findings of each kind that are printed, and the most pairs.
const SHOWN: usize = 20;

/// Returns the lines for a terminal.
pub(crate) fn lines(orders: &Orders) -> Vec<String> {
    let mut lines = vec![summary(orders)];
    for cycle in orders.cycles.iter().take(SHOWN) {
        finding(&mut lines, cycle, orders);
    }
    more(&mut lines, orders.cycles.len(), "cycle");
    for step in orders.recursions.iter().take(SHOWN) {
        lines.push(String::new());
        lines.push(recursion(step, orders));
        details(&mut lines, step, orders);
    }
    more(&mut lines, orders.recursions.len(), "recursion");
    for cycle in orders.hints.iter().take(SHOWN) {
        lines.push(String::new());
        lines.push("Hint: locks made at these places are taken in both orders".to_owned());
        cycle.steps.iter().for_each(|each| steps(&mut lines, each, orders));
    }
    more(&mut lines, orders.hints.len(), "hint");
    if !orders.pairs.is_empty() {
        lines.push(String::new());
        lines.push("Pairs of locks, the held one before the taken one:".to_owned());
    }
    for pair in orders.pairs.iter().take(SHOWN) {
        let Step { held, taken, .. } = &pair.step;
        let [held, taken] = [held, taken].map(|lock| lock.words(orders));
        let cycle = if pair.is_in_cycle { ", in a cycle" } else { "" };
        lines.push(format!("  {held} before {taken}{cycle}"));
    }
    more(&mut lines, orders.pairs.len(), "pair");
    lines.extend(notes(orders));
    lines
}

/// Returns a line on all of it.
pub(super) fn summary(orders: &Orders) -> String {
    let processes = match orders.processes.len() {
        1 => "1 process".to_owned(),
        number => format!("{number} processes"),
    };
    format!(
        "{} recorded in {processes}; {}; {}, {} and {} found",
        grouped_count(orders.locks, "lock"),
        count(orders.pairs.len(), "pair"),
        count(orders.cycles.len(), "cycle"),
        count(orders.recursions.len(), "recursion"),
        count(orders.hints.len(), "hint"),
    )
}

/// Returns the title of a cycle.
pub(super) fn title(cycle: &Cycle) -> String {
    let mut title = format!("Possible deadlock of {}", count(cycle.steps.len(), "thread"));
    if cycle.needs_writer {
        title += ", while other threads wait to write what two of these read";
    }
    if cycle.times > 1 {
        title += &format!(" (found {} times, between other locks or in other runs)", cycle.times);
    }
    title
}

/// Returns a step in a sentence.
pub(super) fn step(step: &Step, orders: &Orders) -> String {
    let (held, taken) = (step.held.name(orders), step.taken.name(orders));
    format!("Thread {} held {held} and took {taken} in {}", step.thread, step.function())
}

/// Returns a recursion in a sentence.
pub(super) fn recursion(step: &Step, orders: &Orders) -> String {
    let held = step.held.name(orders);
    format!("Thread {} held {held} and took it again in {}", step.thread, step.function())
}

/// Returns the two acquisitions of a step.
pub(super) fn acquisitions(step: &Step, orders: &Orders) -> [String; 2] {
    let words = |lock: &Lock, mode: &str, at: &str| {
        format!("{}, taken at {at} in mode {mode}", lock.words(orders))
    };
    [
        words(&step.held, &step.held_mode, &step.held_at),
        words(&step.taken, &step.taken_mode, &step.taken_at),
    ]
}

/// Returns what is to be known beside.
pub(super) fn notes(orders: &Orders) -> Vec<String> {
    let mut notes = orders.losses.words();
    if orders.unended > 0 {
        notes.push(
            "A process has not ended, or was ended by a signal: its pairs outside of cycles are not in the file."
                .to_owned(),
        );
    }
    notes
}

/// Adds a cycle with the call paths of its steps.
fn finding(lines: &mut Vec<String>, cycle: &Cycle, orders: &Orders) {
    lines.push(String::new());
    lines.push(title(cycle));
    cycle.steps.iter().for_each(|step| steps(lines, step, orders));
}

/// Adds a step with its call path.
fn steps(lines: &mut Vec<String>, each: &Step, orders: &Orders) {
    lines.push(format!("  {}", step(each, orders)));
    details(lines, each, orders);
}

/// Adds the places of a step, and its call path, the innermost function first.
fn details(lines: &mut Vec<String>, step: &Step, orders: &Orders) {
    let [held, taken] = acquisitions(step, orders);
    lines.extend([format!("    held: {held}"), format!("    took: {taken}")]);
    lines.extend(step.calls.iter().rev().map(|call| format!("      {call}")));
}

/// Adds how many are not printed.
fn more(lines: &mut Vec<String>, all: usize, what: &str) {
    if all > SHOWN {
        lines.push(format!(
            "and {}, which the page has",
            count(all - SHOWN, &format!("more {what}"))
        ));
    }
}
