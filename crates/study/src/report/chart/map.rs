//! A picture as a map: a row for each series, a field for each named x, coloured by how far its y
//! is above 1.
//!
//! Colours change in eight steps, not smoothly, so that a reader can tell them apart and a legend
//! can name them. They fall in lightness, so that a map reads the same to the colour-blind and in
//! print. They are the same on light and on dark ground, since each field is the ground of its own
//! number.

use super::canvas::{Anchor, Canvas, FONT, shortened, width_of};
use crate::outcome::Picture;

/// Upper ends of all steps but the last. The last step has no upper end.
const ENDS: [f64; 7] = [1.03, 1.1, 1.2, 1.5, 2.0, 5.0, 20.0];

/// The number of steps.
pub(super) const STEPS: usize = ENDS.len() + 1;

/// The first step with dark fields.
const DARK: usize = 5;

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

/// The height of a row, in pixels.
const ROW: f64 = 20.0;

/// The narrowest and the widest field, in pixels. A name stands upright above each field, so no
/// field is narrower than a line of text.
const FIELD: (f64, f64) = (FONT + 3.0, 64.0);

/// The narrowest field with room for a number.
const NUMBERED: f64 = 40.0;

/// The longest names of rows and columns, in pixels.
const NAME: f64 = 280.0;

/// Draws the map, `width` pixels wide, or wider if there are many columns.
pub(super) fn draw(picture: &Picture, width: f64) -> Canvas {
    let names = picture.x.names.iter().map(|name| shortened(name, NAME));
    let names: Vec<String> = names.collect();
    let rows = picture.series.iter().map(|series| shortened(&series.name, NAME));
    let rows: Vec<String> = rows.collect();
    let longest = |of: &[String]| of.iter().map(|name| width_of(name)).fold(0.0, f64::max) + 10.0;
    let (top, left) = (longest(&names), longest(&rows));
    let columns = names.len().max(1) as f64;
    let field = ((width - left - 4.0) / columns).clamp(FIELD.0, FIELD.1);
    let height = top + ROW * rows.len() as f64 + 4.0;
    let mut canvas = Canvas::new(width.max(left + field * columns + 4.0), height);
    for (column, name) in names.iter().enumerate() {
        canvas.text_upwards((left + field * (column as f64 + 0.5), top - 6.0), name);
    }
    for (row, (name, series)) in rows.iter().zip(&picture.series).enumerate() {
        let y = top + ROW * row as f64;
        canvas.text((left - 6.0, y + ROW / 2.0), Anchor::End, "ftext", name);
        for &(column, value) in &series.points {
            let (x, step) = (left + column * field, step(value));
            canvas.add(format_args!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 class=\"fstep{}\"/>",
                field - 1.0,
                ROW - 1.0,
                step + 1
            ));
            if field >= NUMBERED {
                let ink = if step < DARK { "fon-pale" } else { "fon-dark" };
                let middle = (x + field / 2.0, y + ROW / 2.0);
                canvas.text(middle, Anchor::Middle, ink, &number(value));
            }
        }
    }
    canvas
}

/// Formats a ratio in at most five characters, which fit a field: two digits after the point are
/// enough.
fn number(value: f64) -> String {
    match value {
        small if (0.0..9.995).contains(&small) => format!("{small:.2}"),
        middle if (0.0..9999.5).contains(&middle) => format!("{middle:.0}"),
        large if (0.0..1e6).contains(&large) => format!("{:.0}k", large / 1e3),
        other => format!("{other:.0e}"),
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
