//! Cells: the same operations in the same circumstances, by several contestants.
//!
//! A contest runs cells in rounds, and `cargo bench` gives each of them to criterion as a group.

use crate::{Effort, Options};

/// The figures of one run, in the order of the cell's columns. NaN stands for a figure that the
/// contestant does not have. The first figure is the time of one operation in nanoseconds.
pub type Figures = Vec<f64>;

/// A function for one run.
type Run = Box<dyn Fn(Effort) -> Figures>;

/// A contestant in a cell.
pub struct Contestant {
    /// The name, without its crate for a contestant of this workspace.
    pub name: String,
    /// True for a contestant from elsewhere that does the same task: those of this workspace are
    /// compared with it.
    pub is_peer: bool,
    /// Prepares everything, does many operations, and measures them.
    run: Run,
}

impl Contestant {
    /// Returns a contestant that is no peer.
    pub fn new(name: impl Into<String>, run: impl Fn(Effort) -> Figures + 'static) -> Self {
        Self { name: name.into(), is_peer: false, run: Box::new(run) }
    }

    /// Returns a peer.
    pub fn peer(name: impl Into<String>, run: impl Fn(Effort) -> Figures + 'static) -> Self {
        Self { is_peer: true, ..Self::new(name, run) }
    }

    /// Does one run and returns its figures.
    #[must_use]
    pub fn run(&self, effort: Effort) -> Figures {
        (self.run)(effort)
    }

    /// Returns the name in tables.
    pub(crate) fn shown(&self) -> String {
        format!("{}{}", self.name, if self.is_peer { " (peer)" } else { "" })
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name, with the unit.
    pub name: &'static str,
    /// The digits behind the point.
    pub decimals: usize,
    /// The way in which the rounds' figures become one.
    pub summary: Summary,
}

/// A way to make one figure of those of all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// Takes the median.
    Median,
    /// Takes the largest.
    Largest,
}

impl Column {
    /// Returns a column of medians.
    pub(crate) const fn median(name: &'static str, decimals: usize) -> Self {
        Self { name, decimals, summary: Summary::Median }
    }

    /// Returns a column of the largest figures.
    pub(crate) const fn largest(name: &'static str, decimals: usize) -> Self {
        Self { name, decimals, summary: Summary::Largest }
    }
}

/// The contestant of the cell by which the times of all are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The fastest peer. Below 1, a contestant is faster than all peers.
    BestPeer,
    /// The fastest contestant.
    Best,
    /// The first contestant.
    First,
}

/// The same operations in the same circumstances, by several contestants.
pub struct Cell {
    /// The name. The group of criterion has the same.
    pub title: String,
    /// The columns of each run's figures.
    pub columns: &'static [Column],
    /// The contestant to compare with.
    pub against: Against,
    /// The contestants, in the order of the table.
    pub contestants: Vec<Contestant>,
    /// The time of the other work that an operation contains, if there can be such work. The
    /// function measures it, once in each round.
    pub other_work: Option<Box<dyn Fn(Effort) -> f64>>,
    /// The share of a contest's run that is enough for one sample of criterion.
    pub sample: Effort,
}

impl Cell {
    pub(crate) fn new(
        title: impl Into<String>,
        columns: &'static [Column],
        against: Against,
        contestants: Vec<Contestant>,
    ) -> Self {
        Self {
            title: title.into(),
            columns,
            against,
            contestants,
            other_work: None,
            sample: Effort::default(),
        }
    }

    /// Sets the share of a run that is enough for one sample of criterion.
    pub(crate) fn sampled(mut self, share: f64) -> Self {
        self.sample = Effort(share);
        self
    }

    /// Removes the contestants that are not selected. Returns None if none is left.
    pub(crate) fn selected(mut self, options: &Options) -> Option<Self> {
        self.contestants.retain(|contestant| options.wants(&self.title, &contestant.name));
        (!self.contestants.is_empty()).then_some(self)
    }
}
