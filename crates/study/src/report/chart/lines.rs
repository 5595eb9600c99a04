//! A picture with one line for each series, named at its end.
//!
//! If the names are too long to stand there, letters do, and a legend says what they mean.

use super::canvas::{Anchor, Canvas, LINE, width_of};
use super::frame::{Frame, below, beside, label_height};
use super::look::Look;
use super::ticks::Span;
use super::{all_points, columns, is_wide, spreads, stated, statement};
use crate::outcome::{Picture, Series};

/// The largest part of the width that names may take.
const NAMES: f64 = 0.38;

/// The room between the end of a line and its name: a thin line that leads there, and the mark.
const LEAD: f64 = 34.0;

/// The most points of a line of which each has a mark and its spread as a bar.
const FEW: usize = 20;

/// The number of marks along a line of many points.
const SOME: usize = 6;

/// Returns the letter that stands for the series of that number: a to z, then A to Z.
pub(super) fn letter(series: usize) -> char {
    let letters = ('a'..='z').chain('A'..='Z');
    letters.cycle().nth(series).unwrap_or('a')
}

/// Returns whether letters stand at the lines' ends, because the names are too long.
pub(super) fn has_letters(picture: &Picture, width: f64) -> bool {
    let names = picture.series.iter().map(|series| width_of(&series.name));
    names.fold(0.0, f64::max) + LEAD > NAMES * width
}

/// Draws the picture.
pub(super) fn draw(picture: &Picture, width: f64) -> Canvas {
    let letters = has_letters(picture, width);
    let name = |series: usize| {
        if letters { letter(series).to_string() } else { picture.series[series].name.clone() }
    };
    let number = picture.series.len();
    let names = (0..number).map(|series| width_of(&name(series))).fold(0.0, f64::max);
    let x = Span::of(all_points(picture).map(|point| point.0), picture.x.scale, false);
    let ys = all_points(picture).map(|point| point.1);
    let ys = ys.chain(spreads(picture)).chain(stated(picture).map(|(_, point)| point.y));
    let y = Span::of(ys, picture.y.scale, true);
    let top = label_height(&picture.y.label, width - 8.0) + 12.0;
    let usual = if is_wide(width) { 300.0 } else { 230.0 };
    let inner = (number as f64 * LINE).max(usual);
    let left = beside(y, inner) + 2.0;
    let right = if number == 0 { width - 16.0 } else { width - names - LEAD - 4.0 };
    let mut canvas = Canvas::new(width, top + inner + below(&picture.x, width));
    let frame = Frame { left, top, right, bottom: top + inner, x, y };
    frame.draw_y(&mut canvas, &picture.y);
    frame.draw_x(&mut canvas, &picture.x, &columns(&picture.series), false);
    let mut ends = Vec::new();
    for (index, series) in picture.series.iter().enumerate() {
        let look = Look::of(index);
        canvas.use_look(look);
        spread(&mut canvas, &frame, series, look);
        if let Some(end) = line(&mut canvas, &frame, series, look) {
            ends.push((index, end));
        }
    }
    for (index, point) in stated(picture).filter(|(_, point)| frame.has((point.x, point.y))) {
        let title = statement(picture, &picture.series[index], point);
        canvas.ring(frame.at((point.x, point.y)), Look::of(index), &title);
    }
    for (index, end, y) in placed(ends, top + LINE / 2.0, top + inner - LINE / 2.0) {
        let (look, x) = (Look::of(index), right + LEAD - 10.0);
        let lead = format!("s{} lead", look.class());
        canvas.line(end, (right + 8.0, y), &lead);
        canvas.line((right + 8.0, y), (x - 6.0, y), &lead);
        canvas.raw(&look.mark(x, y, 4.0));
        canvas.text((x + 9.0, y), Anchor::Start, "ftext end", &name(index));
    }
    canvas
}

/// Draws the line and the marks of a series, and returns the pixel of its last point.
fn line(canvas: &mut Canvas, frame: &Frame, series: &Series, look: Look) -> Option<(f64, f64)> {
    let known = series.points.iter().filter(|&&point| frame.has(point));
    let pixels: Vec<(f64, f64)> = known.map(|&point| frame.at(point)).collect();
    if !series.dots && pixels.len() > 1 {
        let points: Vec<String> = pixels.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (class, dashes) = (look.class(), look.dashes());
        canvas.add(format_args!(
            "<path d=\"M{}\" class=\"s{class} series\"{dashes}/>",
            points.join("L")
        ));
    }
    // On a line of many points, a mark for each would hide the others.
    let step = if series.dots || pixels.len() <= FEW { 1 } else { pixels.len().div_ceil(SOME) };
    let size = if series.dots && pixels.len() > FEW { 2.0 } else { 4.0 };
    for &(x, y) in pixels.iter().skip(step / 2).step_by(step) {
        canvas.raw(&look.mark(x, y, size));
    }
    pixels.last().copied()
}

/// Draws the range of the runs behind each point: bars at few points, a band at many.
fn spread(canvas: &mut Canvas, frame: &Frame, series: &Series, look: Look) {
    let known = series.points.iter().zip(&series.spread);
    let known = known.filter(|(point, (low, _))| frame.has(**point) && frame.y.has(*low));
    let ends: Vec<_> =
        known.map(|(&(x, _), &(low, high))| (frame.at((x, low)), frame.at((x, high)))).collect();
    let class = look.class();
    if ends.len() <= FEW {
        for (low, high) in ends {
            canvas.line(low, high, &format!("s{class} spread"));
        }
        return;
    }
    let there = ends.iter().map(|(low, _)| low);
    let back = ends.iter().rev().map(|(_, high)| high);
    let corners: Vec<String> = there.chain(back).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    canvas.add(format_args!("<polygon points=\"{}\" class=\"f{class} band\"/>", corners.join(" ")));
}

/// Finds a height for each name near the end of its line, so that names do not overlap.
fn placed(
    mut ends: Vec<(usize, (f64, f64))>,
    top: f64,
    bottom: f64,
) -> Vec<(usize, (f64, f64), f64)> {
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut heights: Vec<f64> = Vec::new();
    for (_, (_, y)) in &ends {
        let least = heights.last().map_or(top, |above| above + LINE);
        heights.push(y.max(least));
    }
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LINE;
    }
    ends.into_iter().zip(heights).map(|((index, end), y)| (index, end, y)).collect()
}
