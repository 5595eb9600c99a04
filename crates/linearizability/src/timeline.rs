//! A history as a drawing: a line a thread, a box a call, time from left to right.

use crate::{HistoryOf, Specification};

/// Draws the history. Each beginning and each end gets a column, in order. A call with a longer
/// text gets more columns.
pub(crate) fn draw<S: Specification>(history: &HistoryOf<S>) -> String {
    let calls = history.calls();
    let labels: Vec<_> =
        calls.iter().map(|call| S::describe(&call.operation, call.outcome.as_ref())).collect();
    let width = |place: usize| labels[place].chars().count();

    // Beginnings come first among equals: calls that touch overlap.
    let begins = (0..calls.len()).map(|place| (calls[place].begin, false, place));
    let ends = (0..calls.len()).map(|place| (calls[place].end, true, place));
    let mut events: Vec<_> = begins.chain(ends).collect();
    events.sort_unstable();
    let mut columns = vec![(0, 0); calls.len()];
    let mut next = 0;
    for (_, is_end, place) in events {
        if is_end {
            next = next.max(columns[place].0 + width(place) + 1);
            columns[place].1 = next;
        } else {
            columns[place].0 = next;
        }
        next += 1;
    }

    let mut threads: Vec<_> = calls.iter().map(|call| call.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let digits = threads.last().map_or(1, |last| last.to_string().len());
    let line = |thread: usize| {
        let mut line = format!("thread {thread:digits$}  ");
        let margin = line.chars().count();
        for (place, call) in calls.iter().enumerate().filter(|(_, call)| call.thread == thread) {
            let (begin, end) = columns[place];
            pad(&mut line, margin + begin, ' ');
            line.push('├');
            line.push_str(&labels[place]);
            pad(&mut line, margin + end, if call.outcome.is_some() { '─' } else { '┄' });
            line.push(if call.outcome.is_some() { '┤' } else { '┄' });
        }
        line.push('\n');
        line
    };
    threads.into_iter().map(line).collect()
}

fn pad(line: &mut String, columns: usize, with: char) {
    let missing = columns.saturating_sub(line.chars().count());
    line.extend(std::iter::repeat_n(with, missing));
}
