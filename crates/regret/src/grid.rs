//! The cells: what the threads of a race do, and the names that choose among them.
//!
//! A name is made of tokens, `THREADS-SECTION-OUTSIDE-COMPANY`, as in `8t-1us-4x-hogs`. The two
//! workloads that change while they run are called `phases` and `sleeper`. A filter is some tokens
//! of a name in any order. So `8t-hogs` matches ten cells and `1us` twenty.
//!
//! | token | means |
//! | --- | --- |
//! | `1t` to `32t` | so many threads |
//! | `0ns` to `200us` | so much work in a critical section, beside one increment |
//! | `tight`, `4x` | no work outside, or four times that of the section |
//! | `quiet` | alone on the machine |
//! | `hogs` | beside a process that computes for ever on each of two processors |

use std::collections::BTreeSet;

/// Threads of a cell.
const THREADS: [usize; 5] = [1, 2, 4, 8, 32];

/// Nanoseconds of work in a critical section, and their token.
const SECTIONS: [(u64, &str); 5] =
    [(0, "0ns"), (100, "100ns"), (1_000, "1us"), (10_000, "10us"), (200_000, "200us")];

/// The assumed work of a section that only increments, in nanoseconds: about the time of an
/// uncontended lock, increment and unlock. In `4x` cells the work outside is four times this. Four
/// times nothing would make two cells the same.
const BARE_SECTION: u64 = 25;

/// Nanoseconds that a phase of `phases` lasts.
pub(crate) const PHASE: u64 = 20_000_000;

/// Nanoseconds for which a holder of `sleeper` sleeps.
pub(crate) const NAP: u64 = 200_000;

/// The number of sections of which one sleeps, in `sleeper`.
pub(crate) const SECTIONS_A_NAP: u64 = 64;

/// Work of one section and between two, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lap {
    /// Work under the lock.
    pub(crate) inside: u64,
    /// Work between an unlock and the next lock.
    pub(crate) outside: u64,
}

/// One cell of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The tokens, joined by hyphens.
    pub(crate) name: String,
    /// The number of threads that take the lock.
    pub(crate) threads: usize,
    /// The work of a lap. The workload that alternates has another second one.
    pub(crate) laps: [Lap; 2],
    /// The number of sections of which one sleeps for [`NAP`], if any does.
    pub(crate) naps: Option<u64>,
    /// Other processes compute on some processors meanwhile.
    pub(crate) hogs: bool,
}

impl Cell {
    /// Returns whether every token of `filter` is a token of the name.
    fn has(&self, filter: &str) -> bool {
        let tokens: BTreeSet<&str> = self.name.split('-').collect();
        filter.split('-').all(|token| tokens.contains(token))
    }
}

fn steady(threads: usize, (inside, section): (u64, &str), apart: bool, hogs: bool) -> Cell {
    let outside = if apart { 4 * inside.max(BARE_SECTION) } else { 0 };
    let (outer, company) =
        (if apart { "4x" } else { "tight" }, if hogs { "hogs" } else { "quiet" });
    let lap = Lap { inside, outside };
    Cell {
        name: format!("{threads}t-{section}-{outer}-{company}"),
        threads,
        laps: [lap; 2],
        naps: None,
        hogs,
    }
}

/// Returns all 102 cells: the hundred of the grid, then `phases` and `sleeper`.
pub(crate) fn whole() -> Vec<Cell> {
    let mut cells = Vec::new();
    for hogs in [false, true] {
        for threads in THREADS {
            for section in SECTIONS {
                for apart in [false, true] {
                    cells.push(steady(threads, section, apart, hogs));
                }
            }
        }
    }
    let lap = |inside| Lap { inside, outside: 400 };
    cells.push(Cell {
        name: "phases".to_owned(),
        threads: 4,
        laps: [lap(100), lap(200_000)],
        naps: None,
        hogs: false,
    });
    cells.push(Cell {
        name: "sleeper".to_owned(),
        threads: 4,
        laps: [Lap { inside: 1_000, outside: 4_000 }; 2],
        naps: Some(SECTIONS_A_NAP),
        hogs: false,
    });
    cells
}

