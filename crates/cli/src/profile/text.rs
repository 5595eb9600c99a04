//! A profile as text: tables for a terminal, and folded stacks for other tools.

use stanchion_study::units::{grouped, grouped_count, nanos, percent};

use crate::paths::Profile;

/// The number of names that are printed.
const SHOWN: usize = 20;

/// Returns the lines of the tables.
pub(super) fn lines(profile: &Profile) -> Vec<String> {
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
    lines.push(format!("{:<11}{:>12}{:>12}{:>10}", "kind", "waits", "waited", "share"));
    for (class, waits, part) in profile.classes() {
        let (waits, time) = (grouped(waits), nanos(part as f64));
        lines.push(format!("{class:<11}{waits:>12}{time:>12}{:>10}", share(part)));
    }
    lines.push(String::new());
    lines.push(format!(
        "{:<11}{:>12}{:>12}{:>10}{:>11}{:>11}  name",
        "kind", "waits", "waited", "share", "mean", "longest"
    ));
    let named = profile.named();
    for (class, name, waits) in named.iter().take(SHOWN) {
        lines.push(format!(
            "{class:<11}{:>12}{:>12}{:>10}{:>11}{:>11}  {name}",
            grouped(waits.waits),
            nanos(waits.total_ns as f64),
            share(waits.total_ns),
            nanos(waits.total_ns as f64 / waits.waits.max(1) as f64),
            nanos(waits.max_ns as f64),
        ));
    }
    let more = named.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more, which the page has"));
    }
    lines
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
    use super::*;
    use crate::paths::tests::example;

    #[test]
    fn the_longest_waits_come_first() {
        let lines = lines(&example());
        assert_eq!(lines[0], "s: 8 waits in 1.00\u{a0}ms, which waited for 161\u{a0}µs together");
        assert!(lines[2].starts_with("lock") && lines[2].ends_with("75.2\u{a0}%"), "{lines:#?}");
        // Two paths of one name.
        assert!(lines[6].starts_with("lock") && lines[6].contains("120\u{a0}µs"), "{lines:#?}");
        assert!(lines[6].ends_with("  s: std Mutex in get") && lines.len() == 9, "{lines:#?}");
    }

    #[test]
    fn folded_stacks_have_the_way_last() {
        let folded = folded(&example());
        assert_eq!(folded.lines().nth(1), Some("main;get;std Mutex 60"));
        assert_eq!(folded.lines().last(), Some("s: STATIC 1"));
    }
}
