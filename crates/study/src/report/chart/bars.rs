//! A picture as a histogram, with the bars of several series side by side.

use super::canvas::Canvas;
use super::frame::{Frame, below, beside, label_height};
use super::look::{COLOURS, Look};
use super::ticks::Span;
use super::{all_points, is_wide};
use crate::outcome::{Picture, Scale};

/// Draws `bars` bars along x, each `bar` of the axis wide and ending at its point's x. Within each
/// bar the series stand side by side.
pub(super) fn draw(picture: &Picture, width: f64, bar: f64, bars: usize) -> Canvas {
    let most = all_points(picture).map(|point| point.1).filter(|y| y.is_finite());
    let most = most.fold(1.0, f64::max);
    // The logarithmic axis starts at 0.5, so that a count of 1 is visible. A bin's part of a bucket
    // may be less.
    let (floor, y) = match picture.y.scale {
        Scale::Linear => (0.0, Span::exactly(Scale::Linear, 0.0, most * 1.05)),
        Scale::Log => (0.5, Span::exactly(Scale::Log, 0.5, most * 1.3)),
    };
    let x = Span::exactly(Scale::Linear, 0.0, bar * bars.max(1) as f64);
    let top = label_height(&picture.y.label, width - 8.0) + 12.0;
    let inner = if is_wide(width) { 300.0 } else { 230.0 };
    let left = beside(y, inner) + 2.0;
    let frame = Frame { left, top, right: width - 16.0, bottom: top + inner, x, y };
    let mut canvas = Canvas::new(width, top + inner + below(&picture.x, width));
    frame.draw_y(&mut canvas, &picture.y);
    frame.draw_x(&mut canvas, &picture.x, &[], false);
    let part = bar / picture.series.len().max(1) as f64;
    for (index, series) in picture.series.iter().enumerate() {
        let look = Look::of(index);
        canvas.use_look(look);
        // Bars have no marks. After the last colour they are hollow, and then hollow with dashes.
        let class = look.class();
        let ink = match index / COLOURS {
            0 => format!("class=\"f{class}\""),
            _ => format!("class=\"s{class} open\"{}", look.dashes()),
        };
        for &(end, count) in series.points.iter().filter(|point| point.1 > floor) {
            let from = end - bar + part * index as f64;
            let (x, y) = frame.at((from, count));
            let (wide, high) = (frame.at((from + part, count)).0 - x, frame.bottom - y);
            canvas.add(format_args!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" {ink}/>"
            ));
        }
    }
    canvas
}
