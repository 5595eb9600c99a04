//! `--memory`: where the nodes of a structure without locks come from.

use clap::ValueEnum;

/// The values of `--memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Memory {
    /// Counted pointers into a pool of nodes, as in the papers.
    Counted,
    /// Hazard pointers.
    Hazard,
}

impl Memory {
    /// As in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted pointers",
            Self::Hazard => "hazard pointers",
        }
    }
}
