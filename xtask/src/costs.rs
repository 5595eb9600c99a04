//! `cargo xtask costs`: the cost of each public operation on the simulated machine, and the
//! committed table of it.
//!
//! The numbers are the same on every computer, so the table is compared byte for byte: a change
//! that adds one cache miss or one read-modify-write to a hot path shows in review as a changed
//! line of `crates/simulated/costs.txt`.
//!
//! It checks that each default is near our best with the same contract ([`DEFAULTS`]), and that the
//! defaults do not depend on the accuracy of what they measure of the machine
//! (`costs --mismeasured`).
//!
//! It also compares what `stanchion calibrate --papers` prints, the papers' absolute figures beside
//! those of the simulated machines, with `crates/simulated/papers.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

const HEADER: &str = "\
# What an operation costs on the simulated machine `modern`, on the average: nanoseconds as its caller sees them, cache misses, lines that came from
# another processor's cache, atomic read-modify-writes, and instructions between the accesses (from the table of `cargo xtask instructions`; they take
# no time on `modern`, since its measured times contain them), and interrupts of other processors by asymmetric fences. All processors do nothing else; with
# more than one, locks are held for 25 ns and left alone for 25 ns. Written by `cargo xtask costs --update`; a different number fails `cargo xtask costs`.
";

/// The options of the command line.
#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Only operations with this in their names, printed and compared
    filter: Option<String>,
    /// Accept the numbers of this run as the committed table
    #[arg(long)]
    update: bool,
    #[arg(long, conflicts_with = "update")]
    /// Print the costs where both sides of an asymmetric fence are fences, and compare nothing
    symmetric_fences: bool,
    #[arg(long, value_name = "N", conflicts_with = "update")]
    /// Print the costs with this number of processors, 1 to 128, and compare only the defaults with
    /// the best of their families
    processors: Option<u8>,
    #[arg(long, value_name = "N", conflicts_with = "update")]
    /// Print the costs of N operations of each thread, after as many others. The table's N is 100;
    /// what a program does once has a smaller share of more operations. Compares what
    /// `--processors` compares
    rounds: Option<u64>,
}

const PAPERS: &str = "\
# The absolute figures that the papers state beside those of the simulated machines, as `cargo stanchion calibrate --papers` prints them. Written by
# `cargo xtask costs --update`; a different figure fails `cargo xtask costs`.
";

/// The defaults, each with those of ours that promise as much and ask for no more.
///
/// A lock that puts waiters to sleep is compared with such locks, so a container under a spin lock
/// is no rival. A spin lock is not compared with those that must know the thread that holds them,
/// nor a barrier of anonymous members with those that number them. `MultiQueue` promises less order
/// than a heap, and `CompareExchangeCounter` no bound on the steps of an addition.
/// `LockedQueue<Barging>` promises as much as `SegmentedQueue`, and takes 0.6 to 1.1 times as long
/// in these rows, where each thread pushes and pops. It is left out because no row has producers
/// and consumers apart, for which the default has two locks.
const DEFAULTS: [(&str, &[&str]); 8] = [
    (
        "spin::TestAndSet<Ethernet> lock, unlock",
        &[
            "spin::TestAndSet<Exchange> lock, unlock",
            "spin::TestAndSet<Read> lock, unlock",
            "spin::TestAndSet<Polling> lock, unlock",
        ],
    ),
    (
        "competitive::Mutex lock, unlock",
        &[
            "PolicyMutex<AlwaysBlock> lock, unlock",
            "PolicyMutex<FixedSpin> lock, unlock",
            "PolicyMutex<OptimalOnline> lock, unlock",
            "PolicyMutex<OptimalOnlineApproximation> lock, unlock",
            "PolicyMutex<LastThreeSamples> lock, unlock",
            "PolicyMutex<RandomWalk> lock, unlock",
            "PolicyMutex<Randomized> lock, unlock",
            "PolicyMutex<HolderAware> lock, unlock",
        ],
    ),
    ("lockfree::LockedRing push, pop", &["lockfree::NikolaevQueue push, pop"]),
    (
        "lockfree::SegmentedQueue push, pop",
        &[
            "lockfree::FaaArrayQueue push, pop",
            "lockfree::MichaelScottQueue, hazards push, pop",
            "lockfree::MichaelScottQueue, counts push, pop",
            "lockfree::PrakashLeeJohnsonQueue, counts push, pop",
        ],
    ),
    (
        "LockedStack<Barging> push, pop",
        &[
            "lockfree::TreiberStack, hazards push, pop",
            "lockfree::TreiberStack, counts push, pop",
            "lockfree::EliminationStack, hazards push, pop",
            "lockfree::HerlihyStack, counts push, pop",
        ],
    ),
    ("LockedArrayHeap<Barging> push, pop", &["lockfree::HerlihyHeap push, pop"]),
    (
        "barrier::CoResident wait",
        &[
            "barrier::Central wait",
            "barrier::Blocking wait",
            "barrier::TwoPhase wait",
            "barrier::Yielding wait",
        ],
    ),
    (
        "threadpool::WorkStealing create, next",
        &[
            "SingleLock<TestAndSet> create, next",
            "MultipleLocks<TestAndSet> create, next",
            "LocalFreeList<TestAndSet> create, next",
            "IdleQueue<TestAndSet> create, next",
            "LocalReadyQueue<TestAndSet> create, next",
            "LocalReadyQueue<TestAndSet, Fifo, Random> create, next",
            "CentralElseLocal<TestAndSet> create, next",
            "ProbeIdleElseCentral<TestAndSet> create, next",
        ],
    ),
];

