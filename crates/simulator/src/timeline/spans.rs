//! The spans of a run: what each thread did, from when until when.

use crate::Time;
use crate::statistics::Activity;
use serde::Serialize;

/// A stretch of a thread's life in which it did one thing on one processor, or on none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The thread, as an index into the run's threads.
    pub thread: usize,
    /// On which processor, if it was on one.
    pub processor: Option<usize>,
    /// Its activity.
    pub activity: Activity,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
}

/// The things that have a row of their own in a [`Drawing`](super::Drawing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each thread: its activity, and the thing that it waited for when it was on no processor.
    Threads,
    /// Each processor: the activity on it. Nothing if it was idle or another application's.
    Processors,
}

/// The spans of a run, in the order in which the run came upon them.
///
/// Of each thread that is their order in time. Threads run ahead of one another, so spans of
/// different threads may lie the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The spans, in the order of each thread's time.
    pub(crate) spans: Vec<Span>,
    #[serde(skip)]
    /// The last span of each thread.
    latest: Vec<usize>,
}

impl Timeline {
    /// The spans: those of a thread in order, without overlap.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn add(
        &mut self,
        thread: usize,
        processor: Option<usize>,
        activity: Activity,
        (start, end): (Time, Time),
    ) {
        if start >= end {
            return;
        }
        let span = Span { thread, processor, activity, start, end };
        if self.latest.len() <= span.thread {
            self.latest.resize(span.thread + 1, usize::MAX);
        }
        let latest = &mut self.latest[span.thread];
        match self.spans.get_mut(*latest) {
            // Most accesses hit, and continue the activity of the one before: one span, not
            // thousands.
            Some(last)
                if last.activity == activity
                    && last.processor == processor
                    && last.end == start =>
            {
                last.end = end;
            }
            _ => {
                *latest = self.spans.len();
                self.spans.push(span);
            }
        }
    }
}
