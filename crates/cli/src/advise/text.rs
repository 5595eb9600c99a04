//! The advice as text for a terminal.

use stanchion_paper_klmo91::waits::judge::{COLUMNS, Costs, FACTORS};
use stanchion_paper_klmo91::waits::pool::Lock;

use super::{Advice, change};
use crate::args::lacks;
use crate::record::names;
use stanchion_study::command::stanchion;
use stanchion_study::units::{count, grouped, grouped_count, nanos, percent};

/// More locks than this are left to the report.
const LOCKS: usize = 20;
/// Longer names are cut in tables.
const WIDTH: usize = 30;

/// All of it.
pub(crate) fn lines(advice: &Advice) -> Vec<String> {
    let pool = &advice.pool;
    let mut lines = vec![format!(
        "{}: {} for {} in {}; C = {}",
        pool.programs.join(", "),
        grouped_count(pool.waits(), "wait"),
        count(pool.locks.len(), "lock"),
        nanos(pool.elapsed as f64),
        nanos(pool.cost)
    )];
    if pool.overflow > 0 {
        lines.push(format!(
            "{} found the table of names full and {} counted under {}",
            grouped_count(pool.overflow, "lock"),
            if pool.overflow == 1 { "is" } else { "are" },
            stanchion_competitive::waits::OTHERS
        ));
    }
    if advice.each().any(|(lock, _)| names::is_bare(&lock.name)) {
        lines.push(names::HINT.to_owned());
    }
    lines.push(String::new());
    waits(advice, &mut lines);
    for index in 0..FACTORS.len() {
        lines.push(String::new());
        lines.extend(costs(advice, index));
    }
    lines.extend([String::new(), lacks!().to_owned()]);
    lines.push(format!(
        "Costs are of processor time; `{} study regret` measures throughput.",
        stanchion()
    ));
    for (name, computed, measured) in advice.checked() {
        lines.push(format!(
            "Adaptive for {name}: computed {}, measured {} times the optimum",
            multiple(computed),
            multiple(measured)
        ));
    }
    lines.push(String::new());
    lines.extend(sentences(advice));
    lines.push(String::new());
    for claim in &advice.claims {
        let verdict = &claim.verdict;
        lines.push(format!("{:10} {}: {}", verdict.name(), claim.claim, verdict.because()));
    }
    lines.push(String::new());
    lines
}

/// Returns what is best for each lock.
pub(crate) fn sentences(advice: &Advice) -> Vec<String> {
    let of = |(lock, found): (&Lock, &super::LockAdvice)| format!("{}: {}", lock.name, found.words);
    let mut lines: Vec<String> = advice.each().take(LOCKS).map(of).collect();
    left(advice, &mut lines);
    lines
}

/// The last lines: what to change. Locks that stay as they are share one.
pub(crate) fn changes(advice: &Advice) -> Vec<String> {
    let (same, changed): (Vec<_>, Vec<_>) =
        advice.changes.iter().partition(|change| change.what == change::NONE);
    let mut lines = vec![String::new()];
    lines
        .extend(changed.iter().take(LOCKS).map(|change| format!("{}: {}", change.of, change.what)));
    if changed.len() > LOCKS {
        let more = count(changed.len() - LOCKS, "more change");
        lines.push(format!("{more}: see the report"));
    }
    let names = same.iter().take(LOCKS).map(|change| change.of.as_str()).collect::<Vec<_>>();
    match same.len() {
        0 => {}
        _ if changed.is_empty() => lines.push(change::NONE.to_owned()),
        all if all > LOCKS => {
            let more = grouped((all - LOCKS) as u64);
            lines.push(format!("{}: {} and {more} more", change::NONE, names.join(", ")));
        }
        _ => lines.push(format!("{}: {}", change::NONE, names.join(", "))),
    }
    lines
}

