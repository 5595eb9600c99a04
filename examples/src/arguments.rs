//! Arguments beyond clap's, and the handling of its messages that every program needs.

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

/// Parses a number from 1 up. Not clap's range: its message names the largest `u64`.
///
/// # Errors
///
/// The fault of `text`.
pub fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        // `-1` is a number, only none that will do.
        Err(_) if text.parse::<i128>().is_ok_and(|number| number < 0) => {
            Err("must be at least 1".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the arguments. Returns the exit code instead if the program was asked for help or cannot
/// use its arguments; then a message is written to `out` or `err`.
///
/// # Errors
///
/// The exit code: 0 after `--help` and `--version`, 2 after arguments that are no good.
pub fn parse<A: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<A, u8> {
    A::try_parse_from(arguments).map_err(|message| {
        // `--help` and `--version` come this way too. If the writing fails, there is no place left
        // for a message.
        if message.use_stderr() {
            let _ = write!(err, "{message}");
            2
        } else {
            let _ = write!(out, "{message}");
            0
        }
    })
}
