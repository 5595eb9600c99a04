//! The single waits of each thread along the time of the recording.
//!
//! A wait that is wide enough has a bar of its own. All others are density: each column of a
//! thread's row has the share of its time that the thread waited, and the kind it waited for most.

use std::collections::BTreeMap;

use stanchion_competitive::waits::events::{Event, Events, Thread};

use super::recorded::Recorded;

/// The most rows.
pub(super) const ROWS: usize = 64;

/// The waits of the threads that waited longest.
pub(super) struct Timeline<'r> {
    /// The recording.
    pub(super) recorded: &'r Recorded,
    /// Its single waits.
    pub(super) events: &'r Events,
    /// The beginning of the first wait, in nanoseconds from that of the recording.
    pub(super) first_ns: u64,
    /// The end of the last wait.
    pub(super) last_ns: u64,
    /// The rows, by process and thread.
    pub(super) rows: Vec<Row<'r>>,
    /// The number of all threads that waited.
    pub(super) threads: usize,
}

/// The waits of a thread.
pub(super) struct Row<'r> {
    /// The thread.
    pub(super) thread: &'r Thread,
    /// The label: its name, with its number if another thread has the name.
    pub(super) label: String,
    /// The waits.
    pub(super) waits: Vec<&'r Event>,
    /// The length of the waits together.
    pub(super) total_ns: u64,
}

/// A part of a row, as wide as all others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Column<'r> {
    /// The share of the time that the thread waited, of 1.
    pub(super) share: f64,
    /// The kind of wait that took most of it.
    pub(super) class: &'r str,
}

impl<'r> Timeline<'r> {
    /// Returns the rows of a recording. `None` if it has no single waits.
    pub(super) fn of(recorded: &'r Recorded) -> Option<Self> {
        let events = recorded.events.as_ref()?;
        let first_ns = events.waits.iter().map(|wait| wait.start_ns).min()?;
        let last_ns = events.waits.iter().map(end).max()?.max(first_ns + 1);
        // Threads that rest because they have nothing to do would fill the rows otherwise.
        let mut by_thread = BTreeMap::<u32, (u64, u64, Vec<&Event>)>::new();
        for wait in &events.waits {
            let (waited, total, waits) = by_thread.entry(wait.thread).or_default();
            let rests = matches!(recorded.of(wait).0, "idle" | "sleep");
            *waited = waited.saturating_add(if rests { 0 } else { wait.length_ns });
            *total = total.saturating_add(wait.length_ns);
            waits.push(wait);
        }
        let threads = by_thread.len();
        let mut rows: Vec<_> = by_thread.into_iter().collect();
        rows.sort_by_key(|(_, (waited, total, _))| std::cmp::Reverse((*waited, *total)));
        rows.truncate(ROWS);
        let row = |(thread, (_, total_ns, waits)): (u32, (_, u64, Vec<&'r Event>))| {
            let thread = events.threads.get(thread as usize)?;
            Some(Row { thread, label: String::new(), waits, total_ns })
        };
        let mut rows: Vec<Row<'_>> = rows.into_iter().filter_map(row).collect();
        rows.sort_by_key(|row| (row.thread.process, row.thread.thread));
        let mut names = BTreeMap::<&str, usize>::new();
        rows.iter().for_each(|row| *names.entry(&row.thread.name).or_default() += 1);
        for row in &mut rows {
            let is_alone = names.get(row.thread.name.as_str()) == Some(&1);
            row.label = if is_alone { name(row.thread) } else { name_and_number(row.thread) };
        }
        Some(Self { recorded, events, first_ns, last_ns, rows, threads })
    }

    /// Returns the position of a time between 0 and `width`.
    pub(super) fn at(&self, time_ns: u64, width: f64) -> f64 {
        let since = time_ns.saturating_sub(self.first_ns) as f64;
        (since / (self.last_ns - self.first_ns) as f64 * width).min(width)
    }

    /// Returns the columns of waits, so many in all.
    pub(super) fn columns<'w>(
        &self,
        waits: impl Iterator<Item = &'w &'r Event>,
        columns: usize,
    ) -> Vec<Column<'r>>
    where
        'r: 'w,
    {
        let mut sums = vec![BTreeMap::<&'r str, f64>::new(); columns];
        for wait in waits {
            let [from, to] = [wait.start_ns, end(wait)].map(|time| self.at(time, columns as f64));
            let last = (to.ceil() as usize).clamp(1, columns);
            let first = (from as usize).min(last - 1);
            for (column, sum) in (first..last).zip(&mut sums[first..last]) {
                let part = to.min((column + 1) as f64) - from.max(column as f64);
                // A wait that is too short for a number is seen all the same.
                *sum.entry(self.recorded.of(wait).0).or_default() += part.max(1e-6);
            }
        }
        let column = |sums: &BTreeMap<&'r str, f64>| {
            let most = sums.iter().max_by(|one, other| one.1.total_cmp(other.1));
            let class = most.map_or("", |(class, _)| *class);
            Column { share: sums.values().sum::<f64>().min(1.0), class }
        };
        sums.iter().map(column).collect()
    }
}

