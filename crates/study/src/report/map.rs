//! A picture as a map: a row for each series, a field for each named x, coloured by how far its y
//! is above 1.
//!
//! Colours change in eight steps, not smoothly, so that a reader can tell them apart and a legend
//! can name them. They fall in lightness, so that a map reads the same to the colour-blind and in
//! print. They are the same on light and on dark ground, since each field is the ground of its own
//! number.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Area, Drawing, TEXT};
use crate::outcome::Picture;

/// Upper ends of all steps but the last. The last step has no upper end.
const ENDS: [f64; 7] = [1.03, 1.1, 1.2, 1.5, 2.0, 5.0, 20.0];

/// The number of steps.
pub(crate) const STEPS: usize = ENDS.len() + 1;

/// Placeholder colours of the numbers on pale fields, and on dark ones below.
pub(crate) const ON_PALE: RGBColor = RGBColor(0, 0, 0xf3);
pub(crate) const ON_DARK: RGBColor = RGBColor(0, 0, 0xf4);

/// The first step with dark fields.
const DARK: usize = 5;

/// Returns the placeholder for the colour of a step, which the style sheet gives.
pub(crate) fn colour(step: usize) -> RGBColor {
    RGBColor(0, 0, 0xe0 + step as u8)
}

fn step(value: f64) -> usize {
    ENDS.iter().filter(|&&end| value > end).count()
}

/// Returns the legend's label of each step.
pub(crate) fn legend() -> [String; STEPS] {
    std::array::from_fn(|step| match ENDS.get(step) {
        Some(end) => format!("up to {end}"),
        None => format!("above {}", ENDS[STEPS - 2]),
    })
}

const ROW: i32 = 20;

/// Returns the pixels that the longest of `names` takes.
fn length<'a>(names: impl Iterator<Item = &'a String>) -> i32 {
    names.map(|name| name.chars().count()).max().unwrap_or(0) as i32 * 7 + 10
}

/// Returns the height of the map, in pixels.
pub(crate) fn height(picture: &Picture) -> u32 {
    (length(picture.x.names.iter()) + ROW * picture.series.len() as i32 + 4).unsigned_abs()
}

/// Draws the map, `width` pixels wide.
pub(crate) fn draw(area: &Area<'_>, picture: &Picture, width: u32) -> Drawing {
    let failed = |error: DrawingAreaErrorKind<_>| error.to_string();
    let top = length(picture.x.names.iter());
    let left = length(picture.series.iter().map(|series| &series.name));
    let columns = picture.x.names.len().max(1) as i32;
    let field = ((width as i32 - left - 4) / columns).clamp(4, 64);
    let font = |size: i32, colour: &RGBColor| ("sans-serif", size).into_font().color(colour);
    for (column, name) in picture.x.names.iter().enumerate() {
        let x = left + column as i32 * field + field / 2;
        let upright = ("sans-serif", 15).into_font().transform(FontTransform::Rotate270);
        let style = upright.color(&TEXT).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name.clone(), (x, top - 6), style)).map_err(failed)?;
    }
    for (row, series) in picture.series.iter().enumerate() {
        let y = top + row as i32 * ROW;
        let style = font(15, &TEXT).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(series.name.clone(), (left - 6, y + ROW / 2), style))
            .map_err(failed)?;
        for &(column, value) in &series.points {
            let x = left + column as i32 * field;
            let step = step(value);
            let corners = [(x, y), (x + field - 1, y + ROW - 1)];
            area.draw(&Rectangle::new(corners, colour(step).filled())).map_err(failed)?;
            // A narrower field has no room for a number.
            if field >= 34 {
                let ink = if step < DARK { &ON_PALE } else { &ON_DARK };
                let style = font(14, ink).pos(Pos::new(HPos::Center, VPos::Center));
                area.draw(&Text::new(number(value), (x + field / 2, y + ROW / 2), style))
                    .map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Formats a ratio: two digits after the point are enough, and five characters fit a field.
fn number(value: f64) -> String {
    match value {
        small if small < 10.0 => format!("{small:.2}"),
        middle if middle < 1e4 => format!("{middle:.0}"),
        large => format!("{:.0}k", large / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_where_the_legend_says() {
        let cases =
            [(0.4, 0), (1.0, 0), (1.03, 0), (1.031, 1), (1.2, 2), (1.3, 3), (20.0, 6), (21.0, 7)];
        for (value, expected) in cases {
            assert_eq!(step(value), expected, "{value}");
        }
        assert_eq!(step(f64::INFINITY), STEPS - 1);
        assert_eq!(legend()[2], "up to 1.2");
        assert_eq!(legend()[STEPS - 1], "above 20");
    }
}
