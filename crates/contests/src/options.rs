//! The choice of cells, and the time that they get.

use std::time::Duration;

/// The options of one run of a contest.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The number of rounds. None: as many as the contest's own.
    pub rounds: Option<usize>,
    /// The share of the usual time and number of operations of each run.
    pub effort: Effort,
    /// Parts of the names of the selected cells and contestants, as in `cell/contestant`. Empty:
    /// all.
    pub only: Vec<String>,
}

impl Options {
    /// Returns options for one short round.
    #[must_use]
    pub fn quick() -> Self {
        Self { rounds: Some(1), effort: Effort(0.2), only: Vec::new() }
    }

    /// Returns whether a contestant in a cell is selected.
    pub(crate) fn wants(&self, cell: &str, contestant: &str) -> bool {
        let name = format!("{cell}/{contestant}");
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// A share of the usual time and number of operations of a run.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Effort(pub f64);

impl Default for Effort {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Effort {
    /// Returns this share of a time, but at least a millisecond.
    #[must_use]
    pub fn time(self, usual: Duration) -> Duration {
        usual.mul_f64(self.0).max(Duration::from_millis(1))
    }

    /// Returns this share of a number of operations, but at least one.
    #[must_use]
    pub fn count(self, usual: usize) -> usize {
        ((usual as f64 * self.0) as usize).max(1)
    }
}
