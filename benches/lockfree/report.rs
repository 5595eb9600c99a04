//! The tables that are printed.

use crate::contest::{Cell, Contestant, Family, Window};

/// The regret of each contestant in one cell.
pub(crate) struct Standing {
    /// The name of the cell.
    cell: String,
    /// The name and regret of each contestant.
    regrets: Vec<(&'static str, f64)>,
}

/// Prints a cell.
pub(crate) fn cell(family: &Family, cell: &Cell, rows: Vec<(&Contestant, Window)>) -> Standing {
    let best = rows
        .iter()
        .filter(|(contestant, _)| contestant.peer)
        .map(|(_, window)| window.ns_per_pair)
        .fold(f64::INFINITY, f64::min);
    println!(
        "\n{:<44} {:>8} {:>8} {:>7} {:>8} {:>9} {:>11} {:>10} {:>7}",
        format!("{}/{}", family.name, cell.name()),
        "ns/pair",
        "net",
        "regret",
        "CPU ns",
        "p99.9 ns",
        "longest µs",
        "least/most",
        "granted"
    );
    let mut regrets = Vec::new();
    for (contestant, window) in rows {
        let regret = window.ns_per_pair / best;
        println!(
            "  {:<42} {:>8.1} {:>8.1} {:>7.2} {:>8.1} {:>9.0} {:>11.1} {:>10.2} {:>6.0}%",
            format!("{}{}", contestant.name, if contestant.peer { " (peer)" } else { "" }),
            window.ns_per_pair,
            window.net,
            regret,
            window.cpu_per_pair,
            window.tail_ns,
            window.longest_ns / 1e3,
            window.fairness,
            window.granted * 100.0
        );
        regrets.push((contestant.name, regret));
    }
    Standing { cell: cell.name(), regrets }
}

/// Prints the regrets of all cells and the worst of them.
pub(crate) fn family(family: &Family, standings: &[Standing]) {
    if standings.is_empty() {
        return;
    }
    println!("\n{}: regret against the best peer of each cell", family.name);
    print!("  {:<42} {:>7}", "", "worst");
    for standing in standings {
        print!(" {:>16}", standing.cell);
    }
    println!();
    for contestant in &family.contestants {
        let of = |standing: &Standing| {
            let found = standing.regrets.iter().find(|(name, _)| *name == contestant.name);
            found.map(|(_, regret)| *regret)
        };
        let Some(worst) = standings.iter().filter_map(of).reduce(f64::max) else { continue };
        let peer = if contestant.peer { " (peer)" } else { "" };
        print!("  {:<42} {worst:>7.2}", format!("{}{peer}", contestant.name));
        for standing in standings {
            match of(standing) {
                Some(regret) => print!(" {regret:>16.2}"),
                None => print!(" {:>16}", "-"),
            }
        }
        println!();
    }
}
