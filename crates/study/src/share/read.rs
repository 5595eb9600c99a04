//! Reads shared files, and says what is wrong with those that it cannot read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::computer::Computer;
use super::document::{Family, SCHEMA, Shared, is_number};
use crate::error::Error;
use crate::grids::{FAMILIES, Grid};
use crate::results::Results;

/// The remedy for a file that is broken.
const AGAIN: &str = "Copy it again, or write it again with `stanchion study --share FILE`";

/// The remedy for a file of another kind.
const SHARE: &str = "`stanchion study --share FILE` writes a file to compare";

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// The path.
    pub(super) path: PathBuf,
    /// The random number of the output folder.
    pub(super) number: String,
    /// The computer.
    pub(super) computer: Computer,
    /// The grids.
    pub(super) grids: Vec<Grid>,
}

impl File {
    /// Reads the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |why: String, remedy: &'static str| Error::NotShared {
            path: path.to_owned(),
            // It may quote the file, and is printed on terminals.
            why: why.replace(char::is_control, " "),
            remedy,
        };
        let bytes = fs::read(path).map_err(|error| {
            refuse(error.to_string(), "Name a file that `stanchion study --share` wrote")
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
            refuse(format!("line {line}: it is not text"), SHARE)
        })?;
        // As a value: what `serde` leaves out, it calls invalid where it was cut within a number.
        let document: Value =
            serde_json::from_str(&text).map_err(|error| match error.is_eof() {
                true if text.trim().is_empty() => refuse("it is empty".to_owned(), AGAIN),
                true => refuse(format!("it was cut off in line {}", error.line()), AGAIN),
                false => refuse(format!("it is no shared file: {error}"), SHARE),
            })?;
        match document["schema"].as_str() {
            Some(SCHEMA) => {}
            Some(other) if other.starts_with("stanchion-share/") => {
                let why = format!(
                    "\"schema\": its layout is `{}`, this version reads `{SCHEMA}`",
                    other.escape_debug()
                );
                return Err(refuse(
                    why,
                    "Write it again with this version, or compare with its own",
                ));
            }
            Some(Results::SCHEMA | Results::SIMULATED) => {
                let why = "\"schema\": it has the results of a study".to_owned();
                let remedy = "`stanchion study --output DIR --share FILE` writes a file to compare \
                              from its folder";
                return Err(refuse(why, remedy));
            }
            _ => return Err(refuse("\"schema\": it is no shared file".to_owned(), SHARE)),
        }
        let shared: Shared = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("it is not as it was written: {error}"), AGAIN))?;
        shared.check().map_err(|why| refuse(why, AGAIN))?;
        let Shared { number, computer, families, .. } = shared;
        let grids = families.into_iter().map(|family| family.grid(&computer)).collect();
        Ok(Self { path: path.to_owned(), number, computer, grids })
    }
}

impl Shared {
    /// Returns the place of a value that no study writes, and what is wrong with it.
    fn check(&self) -> Result<(), String> {
        let computer = &self.computer;
        if !is_number(&self.number) {
            return Err("\"number\": it has not 16 hexadecimal digits".to_owned());
        }
        if computer.processors == 0 {
            return Err("\"computer\": it has no processors".to_owned());
        }
        // They are printed on terminals.
        let plain = |text: &String| !text.chars().any(char::is_control);
        if ![&computer.processor, &computer.kernel].into_iter().all(plain) {
            return Err("\"computer\": a text has control characters".to_owned());
        }
        for (at, family) in self.families.iter().enumerate() {
            let name = &family.family;
            if !FAMILIES.iter().any(|(known, _)| known == name) {
                return Err(format!("family {}: its name is not known", at + 1));
            }
            if self.families[..at].iter().any(|other| other.family == *name) {
                return Err(format!("family {name}: it is there twice"));
            }
            if !family.contestants.iter().chain([&family.stanchion]).all(plain) {
                return Err(format!("family {name}: a text has control characters"));
            }
            family.check().map_err(|why| format!("family {name}: {why}"))?;
        }
        Ok(())
    }
}

impl Family {
    /// Returns what is wrong with the numbers.
    fn check(&self) -> Result<(), String> {
        let (said, cells) = (self.number_of_cells, self.cells.len());
        if said != cells {
            return Err(format!("it says {said} cells and has {cells}"));
        }
        let contestants = self.contestants.len();
        if self.peers.len() != contestants {
            return Err(format!("{contestants} contestants, but {} peers", self.peers.len()));
        }
        for (at, cell) in self.cells.iter().enumerate() {
            if cell.figures.len() != contestants {
                let has = cell.figures.len();
                return Err(format!("cell {at}: {has} figures for {contestants} contestants"));
            }
            let known = cell.figures.iter().flatten();
            let all = known.flat_map(|of| [of.0, of.1, of.2.unwrap_or(0.0)]);
            if all.chain([cell.length_ns]).any(|figure| figure < 0.0) {
                return Err(format!("cell {at}: a figure is negative"));
            }
        }
        Ok(())
    }
}
