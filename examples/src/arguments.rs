//! What clap cannot say, and what every program does with what it says.

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

/// A number from 1 up. Not clap's range, whose message names the largest `u64`.
///
/// # Errors
///
/// What is wrong with `text`.
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

/// The arguments, or the exit code of a program that was asked for help or cannot use what it was
/// given; `out` or `err` has been told.
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
        // `--help` and `--version` come this way too. Nobody is left to be told if the writing
        // fails.
        if message.use_stderr() {
            let _ = write!(err, "{message}");
            2
        } else {
            let _ = write!(out, "{message}");
            0
        }
    })
}
