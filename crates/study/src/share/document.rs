//! The layout of a shared file.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::computer::Computer;
use crate::error::Error;
use crate::grids::{self, Grid};

/// The name of the layout. It changes if a reader of the last one would misread the new one.
pub(super) const SCHEMA: &str = "stanchion-share/1";

/// The content of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shared {
    /// The name of the layout.
    pub(super) schema: String,
    /// The random number of the output folder.
    pub(super) number: String,
    /// The computer.
    pub(super) computer: Computer,
    /// The grids.
    pub(super) families: Vec<Family>,
}

/// The grid of a family.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Family {
    /// The name of the family, and of its distributions.
    pub(super) family: String,
    /// The version of the distributions.
    pub(super) distributions: u32,
    /// The seed of the cells.
    pub(super) seed: u64,
    /// The version of stanchion.
    pub(super) stanchion: String,
    /// True if it is a brief look.
    pub(super) brief: bool,
    /// The names of the contestants.
    pub(super) contestants: Vec<String>,
    /// For each contestant, true if it is of another crate.
    pub(super) peers: Vec<bool>,
    /// The number of cells.
    pub(super) number_of_cells: usize,
    /// The cells.
    pub(super) cells: Vec<Cell>,
}

/// A cell, and the figures of each contestant in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cell {
    /// The name.
    pub(super) cell: String,
    /// The number of threads.
    pub(super) threads: usize,
    /// The length of the work, in nanoseconds.
    pub(super) length_ns: f64,
    /// The number of busy processes beside it.
    pub(super) hogs: usize,
    /// The figures of the contestants, in their order; none for one that took no part.
    pub(super) figures: Vec<Option<Figures>>,
}

/// Operations a second, nanoseconds of processor time for an operation, the 99.9th percentile of
/// waits in nanoseconds, and false if it starved a thread.
pub(super) type Figures = (f64, f64, Option<f64>, bool);

impl Shared {
    pub(super) fn new(number: String, computer: Computer, grids: &[Grid]) -> Self {
        let families = grids.iter().map(Family::new).collect();
        Self { schema: SCHEMA.to_owned(), number, computer, families }
    }

    /// Returns the document, with a line for each cell.
    pub(super) fn text(&self) -> Result<String, Error> {
        let mut text = format!(
            "{{\n\"schema\": {},\n\"number\": {},\n\"computer\": {},\n\"families\": [",
            serde_json::to_string(&self.schema)?,
            serde_json::to_string(&self.number)?,
            serde_json::to_string(&self.computer)?
        );
        for (at, family) in self.families.iter().enumerate() {
            let cells: Result<Vec<String>, _> =
                family.cells.iter().map(serde_json::to_string).collect();
            // The cells stand last.
            let head = serde_json::to_string(&family.head())?;
            let (comma, head) = (if at == 0 { "" } else { "," }, head.trim_end_matches("]}"));
            // Writing to a String does not fail.
            let _ = write!(text, "{comma}\n{head}\n{}\n]}}", cells?.join(",\n"));
        }
        Ok(text + "\n]\n}\n")
    }
}

impl Family {
    fn new(grid: &Grid) -> Self {
        let figures = |of: &grids::Figures| {
            (rounded(of.throughput), rounded(of.cost), of.tail.map(rounded), of.fair)
        };
        let cell = |cell: &grids::Cell| Cell {
            cell: cell.name.clone(),
            threads: cell.threads,
            length_ns: cell.length_ns,
            hogs: cell.hogs,
            figures: cell.figures.iter().map(|of| of.as_ref().map(figures)).collect(),
        };
        Self {
            family: grid.family.clone(),
            distributions: grid.distributions,
            seed: grid.seed,
            stanchion: grid.version.clone(),
            brief: grid.brief,
            contestants: grid.contestants.clone(),
            peers: grid.peers.clone(),
            number_of_cells: grid.cells.len(),
            cells: grid.cells.iter().map(cell).collect(),
        }
    }

    /// Returns the same without cells.
    fn head(&self) -> Self {
        Self {
            family: self.family.clone(),
            stanchion: self.stanchion.clone(),
            contestants: self.contestants.clone(),
            peers: self.peers.clone(),
            cells: Vec::new(),
            ..*self
        }
    }

    /// Returns it as a grid of `computer`.
    pub(super) fn grid(self, computer: &Computer) -> Grid {
        let figures =
            |(throughput, cost, tail, fair)| grids::Figures { throughput, cost, tail, fair };
        let cell = |cell: Cell| grids::Cell {
            name: cell.cell,
            threads: cell.threads,
            length_ns: cell.length_ns,
            hogs: cell.hogs,
            figures: cell.figures.into_iter().map(|of| of.map(figures)).collect(),
        };
        Grid {
            family: self.family,
            // The time is not shared.
            written: 0,
            seed: self.seed,
            distributions: self.distributions,
            version: self.stanchion,
            processor: computer.processor.clone(),
            processors: computer.processors,
            brief: self.brief,
            contestants: self.contestants,
            peers: self.peers,
            cells: self.cells.into_iter().map(cell).collect(),
        }
    }
}

/// Rounds to four digits. A figure that is not known is 0.
fn rounded(value: f64) -> f64 {
    if value.is_finite() { format!("{value:.3e}").parse().unwrap_or(0.0) } else { 0.0 }
}

/// Returns true if `text` is a random number of a folder.
pub(super) fn is_number(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
