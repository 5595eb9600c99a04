//! Random grids: what each contestant of a family did in cells that were drawn. The answer to
//! which one to use on this computer follows from them.
//!
//! The last grid of each family is kept in `grids.json` of the output folder, so every later
//! report shows it. A brief look does not take the place of a whole grid.

mod choose;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use choose::FEWEST;
pub use choose::{Choice, Condition, Standing, choose};

use crate::error::Error;
use crate::files::replace;
use crate::host::Host;
use crate::output::Output;

/// One random grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grid {
    /// The name of the family on the command line.
    pub family: String,
    /// The time of the grid, in seconds since 1970.
    pub written: u64,
    /// The seed of the cells.
    pub seed: u64,
    /// The version of the distributions that the cells were drawn from.
    #[serde(default = "first")]
    pub distributions: u32,
    /// The version of this package.
    pub version: String,
    /// The processor's model.
    pub processor: String,
    /// The number of processors.
    pub processors: usize,
    /// True if it is a brief look: few cells, and one race of each contestant.
    pub brief: bool,
    /// The names of the contestants.
    pub contestants: Vec<String>,
    /// For each contestant, true if it is of another crate.
    pub peers: Vec<bool>,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// A cell, and the figures of each contestant in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The name, by which it can be measured again.
    pub name: String,
    /// The number of threads.
    pub threads: usize,
    /// The length of a section or of the work between operations, in nanoseconds.
    pub length_ns: f64,
    /// The number of busy processes beside it.
    pub hogs: usize,
    /// The figures of the contestants, in their order; none for one that took no part.
    pub figures: Vec<Option<Figures>>,
}

/// The figures of one contestant in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Operations a second.
    pub throughput: f64,
    /// Nanoseconds of processor time for an operation.
    pub cost: f64,
    /// The 99.9th percentile of the waits, in nanoseconds, if enough were timed.
    pub tail: Option<f64>,
    /// False if it starved a thread.
    pub fair: bool,
}

/// The families, in the order of answers, and the names of the things that they compare.
pub const FAMILIES: [(&str, &str); 10] = [
    ("locks", "Mutex"),
    ("rwlocks", "Read-write lock"),
    ("spinlocks", "Spin lock"),
    ("bounded-queues", "Bounded queue"),
    ("unbounded-queues", "Unbounded queue"),
    ("stacks", "Stack"),
    ("heaps", "Heap (priority queue)"),
    ("counters", "Counter"),
    ("pools", "Thread pool"),
    ("barriers", "Barrier"),
];

/// The version of the distributions of all families. It rises with every change of one, because
/// grids of different distributions cannot be compared.
pub const DISTRIBUTIONS: u32 = 1;

/// Returns the version of the distributions in grids that do not name it.
fn first() -> u32 {
    1
}

/// The layout of the file.
const SCHEMA: &str = "stanchion-grids/1";

/// The name of the file in the output folder.
const FILE: &str = "grids.json";

/// The document.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The name of the layout.
    schema: String,
    /// The last grid of each family.
    grids: Vec<Grid>,
}

/// Returns the grids that the folder `out` keeps. If they cannot be read, prints why.
pub fn kept(out: &Path) -> Vec<Grid> {
    let path = out.join(FILE);
    let Ok(text) = std::fs::read_to_string(&path) else { return Vec::new() };
    let why = match serde_json::from_str::<Kept>(&text) {
        Ok(kept) if kept.schema == SCHEMA => return kept.grids,
        Ok(kept) => format!("its layout is `{}`", kept.schema),
        Err(error) => error.to_string(),
    };
    let path = path.display();
    Output::Stderr.line(format_args!("stanchion: cannot read {path}: {why}; it is left out"));
    Vec::new()
}

/// Returns the grids of this computer, from today's distributions, that the folder `out` keeps.
pub fn of_here(out: &Path) -> Vec<Grid> {
    let here = Host::here();
    let is_here = |grid: &Grid| {
        grid.processor == here.processor
            && grid.processors == here.parallelism
            && grid.distributions == DISTRIBUTIONS
            && FAMILIES.iter().any(|(family, _)| *family == grid.family)
    };
    kept(out).into_iter().filter(is_here).collect()
}

