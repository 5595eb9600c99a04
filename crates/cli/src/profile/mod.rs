//! `stanchion report` for a recording: where a program's threads waited, by path of calls.
//!
//! ```text
//! record ──▶ Profile in waits.json ──▶ report.html, text, folded stacks
//! ```

mod flame;
mod page;
mod text;

use std::path::Path;

use crate::error::Error;
use crate::paths::{NotRead, Profile};
use stanchion_study::files;
use stanchion_study::output::Output;

/// Writes the page of a recording to `folder`, and its folded stacks to `folded`, if that is asked
/// for. Prints the tables. Without `named`, nothing in them tells the program's functions.
pub(crate) fn report(
    path: &Path,
    text: &str,
    folder: &Path,
    folded: Option<&Path>,
    named: bool,
) -> Result<(), Error> {
    let not_read = |reason| Error::Profile { path: path.to_owned(), reason };
    let mut profile = Profile::read(text).map_err(not_read)?;
    if profile.paths.is_empty() {
        return Err(not_read(NotRead::NoPaths));
    }
    if !named {
        profile.hide_names();
    }
    files::make_directory(folder, "--output DIR")?;
    let page = folder.join("report.html");
    files::probe_for(&page, "--output DIR")?;
    if let Some(folded) = folded {
        files::probe_for(folded, "--folded FILE")?;
    }
    files::replace(&page, page::page(&profile).as_bytes())?;
    for line in text::lines(&profile) {
        Output::Stdout.line(format_args!("{line}"));
    }
    Output::Stdout.line(format_args!("report: {}", page.display()));
    if let Some(folded) = folded {
        files::replace(folded, text::folded(&profile).as_bytes())?;
        Output::Stdout.line(format_args!("folded stacks: {}", folded.display()));
    }
    Ok(())
}
