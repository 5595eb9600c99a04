//! `stanchion report`: the page of a study's results, or of a recording and of orders of locks.

use std::path::{Path, PathBuf};

use crate::args::ReportOptions;
use crate::error::Error;
use crate::orders::Orders;
use crate::paths::NotRead;
use crate::profile::{self, Others, Recorded, Subject};
use stanchion_study::output::Output;
use stanchion_study::report;

/// Writes the page of the files, whichever kinds they are.
pub(crate) fn run(options: &ReportOptions) -> Result<(), Error> {
    let mut subject = Subject::default();
    for path in &options.files {
        match read(path)? {
            File::Recording(recorded) if subject.recorded.is_none() => {
                if options.perfetto.is_some() && recorded.events.is_none() {
                    let (path, reason) = (path.clone(), NotRead::NoEvents);
                    return Err(Error::Profile { path, reason });
                }
                subject.recorded = Some(*recorded);
            }
            File::Orders(orders) if subject.orders.is_none() => subject.orders = Some(orders),
            File::Other if options.files.len() == 1 => return study(options, path),
            File::Recording(_) | File::Orders(_) | File::Other => {
                return Err(Error::Together(path.clone()));
            }
        }
    }
    if let Some(option) = options.only_for_waits().filter(|_| subject.recorded.is_none()) {
        return Err(Error::OnlyForRecordings(option));
    }
    if options.anonymous {
        subject.hide_names();
    }
    let default = if subject.recorded.is_some() { "waits" } else { "orders" };
    let folder = options.output.clone().unwrap_or_else(|| PathBuf::from(default));
    let [folded, perfetto] = [&options.folded, &options.perfetto].map(Option::as_deref);
    profile::report(&subject, &folder, &Others { folded, perfetto })
}

/// Writes the page of a study again.
fn study(options: &ReportOptions, path: &Path) -> Result<(), Error> {
    let anonymous = options.anonymous.then_some("--anonymous");
    // That a file is missing is more important.
    if let Some(option) = anonymous.or(options.only_for_waits()).filter(|_| path.exists()) {
        return Err(Error::OnlyForRecordings(option));
    }
    let folder = options.output.clone().unwrap_or_else(|| PathBuf::from("study"));
    let page = report::again(path, &folder)?;
    Output::Stdout.line(format_args!("report: {}", page.display()));
    Ok(())
}

/// The content of a file.
enum File {
    /// The recording of a program.
    Recording(Box<Recorded>),
    /// The orders of a program's locks.
    Orders(Orders),
    /// Another file: the results of a study, or a mistake.
    Other,
}

/// Reads a file, if it is a recording or has orders of locks.
fn read(path: &Path) -> Result<File, Error> {
    // One that cannot be read is none of a study either, which says why.
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(File::Other) };
    if is_recording(&text) {
        return Ok(File::Recording(Box::new(Recorded::read(path, &text)?)));
    }
    if Orders::is_in(&text) {
        let orders = Orders::read(&text);
        return orders
            .map(File::Orders)
            .map_err(|reason| Error::Orders { path: path.to_owned(), reason });
    }
    Ok(File::Other)
}

/// Returns true if the text is a recording.
fn is_recording(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Label {
        /// The kind of file.
        format: String,
    }
    // A recording that was cut is one still.
    const BEGINS: &str = "{\"format\": \"stanchion waits\"";
    let label = serde_json::from_str::<Label>(text);
    label.map_or(text.starts_with(BEGINS), |label| label.format == "stanchion waits")
}