/// The cells of a run without a choice of cells. Each token of the grid is in several. The tokens
/// that are most common with two processors (few threads, short sections) are in most.
const TWENTY_FIVE: [&str; 25] = [
    "1t-0ns-tight-quiet",
    "1t-1us-4x-hogs",
    "2t-0ns-tight-quiet",
    "2t-0ns-4x-quiet",
    "2t-100ns-tight-quiet",
    "2t-100ns-4x-quiet",
    "2t-1us-tight-quiet",
    "2t-10us-tight-quiet",
    "2t-10us-4x-quiet",
    "2t-200us-4x-quiet",
    "2t-1us-tight-hogs",
    "4t-100ns-4x-quiet",
    "4t-1us-4x-quiet",
    "4t-10us-4x-hogs",
    "4t-200us-tight-quiet",
    "4t-1us-tight-hogs",
    "8t-0ns-tight-quiet",
    "8t-1us-tight-quiet",
    "8t-10us-4x-quiet",
    "8t-100ns-4x-hogs",
    "8t-1us-4x-hogs",
    "32t-1us-tight-quiet",
    "32t-100ns-tight-hogs",
    "phases",
    "sleeper",
];

/// The cells of a quick run.
const EIGHT: [&str; 8] = [
    "1t-0ns-tight-quiet",
    "2t-100ns-4x-quiet",
    "2t-10us-tight-quiet",
    "4t-1us-tight-hogs",
    "8t-1us-tight-quiet",
    "32t-1us-tight-quiet",
    "phases",
    "sleeper",
];

fn named(names: &[&str]) -> Vec<Cell> {
    whole().into_iter().filter(|cell| names.contains(&cell.name.as_str())).collect()
}

/// Returns the 25 cells of a run of twelve minutes.
pub(crate) fn twenty_five() -> Vec<Cell> {
    named(&TWENTY_FIVE)
}

/// Returns the 8 cells of a quick run.
pub(crate) fn eight() -> Vec<Cell> {
    named(&EIGHT)
}

/// Returns the cells of the whole grid that any of `filters` matches, or the filter that matches
/// none.
pub(crate) fn choose(filters: &[String]) -> Result<Vec<Cell>, String> {
    let all = whole();
    if let Some(vain) = filters.iter().find(|filter| !all.iter().any(|cell| cell.has(filter))) {
        return Err(vain.clone());
    }
    Ok(all.into_iter().filter(|cell| filters.iter().any(|filter| cell.has(filter))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(filter: &str) -> Vec<String> {
        let cells = choose(&[filter.to_owned()]).unwrap();
        cells.into_iter().map(|cell| cell.name).collect()
    }

    #[test]
    fn all_cells_are_there_once_and_none_is_another_in_disguise() {
        let cells = whole();
        assert_eq!(cells.len(), 102);
        let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names.len(), 102);
        for (index, cell) in cells.iter().enumerate() {
            for other in &cells[index + 1..] {
                let same = (cell.threads, cell.laps, cell.naps, cell.hogs)
                    == (other.threads, other.laps, other.naps, other.hogs);
                assert!(!same, "{} is {}", cell.name, other.name);
            }
        }
    }

    #[test]
    fn the_named_cells_exist() {
        assert_eq!(twenty_five().len(), 25);
        assert_eq!(eight().len(), 8);
    }

    #[test]
    fn filters_are_tokens_in_any_order() {
        assert_eq!(chosen("2t").len(), 20, "and not the 32t ones");
        assert_eq!(chosen("hogs-8t").len(), 10);
        assert_eq!(chosen("1us-4x-32t-hogs"), ["32t-1us-4x-hogs"]);
        assert_eq!(chosen("phases"), ["phases"]);
        let two = choose(&["sleeper".to_owned(), "1t-0ns-tight-quiet".to_owned()]).unwrap();
        assert_eq!(two.len(), 2);
        for vain in ["3t", "8t-4t", "", "8t-", "-"] {
            assert_eq!(choose(&[vain.to_owned()]), Err(vain.to_owned()));
        }
    }
}
