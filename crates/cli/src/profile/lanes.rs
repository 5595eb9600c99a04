//! Draws a timeline: a row for each thread, which is as wide as the window has room.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stanchion_competitive::waits::events::Event;
use stanchion_study::report::markup::Markup;
use stanchion_study::units::{grouped, grouped_count, nanos, percent};

use super::flame::colour;
use super::timeline::{ROWS, Row, Timeline, end, name};

/// The width of a row, of which a unit is about a pixel in a wide window.
const WIDTH: f64 = 700.0;
/// The height of a row in the same drawing. It is stretched.
const HEIGHT: f64 = 10.0;
/// The columns of density in a row.
const COLUMNS: usize = 350;
/// The most waits with a bar of their own: each has a text of some 250 bytes.
const BARS: usize = 2_000;
/// The steps of density.
const STEPS: f64 = 4.0;
/// The most letters of a name in the text of a bar.
const LETTERS: usize = 80;

/// Writes the section.
pub(super) fn write(page: &mut Markup, timeline: &Timeline<'_>) {
    page.raw("<section>").element("h2", "When each thread waited");
    page.element("p class=\"unit\"", &words(timeline));
    legend(page, timeline);
    let least = least_bar(timeline);
    page.raw("<div class=\"lanes\">\n");
    for row in &timeline.rows {
        page.raw("<span title=\"").text(&about(row)).raw("\">").text(&row.label).raw("</span>");
        page.line(format_args!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\""
        ));
        page.text(&about(row)).raw("\">");
        let is_bar = |wait: &&&Event| wait.length_ns >= least;
        density(page, timeline, row.waits.iter().filter(|wait| !is_bar(wait)));
        row.waits.iter().filter(is_bar).for_each(|wait| bar(page, timeline, wait));
        page.raw("</svg>\n");
    }
    page.raw("<p class=\"times\">");
    let span = timeline.last_ns - timeline.first_ns;
    for part in 0..5_u64 {
        let time = timeline.first_ns + (u128::from(span) * u128::from(part) / 4) as u64;
        page.element("span", &nanos(time as f64));
    }
    page.raw("</p></div></section>\n");
}

/// Returns what the reader has to know.
fn words(timeline: &Timeline<'_>) -> String {
    let events = timeline.events;
    let shown = events.waits.len() as u64;
    let mut words = String::from(
        "Each row is a thread, from the first wait to the last; times are since the recording began. A bar is a wait, and tells which thread ended \
         it when you point at it. Waits that are too short for a bar are shown together: the stronger the colour, the more of that time was waited.",
    );
    if shown < events.seen {
        words += &format!(
            " Shown are {} of {}, {}, drawn at random: the recording keeps no more.",
            grouped(shown),
            grouped_count(events.seen, "wait"),
            percent(events.share_kept())
        );
    }
    if timeline.threads > timeline.rows.len() {
        words += &format!(
            " Of {} the {ROWS} that waited longest have rows; sleeps and idle workers do not count for that.",
            grouped_count(timeline.threads as u64, "thread")
        );
    }
    words
}

/// Writes which colour is which kind of waits.
fn legend(page: &mut Markup, timeline: &Timeline<'_>) {
    let mut classes: Vec<&str> = Vec::new();
    for (class, ..) in timeline.recorded.profile.classes() {
        classes.push(class);
    }
    page.raw("<ul class=\"legend\">");
    for class in classes {
        page.line(format_args!(
            "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect width=\"14\" height=\"14\" {}/></svg>",
            colour(Some(class))
        ));
        page.text(class).raw("</li>");
    }
    page.raw("</ul>");
}

/// Returns a sentence on a row.
fn about(row: &Row<'_>) -> String {
    format!(
        "{}, thread {} of process {}: {}, {} together",
        name(row.thread),
        row.thread.thread,
        row.thread.process,
        grouped_count(row.waits.len() as u64, "wait"),
        nanos(row.total_ns as f64)
    )
}

/// Returns the length from which on a wait has a bar: at least a unit wide, and one of the longest.
fn least_bar(timeline: &Timeline<'_>) -> u64 {
    let unit = ((timeline.last_ns - timeline.first_ns) as f64 / WIDTH).ceil() as u64;
    let waits = timeline.rows.iter().flat_map(|row| &row.waits);
    let mut lengths: Vec<u64> =
        waits.map(|wait| wait.length_ns).filter(|&length| length >= unit).collect();
    if lengths.len() <= BARS {
        return unit;
    }
    lengths.sort_unstable_by_key(|&length| std::cmp::Reverse(length));
    // Of equal ones none has a bar if not all can have.
    lengths[BARS] + 1
}

/// Draws a wait.
fn bar(page: &mut Markup, timeline: &Timeline<'_>, wait: &Event) {
    let [x, to] = [wait.start_ns, end(wait)].map(|time| timeline.at(time, WIDTH));
    let (class, _) = timeline.recorded.of(wait);
    // Waits that follow each other stay apart.
    let width = (to - x - 0.3).max(0.7);
    page.line(format_args!(
        "<rect {} x=\"{x:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\"><title>",
        colour(Some(class))
    ));
    page.text(&title(timeline, wait)).raw("</title></rect>");
}

