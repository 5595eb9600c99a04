//! A profile as text: tables for a terminal, and folded stacks for other tools.

use stanchion_study::units::{grouped, grouped_count, nanos, percent};

use super::recorded::Recorded;
use super::timeline::Timeline;
use crate::advise;
use crate::paths::{Profile, Sum};

/// The number of names that are printed.
const SHOWN: usize = 20;

/// Returns the lines of the tables.
pub(super) fn lines(recorded: &Recorded) -> Vec<String> {
    let profile = &recorded.profile;
    let total = profile.total_ns().max(1) as f64;
    let share = |part: u64| percent(part as f64 / total);
    let waits = profile.paths.iter().map(|waits| waits.waits).sum();
    let mut lines = vec![format!(
        "{}: {} in {}, which waited for {} together",
        profile.program,
        grouped_count(waits, "wait"),
        nanos(profile.elapsed_ns as f64),
        nanos(total)
    )];
    lines.push(format!("{:<11}{:>12}{:>12}{:>19}", "kind", "waits", "waited", "share"));
    for (class, waits, part) in profile.classes() {
        let (waits, time) = (grouped(waits), nanos(part as f64));
        lines.push(format!("{class:<11}{waits:>12}{time:>12}{:>19}", share(part)));
    }
    if let Some(timeline) = Timeline::of(recorded) {
        threads(&timeline, &mut lines);
    }
    lines.push(String::new());
    lines.push(format!(
        "{:<11}{:>12}{:>12}{:>19}{:>11}{:>13}{:>11}  name",
        "kind", "waits", "waited", "share", "mean", "p99", "longest"
    ));
    let named = recorded.named();
    for (class, name, waits) in named.iter().take(SHOWN) {
        lines.push(format!(
            "{class:<11}{:>12}{:>12}{:>19}{:>11}{:>13}{:>11}  {name}",
            grouped(waits.waits),
            nanos(waits.total_ns as f64),
            share(waits.total_ns),
            nanos(waits.total_ns as f64 / waits.waits.max(1) as f64),
            p99(waits),
            nanos(waits.max_ns as f64),
        ));
    }
    let more = named.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more, which the page has"));
    }
    wakers(recorded, &named, &mut lines);
    if let Some(advice) = &recorded.advice {
        lines.push(String::new());
        lines.extend(advise::text::costs(advice, 0));
        lines.push(String::new());
        lines.extend(advise::text::sentences(advice));
        lines.extend(advise::text::changes(advice));
    }
    lines
}

/// Formats the length that one wait in a hundred exceeds, which may be known as a bound only.
pub(super) fn p99(waits: &Sum) -> String {
    let bound = if waits.is_bound { "≤\u{a0}" } else { "" };
    format!("{bound}{}", nanos(waits.p99_ns as f64))
}

/// The number of threads that are printed, and the columns of each.
const THREADS: (usize, usize) = (16, 60);

/// Adds a line for each thread, with the share of the time that it waited.
fn threads(timeline: &Timeline<'_>, lines: &mut Vec<String>) {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const LABEL: usize = 20;
    let (shown, columns) = THREADS;
    let [first, last] = [timeline.first_ns, timeline.last_ns].map(|time| nanos(time as f64));
    let column = nanos((timeline.last_ns - timeline.first_ns) as f64 / columns as f64);
    let share = percent(timeline.events.share_kept());
    lines.push(String::new());
    lines.push(format!(
        "Threads from {first} to {last}; a column is {column}, as high as the share that was waited; {share} of the waits are shown"
    ));
    for row in timeline.rows.iter().take(shown) {
        let label: String = row.label.chars().take(LABEL).collect();
        let columns = timeline.columns(row.waits.iter(), columns);
        let height = |share: f64| HEIGHTS[((share * 8.0 - 1e-3).ceil() as usize).min(8)];
        let bars: String = columns.iter().map(|column| height(column.share)).collect();
        lines.push(format!("{label:<LABEL$} |{bars}|"));
    }
    let more = timeline.threads.saturating_sub(shown);
    if more > 0 {
        lines.push(format!("and {}", grouped_count(more as u64, "more thread")));
    }
}

/// Adds what the threads did that ended waits.
fn wakers(recorded: &Recorded, named: &[(&str, &str, Sum)], lines: &mut Vec<String>) {
    let wakers = recorded.wakers();
    if wakers.is_empty() {
        return;
    }
    lines.push(String::new());
    for &(class, name, _) in named.iter().take(SHOWN) {
        let Some(waker) = wakers.get(&(class, name)) else { continue };
        let [ran, preempted, blocked] = waker.shares().map(percent);
        lines.push(format!(
            "{name}: during these waits the waker ran {ran}, was preempted {preempted}, blocked {blocked}; covers {} of the waits",
            percent(waker.covered())
        ));
    }
}

/// Returns a line for each path: its calls, the outermost first, and the microseconds of its waits.
/// This is the form that tools for flame graphs read.
pub(super) fn folded(profile: &Profile) -> String {
    let mut text = String::new();
    for waits in &profile.paths {
        let way = if waits.way.is_empty() { &waits.name } else { &waits.way };
        let calls = waits.calls.iter().chain([way]).map(|call| call.replace(';', ":"));
        let calls: Vec<String> = calls.collect();
        text.push_str(&format!("{} {}\n", calls.join(";"), waits.total_ns.div_ceil(1_000)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::recorded::tests::example;
    use super::*;

    #[test]
    fn the_longest_waits_come_first() {
        let lines = lines(&example());
        assert_eq!(lines[0], "s: 8 waits in 1.00\u{a0}ms, which waited for 161\u{a0}µs together");
        assert!(lines[2].starts_with("lock") && lines[2].ends_with("75.2\u{a0}%"), "{lines:#?}");
        // Two paths of one name.
        assert!(lines[5].ends_with("20.0\u{a0}% of the waits are shown"), "{lines:#?}");
        let sleeps = format!("secret-main          |{}{}|", " ".repeat(50), "█".repeat(10));
        assert_eq!(lines[6], sleeps);
        let lines = &lines[4..];
        assert!(lines[6].starts_with("lock") && lines[6].contains("120\u{a0}µs"), "{lines:#?}");
        assert!(lines[6].ends_with("  s: std Mutex in get"), "{lines:#?}");
        assert!(
            lines[10]
                .starts_with("s: std Mutex in get: during these waits the waker ran 60.0\u{a0}%")
        );
        assert!(lines[10].ends_with("covers 50.0\u{a0}% of the waits"), "{lines:#?}");
        assert!(lines.iter().any(|line| line == "s: STATIC: too few waits (1) for advice"));
        assert_eq!(lines.last().map(String::as_str), Some("no change"));
    }

    #[test]
    fn folded_stacks_have_the_way_last() {
        let folded = folded(&example().profile);
        assert_eq!(folded.lines().nth(1), Some("main;get;std Mutex 60"));
        assert_eq!(folded.lines().last(), Some("s: STATIC 1"));
    }
}
