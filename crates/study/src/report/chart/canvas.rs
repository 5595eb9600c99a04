//! A drawing that grows: SVG without fixed colours, and a record of what a reader must be able to
//! read in it.
//!
//! Colours are classes of the page's style sheet, because the page follows the reader's light or
//! dark setting. Nothing here knows the font that the reader's browser has, so texts are taken to
//! be as wide as those of a wide font.

use std::fmt::Write;

use super::look::{LOOKS, Look, ring};
use super::ticks::Span;

/// The height of texts, in pixels.
pub(super) const FONT: f64 = 13.0;

/// The height of a line of text, in pixels.
pub(super) const LINE: f64 = 16.0;

/// The radius of the mark of a stated point, in pixels.
const RING: f64 = 7.0;

/// The mean width of a character, in pixels.
const CHARACTER: f64 = 8.0;

/// The place of a text beside its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The text begins at the point.
    Start,
    /// The middle of the text is at the point.
    Middle,
    /// The text ends at the point.
    End,
}

/// A rectangle that a text takes.
#[derive(Clone, Debug)]
struct Label {
    /// The text.
    text: String,
    /// The left, top, right and bottom edge.
    edges: [f64; 4],
}

/// A drawing.
#[derive(Debug)]
pub(super) struct Canvas {
    /// The width in pixels.
    pub(super) width: f64,
    /// The height in pixels.
    pub(super) height: f64,
    /// The elements so far.
    body: String,
    /// The texts so far.
    labels: Vec<Label>,
    /// The looks of the series so far.
    looks: Vec<Look>,
    /// The places that a reader could misread, in words.
    flaws: Vec<String>,
}

/// Returns the width that `text` takes at most, in pixels.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Breaks `text` between words into lines of at most `width` pixels. A word may be longer.
pub(super) fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width_of(line) + width_of(word) + CHARACTER <= width => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns `text`, or its beginning with an ellipsis if it is wider than `width` pixels.
pub(super) fn shortened(text: &str, width: f64) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let room = ((width / CHARACTER) as usize).saturating_sub(1);
    text.chars().take(room).chain(['…']).collect()
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let (labels, looks, flaws) = (Vec::new(), Vec::new(), Vec::new());
        Self { width, height, body: String::new(), labels, looks, flaws }
    }

    /// Adds an element as it is.
    pub(super) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
    }

    /// Adds an element.
    pub(super) fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.body.write_fmt(element);
    }

    /// Adds a line from one point to another.
    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.add(format_args!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" class=\"{class}\"/>"));
    }

    /// Adds the hollow mark of a point that the paper states, of the colour of `look`. It is larger
    /// than each mark of a series. A reader that points at it gets `title`.
    pub(super) fn ring(&mut self, at: (f64, f64), look: Look, title: &str) {
        let ring = ring(&format!("s{}", look.class()), at, RING);
        let title = escaped(title);
        self.add(format_args!("<g><title>{title}</title>{ring}</g>"));
    }

    /// Adds a text of the ink of `class`, with the middle of its height at y.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let width = width_of(text);
        let (left, name) = match anchor {
            Anchor::Start => (x, "start"),
            Anchor::Middle => (x - width / 2.0, "middle"),
            Anchor::End => (x - width, "end"),
        };
        self.note(text, [left, y - FONT / 2.0, left + width, y + FONT / 2.0]);
        let (base, text) = (y + 0.35 * FONT, escaped(text));
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{base:.1}\" text-anchor=\"{name}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// Adds a text that reads upwards from (x, y), with the middle of its height at x.
    pub(super) fn text_upwards(&mut self, (x, y): (f64, f64), text: &str) {
        self.note(text, [x - FONT / 2.0, y - width_of(text), x + FONT / 2.0, y]);
        let (base, text) = (x + 0.35 * FONT, escaped(text));
        self.add(format_args!(
            "<text transform=\"translate({base:.1} {y:.1}) rotate(-90)\" class=\"ftext\">{text}</text>"
        ));
    }

    fn note(&mut self, text: &str, edges: [f64; 4]) {
        if !text.is_empty() {
            self.labels.push(Label { text: text.to_owned(), edges });
        }
    }

    /// Notes that a series has this look.
    pub(super) fn use_look(&mut self, look: Look) {
        self.looks.push(look);
    }

    /// Notes that an axis has so many labelled values.
    pub(super) fn use_axis(&mut self, span: Span, ticks: usize) {
        if ticks < span.fewest() {
            self.flaws.push(format!("an axis from {} to {} has {ticks}", span.low, span.high));
        }
    }

    /// Returns everything that a reader could misread: looks that repeat, axes with too few labels,
    /// texts that overlap or leave the drawing.
    pub(super) fn flaws(&self) -> Vec<String> {
        let mut flaws = self.flaws.clone();
        let mut pairs: Vec<_> = self.looks.iter().map(|look| look.pair()).collect();
        pairs.sort_unstable();
        if pairs.windows(2).any(|pair| pair[0] == pair[1]) && self.looks.len() <= LOOKS {
            flaws.push("two series look alike".to_owned());
        }
        for (at, label) in self.labels.iter().enumerate() {
            let [left, top, right, bottom] = label.edges;
            if left < -0.5 || top < -0.5 || right > self.width + 0.5 || bottom > self.height + 0.5 {
                flaws.push(format!("`{}` leaves the drawing: {:?}", label.text, label.edges));
            }
            for other in &self.labels[..at] {
                let [l, t, r, b] = other.edges;
                if left < r - 0.5 && l < right - 0.5 && top < b - 0.5 && t < bottom - 0.5 {
                    flaws.push(format!("`{}` overlaps `{}`", label.text, other.text));
                }
            }
        }
        flaws
    }

    /// Returns the elements.
    pub(super) fn body(&self) -> &str {
        &self.body
    }

    /// Returns the drawing with a description for screen readers.
    pub(super) fn finish(&self, description: &str) -> String {
        format!(
            "<svg role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" \
             height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" font-size=\"{FONT}\" class=\"chart\">{}</svg>",
            escaped(description),
            self.body,
            w = self.width,
            h = self.height,
        )
    }
}

/// Escapes `text` for SVG.
pub(super) fn escaped(text: &str) -> String {
    let mut markup = crate::report::markup::Markup::default();
    markup.text(text);
    markup.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Scale;

    #[test]
    fn flaws_are_found() {
        let mut canvas = Canvas::new(100.0, 50.0);
        canvas.text((0.0, 10.0), Anchor::Start, "ftext", "here");
        canvas.text((90.0, 30.0), Anchor::End, "ftext", "there");
        canvas.use_look(Look::of(0));
        canvas.use_look(Look::of(1));
        assert!(canvas.flaws().is_empty(), "{:?}", canvas.flaws());
        canvas.text((10.0, 12.0), Anchor::Start, "ftext", "over");
        canvas.text((99.0, 30.0), Anchor::Start, "ftext", "out");
        canvas.use_look(Look::of(1));
        canvas.use_axis(Span::exactly(Scale::Log, 1.0, 5.0), 2);
        assert_eq!(canvas.flaws().len(), 4, "{:?}", canvas.flaws());
    }

    #[test]
    fn long_texts_are_broken_or_cut() {
        assert_eq!(wrapped("elapsed time over that", 110.0), ["elapsed time", "over that"]);
        assert_eq!(shortened("elapsed", 40.0), "elap…");
        assert_eq!(shortened("short", 40.0), "short");
    }
}
