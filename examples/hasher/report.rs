//! The report of a run on the terminal.

use super::walk::{Found, Hashed};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    /// The path that was hashed.
    pub(crate) root: &'a Path,
    /// The result.
    pub(crate) found: &'a Found,
    /// The name of the runtime.
    pub(crate) runtime: &'a str,
    /// The number of processors.
    pub(crate) processors: usize,
    /// A text of the runtime about the run.
    pub(crate) said: &'a str,
    /// The time that the run took.
    pub(crate) elapsed: Duration,
}

impl Report<'_> {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Found { files, directories, links, special, faults } = self.found;
        let (number, bytes) = (files.len(), self.found.bytes());
        writeln!(out, "hashed       {number} files and {directories} directories, {bytes} bytes")?;
        writeln!(
            out,
            "left out     {links} links, {special} that are no files; {} could not be read",
            faults.len(),
        )?;
        writeln!(
            out,
            "tree         {:016x}, by XXH64, which is not for security",
            self.found.tree()
        )?;
        writeln!(
            out,
            "run          {}, {} processors: {}",
            self.runtime, self.processors, self.said
        )?;
        let seconds = self.elapsed.as_secs_f64();
        let (rate, speed) = (number as f64 / seconds, bytes as f64 / seconds / 1e6);
        writeln!(out, "elapsed      {seconds:.3} s: {rate:.0} files/s, {speed:.1} MB/s")
    }

    /// A line for each file, as `xxhsum -H1` writes it.
    pub(crate) fn list(&self, out: &mut dyn Write) -> io::Result<()> {
        for Hashed { path, hash, .. } in &self.found.files {
            let path = match path.as_os_str().is_empty() {
                true => self.root.to_owned(),
                false => self.root.join(path),
            };
            line(out, *hash, path.as_os_str().as_encoded_bytes())?;
        }
        Ok(())
    }
}

/// A name is written as it is, whatever its encoding; but if there is a line feed in it, all is
/// escaped and the line begins with a backslash.
fn line(out: &mut dyn Write, hash: u64, name: &[u8]) -> io::Result<()> {
    let escaped = name.iter().any(|byte| b"\\\n\r".contains(byte));
    if escaped {
        out.write_all(b"\\")?;
    }
    write!(out, "{hash:016x}  ")?;
    match escaped {
        false => out.write_all(name)?,
        true => {
            for byte in name {
                match byte {
                    b'\\' => out.write_all(b"\\\\")?,
                    b'\n' => out.write_all(b"\\n")?,
                    b'\r' => out.write_all(b"\\r")?,
                    byte => out.write_all(&[*byte])?,
                }
            }
        }
    }
    out.write_all(b"\n")
}
