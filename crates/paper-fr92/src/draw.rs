//! Points as lines, with the model's beside them, and as tables.

use super::points::{Method, Point};
use stanchion_study::outcome::{Axis, Picture, Series, Shape, Table};
use stanchion_study::units::significant;

/// Returns the points of one method, in the order in which they were measured.
pub(super) fn of(points: &[Point], method: Method) -> impl Iterator<Item = &Point> + Clone {
    points.iter().filter(move |point| point.case.method == method)
}

/// Returns the measurements of `methods` over `x` as lines. Where the model predicts a method, its
/// figures follow as dots.
pub(super) fn lines(points: &[Point], methods: &[Method], x: fn(&Point) -> f64) -> Vec<Series> {
    let mut all = Vec::new();
    for &method in methods {
        all.push(line(method.name(), of(points, method), x));
        let model: Vec<_> =
            of(points, method).filter_map(|point| Some((x(point), point.model?))).collect();
        if !model.is_empty() {
            all.push(Series::new(format!("{}: model", method.name()), model).dotted());
        }
    }
    all
}

/// Returns the measurements of `points` over `x` as a line.
pub(super) fn line<'p>(
    name: &str,
    points: impl Iterator<Item = &'p Point> + Clone,
    x: fn(&Point) -> f64,
) -> Series {
    let measured = points.clone().map(|point| (x(point), point.measured.time));
    Series::new(name, measured).with_spread(points.filter_map(|point| point.range))
}

/// Draws times over the time of an iteration on processors of its own.
pub(super) fn over_grain(title: &str, points: &[Point], methods: &[Method]) -> Picture {
    Picture {
        title: title.to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("t_p + t_w: an iteration on processors of its own (ms)"),
        y: Axis::linear("time of an iteration (ms)"),
        series: lines(points, methods, |point| point.full),
    }
}

/// Draws times over the number of programs.
pub(super) fn over_load(title: &str, series: Vec<Series>) -> Picture {
    Picture {
        title: title.to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("programs"),
        y: Axis::log("time of an iteration (ms)"),
        series,
    }
}

/// Returns a table of all points.
pub(super) fn table(points: &[Point]) -> Table {
    let row = |point: &Point| {
        let model = point.model.map_or_else(|| "–".to_owned(), significant);
        let alpha = if point.measured.alpha > 0.0 {
            significant(point.measured.alpha)
        } else {
            "–".to_owned()
        };
        vec![
            point.case.method.name().to_owned(),
            point.case.load.to_string(),
            significant(point.full),
            significant(point.measured.time),
            model,
            alpha,
            point.measured.iterations.to_string(),
        ]
    };
    Table {
        title: "All points; times in ms".to_owned(),
        columns: ["method", "programs", "t_p + t_w", "measured", "model", "α", "iterations"]
            .map(str::to_owned)
            .into(),
        rows: points.iter().map(row).collect(),
    }
}

/// Returns the largest error of the model for `method`, as a factor of 1 or more.
pub(super) fn off(points: &[Point], method: Method) -> f64 {
    let factor = |point: &Point| {
        let ratio = point.measured.time / point.model?;
        Some(ratio.max(1.0 / ratio))
    };
    of(points, method).filter_map(factor).fold(1.0, f64::max)
}
