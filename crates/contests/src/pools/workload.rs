//! Runs one workload: all contestants in turn, round after round.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// The result of one run of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) ns: f64,
    pub(crate) p99: f64,
    pub(crate) cpu: f64,
}

/// A pool that does the workload.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// True if the pools of this workspace are compared with it.
    pub(crate) peer: bool,
    /// Does a number of items with a number of threads.
    pub(crate) run: fn(usize, usize) -> Figures,
}

impl Contestant {
    fn shown(&self) -> String {
        format!("{}{}", self.name, if self.peer { " (peer)" } else { "" })
    }
}

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) items: usize,
    pub(crate) threads: &'static [usize],
    pub(crate) contestants: Vec<Contestant>,
}

impl Workload {
    pub(crate) fn ours(mut self, name: &'static str, run: fn(usize, usize) -> Figures) -> Self {
        self.contestants.push(Contestant { name, peer: false, run });
        self
    }

    pub(crate) fn peer(mut self, name: &'static str, run: fn(usize, usize) -> Figures) -> Self {
        self.contestants.push(Contestant { name, peer: true, run });
        self
    }
}

/// The options of the command line.
pub(crate) struct Options {
    /// The selected parts of `workload/contestant/cell`. Empty: all.
    filters: Vec<String>,
    /// The number of rounds.
    rounds: usize,
    /// The share of the items that each contestant does, in per cent.
    scale: usize,
}