/// The most that a default may take, divided by what the best of its family takes.
const NEAR: f64 = 1.25;

fn table() -> PathBuf {
    shell::root().join("crates/simulated/costs.txt")
}

/// Measures all, and compares.
pub(crate) fn all() -> Result {
    costs(&Options::default())
}

/// Measures, prints, and compares with the committed table or replaces it.
///
/// With symmetric fences it only prints. With another number of processors or rounds it compares
/// the defaults with the best of their families.
pub(crate) fn costs(options: &Options) -> Result {
    if options.update && options.filter.is_some() {
        return Err(Failure::verdict("--update writes the whole table: leave the filter out"));
    }
    let mut command =
        shell::cargo(["run", "--quiet", "--package", "stanchion-costs", "--bin", "costs", "--"]);
    command.args(&options.filter);
    if options.symmetric_fences {
        command.arg("--symmetric-fences");
    }
    if let Some(processors) = options.processors {
        command.args(["--processors", &processors.to_string()]);
    }
    if let Some(rounds) = options.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    if options.symmetric_fences || options.processors.is_some() || options.rounds.is_some() {
        let now = shell::run_teed(&mut command)?;
        let is_whole = options.filter.is_none() && !options.symmetric_fences;
        return if is_whole { near_the_best(&now) } else { Ok(()) };
    }
    let mut found = compare(&table(), HEADER, &mut command, options)?;
    if options.filter.is_none() {
        let mut defaults = shell::cargo(["run", "--quiet", "--package", "stanchion-costs"]);
        defaults.args(["--bin", "costs", "--", "--mismeasured"]);
        shell::run_teed(&mut defaults)?;
        let mut papers = shell::cargo(["run", "--quiet", "--package", "stanchion-cli", "--"]);
        papers.args(["calibrate", "--papers"]);
        let path = shell::root().join("crates/simulated/papers.txt");
        found.extend(compare(&path, PAPERS, &mut papers, options)?);
    }
    if found.is_empty() {
        return near_the_best(&std::fs::read_to_string(table()).map_err(Failure::file(&table()))?);
    }
    Err(Failure::verdict(format!(
        "the costs differ from crates/simulated/costs.txt, or the papers' figures from papers.txt (- committed, + now):\n{}\n\
         if that is meant, `cargo xtask costs --update` accepts it; say why in the commit",
        found.join("\n")
    )))
}

/// Fails unless each default of a table is near the best of its family, wherever there is more than
/// one processor. A barrier has no rows beyond its most members.
fn near_the_best(table: &str) -> Result {
    let rows: Vec<Row<'_>> = table.lines().filter_map(Row::of).collect();
    let mut far = Vec::new();
    for (default, others) in DEFAULTS {
        let of_default = |row: &&Row<'_>| row.operation == default && row.processors > 1;
        for found in rows.iter().filter(of_default) {
            for other in others {
                let is_other =
                    |row: &&Row<'_>| row.operation == *other && row.processors == found.processors;
                let Some(best) = rows.iter().find(is_other) else {
                    return Err(Failure::verdict(format!(
                        "there is no row of `{other}` with {} processors: `DEFAULTS` in \
                         xtask/src/costs.rs names the operations",
                        found.processors
                    )));
                };
                if found.nanos > NEAR * best.nanos {
                    far.push(format!(
                        "{default} with {} processors: {} ns; {other}: {} ns",
                        found.processors, found.nanos, best.nanos
                    ));
                }
            }
        }
    }
    if far.is_empty() {
        return Ok(());
    }
    Err(Failure::verdict(format!(
        "a default takes more than {NEAR} times what another of its family takes:\n{}",
        far.join("\n")
    )))
}