/// Describes the waits, a lock on a line.
fn waits(advice: &Advice, lines: &mut Vec<String>) {
    let width = width(advice);
    let heads = ["waits", "blocked", "median", "p99", "longest", "optimum blocks", "and spins"];
    let heads: String = heads.iter().map(|head| format!("{head:>16}")).collect();
    lines.push(format!("{:width$}{heads}", "lock"));
    for (lock, found) in advice.each().take(LOCKS) {
        let offline = found.judged.offline;
        let cells = [
            grouped(lock.count()),
            percent(lock.blocked() as f64 / lock.count() as f64),
            nanos(lock.quantile(0.5) as f64),
            nanos(lock.quantile(0.99) as f64),
            nanos(lock.longest() as f64),
            percent(offline.share_blocked),
            offline.mean_spin.map_or_else(|| "never".to_owned(), nanos),
        ];
        let cells: String = cells.iter().map(|cell| format!("{cell:>16}")).collect();
        lines.push(format!("{:width$}{cells}", short(lock)));
    }
}

/// Returns table 1 of the paper for these locks, at one of the multiples of C. The name of a policy
/// takes two lines.
pub(crate) fn costs(advice: &Advice, factor: usize) -> Vec<String> {
    let times = FACTORS[factor];
    let cost = nanos(times * advice.pool.cost);
    let mut lines = vec![match factor {
        0 => format!(
            "What each policy would have cost, in multiples of the off-line optimum, with C = {cost}:"
        ),
        _ => format!("The same if C were {times} times that, {cost}:"),
    }];
    let width = width(advice);
    let heads = COLUMNS.map(|column| halves(column.policy));
    let widths = heads.map(|halves| 2 + halves.map(str::len).into_iter().fold(9, usize::max));
    for line in 0..2 {
        let heads =
            heads.iter().zip(widths).map(|(halves, wide)| format!("{:>wide$}", halves[line]));
        lines.push(format!("{:width$}{}", "", heads.collect::<String>()).trim_end().to_owned());
    }
    let row = |name: &str, costs: &Costs| {
        let cells = costs.relative().into_iter().zip(widths);
        let cells = cells.map(|(cost, wide)| format!("{:>wide$}", multiple(cost)));
        format!("{name:width$}{}", cells.collect::<String>())
    };
    for (lock, found) in advice.each().take(LOCKS) {
        lines.push(row(&short(lock), &found.judged.costs[factor]));
    }
    lines.push(row("all together", &advice.all[factor]));
    lines
}

/// Parts the name of a type before one of its capitals, so that neither part is longer than it
/// must be. A name of one word is all in the second part.
fn halves(name: &str) -> [&str; 2] {
    let capitals = name.char_indices().filter(|(_, letter)| letter.is_ascii_uppercase());
    let (first, second) = capitals
        .map(|(at, _)| name.split_at(at))
        .min_by_key(|(first, second)| first.len().max(second.len()))
        .unwrap_or(("", name));
    [first, second]
}

fn left(advice: &Advice, lines: &mut Vec<String>) {
    let left = advice.locks.len().saturating_sub(LOCKS);
    if left > 0 {
        lines.push(format!("{} with shorter waits: see the report", count(left, "more lock")));
    }
}

/// A multiple of the optimum, with the paper's three decimals while they fit.
pub(crate) fn multiple(value: f64) -> String {
    if value < 1e4 { format!("{value:.3}") } else { format!("{value:.2e}") }
}

fn width(advice: &Advice) -> usize {
    let longest = advice.each().take(LOCKS).map(|(lock, _)| short(lock).chars().count()).max();
    longest.unwrap_or(0).max("all together".len()) + 1
}

fn short(lock: &Lock) -> String {
    match lock.name.char_indices().nth(WIDTH) {
        None => lock.name.clone(),
        Some((end, _)) => format!("{}…", &lock.name[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_of_a_name_are_the_name() {
        assert_eq!(halves("AlwaysBlock"), ["Always", "Block"]);
        assert_eq!(halves("FixedSpin<50>"), ["Fixed", "Spin<50>"]);
        assert_eq!(halves("LastThreeSamples"), ["LastThree", "Samples"]);
        assert_eq!(halves("OptimalOnlineApproximation"), ["OptimalOnline", "Approximation"]);
        assert_eq!(halves("Adaptive"), ["", "Adaptive"]);
    }
}
