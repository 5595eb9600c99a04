//! Lines for people, on standard output or, where that carries a document, on standard error.

use std::fmt;
use std::io::{self, Write};

/// Where lines for people go.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Output {
    /// Writes one line. A reader that has gone away (`| head`) is no failure, and no one is left to
    /// tell of another.
    pub fn line(self, line: fmt::Arguments<'_>) {
        let _ = match self {
            Self::Stdout => writeln!(io::stdout().lock(), "{line}"),
            Self::Stderr => writeln!(io::stderr().lock(), "{line}"),
        };
    }
}
