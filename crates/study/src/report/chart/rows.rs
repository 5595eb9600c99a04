//! A picture with one row for each series, and a dot for each x in that x's look.

use super::canvas::{Anchor, Canvas, LINE, shortened, width_of};
use super::frame::{Frame, below};
use super::look::Look;
use super::ticks::Span;
use super::{all_points, columns, spreads};
use crate::outcome::Picture;

/// The largest part of the width that names may take beside their rows. Longer names stand above.
const NAMES: f64 = 0.42;

/// The height of a row, in pixels.
const ROW: f64 = 24.0;

/// Draws the picture.
pub(super) fn draw(picture: &Picture, width: f64) -> Canvas {
    let longest = picture.series.iter().map(|series| width_of(&series.name)).fold(0.0, f64::max);
    let is_above = longest + 12.0 > NAMES * width;
    let row = if is_above { ROW + LINE } else { ROW };
    let left = if is_above { 12.0 } else { longest + 12.0 };
    let (top, number) = (6.0, picture.series.len());
    let bottom = top + row * number as f64;
    let values = all_points(picture).map(|point| point.1).chain(spreads(picture));
    let x = Span::of(values, picture.y.scale, true);
    let y = Span::exactly(crate::outcome::Scale::Linear, 0.0, 1.0);
    let frame = Frame { left, top, right: width - 20.0, bottom, x, y };
    let mut canvas = Canvas::new(width, bottom + below(&picture.y, width));
    frame.draw_x(&mut canvas, &picture.y, &[], true);
    let columns = columns(&picture.series);
    (0..columns.len()).for_each(|column| canvas.use_look(Look::of(column)));
    for (place, series) in picture.series.iter().enumerate() {
        let middle = top + row * (place as f64 + 1.0) - ROW / 2.0;
        canvas.line((left, middle), (frame.right, middle), "sgrid");
        if is_above {
            let name = shortened(&series.name, width - 8.0);
            canvas.text((4.0, middle - ROW / 2.0), Anchor::Start, "ftext", &name);
        } else {
            canvas.text((left - 8.0, middle), Anchor::End, "ftext", &series.name);
        }
        let at = |value: f64| frame.at((value, 0.0)).0;
        for (index, &(column, value)) in series.points.iter().enumerate().rev() {
            if !frame.x.has(value) {
                continue;
            }
            let look = Look::of(columns.iter().position(|&of| of == column).unwrap_or(0));
            if let Some(&(low, high)) = series.spread.get(index) {
                let class = format!("s{} spread", look.class());
                canvas.line((at(low), middle), (at(high), middle), &class);
            }
            canvas.raw(&look.mark(at(value), middle, 4.0));
        }
    }
    canvas
}
