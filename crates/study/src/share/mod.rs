//! Figures of this computer for others to see, and a comparison of several computers.
//!
//! A shared file has the fields that are listed here and no others: no name of a computer or of a
//! file, no time, nothing of a recording. A random number that is made once for each output folder
//! says which files are of one computer. It lies in a file of that folder, and the user may delete
//! it.

mod compare;
mod computer;
mod document;
mod judge;
mod read;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;

pub use compare::{Answer, Comparison, LeftOut, Question, Row};
pub use computer::Computer;
use document::{Shared, is_number};
pub use judge::{Judged, judge};

use crate::error::Error;
use crate::files::replace;
use crate::grids::{self, Choice, FAMILIES};
use crate::host::Host;
use crate::output::Output;
use crate::units::count;

/// The name of the file in the output folder with its random number.
const NUMBER: &str = "share-number.txt";

/// Prints on `output` what the file gets, then writes the grids of the folder `out` to `file`.
pub fn write(out: &Path, file: &Path, output: Output) -> Result<(), Error> {
    let grids = grids::of_here(out);
    if grids.is_empty() {
        return Err(Error::NothingToShare { out: out.to_owned() });
    }
    let shared = Shared::new(number(out)?, Computer::here(&Host::here()), &grids);
    let text = shared.text()?;
    output.line(format_args!("{} gets this content, and no more:", file.display()));
    output.line(format_args!("{}", text.trim_end()));
    replace(file, text.as_bytes())?;
    let cells = grids.iter().map(|grid| grid.cells.len()).sum();
    let families = if grids.len() == 1 { "family" } else { "families" };
    let (cells, file, kept) = (count(cells, "cell"), file.display(), out.join(NUMBER));
    output.line(format_args!("shared: {file}, {} {families}, {cells}", grids.len()));
    let kept = kept.display();
    output.line(format_args!("Its random number is kept in {kept}, which you may delete."));
    let has = |family: &str| grids.iter().any(|grid| grid.family == family);
    let missing: Vec<&str> = FAMILIES.iter().map(|of| of.0).filter(|name| !has(name)).collect();
    let brief = grids.iter().find(|grid| grid.brief).map(|grid| grid.family.as_str());
    if !missing.is_empty() {
        output.line(format_args!("Not measured yet: {}", missing.join(", ")));
    }
    if let Some(family) = missing.first().copied().or(brief) {
        output.line(format_args!("For more cells: {}", Choice::command(family)));
    }
    Ok(())
}

/// Returns the random number of the folder; makes it if there is none.
fn number(out: &Path) -> Result<String, Error> {
    let path = out.join(NUMBER);
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if is_number(kept.trim()) {
        return Ok(kept.trim().to_owned());
    }
    // The system seeds the state of the hasher.
    let number = format!("{:016x}", RandomState::new().build_hasher().finish());
    replace(&path, format!("{number}\n").as_bytes())?;
    Ok(number)
}