/// Returns the end of a wait.
pub(super) fn end(wait: &Event) -> u64 {
    wait.start_ns.saturating_add(wait.length_ns)
}

/// Returns the name of a thread.
pub(super) fn name(thread: &Thread) -> String {
    match thread.name.as_str() {
        "" => format!("thread {}", thread.thread),
        name => name.to_owned(),
    }
}

/// Returns the name of a thread with its number.
fn name_and_number(thread: &Thread) -> String {
    match thread.name.as_str() {
        "" => name(thread),
        name => format!("{name} {}", thread.thread),
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded::tests::{events, example, read, text};
    use super::*;

    #[test]
    fn a_column_has_the_share_and_the_kind() {
        let recorded = example();
        let timeline = Timeline::of(&recorded).unwrap();
        assert_eq!((timeline.first_ns, timeline.last_ns), (100_000, 340_000));
        let labels: Vec<_> = timeline.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["secret-main", "<b>secret</b>"]);
        // A column is 40 µs: one wait is in the first, one spans the third and the fourth.
        let columns = timeline.columns(timeline.rows[1].waits.iter(), 6);
        let shares: Vec<_> = columns.iter().map(|column| column.share).collect();
        assert_eq!(shares, [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]);
        assert_eq!((columns[0].class, columns[1].class), ("lock", ""));
        let columns = timeline.columns(timeline.rows[0].waits.iter(), 6);
        assert_eq!((columns[5].class, columns[5].share), ("sleep", 1.0));
    }

    #[test]
    fn threads_that_waited_longest_have_the_rows() {
        let mut events = events();
        let (thread, wait) = (events.threads[0].clone(), events.waits[0]);
        events.threads =
            (0..100).map(|number| Thread { thread: number, ..thread.clone() }).collect();
        // The later a thread, the longer its wait; each sleeps longer still.
        let waits = |number: u32| {
            let short = Event { thread: number, length_ns: 30_000 + u64::from(number), ..wait };
            [short, Event { length_ns: 1 << 30, path: Some(2), ..short }]
        };
        events.waits = (0..100).flat_map(waits).collect();
        events.seen = 200;
        let recorded = read(&text(&events));
        let timeline = Timeline::of(&recorded).unwrap();
        assert_eq!((timeline.threads, timeline.rows.len()), (100, ROWS));
        assert_eq!(timeline.rows[0].thread.thread, 36);
        assert_eq!(timeline.rows[63].label, "secret-main 99");
    }

    #[test]
    fn the_longest_times_that_can_be_are_shown() {
        let mut events = events();
        events.waits[2].length_ns = 1 << 53;
        events.waits[2].start_ns = 1 << 53;
        let recorded = read(&text(&events));
        let timeline = Timeline::of(&recorded).unwrap();
        let columns = timeline.columns(timeline.rows[0].waits.iter(), 4);
        let shares: Vec<_> = columns.iter().map(|column| column.share).collect();
        assert!(shares[..2].iter().all(|share| *share < 1e-5) && shares[2..] == [1.0, 1.0]);
    }
}