impl Options {
    pub(crate) fn from_arguments(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, String> {
        let mut options = Self { filters: Vec::new(), rounds: 5, scale: 100 };
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let value = arguments.next().unwrap_or_default();
                value.parse::<usize>().ok().filter(|&number| number > 0).ok_or_else(|| {
                    format!("{argument} {value}: wants a whole number from 1; try {argument} 20")
                })
            };
            match argument.as_str() {
                // Given by cargo.
                "--bench" => {}
                // Given by `cargo test --benches`: only shows whether everything runs.
                "--test" => {
                    options.rounds = 1;
                    options.scale = 1;
                }
                "--rounds" => options.rounds = number()?,
                "--scale" => options.scale = number()?,
                option if option.starts_with('-') => {
                    return Err(format!(
                        "{option}: no such option; there are --rounds N, --scale PERCENT and --help"
                    ));
                }
                _ => options.filters.push(argument),
            }
        }
        Ok(options)
    }

    fn wants(&self, workload: &str, contestant: &str, cell: &str) -> bool {
        let name = format!("{workload}/{contestant}/{cell}");
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

/// Prints the options, and all workloads and contestants.
pub(crate) fn help(workloads: &[Workload]) {
    println!(
        "cargo bench -p benches --bench threadpool -- [FILTER]... [--rounds N] [--scale PERCENT]\n"
    );
    println!("FILTER     a part of workload/contestant/cell, such as join, /rayon or 2 threads");
    println!("--rounds   how often each contestant is run; medians are shown [5]");
    println!("--scale    how many of the items each does, in per cent [100]");
    for workload in workloads {
        let cells: Vec<String> = workload.threads.iter().map(|&threads| cell(threads)).collect();
        println!("\n{}: {}", workload.name, cells.join(", "));
        for contestant in &workload.contestants {
            println!("    {}", contestant.shown());
        }
    }
}

/// Returns the name of a cell.
fn cell(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// The regret of one contestant of this workspace in one cell, against the best peer there.
pub(crate) struct Regret {
    /// The name of the contestant.
    contestant: &'static str,
    /// Its time, divided by that of the best peer.
    regret: f64,
}

/// Runs all cells of a workload and prints them as they come.
pub(crate) fn run(workload: &Workload, options: &Options, regrets: &mut Vec<Regret>) {
    let items = (workload.items * options.scale / 100).max(1);
    for &threads in workload.threads {
        let cell = cell(threads);
        let running: Vec<&Contestant> = workload
            .contestants
            .iter()
            .filter(|contestant| options.wants(workload.name, contestant.name, &cell))
            .collect();
        if running.is_empty() {
            continue;
        }
        let mut rounds = vec![Vec::new(); running.len()];
        for round in 0..options.rounds {
            for place in 0..running.len() {
                let which = if round % 2 == 0 { place } else { running.len() - 1 - place };
                rounds[which].push(apart(workload, running[which], threads, items));
            }
        }
        let rows: Vec<(&Contestant, Figures)> =
            running.into_iter().zip(rounds.iter().map(|rounds| medians(rounds))).collect();
        print(workload, &cell, &rows, regrets);
    }
}

/// The variable of the environment that tells a child process its workload, contestant, threads and
/// items.
const CHILD: &str = "STANCHION_BENCH_CHILD";

/// Does one run in a process of its own, where no other pool has left threads behind.
fn apart(workload: &Workload, contestant: &Contestant, threads: usize, items: usize) -> Figures {
    let told = format!("{}|{}|{threads}|{items}", workload.name, contestant.name);
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).env(CHILD, &told).stderr(Stdio::inherit()).output();
    let output = output.expect("this program, run once more");
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match figures[..] {
        [ns, p99, cpu] if output.status.success() => Figures { ns, p99, cpu },
        _ => panic!("the run {told} ended with {} and said {text:?}", output.status),
    }
}

/// Does the run for which this process was started, if it was started for one.
pub(crate) fn is_child(workloads: &[Workload]) -> bool {
    let Ok(told) = std::env::var(CHILD) else { return false };
    let parts: Vec<&str> = told.split('|').collect();
    let [workload, contestant, threads, items] = parts[..] else { panic!("{CHILD}={told}") };
    let workload = workloads.iter().find(|known| known.name == workload);
    let contestants = workload.into_iter().flat_map(|workload| &workload.contestants);
    let run = contestants.filter(|known| known.name == contestant).map(|known| known.run).next();
    let number = |word: &str| word.parse().expect("a number");
    let run = run.expect("a workload and a contestant of this program");
    let Figures { ns, p99, cpu } = run(number(threads), number(items));
    println!("{ns} {p99} {cpu}");
    true
}

/// Returns the median of each figure.
fn medians(rounds: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Figures { ns: of(|run| run.ns), p99: of(|run| run.p99), cpu: of(|run| run.cpu) }
}

fn print(
    workload: &Workload,
    cell: &str,
    rows: &[(&Contestant, Figures)],
    regrets: &mut Vec<Regret>,
) {
    let peers = rows.iter().filter(|(contestant, _)| contestant.peer);
    let best = peers.map(|(_, figures)| figures.ns).min_by(f64::total_cmp);
    println!("\n{}, {cell}", workload.name);
    println!("{:<34} {:>11} {:>11} {:>11} {:>8}", "", "ns/item", "p99", "CPU", "regret");
    for (contestant, figures) in rows {
        let regret = best.map(|best| figures.ns / best);
        let shown = regret.map_or_else(|| "-".to_owned(), |regret| format!("{regret:.2}"));
        let p99 = if figures.p99 > 0.0 { format!("{:.0}", figures.p99) } else { "-".to_owned() };
        println!(
            "{:<34} {:>11.1} {p99:>11} {:>11.1} {shown:>8}",
            contestant.shown(),
            figures.ns,
            figures.cpu,
        );
        if let Some(regret) = regret
            && !contestant.peer
        {
            regrets.push(Regret { contestant: contestant.name, regret });
        }
    }
}

/// Prints the worst regret of each contestant of this workspace.
pub(crate) fn conclude(regrets: &[Regret]) {
    let mut worst = BTreeMap::new();
    for Regret { contestant, regret } in regrets {
        let entry: &mut (f64, usize) = worst.entry(contestant).or_default();
        entry.0 = entry.0.max(*regret);
        entry.1 += 1;
    }
    println!("\nworst regret against the best peer of each cell");
    for (contestant, (regret, cells)) in worst {
        println!("{contestant:<34} {regret:>8.2} in {cells} cells");
    }
}
