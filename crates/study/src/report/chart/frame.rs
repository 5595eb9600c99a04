//! The axes of a drawing, and the place between them.

use super::canvas::{Anchor, Canvas, FONT, LINE, width_of, wrapped};
use super::ticks::Span;
use crate::outcome::Axis;

/// The fewest pixels between two labels of one axis.
const GAP: f64 = 8.0;

/// The room below an axis for its labels.
const LABELS: f64 = 24.0;

/// A place to draw in, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The left edge.
    pub(super) left: f64,
    /// The upper edge.
    pub(super) top: f64,
    /// The right edge.
    pub(super) right: f64,
    /// The lower edge.
    pub(super) bottom: f64,
    /// The horizontal axis.
    pub(super) x: Span,
    /// The vertical axis.
    pub(super) y: Span,
}

/// Returns the height of the label of an axis, in pixels.
pub(super) fn label_height(label: &str, width: f64) -> f64 {
    LINE * wrapped(label, width).len() as f64
}

/// Returns the room below a drawing for the labels of its horizontal axis.
pub(super) fn below(axis: &Axis, width: f64) -> f64 {
    LABELS + label_height(&axis.label, width - 16.0) + 4.0
}

impl Frame {
    /// Returns the pixel of a point.
    pub(super) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            self.left + self.x.place(x) * (self.right - self.left),
            self.bottom - self.y.place(y) * (self.bottom - self.top),
        )
    }

    /// Returns whether a point has a place.
    pub(super) fn has(&self, (x, y): (f64, f64)) -> bool {
        self.x.has(x) && self.y.has(y)
    }

    /// Draws the horizontal axis; `lines` if the grid has lines upwards from it.
    pub(super) fn draw_x(&self, canvas: &mut Canvas, axis: &Axis, values: &[f64], lines: bool) {
        let bottom = self.bottom;
        let ticks = if axis.names.is_empty() {
            self.x.ticks(values, |ticks| self.fits(ticks, canvas.width))
        } else {
            let name = |&value: &f64| Some((value, axis.names.get(value as usize)?.clone()));
            values.iter().filter_map(name).collect()
        };
        for (value, label) in &ticks {
            let x = self.at((*value, self.y.low)).0;
            if lines {
                canvas.line((x, self.top), (x, bottom), "sgrid");
            }
            canvas.line((x, bottom), (x, bottom + 4.0), "saxis");
            let x = inside(x, label, canvas.width);
            canvas.text((x, bottom + 6.0 + FONT / 2.0), Anchor::Middle, "ftext tick-x", label);
        }
        if axis.names.is_empty() {
            canvas.use_axis(self.x, ticks.len());
        }
        canvas.line((self.left, bottom), (self.right, bottom), "saxis");
        let lines = wrapped(&axis.label, canvas.width - 16.0);
        for (line, text) in lines.iter().enumerate() {
            let y = bottom + LABELS + LINE * (line as f64 + 0.5);
            let x = inside(f64::midpoint(self.left, self.right), text, canvas.width);
            canvas.text((x, y), Anchor::Middle, "ftext", text);
        }
    }

    /// Returns whether labels under the axis have room beside each other.
    fn fits(&self, ticks: &[(f64, String)], width: f64) -> bool {
        let edges = |(value, label): &(f64, String)| {
            let (x, half) = (self.at((*value, self.y.low)).0, width_of(label) / 2.0);
            let x = inside(x, label, width);
            (x - half, x + half)
        };
        ticks.windows(2).all(|pair| edges(&pair[0]).1 + GAP <= edges(&pair[1]).0)
    }

    /// Draws the vertical axis, with its label across the top, so that it need not be rotated.
    pub(super) fn draw_y(&self, canvas: &mut Canvas, axis: &Axis) {
        let ticks = self.y.ticks(&[], |ticks| fits_upwards(self.y, self.bottom - self.top, ticks));
        for (value, label) in &ticks {
            let y = self.at((self.x.low, *value)).1;
            canvas.line((self.left, y), (self.right, y), "sgrid");
            canvas.text((self.left - 6.0, y), Anchor::End, "ftext tick-y", label);
        }
        canvas.use_axis(self.y, ticks.len());
        canvas.line((self.left, self.top), (self.left, self.bottom), "saxis");
        for (line, text) in wrapped(&axis.label, canvas.width - 8.0).iter().enumerate() {
            canvas.text((4.0, LINE * (line as f64 + 0.5)), Anchor::Start, "ftext", text);
        }
    }
}

/// Returns whether labels beside an axis of `height` pixels have room above each other.
fn fits_upwards(span: Span, height: f64, ticks: &[(f64, String)]) -> bool {
    let at = |value: f64| span.place(value) * height;
    ticks.windows(2).all(|pair| at(pair[1].0) - at(pair[0].0) >= 1.5 * LINE)
}

/// Returns the room that the labels of a vertical axis of `height` pixels take.
pub(super) fn beside(span: Span, height: f64) -> f64 {
    let ticks = span.ticks(&[], |ticks| fits_upwards(span, height, ticks));
    ticks.iter().map(|tick| width_of(&tick.1)).fold(0.0, f64::max) + 10.0
}

/// Moves the middle of a text so that none of the text leaves the drawing.
fn inside(x: f64, text: &str, width: f64) -> f64 {
    let half = width_of(text) / 2.0;
    x.min(width - half - 1.0).max(half + 1.0)
}
