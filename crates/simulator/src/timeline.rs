//! Who ran, and who waited, where and when.

mod axis;
mod chrome;
mod drawing;
mod grid;
mod legend;
mod text;

pub use drawing::Drawing;

use crate::statistics::Activity;
use crate::{ThreadId, Time};
use serde::Serialize;

/// A stretch of a thread's life in which it did one thing in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Whose, as an index into the run's threads.
    pub thread: usize,
    /// On which processor, if it was on one.
    pub processor: Option<usize>,
    /// What it did.
    pub activity: Activity,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
}

/// What has a row of its own in a [`Drawing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each thread: what it did, and what it waited for when it was on no processor.
    Threads,
    /// Each processor: what was done on it; nothing where it was idle or another application's.
    Processors,
}

/// The spans of a run, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    pub(crate) spans: Vec<Span>,
}

impl Timeline {
    /// The spans, in the order in which they ended.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn add(
        &mut self,
        thread: ThreadId,
        processor: Option<usize>,
        activity: Activity,
        (start, end): (Time, Time),
    ) {
        if start >= end {
            return;
        }
        let span = Span { thread: thread.index(), processor, activity, start, end };
        // The last span of another thread may lie in between: only neighbours are joined.
        match self.spans.last_mut() {
            Some(last)
                if last.thread == span.thread
                    && last.activity == activity
                    && last.processor == processor
                    && last.end == start =>
            {
                last.end = end;
            }
            _ => self.spans.push(span),
        }
    }
}
