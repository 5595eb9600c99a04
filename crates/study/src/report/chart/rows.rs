//! A picture with one row for each series, and a dot for each x in that x's look.

use super::canvas::{Anchor, Canvas, LINE, shortened, width_of};
use super::frame::{Frame, below};
use super::look::Look;
use super::ticks::Span;
use super::{all_points, columns, spreads, stated, statement};
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
    let values = values.chain(stated(picture).map(|(_, point)| point.y));
    let x = Span::of(values, picture.y.scale, true);
    let y = Span::exactly(crate::outcome::Scale::Linear, 0.0, 1.0);
    let frame = Frame { left, top, right: width - 20.0, bottom, x, y };
    let mut canvas = Canvas::new(width, bottom + below(&picture.y, width));
    frame.draw_x(&mut canvas, &picture.y, &[], true);
    let columns = columns(&picture.series);
    (0..columns.len()).for_each(|column| canvas.use_look(Look::of(column)));
    let middle_of = |place: usize| top + row * (place as f64 + 1.0) - ROW / 2.0;
    let look_of = |x: f64| Look::of(columns.iter().position(|&of| of == x).unwrap_or(0));
    let at = |value: f64| frame.at((value, 0.0)).0;
    for (place, series) in picture.series.iter().enumerate() {
        let middle = middle_of(place);
        canvas.line((left, middle), (frame.right, middle), "sgrid");
        if is_above {
            let name = shortened(&series.name, width - 8.0);
            canvas.text((4.0, middle - ROW / 2.0), Anchor::Start, "ftext", &name);
        } else {
            canvas.text((left - 8.0, middle), Anchor::End, "ftext", &series.name);
        }
        for (index, &(column, value)) in series.points.iter().enumerate().rev() {
            if !frame.x.has(value) {
                continue;
            }
            let look = look_of(column);
            if let Some(&(low, high)) = series.spread.get(index) {
                let class = format!("s{} spread", look.class());
                canvas.line((at(low), middle), (at(high), middle), &class);
            }
            canvas.raw(&look.mark(at(value), middle, 4.0));
        }
    }
    for (place, point) in stated(picture).filter(|(_, point)| frame.x.has(point.y)) {
        let title = statement(picture, &picture.series[place], point);
        canvas.ring((at(point.y), middle_of(place)), look_of(point.x), &title);
    }
    canvas
}
