//! Reads the file: the lines of JSON, one for each time that a process wrote to it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Cycle, Lock, Losses, NotRead, Orders, Pair, Step, merge};

/// The beginning of a line for tools.
const BEGINS: &str = "{\"format\": \"stanchion orders\"";

/// The beginning of the text that a process writes for a person.
const PROCESS: &str = "process ";

/// The most steps of a cycle, and the most calls of a path, that are read.
const DEEPEST: usize = 1_000;

/// The kind and the version of a line.
#[derive(Deserialize)]
struct Label {
    /// The version.
    version: u64,
}

/// The content of a line: all that a process wrote at once.
#[derive(Deserialize)]
struct Line {
    /// The number of the process.
    process: u64,
    /// True if the process ended.
    ended: bool,
    /// The number of locks so far.
    locks: u64,
    /// The counts of what was not recorded so far.
    losses: Losses,
    /// New cycles of locks.
    cycles: Vec<Cycle>,
    /// New cycles of places.
    hints: Vec<Cycle>,
    /// New recursions.
    recursions: Vec<Step>,
    /// All pairs, at the end.
    pairs: Vec<Step>,
}

/// A process, as far as its lines were read.
struct Process {
    /// Its number.
    number: u64,
    /// True if its end was read.
    ended: bool,
    /// The last counts of it.
    locks: u64,
    /// The last losses of it.
    losses: Losses,
}

impl Orders {
    /// Returns true if a text is such a file.
    pub(crate) fn is_in(text: &str) -> bool {
        text.starts_with(BEGINS)
            || text.starts_with(PROCESS)
                && text
                    .lines()
                    .next()
                    .is_some_and(|line| line[PROCESS.len()..].parse::<u64>().is_ok())
    }

    /// Reads a file.
    pub(crate) fn read(text: &str) -> Result<Self, NotRead> {
        let mut processes: Vec<Process> = Vec::new();
        let mut orders = Self::default();
        let (mut cycles, mut steps) = (Vec::new(), Vec::new());
        let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with(BEGINS));
        for (line, text) in lines {
            let mut read = parse(line + 1, text)?;
            let same = |process: &Process| process.number == read.process && !process.ended;
            let index = processes.iter().rposition(same).unwrap_or(processes.len());
            let Line { process: number, ended, locks, losses, .. } = read;
            let process = Process { number, ended, locks, losses };
            match processes.get_mut(index) {
                Some(before) => *before = process,
                None => processes.push(process),
            }
            let all = read.cycles.iter_mut().chain(&mut read.hints);
            let all = all.flat_map(|cycle| &mut cycle.steps);
            let all = all.chain(&mut read.recursions).chain(&mut read.pairs);
            all.for_each(|step| clean(step, index));
            cycles.extend(read.cycles);
            orders.hints.extend(read.hints);
            orders.recursions.extend(read.recursions);
            steps.extend(read.pairs);
        }
        if processes.is_empty() {
            return Err(NotRead::TextOnly);
        }
        for Process { number, ended, locks, losses } in processes {
            orders.processes.push(number);
            orders.unended += u64::from(!ended);
            orders.locks = orders.locks.saturating_add(locks);
            orders.losses.add(&losses);
        }
        orders.pairs = pairs(&cycles, steps);
        orders.cycles = merge(cycles);
        orders.hints = merge(orders.hints);
        let mut known = BTreeSet::new();
        orders.recursions.retain(|step| known.insert(step.places().map(str::to_owned)));
        Ok(orders)
    }
}

/// Reads a line.
fn parse(line: usize, text: &str) -> Result<Line, NotRead> {
    let damaged = |reason| NotRead::Damaged { line, reason };
    let Label { version } = serde_json::from_str(text).map_err(damaged)?;
    if version != 1 {
        return Err(NotRead::Version { line, version });
    }
    let read: Line = serde_json::from_str(text).map_err(damaged)?;
    for cycle in read.cycles.iter().chain(&read.hints) {
        if cycle.steps.is_empty() || cycle.steps.len() > DEEPEST {
            return Err(NotRead::Wrong(line, "a cycle without steps, or with too many"));
        }
    }
    for cycle in &read.cycles {
        let next = cycle.steps.iter().cycle().skip(1);
        if cycle.steps.iter().zip(next).any(|(step, next)| step.taken.number != next.held.number) {
            return Err(NotRead::Wrong(line, "a cycle that does not close"));
        }
    }
    let steps = read.cycles.iter().chain(&read.hints).flat_map(|cycle| &cycle.steps);
    if steps.chain(&read.recursions).chain(&read.pairs).any(|step| step.calls.len() > DEEPEST) {
        return Err(NotRead::Wrong(line, "a path of too many calls"));
    }
    Ok(read)
}

/// Gives the locks of a step their process, and replaces what a terminal would act on.
fn clean(step: &mut Step, process: usize) {
    let Step { thread, held, held_mode, held_at, taken, taken_mode, taken_at, calls } = step;
    let texts =
        [thread, held_mode, held_at, taken_mode, taken_at, &mut held.place, &mut taken.place];
    for text in texts.into_iter().chain(calls) {
        if text.contains(char::is_control) {
            *text = text.replace(char::is_control, "?");
        }
    }
    (held.process, taken.process) = (process, process);
}

/// Returns the pairs of locks, each once. One with the places of a pair of an earlier process is
/// left out, unless a new cycle has it.
fn pairs(cycles: &[Cycle], steps: Vec<Step>) -> Vec<Pair> {
    let mut known = BTreeMap::<[String; 6], usize>::new();
    let mut by_locks = BTreeSet::new();
    let mut pairs = Vec::new();
    let mut add = |step: &Step, is_in_cycle: bool| {
        let of = |lock: &Lock| (lock.process, lock.number);
        if by_locks.insert((of(&step.held), of(&step.taken))) {
            pairs.push(Pair { step: step.clone(), is_in_cycle });
        }
    };
    let mut found = BTreeMap::<Vec<String>, usize>::new();
    for cycle in cycles {
        let process = cycle.steps.first().map_or(0, |step| step.held.process);
        let places = cycle.places().concat().into_iter().map(str::to_owned).collect();
        let first = *found.entry(places).or_insert(process);
        for step in &cycle.steps {
            known.entry(step.places().map(str::to_owned)).or_insert(first);
            if first == process {
                add(step, true);
            }
        }
    }
    for step in steps {
        let process = step.held.process;
        if *known.entry(step.places().map(str::to_owned)).or_insert(process) == process {
            add(&step, false);
        }
    }
    pairs
}

impl Losses {
    /// Adds those of another process.
    fn add(&mut self, other: &Self) {
        let Self { unseen_releases, too_deep, cut_searches, cut_contexts, cut_findings, cut_pairs } =
            self;
        for (sum, more) in [
            (unseen_releases, other.unseen_releases),
            (too_deep, other.too_deep),
            (cut_searches, other.cut_searches),
            (cut_contexts, other.cut_contexts),
            (cut_findings, other.cut_findings),
            (cut_pairs, other.cut_pairs),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}