/// Returns the families of which the folder `out` keeps no whole grid of this computer.
pub fn not_whole(out: &Path) -> Vec<&'static str> {
    let whole: Vec<Grid> = of_here(out).into_iter().filter(|grid| !grid.brief).collect();
    let is_whole = |family: &str| whole.iter().any(|grid| grid.family == family);
    FAMILIES.iter().map(|(family, _)| *family).filter(|family| !is_whole(family)).collect()
}

/// Puts `new` among the grids that the folder `out` keeps, and returns all.
pub fn keep(out: &Path, new: &[Grid]) -> Result<Vec<Grid>, Error> {
    let mut grids = kept(out);
    for grid in new {
        join(&mut grids, grid);
    }
    let document = Kept { schema: SCHEMA.to_owned(), grids };
    replace(&out.join(FILE), (serde_json::to_string(&document)? + "\n").as_bytes())?;
    Ok(document.grids)
}

impl Grid {
    /// Returns true if both are of computers that look the same, and of the same distributions.
    fn is_like(&self, other: &Self) -> bool {
        let of = |grid: &Self| (grid.processor.clone(), grid.processors, grid.distributions);
        of(self) == of(other)
    }
}

/// Puts a grid in the place of the last one of its family, unless that one says more.
fn join(grids: &mut Vec<Grid>, new: &Grid) {
    let same = |grid: &&mut Grid| grid.family == new.family;
    match grids.iter_mut().find(same) {
        Some(last) if new.brief && !last.brief && last.is_like(new) => {}
        Some(last) => *last = new.clone(),
        None => grids.push(new.clone()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a grid of contestants A, B, … with these throughputs in each cell.
    pub(crate) fn grid(cells: &[&[f64]]) -> Grid {
        let number = cells[0].len();
        let figures = |&throughput: &f64| {
            Some(Figures { throughput, cost: 1e3 / throughput, tail: None, fair: true })
        };
        let cell = |(index, row): (usize, &&[f64])| Cell {
            name: format!("locks:1:{index}"),
            threads: 1 + index % 4,
            length_ns: 100.0 * index as f64,
            hogs: index % 2,
            figures: row.iter().map(figures).collect(),
        };
        Grid {
            family: "locks".to_owned(),
            written: 0,
            seed: 1,
            distributions: DISTRIBUTIONS,
            version: "0.1.0".to_owned(),
            processor: "a processor".to_owned(),
            processors: 2,
            brief: false,
            contestants: (0..number).map(|at| char::from(b'A' + at as u8).to_string()).collect(),
            peers: (0..number).map(|at| at > 0).collect(),
            cells: cells.iter().enumerate().map(cell).collect(),
        }
    }

    #[test]
    fn a_brief_look_does_not_take_the_place_of_a_whole_grid() {
        let out = std::env::temp_dir().join(format!("stanchion-grids-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        let whole = grid(&[&[1.0, 2.0], &[1.0, 2.0]]);
        let brief = Grid { brief: true, seed: 2, ..whole.clone() };
        let other = Grid { family: "stacks".to_owned(), ..brief.clone() };
        let seeds = |grids: Vec<Grid>| grids.iter().map(|grid| grid.seed).collect::<Vec<_>>();
        assert_eq!(seeds(keep(&out, &[brief.clone(), other]).unwrap()), [2, 2]);
        assert_eq!(seeds(keep(&out, std::slice::from_ref(&whole)).unwrap()), [1, 2]);
        assert_eq!(seeds(keep(&out, std::slice::from_ref(&brief)).unwrap()), [1, 2]);
        assert_eq!(seeds(kept(&out)), [1, 2]);
        // One of other distributions says nothing of these.
        let newer = Grid { distributions: DISTRIBUTIONS + 1, ..brief };
        assert_eq!(seeds(keep(&out, &[newer]).unwrap()), [2, 2]);
        std::fs::write(out.join(FILE), "{\"schema\": ").unwrap();
        assert!(kept(&out).is_empty());
        std::fs::remove_dir_all(out).unwrap();
    }
}
