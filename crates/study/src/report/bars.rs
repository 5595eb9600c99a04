//! A picture as a histogram, with the bars of several series side by side.

use plotters::prelude::*;

use super::chart::{self, Area, Drawing, Frame};
use crate::outcome::{Picture, Scale};

/// Draws `bars` bars along x, each `width` of the axis wide and ending at its point's x. Within
/// each bar the series stand side by side.
pub(crate) fn draw(
    area: &Area<'_>,
    picture: &Picture,
    frame: &Frame,
    width: f64,
    bars: usize,
) -> Drawing {
    let most = chart::all_points(picture).map(|point| point.1).fold(1.0, f64::max);
    let x = 0.0..width * bars as f64;
    // The log axis starts at 0.5, so that a count of 1 is visible. A bin's part of a bucket may be
    // less.
    match picture.y.scale {
        Scale::Linear => draw_on(area, picture, frame, width, x, 0.0..most * 1.05, 0.0),
        Scale::Log => draw_on(area, picture, frame, width, x, (0.5..most * 1.3).log_scale(), 0.5),
    }
}

fn draw_on<Y>(
    area: &Area<'_>,
    picture: &Picture,
    frame: &Frame,
    width: f64,
    x: std::ops::Range<f64>,
    y: Y,
    floor: f64,
) -> Drawing
where
    Y: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
    Y::CoordDescType: plotters::coord::ranged1d::ValueFormatter<f64>,
{
    let chart = frame.axes(area, picture, x, y)?;
    let part = width / picture.series.len().max(1) as f64;
    for (index, series) in picture.series.iter().enumerate() {
        for &(end, count) in series.points.iter().filter(|point| point.1 > floor) {
            let from = end - width + part * index as f64;
            let corners = [(from, floor), (from + part, count)].map(|at| chart.backend_coord(&at));
            let bar = Rectangle::new(corners, chart::colour(index).filled());
            area.draw(&bar).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
