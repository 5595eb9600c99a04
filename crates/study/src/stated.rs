//! Absolute figures that a paper's text or tables state, beside those of the simulated machine.
//!
//! Each paper's crate lists its own, and `stanchion calibrate --papers` prints all of them. A point
//! that is read off a chart is not stated.

use crate::experiment::Paper;
use crate::units::{nanos, significant};

/// A figure that a paper states, and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    /// The paper.
    pub paper: Paper,
    /// The figure, table or section that states it.
    pub place: &'static str,
    /// The name of the figure.
    pub what: String,
    /// The unit of both figures.
    pub unit: Unit,
    /// The paper's figure. None if the row stands for figures that are not comparable.
    pub theirs: Option<f64>,
    /// The figure of the simulated machine.
    pub ours: Ours,
}

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A time, in nanoseconds.
    Nanos,
    /// A speed-up.
    Times,
}

/// The figure of the simulated machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Ours {
    /// It was computed. If there is a bound, it should be off the paper's by that share at most.
    Computed {
        /// The figure.
        figure: f64,
        /// The bound.
        within: Option<f64>,
    },
    /// It is the paper's, given to the model.
    Input,
    /// There is none, for this reason.
    NotComparable(&'static str),
}

impl Stated {
    /// Returns a figure that was computed.
    pub fn computed(
        (paper, place): (Paper, &'static str),
        what: impl Into<String>,
        (unit, theirs): (Unit, f64),
        figure: f64,
        within: Option<f64>,
    ) -> Self {
        let ours = Ours::Computed { figure, within };
        Self { paper, place, what: what.into(), unit, theirs: Some(theirs), ours }
    }

    /// Returns a figure that was given to the model.
    pub fn input(
        (paper, place): (Paper, &'static str),
        what: impl Into<String>,
        (unit, theirs): (Unit, f64),
    ) -> Self {
        Self { paper, place, what: what.into(), unit, theirs: Some(theirs), ours: Ours::Input }
    }

    /// Returns a row for figures that cannot be compared.
    pub fn not_comparable(
        (paper, place): (Paper, &'static str),
        what: impl Into<String>,
        reason: &'static str,
    ) -> Self {
        let ours = Ours::NotComparable(reason);
        Self { paper, place, what: what.into(), unit: Unit::Nanos, theirs: None, ours }
    }

    /// Returns the share by which ours is off the paper's.
    pub fn off(&self) -> Option<f64> {
        match (&self.ours, self.theirs) {
            (Ours::Computed { figure, .. }, Some(theirs)) => Some(figure / theirs - 1.0),
            _ => None,
        }
    }

    /// Returns whether ours is within the bound, if there is one.
    pub fn is_within(&self) -> Option<bool> {
        let Ours::Computed { within: Some(within), .. } = self.ours else { return None };
        self.off().map(|off| off.abs() <= within)
    }
}

impl Unit {
    /// Returns a figure as text.
    pub fn text(self, figure: f64) -> String {
        match self {
            Self::Nanos => nanos(figure),
            Self::Times => significant(figure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged_by_its_bound() {
        let place = (Paper::Ms97, "figure 1");
        let of = |ours, within| Stated::computed(place, "a", (Unit::Nanos, 10.0), ours, within);
        assert_eq!(of(10.9, Some(0.1)).is_within(), Some(true));
        assert_eq!(of(8.9, Some(0.1)).is_within(), Some(false));
        assert_eq!(of(11.2, None).is_within(), None);
        assert_eq!(of(15.0, None).off(), Some(0.5));
        assert_eq!(Stated::input(place, "a", (Unit::Times, 2.0)).off(), None);
        assert_eq!(Stated::not_comparable(place, "a", "unknown").is_within(), None);
    }
}
