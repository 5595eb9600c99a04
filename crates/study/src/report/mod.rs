//! Reports: one self-contained page, and the same results as JSON.
//!
//! [`files`](crate::files) writes them to disk.

pub mod chart;
mod comparison;
mod contents;
pub mod markup;
mod opening;
mod page;
pub mod parts;
mod scoreboard;
mod section;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::{make_directory, probe_for, replace};
use crate::output::Output;
use crate::results::{Entry, Results};
use crate::share::Comparison;

/// The files that a study is written to. They are known to be writable before anything runs.
#[derive(Debug)]
pub struct Destination {
    /// The path of the page.
    page: PathBuf,
    /// The path of the results.
    results: PathBuf,
    /// A further copy of the results; "-" is standard output.
    json: Option<PathBuf>,
    /// The results of an earlier study on the other kind of machine, for the page.
    earlier: Option<Results>,
}

/// File names of the results: of a study of this computer, and of simulated machines.
const NAMES: [&str; 2] = ["results.json", "simulated.json"];

/// Returns the path of the results of a study of this computer, or else of simulated machines.
pub(crate) fn results_in(out: &Path, real: bool) -> PathBuf {
    out.join(NAMES[usize::from(!real)])
}

impl Destination {
    /// Makes the directory, and tries to write in it and beside `json`.
    pub fn open(out: &Path, json: Option<&Path>, real: bool) -> Result<Self, Error> {
        make_directory(out, "--output DIR")?;
        let destination = Self {
            page: out.join("report.html"),
            results: results_in(out, real),
            json: json.map(Path::to_owned),
            earlier: earlier(&results_in(out, !real), real),
        };
        for path in [&destination.page, &destination.results] {
            probe_for(path, "--output DIR")?;
        }
        if let Some(path) = destination.json_file() {
            probe_for(path, "--json FILE")?;
        }
        Ok(destination)
    }

    /// Returns the page's path.
    pub fn page(&self) -> &Path {
        &self.page
    }

    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Writes the timelines of an experiment, each to a file of its own.
    pub fn write_traces(&self, entry: &Entry) -> Result<(), Error> {
        for drawn in &entry.outcome.timelines {
            let machine = entry.on.as_ref().map_or("", |on| &on.name);
            let name = format!("{}-{machine}-{}.trace.json", entry.id, drawn.name);
            // Ids contain slashes, and names of locks contain brackets and spaces.
            let plain = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '-' };
            let name: String = name.chars().map(plain).collect::<String>().replace("--", "-");
            replace(&self.page.with_file_name(name), drawn.trace.as_bytes())?;
        }
        Ok(())
    }

    /// Writes everything known so far. The copy on standard output is written only when the study
    /// is over.
    pub fn write(&self, results: &Results, over: bool) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(results)? + "\n";
        let out = self.results.parent();
        replace(&self.page, page::page(results, self.earlier.as_ref(), out).as_bytes())?;
        replace(&self.results, json.as_bytes())?;
        match (self.json_file(), &self.json) {
            (Some(path), _) => replace(path, json.as_bytes()),
            (None, Some(_)) if over => io::stdout()
                .write_all(json.as_bytes())
                .map_err(|source| Error::Write { path: "standard output".into(), source }),
            _ => Ok(()),
        }
    }
}

/// Reads the results at `path`, if there are any: those of simulated machines if the study is
/// `real`. If they cannot be read, prints a message and leaves them out.
fn earlier(path: &Path, real: bool) -> Option<Results> {
    if !path.exists() {
        return None;
    }
    match Results::read(path) {
        Ok(earlier) if earlier.is_real() != real => Some(earlier),
        Ok(_) => None,
        Err(error) => {
            Output::Stderr.line(format_args!("stanchion: {error}; the report leaves them out"));
            None
        }
    }
}

/// Writes the page of results that were written before, and returns its path. Beside them it shows
/// what `out` has of the other kind of machine.
pub fn again(file: &Path, out: &Path) -> Result<PathBuf, Error> {
    let results = Results::read(file)?;
    make_directory(out, "--output DIR")?;
    let page = out.join("report.html");
    probe_for(&page, "--output DIR")?;
    let real = results.is_real();
    let earlier = earlier(&results_in(out, !real), real);
    // A copy elsewhere does not go on.
    let folder = file.parent().filter(|folder| results_in(folder, real) == file);
    let folder = folder.map(|path| if path == Path::new("") { Path::new(".") } else { path });
    replace(&page, page::page(&results, earlier.as_ref(), folder).as_bytes())?;
    Ok(page)
}

/// Writes the page of a comparison into the folder `out`, and returns its path.
pub fn compared(comparison: &Comparison, out: &Path) -> Result<PathBuf, Error> {
    make_directory(out, "--output DIR")?;
    let page = out.join("report.html");
    probe_for(&page, "--output DIR")?;
    replace(&page, comparison::page(comparison).as_bytes())?;
    Ok(page)
}