/// Returns a sentence on a wait.
fn title(timeline: &Timeline<'_>, wait: &Event) -> String {
    let (_, of) = timeline.recorded.of(wait);
    let cut = |name: &str| match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    };
    let (length, start) = (nanos(wait.length_ns as f64), nanos(wait.start_ns as f64));
    let mut text = format!("{}: {length}, from {start} on", cut(of));
    if let Some(waker) = timeline.events.waker_of(wait) {
        text += &format!("; ended by {}", cut(&name(waker)));
    }
    if let Some(times) = wait.meanwhile {
        let share = |time: u64| percent(time as f64 / wait.length_ns.max(1) as f64);
        text += &format!(
            ", which meanwhile ran {}, was preempted {}, blocked {}",
            share(times.ran_ns),
            share(times.preempted_ns),
            share(times.blocked_ns)
        );
    }
    text
}

/// Draws waits as columns: one path for each kind and step, of all neighbours that are equal.
fn density<'r, 'w>(
    page: &mut Markup,
    timeline: &Timeline<'r>,
    waits: impl Iterator<Item = &'w &'r Event>,
) where
    'r: 'w,
{
    let mut paths = BTreeMap::<(&str, u32), String>::new();
    let columns = timeline.columns(waits, COLUMNS);
    // Sums of parts are not exact.
    let step = |share: f64| (share * STEPS - 1e-3).ceil().max(1.0) as u32;
    let wide = WIDTH / COLUMNS as f64;
    let mut at = 0;
    while let Some(first) = columns.get(at) {
        let same = |column: &&super::timeline::Column<'_>| {
            column.class == first.class && step(column.share) == step(first.share)
        };
        let run = columns[at..].iter().take_while(same).count();
        if first.share > 0.0 {
            let path = paths.entry((first.class, step(first.share))).or_default();
            // Writing to a string does not fail.
            let _ =
                write!(path, "M{} 0h{w}v{HEIGHT}h-{w}z", at as f64 * wide, w = run as f64 * wide);
        }
        at += run;
    }
    for ((class, step), path) in paths {
        let opacity = f64::from(step) / STEPS;
        page.line(format_args!(
            "<path {} fill-opacity=\"{opacity}\" d=\"{path}\"/>",
            colour(Some(class))
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded::tests::{events, example, read, text};
    use super::*;

    fn page(recorded: &super::super::Recorded) -> String {
        let mut page = Markup::default();
        write(&mut page, &Timeline::of(recorded).unwrap());
        page.finish()
    }

    #[test]
    fn a_wait_tells_its_lock_and_its_waker() {
        let page = page(&example());
        assert_eq!(page.matches("<rect class=\"f2\" x=").count(), 2, "{page}");
        assert_eq!(page.matches("<rect class=\"fsoft\" x=").count(), 1, "{page}");
        let title = "<title>s: std Mutex in get: 20.0\u{a0}µs, from 100\u{a0}µs on; ended by secret-main, which \
                     meanwhile ran 60.0\u{a0}%, was preempted 30.0\u{a0}%, blocked 10.0\u{a0}%</title>";
        assert!(page.contains(title), "{page}");
        assert!(page.contains("Shown are 3 of 15 waits, 20.0\u{a0}%"), "{page}");
        assert!(page.contains("&lt;b&gt;secret") && !page.contains("<b>"), "{page}");
    }

    #[test]
    fn short_waits_are_density() {
        let mut events = events();
        let long = events.waits[2];
        let wait = events.waits[0];
        // In the first half of its row a thread waits for 200 ns of each 400. A column is 228 µs.
        events.waits = (0..100_000)
            .map(|nth| Event { start_ns: nth * 400, length_ns: 200, meanwhile: None, ..wait })
            .collect();
        events.waits.push(Event { start_ns: 79_700_000, length_ns: 100_000, ..long });
        events.seen = 100_001;
        let recorded = read(&text(&events));
        let page = page(&recorded);
        assert!(
            page.contains("<path class=\"f2\" fill-opacity=\"0.5\" d=\"M0 0h350v10h-350z\"/>"),
            "{page}"
        );
        assert!(!page.contains("Shown are"), "all are shown");
        assert!(page.len() < 4_000, "{}", page.len());
    }

    #[test]
    fn the_worst_recording_stays_small() {
        let mut events = events();
        let (thread, wait) = (events.threads[0].clone(), events.waits[0]);
        events.threads = (0..100)
            .map(|thread_number| stanchion_competitive::waits::events::Thread {
                thread: thread_number,
                ..thread.clone()
            })
            .collect();
        // Each column of each row differs from its neighbours, and many waits could have a bar.
        let each = (0..350_u64).flat_map(|column| (0..64_u64).map(move |thread| (column, thread)));
        let wait_at = |(column, thread): (u64, u64)| Event {
            start_ns: column * 571_428,
            length_ns: ((column * 7_919 + thread) % 4 + 1) * 142_000 + column,
            thread: thread as u32,
            path: Some((column % 3) as u32),
            meanwhile: None,
            ..wait
        };
        events.waits = each.map(wait_at).collect();
        events.seen = 1 << 40;
        let page = page(&read(&text(&events)));
        assert!((500_000..1_500_000).contains(&page.len()), "{}", page.len());
    }
}
