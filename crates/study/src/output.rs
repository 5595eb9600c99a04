//! Messages for the user, on standard output or, if that carries a document, on standard error.

use std::fmt;
use std::io::{self, Write};

/// The stream that messages for the user go to.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Output {
    /// Writes one line. Errors are ignored: a reader that has gone away (`| head`) is no failure,
    /// and there is no stream left to report another error on.
    pub fn line(self, line: fmt::Arguments<'_>) {
        let _ = match self {
            Self::Stdout => writeln!(io::stdout().lock(), "{line}"),
            Self::Stderr => writeln!(io::stderr().lock(), "{line}"),
        };
    }
}
