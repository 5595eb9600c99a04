//! The advice as text for a terminal.

use stanchion_paper_klmo91::waits::judge::{COLUMNS, Costs, FACTORS};
use stanchion_paper_klmo91::waits::pool::Lock;

use super::{Advice, words};
use stanchion_study::units::{count, grouped, nanos, percent};

/// More locks than this are left to the report.
const LOCKS: usize = 20;
/// Longer names are cut in tables.
const WIDTH: usize = 30;

/// All of it.
pub(crate) fn lines(advice: &Advice) -> Vec<String> {
    let pool = &advice.pool;
    let mut lines = vec![format!(
        "{}: {} waits for {} in {}; C = {}",
        pool.programs.join(", "),
        grouped(pool.waits()),
        count(pool.locks.len(), "lock"),
        nanos(pool.elapsed as f64),
        nanos(pool.cost)
    )];
    if pool.overflow > 0 {
        lines.push(format!(
            "{} found the table of names full and are together under {}",
            count(pool.overflow as usize, "lock"),
            stanchion_competitive::waits::OTHERS
        ));
    }
    lines.push(String::new());
    waits(advice, &mut lines);
    for (index, factor) in FACTORS.iter().enumerate() {
        lines.push(String::new());
        let cost = nanos(factor * pool.cost);
        lines.push(match index {
            0 => format!("What each policy would have cost, in multiples of the off-line optimum, with C = {cost}:"),
            _ => format!("The same if C were {factor} times that, {cost}:"),
        });
        costs(advice, index, &mut lines);
    }
    lines.push(String::new());
    let (few, enough): (Vec<_>, Vec<_>) =
        advice.each().take(LOCKS).partition(|(lock, _)| lock.count() < words::ENOUGH);
    for (lock, advice) in enough {
        lines.push(format!("{}: {}", lock.name, advice.words));
    }
    // The same is to be said of all of them.
    if let [(_, first), ..] = few[..] {
        let names: Vec<_> = few.iter().map(|(lock, _)| lock.name.as_str()).collect();
        let what = match names.len() {
            1 => first.words.clone(),
            _ => words::too_few(None),
        };
        lines.push(format!("{}: {what}", names.join(", ")));
    }
    left(advice, &mut lines);
    lines.push(String::new());
    for claim in &advice.claims {
        let verdict = &claim.verdict;
        lines.push(format!("{:10} {}: {}", verdict.name(), claim.claim, verdict.because()));
    }
    lines.push(String::new());
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

/// Table 1 of the paper for these locks.
fn costs(advice: &Advice, factor: usize, lines: &mut Vec<String>) {
    let width = width(advice);
    let heads: String = COLUMNS.iter().map(|column| format!("{:>11}", column.head)).collect();
    lines.push(format!("{:width$}{heads}", ""));
    let row = |name: &str, costs: &Costs| {
        let cells: String =
            costs.relative().iter().map(|cost| format!("{:>11}", multiple(*cost))).collect();
        format!("{name:width$}{cells}")
    };
    for (lock, found) in advice.each().take(LOCKS) {
        lines.push(row(&short(lock), &found.judged.costs[factor]));
    }
    lines.push(row("all together", &advice.all[factor]));
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
