//! `stanchion report` for a recording and for orders of locks: where a program's threads waited,
//! and in which orders they took locks.
//!
//! ```text
//! record ──▶ Profile in waits.json ──▶ report.html, text, folded stacks
//! ```

mod flame;
mod lanes;
mod page;
mod perfetto;
mod recorded;
mod text;
mod timeline;

use std::path::Path;

use crate::error::Error;
use crate::orders::{self, Orders};

use stanchion_study::files;
use stanchion_study::output::Output;
use stanchion_study::units::grouped_count;

pub(crate) use recorded::Recorded;

/// The subject of a report.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    /// The waits of a program, if a recording was given.
    pub(crate) recorded: Option<Recorded>,
    /// The orders of its locks, if such a file was given.
    pub(crate) orders: Option<Orders>,
}

impl Subject {
    /// Replaces the names of the program, of its files and of its functions by numbers.
    pub(crate) fn hide_names(&mut self) {
        self.recorded.iter_mut().for_each(Recorded::hide_names);
        self.orders.iter_mut().for_each(Orders::hide_names);
    }
}

/// The files that a recording is written to beside the page.
#[derive(Debug, Default)]
pub(crate) struct Others<'p> {
    /// The file of folded stacks.
    pub(crate) folded: Option<&'p Path>,
    /// The file of the trace, which is for a recording with single waits only.
    pub(crate) perfetto: Option<&'p Path>,
}

/// Writes the page to `folder`, and a recording to the other files that are asked for. Prints the
/// tables.
pub(crate) fn report(subject: &Subject, folder: &Path, others: &Others<'_>) -> Result<(), Error> {
    let Others { folded, perfetto } = *others;
    files::make_directory(folder, "--output DIR")?;
    let page = folder.join("report.html");
    files::probe_for(&page, "--output DIR")?;
    if let Some(folded) = folded {
        files::probe_for(folded, "--folded FILE")?;
    }
    if let Some(perfetto) = perfetto {
        files::probe_for(perfetto, "--perfetto FILE")?;
    }
    files::replace(&page, page::page(subject).as_bytes())?;
    let print = |lines: &[String]| {
        lines.iter().for_each(|line| Output::Stdout.line(format_args!("{line}")));
    };
    if let Some(recorded) = &subject.recorded {
        print(&text::lines(recorded));
    }
    if let Some(orders) = &subject.orders {
        print(&orders::lines(orders));
    }
    Output::Stdout.line(format_args!("report: {}", page.display()));
    if let (Some(recorded), Some(folded)) = (&subject.recorded, folded) {
        files::replace(folded, text::folded(&recorded.profile).as_bytes())?;
        Output::Stdout.line(format_args!("folded stacks: {}", folded.display()));
    }
    let recorded = subject.recorded.as_ref();
    let events = recorded.and_then(|recorded| recorded.events.as_ref());
    if let (Some(recorded), Some(events), Some(perfetto)) = (recorded, events, perfetto) {
        let trace = perfetto::trace(recorded, events);
        files::replace(perfetto, trace.text.as_bytes())?;
        Output::Stdout.line(format_args!("trace for ui.perfetto.dev: {}", perfetto.display()));
        if trace.left_out > 0 {
            let left_out = grouped_count(trace.left_out as u64, "wait");
            Output::Stdout.line(format_args!("the trace lacks the shortest waits: {left_out}"));
        }
    }
    let advice = subject.recorded.as_ref().and_then(|recorded| recorded.advice.as_ref());
    match advice.map(|advice| &advice.broken) {
        Some(broken) if !broken.is_empty() => Err(Error::Theorem(broken.join("; "))),
        _ => Ok(()),
    }
}
