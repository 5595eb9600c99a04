//! What the reports of the programs have in common. Each line begins with a word and is told at
//! column 13.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// Writes the checksum, and how that of the sequential program compares, if there is one.
///
/// # Errors
///
/// Those of `out`.
pub fn write_checksum(
    out: &mut dyn Write,
    checksum: u64,
    sequential: Option<u64>,
) -> io::Result<()> {
    write!(out, "checksum     {checksum:016x}")?;
    match sequential {
        None => writeln!(out),
        Some(sequential) if sequential == checksum => writeln!(out, ", the same as sequentially"),
        Some(sequential) => writeln!(out, ", but {sequential:016x} sequentially"),
    }
}

/// Writes how long the run took, and the sequential program, if it has run.
///
/// # Errors
///
/// Those of `out`.
pub fn write_elapsed(
    out: &mut dyn Write,
    elapsed: Duration,
    sequential: Option<Duration>,
) -> io::Result<()> {
    write!(out, "elapsed      {:.3} s", elapsed.as_secs_f64())?;
    match sequential {
        None => writeln!(out),
        Some(sequential) => writeln!(out, ", {:.3} s sequentially", sequential.as_secs_f64()),
    }
}

/// Writes what thread `who` has done, and where, if it had a processor of its own.
///
/// # Errors
///
/// Those of `out`.
pub fn write_thread(
    out: &mut dyn Write,
    who: usize,
    done: &str,
    processor: Option<usize>,
) -> io::Result<()> {
    write!(out, "thread {who:<5} {done}")?;
    match processor {
        Some(processor) => writeln!(out, ", on processor {processor}"),
        None => writeln!(out),
    }
}

/// Flushes what was `written` to `out`, and says on `err` why it cannot be, unless the reader has
/// gone.
pub fn end(program: &str, written: io::Result<()>, out: &mut dyn Write, err: &mut dyn Write) {
    if let Err(error) = written.and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        // Nobody is left to be told if this fails.
        let _ = writeln!(err, "{program}: cannot write the report: {error}");
    }
}
