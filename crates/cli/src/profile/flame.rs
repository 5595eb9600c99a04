//! A picture of waiting time by path of calls: each call is a bar as wide as the time of the waits
//! in it, below the call that made it. The lowest bar of a path is the library's way to wait.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stanchion_study::report::markup::Markup;
use stanchion_study::units::{nanos, percent};

use crate::paths::{Profile, Waits};

/// A call, or the way of a wait at the end of its path.
#[derive(Default)]
pub(super) struct Call<'p> {
    /// The time of all waits in it, in nanoseconds.
    pub(super) total_ns: u64,
    /// The kind of the waits, if this is the way of one.
    class: Option<&'p str>,
    /// The calls that it made, by name.
    inner: BTreeMap<&'p str, Call<'p>>,
}

impl<'p> Call<'p> {
    /// Returns all paths as one call, without the paths that `leaves_out` names.
    pub(super) fn all(profile: &'p Profile, leaves_out: impl Fn(&Waits) -> bool) -> Self {
        let mut all = Self::default();
        for waits in profile.paths.iter().filter(|waits| !leaves_out(waits)) {
            all.total_ns += waits.total_ns;
            let mut call = &mut all;
            for name in &waits.calls {
                call = call.inner.entry(name).or_default();
                call.total_ns += waits.total_ns;
            }
            // A mutex of the C library has a name and no way.
            let way = if waits.way.is_empty() { &waits.name } else { &waits.way };
            call = call.inner.entry(way).or_default();
            call.total_ns += waits.total_ns;
            call.class = Some(&waits.class);
        }
        all
    }

    fn depth(&self) -> usize {
        1 + self.inner.values().map(Self::depth).max().unwrap_or(0)
    }
}

/// The height of a bar.
const ROW: f64 = 20.0;
/// A narrower bar is not drawn.
const NARROWEST: f64 = 0.6;
/// The width of a letter.
const LETTER: f64 = 6.6;

/// Writes the picture, for a wide window and for a narrow one.
pub(super) fn write(page: &mut Markup, all: &Call<'_>) {
    for (class, width) in [("wide", 840.0), ("narrow", 350.0)] {
        let height = all.depth() as f64 * ROW;
        page.line(format_args!(
            "<div class=\"{class}\"><svg viewBox=\"0 0 {width} {height}\" width=\"100%\" role=\"img\" \
             aria-label=\"Waiting time by path of calls; the list of paths below has the same\" \
             style=\"font: 11px ui-monospace, Menlo, Consolas, monospace\">"
        ));
        let mut bars = String::new();
        draw(&mut bars, "all waits", all, all.total_ns.max(1), (0.0, 0.0, width));
        page.raw(&bars).raw("</svg></div>\n");
    }
}

/// Draws a call and those below it, from `x` on, in row `y`.
fn draw(bars: &mut String, name: &str, call: &Call<'_>, all: u64, (x, y, width): (f64, f64, f64)) {
    let mut label = Markup::default();
    let share = call.total_ns as f64 / all as f64;
    label.raw("<title>").text(&format!(
        "{name}: {}, {}",
        nanos(call.total_ns as f64),
        percent(share)
    ));
    label.raw("</title>");
    let letters = (width / LETTER - 1.0).max(0.0) as usize;
    let shown: String = match name.chars().count() {
        _ if letters < 3 => String::new(),
        length if length <= letters => name.to_owned(),
        _ => name.chars().take(letters - 1).chain(['…']).collect(),
    };
    let (left, base) = (x + 4.0, y + 14.0);
    label.line(format_args!("<text x=\"{left:.1}\" y=\"{base:.1}\" fill=\"currentColor\">"));
    label.text(&shown).raw("</text>");
    let (inside, high) = ((width - 1.0).max(0.2), ROW - 2.0);
    // Writing to a string does not fail.
    let _ = writeln!(
        bars,
        "<g><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{inside:.1}\" height=\"{high}\" rx=\"2\" \
         {} fill-opacity=\"0.28\"/>{}</g>",
        colour(call.class),
        label.finish()
    );
    let mut at = x;
    for (name, inner) in &call.inner {
        let part = width * inner.total_ns as f64 / call.total_ns.max(1) as f64;
        if part >= NARROWEST {
            draw(bars, name, inner, all, (at, y + ROW, part));
        }
        at += part;
    }
}

/// Returns the colour of a kind of waits, and of a call.
pub(super) fn colour(class: Option<&str>) -> &'static str {
    match class {
        Some("lock") => "class=\"f2\"",
        Some("condition") => "class=\"f4\"",
        Some("park") => "class=\"f1\"",
        Some("join") => "class=\"f6\"",
        // A thread that rests is no trouble.
        Some("idle" | "sleep") => "class=\"fsoft\"",
        Some(_) => "class=\"f5\"",
        None => "style=\"fill: var(--shade)\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::tests::example;

    #[test]
    fn calls_that_paths_share_are_one_bar() {
        let profile = example();
        let all = Call::all(&profile, |_| false);
        assert_eq!(all.total_ns, 161_000);
        assert_eq!(all.inner["main"].total_ns, 160_000);
        assert_eq!(all.inner["main"].inner["get"].total_ns, 60_000);
        assert_eq!(all.inner["s: STATIC"].class, Some("lock"));
        assert_eq!(all.depth(), 5);
        let awake = Call::all(&profile, |waits| waits.class == "sleep");
        assert_eq!(awake.total_ns, 121_000);
    }

    #[test]
    fn bars_are_as_wide_as_their_time() {
        let profile = example();
        let mut page = Markup::default();
        write(&mut page, &Call::all(&profile, |_| false));
        let page = page.finish();
        // 160 of 161 µs of 840, less the gap.
        assert!(page.contains("width=\"833.8\""), "{page}");
        assert!(page.contains("&lt;secret&gt;::serve: 60.0\u{a0}µs, 37.3\u{a0}%"), "{page}");
        assert!(!page.contains("<secret>"));
    }
}