/// A line of the table, about one operation.
struct Row<'t> {
    /// The name of the operation.
    operation: &'t str,
    /// The number of processors.
    processors: usize,
    /// The nanoseconds that the operation takes.
    nanos: f64,
}

impl<'t> Row<'t> {
    /// Reads a line of the table. Returns `None` for other lines.
    fn of(line: &'t str) -> Option<Self> {
        let (operation, rest) = line.split_once("  ")?;
        let mut numbers = rest.split_whitespace();
        let processors = numbers.next()?.parse().ok()?;
        Some(Self { operation, processors, nanos: numbers.next()?.parse().ok()? })
    }
}

/// Returns the changes of a committed table, or replaces it.
fn compare(
    path: &Path,
    header: &str,
    command: &mut Command,
    options: &Options,
) -> Result<Vec<String>> {
    let now = shell::run_teed(command)?;
    if options.update {
        std::fs::write(path, format!("{header}{now}")).map_err(Failure::file(path))?;
        return Ok(Vec::new());
    }
    let then = std::fs::read_to_string(path).map_err(Failure::file(path))?;
    Ok(changes(&then, &now, options.filter.as_deref().unwrap_or_default()))
}

/// Returns the lines that are only in one of the two, of operations with `filter` in their names.
fn changes(then: &str, now: &str, filter: &str) -> Vec<String> {
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| !line.starts_with('#') && line.contains(filter));
        rows.map(str::to_owned).collect()
    };
    let (then, now) = (rows(then), rows(now));
    let gone = then.iter().filter(|row| !now.contains(row)).map(|row| format!("- {row}"));
    let new = now.iter().filter(|row| !then.contains(row)).map(|row| format!("+ {row}"));
    let mut changes: Vec<_> = gone.chain(new).collect();
    // The two of one operation stand together.
    changes.sort_by(|a, b| a[2..].split("  ").next().cmp(&b[2..].split("  ").next()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_table_has_no_changes_whatever_its_comments_say() {
        assert!(changes("# a\nlock   1 2.58\n", "# b\nlock   1 2.58\n", "").is_empty());
    }

    #[test]
    fn one_more_exchange_is_a_change_that_shows_both_rows() {
        let said = changes("lock   1 2.58\nread   1 1.00\n", "lock   1 4.00\nread   1 1.00\n", "");
        assert_eq!(said, ["- lock   1 2.58", "+ lock   1 4.00"]);
    }

    #[test]
    fn a_missing_and_a_new_operation_are_changes() {
        assert_eq!(changes("lock   1\n", "", ""), ["- lock   1"]);
        assert_eq!(changes("", "lock   1\n", ""), ["+ lock   1"]);
    }

    #[test]
    fn the_committed_table_has_each_default_near_the_best() {
        let table = std::fs::read_to_string(table()).unwrap();
        near_the_best(&table).unwrap();
        for (default, _) in DEFAULTS {
            let rows = table.lines().filter(|line| line.starts_with(default));
            assert_eq!(rows.count(), 4, "{default}");
        }
    }

    #[test]
    fn a_default_that_is_far_from_the_best_is_named() {
        let line = |name, nanos| format!("{name}      8   {nanos}   0.1\n");
        let table = |of_mutex| -> String {
            let names = DEFAULTS.iter().flat_map(|(name, others)| {
                let others = others.iter().map(|other| (*other, 80.0));
                others.chain([(*name, 100.0)])
            });
            names.map(|(name, nanos)| line(name, nanos)).collect::<String>()
                + &line(DEFAULTS[1].0, of_mutex)
        };
        near_the_best(&table(100.0)).unwrap();
        let far = near_the_best(&table(101.0)).unwrap_err().to_string();
        assert!(far.contains("competitive::Mutex lock, unlock with 8 processors: 101 ns"), "{far}");
        let gone = near_the_best(&table(100.0).replace("HolderAware", ""));
        assert!(gone.unwrap_err().to_string().contains("no row of `PolicyMutex<HolderAware>"));
    }

    #[test]
    fn a_filtered_run_is_compared_with_its_part_of_the_table() {
        assert!(changes("lock   1\nread   1\n", "read   1\n", "read").is_empty());
    }
}
