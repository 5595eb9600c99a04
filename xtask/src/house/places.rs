//! Where a rule is broken.

use std::fmt;

/// A line that is against a rule, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file, from the root of the workspace, with `/`.
    path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The fault there.
    why: String,
}

/// The places of one rule in one folder.
pub(crate) type Places = Vec<Place>;

impl Place {
    pub(crate) fn new(path: &str, line: usize, why: String) -> Self {
        Self { path: path.to_owned(), line, why }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.why)
    }
}
