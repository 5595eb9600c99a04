//! A small drawing without text, which shows the shape of a picture beside its experiment's name.

use super::canvas::Canvas;
use super::look::Look;
use super::ticks::Span;
use super::{all_points, columns};
use crate::outcome::{Picture, Scale, Shape};

/// The size in pixels.
const SIZE: (f64, f64) = (120.0, 32.0);

/// The most series that are drawn.
const MOST: usize = 12;

/// Draws the picture. Screen readers pass it over.
pub(in crate::report) fn small(picture: &Picture) -> String {
    let mut canvas = Canvas::new(SIZE.0, SIZE.1);
    match picture.shape {
        Shape::Lines | Shape::Bars { .. } => lines(&mut canvas, picture),
        Shape::Rows | Shape::Map => rows(&mut canvas, picture),
    }
    format!(
        "<svg aria-hidden=\"true\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         class=\"small\">{}</svg>",
        canvas.body(),
        w = SIZE.0,
        h = SIZE.1
    )
}

fn lines(canvas: &mut Canvas, picture: &Picture) {
    let x = Span::of(all_points(picture).map(|point| point.0), picture.x.scale, false);
    let y = Span::of(all_points(picture).map(|point| point.1), picture.y.scale, true);
    let at = |value: f64, span: Span, size: f64| 2.0 + span.place(value) * (size - 4.0);
    for (index, series) in picture.series.iter().enumerate().take(MOST) {
        let known = series.points.iter().filter(|point| x.has(point.0) && y.has(point.1));
        // A line of many points looks the same with some of them.
        let step = series.points.len().div_ceil(40).max(1);
        let points: Vec<String> = known
            .step_by(step)
            .map(|point| {
                let (x, y) = (at(point.0, x, SIZE.0), SIZE.1 - at(point.1, y, SIZE.1));
                format!("{x:.0} {y:.0}")
            })
            .collect();
        if points.len() > 1 {
            let class = Look::of(index).class();
            canvas
                .add(format_args!("<path d=\"M{}\" class=\"s{class} series\"/>", points.join("L")));
        }
    }
}

fn rows(canvas: &mut Canvas, picture: &Picture) {
    let value = Span::of(all_points(picture).map(|point| point.1), Scale::Log, false);
    let columns = columns(&picture.series);
    let number = picture.series.len().clamp(1, MOST) as f64;
    for (row, series) in picture.series.iter().enumerate().take(MOST) {
        let y = SIZE.1 * (row as f64 + 0.5) / number;
        for point in series.points.iter().filter(|point| value.has(point.1)) {
            let column = columns.iter().position(|&column| column == point.0).unwrap_or(0);
            let (x, class) =
                (2.0 + value.place(point.1) * (SIZE.0 - 4.0), Look::of(column).class());
            canvas.add(format_args!(
                "<circle cx=\"{x:.0}\" cy=\"{y:.1}\" r=\"1.5\" class=\"f{class}\"/>"
            ));
        }
    }
}
