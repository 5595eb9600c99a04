//! Common parts of the programs' reports. Each line begins with a word. Its text begins at column
//! 13.

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

/// Writes the work of a thread, and its processor, if it had one of its own.
///
/// # Errors
///
/// Those of `out`.
pub fn write_thread(
    out: &mut dyn Write,
    thread: usize,
    done: &str,
    processor: Option<usize>,
) -> io::Result<()> {
    write!(out, "thread {thread:<5} {done}")?;
    match processor {
        Some(processor) => writeln!(out, ", on processor {processor}"),
        None => writeln!(out),
    }
}

/// Flushes the report that was `written` to `out`. If that fails, writes the reason to `err`,
/// unless the reader has gone.
pub fn end(program: &str, written: io::Result<()>, out: &mut dyn Write, err: &mut dyn Write) {
    if let Err(error) = written.and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        // If this fails, there is no place left for a message.
        let _ = writeln!(err, "{program}: cannot write the report: {error}");
    }
}
