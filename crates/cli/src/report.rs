//! `stanchion report`: the page of a study's results, or of a recording.

use std::path::{Path, PathBuf};

use crate::args::ReportOptions;
use crate::error::Error;
use crate::profile;
use stanchion_study::output::Output;
use stanchion_study::report;

/// Writes the page of the file, whichever kind it is.
pub(crate) fn run(options: &ReportOptions) -> Result<(), Error> {
    let folder = |default| options.output.clone().unwrap_or_else(|| PathBuf::from(default));
    if let Some(text) = recording(&options.file) {
        let folded = options.folded.as_deref();
        return profile::report(&options.file, &text, &folder("waits"), folded, !options.anonymous);
    }
    if options.anonymous {
        return Err(Error::OnlyForRecordings("--anonymous"));
    }
    if options.folded.is_some() {
        return Err(Error::OnlyForRecordings("--folded"));
    }
    let page = report::again(&options.file, &folder("study"))?;
    Output::Stdout.line(format_args!("report: {}", page.display()));
    Ok(())
}

/// Returns the text of the file, if it is a recording.
fn recording(path: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Label {
        /// The kind of file.
        format: String,
    }
    // A recording that was cut is one still.
    const BEGINS: &str = "{\"format\": \"stanchion waits\"";
    let text = std::fs::read_to_string(path).ok()?;
    let label = serde_json::from_str::<Label>(&text);
    let is_recording =
        label.map_or(text.starts_with(BEGINS), |label| label.format == "stanchion waits");
    is_recording.then_some(text)
}
