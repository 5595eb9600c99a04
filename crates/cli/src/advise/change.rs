//! The end of the advice: what to change in the program, or to try.

use std::collections::BTreeMap;

use stanchion_paper_klmo91::waits::judge::{Costs, DEFAULT};
use stanchion_paper_klmo91::waits::pool::Lock;
use stanchion_study::command::{quoted, stanchion};

use super::had::{self, Had};
use super::{Advice, LockAdvice, words};

/// Expands to a line of Rust for each policy, with its type: the compiler sees the same line.
macro_rules! lines_of_rust {
    ($($name:ident $(<$parameter:literal>)?),+ $(,)?) => {
        [$({
            const _: fn() = || {
                use stanchion_competitive::{PolicyMutex, policy::$name};
                type Lock<T> = PolicyMutex<T, $name $(<$parameter>)?>;
                let _: Lock<u8> = Lock::new(0);
            };
            concat!(
                "use stanchion_competitive::{PolicyMutex, policy::", stringify!($name),
                "}; type Lock<T> = PolicyMutex<T, ", stringify!($name), $("<", $parameter, ">",)? ">;"
            )
        }),+]
    };
}

/// The line of code that gives a lock each policy but the default.
const LINES: [&str; DEFAULT] = lines_of_rust![
    AlwaysBlock,
    AlwaysSpin,
    FixedSpin<50>,
    FixedSpin,
    OptimalOnline,
    LastThreeSamples,
    RandomWalk,
    OptimalOnlineApproximation,
    Randomized,
];

/// Returns the line of code that gives a lock that policy.
fn line_of_rust(policy: usize) -> &'static str {
    const _: fn() = || {
        use stanchion_competitive::Mutex;
        type Lock<T> = Mutex<T>;
        let _: Lock<u8> = Lock::new(0_u8);
    };
    let default = "use stanchion_competitive::Mutex; type Lock<T> = Mutex<T>;";
    LINES.get(policy).copied().unwrap_or(default)
}

/// Something to change: a lock or a program, and the line of code or the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The lock, or the program.
    pub(crate) of: String,
    /// The line, or "no change".
    pub(crate) what: String,
}

/// The words if nothing is to be changed.
pub(crate) const NONE: &str = "no change";

/// Returns a change for each lock of programs in Rust, and for each other program.
pub(crate) fn changes(advice: &Advice) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut programs: BTreeMap<&str, Vec<(&Lock, &LockAdvice)>> = BTreeMap::new();
    for (lock, found) in advice.each() {
        match (found.had, found.chosen) {
            (Had::Default | Had::Rust, Some(chosen)) if chosen != found.had.policy() => {
                changes
                    .push(Change { of: lock.name.clone(), what: line_of_rust(chosen).to_owned() });
            }
            (Had::Default | Had::Rust | Had::Other, _) => {
                changes.push(Change { of: lock.name.clone(), what: NONE.to_owned() });
            }
            (Had::Pthread | Had::Replaced(_), _) => {
                programs.entry(&lock.program).or_default().push((lock, found))
            }
        }
    }
    changes.extend(
        programs.into_iter().map(|(program, locks)| Change {
            of: program.to_owned(),
            what: tried(program, &locks),
        }),
    );
    changes
}

/// Returns the command to try for a program that was not written for these locks. All its mutexes
/// are replaced together. So locks with too few waits count as well, if any lock has enough.
fn tried(program: &str, locks: &[(&Lock, &LockAdvice)]) -> String {
    if locks.iter().all(|(_, found)| found.chosen.is_none()) {
        return NONE.to_owned();
    }
    let had = locks[0].1.had;
    let together = Costs::together(locks.iter().map(|(_, found)| &found.judged.costs[0]));
    let chosen = words::best(&together, had.policy());
    match had::lock(chosen).filter(|_| chosen != had.policy()) {
        None => NONE.to_owned(),
        Some(policy) => {
            format!("{} record --lock {policy} -- {}", stanchion(), quoted(program))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_paper_klmo91::waits::judge::COLUMNS;

    #[test]
    fn each_line_has_the_type_of_its_column() {
        assert!(line_of_rust(DEFAULT).ends_with("Mutex<T>;"));
        for (line, column) in LINES.iter().zip(&COLUMNS) {
            let name = column.policy;
            let plain = name.trim_end_matches("<50>");
            assert_eq!(
                *line,
                format!(
                    "use stanchion_competitive::{{PolicyMutex, policy::{plain}}}; type Lock<T> = PolicyMutex<T, {name}>;"
                )
            );
        }
    }
}
