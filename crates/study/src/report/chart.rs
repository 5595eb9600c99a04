//! A picture as inline SVG, drawn by `plotters` and recoloured by the page's style sheet.
//!
//! `plotters` writes fixed colours, but the page follows the reader's light or dark setting. So
//! each role is drawn in a placeholder colour (series n is `#0000nn + 1`), and afterwards
//! placeholders are replaced by classes: `fill="#000001"` becomes `class="f1"`. Each picture is
//! drawn twice, wide and narrow, and the page shows the one that fits. To scale one drawing would
//! make its text unreadable on a phone.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{bars, map};
use crate::outcome::{Picture, Scale, Series, Shape};
use crate::units::significant;

/// The number of colours in the style sheet. A picture with more series must show them as rows.
pub(crate) const COLOURS: usize = 8;

pub(crate) type Drawing = Result<(), String>;
pub(crate) type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

/// Widths in pixels.
const WIDE: u32 = 820;
const NARROW: u32 = 380;

/// Draws the picture at both widths, or returns why it could not be drawn.
pub(crate) fn chart(picture: &Picture) -> Result<[String; 2], String> {
    let themed = |width| Ok::<_, String>(themed(&draw(picture, width)?, &picture.title));
    Ok([themed(WIDE)?, themed(NARROW)?])
}

/// Draws the wide picture as a file of its own: in fixed colours, on white, with its title and a
/// legend.
pub fn standalone(picture: &Picture) -> Result<String, String> {
    let mut svg = draw(picture, WIDE)?;
    // The colours of series in the style sheet, on light ground.
    let series =
        ["#0072b2", "#d55e00", "#00825f", "#b0467f", "#8a6d00", "#2f8fc4", "#555555", "#7b3294"];
    let inks = [(TEXT, "#1b1f24"), (GRID, "#d5dae0"), (AXIS, "#59636e")];
    let placeholders = (0..COLOURS).map(colour).zip(series);
    for (placeholder, ink) in placeholders.chain(inks) {
        for attribute in ["fill", "stroke"] {
            svg = svg.replace(
                &format!("{attribute}=\"{}\"", hex(placeholder)),
                &format!("{attribute}=\"{ink}\""),
            );
        }
    }
    let mut top = format!(
        "<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escaped(&picture.title)
    );
    let names = picture.series.iter().zip(series.iter().cycle());
    for (place, (series, ink)) in (0_u32..).zip(names) {
        let x = WIDE - 150 * (picture.series.len() as u32).saturating_sub(place);
        top += &format!(
            "<rect x=\"{x}\" y=\"4\" width=\"10\" height=\"10\" fill=\"{ink}\"/><text x=\"{}\" y=\"13\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"#1b1f24\">{}</text>\n",
            x + 16,
            escaped(&series.name)
        );
    }
    if let Some(end) = svg.find('>') {
        svg.insert_str(end + 1, &format!("\n{top}"));
    }
    Ok(svg)
}

fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

pub(crate) const TEXT: RGBColor = RGBColor(0, 0, 0xf0);
const GRID: RGBColor = RGBColor(0, 0, 0xf1);
const AXIS: RGBColor = RGBColor(0, 0, 0xf2);

pub(crate) fn colour(series: usize) -> RGBColor {
    RGBColor(0, 0, (series % COLOURS) as u8 + 1)
}

fn draw(picture: &Picture, width: u32) -> Result<String, String> {
    let height = match picture.shape {
        Shape::Lines | Shape::Bars { .. } => {
            if width > 500 {
                400
            } else {
                320
            }
        }
        Shape::Rows => 60 + 24 * picture.series.len() as u32,
        Shape::Map => map::height(picture),
    };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        match picture.shape {
            Shape::Lines => lines(&area, picture, width)?,
            Shape::Rows => rows(&area, picture)?,
            Shape::Map => map::draw(&area, picture, width)?,
            Shape::Bars { width: bar, bars } => {
                bars::draw(&area, picture, &Frame { width, whole: None }, bar, bars)?;
            }
        }
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

/// Replaces placeholder colours by classes, and adds a label for screen readers.
fn themed(svg: &str, title: &str) -> String {
    let mut themed =
        svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(title)), 1);
    let mut replace = |colour: RGBColor, class: &str| {
        let hex = hex(colour);
        for (attribute, prefix) in [("fill", "f"), ("stroke", "s")] {
            themed = themed
                .replace(&format!("{attribute}=\"{hex}\""), &format!("class=\"{prefix}{class}\""));
        }
    };
    for series in 0..COLOURS {
        replace(colour(series), &(series + 1).to_string());
    }
    for step in 0..map::STEPS {
        replace(map::colour(step), &format!("step{}", step + 1));
    }
    replace(map::ON_PALE, "on-pale");
    replace(map::ON_DARK, "on-dark");
    replace(TEXT, "text");
    replace(GRID, "grid");
    replace(AXIS, "axis");
    themed
}

fn escaped(text: &str) -> String {
    let mut markup = super::markup::Markup::default();
    markup.text(text);
    markup.finish()
}

/// Returns the least and the greatest of `values`, with a little room: a factor if the scale is
/// logarithmic, else a margin.
fn range(values: impl Iterator<Item = f64>, scale: Scale, from_zero: bool) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    match scale {
        _ if low > high => (0.0, 1.0),
        Scale::Log => (low.max(1e-9) / 1.3, high.max(1e-9) * 1.3),
        Scale::Linear if from_zero && low >= 0.0 => {
            (0.0, if high > 0.0 { high * 1.05 } else { 1.0 })
        }
        Scale::Linear => {
            let room = ((high - low) * 0.04).max(high.abs() * 0.01).max(1e-9);
            (low - room, high + room)
        }
    }
}

fn style(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&TEXT)
}

pub(crate) fn all_points(picture: &Picture) -> impl Iterator<Item = (f64, f64)> + '_ {
    picture.series.iter().flat_map(|series| series.points.iter().copied())
}

/// Draws one line and one marker shape for each series.
fn lines(area: &Area<'_>, picture: &Picture, width: u32) -> Drawing {
    let x = range(all_points(picture).map(|point| point.0), picture.x.scale, false);
    let y = range(all_points(picture).map(|point| point.1), picture.y.scale, true);
    let frame = Frame { width, whole: whole_numbers(picture) };
    // The coordinate types differ with the scales, so the four cases are four calls of one generic
    // function.
    match (picture.x.scale, picture.y.scale) {
        (Scale::Linear, Scale::Linear) => frame.draw(area, picture, x.0..x.1, y.0..y.1),
        (Scale::Log, Scale::Linear) => frame.draw(area, picture, (x.0..x.1).log_scale(), y.0..y.1),
        (Scale::Linear, Scale::Log) => frame.draw(area, picture, x.0..x.1, (y.0..y.1).log_scale()),
        (Scale::Log, Scale::Log) => {
            frame.draw(area, picture, (x.0..x.1).log_scale(), (y.0..y.1).log_scale())
        }
    }
}

/// Returns the number of labels on an x axis that counts: its values are whole, and few enough to
/// label each.
fn whole_numbers(picture: &Picture) -> Option<usize> {
    let whole = all_points(picture).all(|(x, _)| x.fract() == 0.0);
    let first = picture.series.first()?;
    let (low, high) = (first.points.first()?.0, first.points.last()?.0);
    (whole && picture.x.scale == Scale::Linear && high - low <= 8.0)
        .then_some((high - low) as usize + 1)
}

/// The frame of a drawing with two axes.
pub(crate) struct Frame {
    /// The width of the whole picture, in pixels.
    pub(crate) width: u32,
    /// The number of labels of the x axis, if it counts.
    pub(crate) whole: Option<usize>,
}

/// Axes to draw between.
pub(crate) type Axes<'s, X, Y> = ChartContext<
    's,
    SVGBackend<'s>,
    Cartesian2d<<X as AsRangedCoord>::CoordDescType, <Y as AsRangedCoord>::CoordDescType>,
>;

impl Frame {
    /// Draws the axes.
    pub(crate) fn axes<'s, X, Y>(
        &self,
        area: &Area<'s>,
        picture: &Picture,
        x: X,
        y: Y,
    ) -> Result<Axes<'s, X, Y>, String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let failed = |error: DrawingAreaErrorKind<_>| error.to_string();
        let mut chart = ChartBuilder::on(area)
            .margin_right(16)
            .margin_top(26)
            .margin_left(4)
            .x_label_area_size(44)
            .y_label_area_size(if self.width > 500 { 58 } else { 50 })
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(AXIS)
            .label_style(style(16))
            .x_labels(self.whole.unwrap_or(if self.width > 500 { 9 } else { 5 }))
            .y_labels(6)
            .x_label_formatter(&|value| tick(*value))
            .y_label_formatter(&|value| tick(*value))
            .x_desc(picture.x.label.as_str())
            .axis_desc_style(style(16))
            .draw()
            .map_err(failed)?;
        // The label of the y axis stands across the top, so that it need not be rotated.
        area.draw(&Text::new(picture.y.label.clone(), (6, 4), style(16))).map_err(failed)?;
        Ok(chart)
    }

    fn draw<X, Y>(&self, area: &Area<'_>, picture: &Picture, x: X, y: Y) -> Drawing
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let failed = |error: DrawingAreaErrorKind<_>| error.to_string();
        let mut chart = self.axes(area, picture, x, y)?;
        for (index, series) in picture.series.iter().enumerate() {
            let stroke = colour(index).stroke_width(2);
            let many = series.points.len() > 20;
            if !series.dots {
                chart
                    .draw_series(LineSeries::new(series.points.iter().copied(), stroke))
                    .map_err(failed)?;
            }
            // On a line of many points, markers would hide each other and everything under them.
            if series.dots || !many {
                for point in &series.points {
                    marker(area, index, chart.backend_coord(point), if many { 2 } else { 4 })?;
                }
            }
        }
        Ok(())
    }
}

/// Draws a circle, triangle, square or diamond in turn, so that not only colour distinguishes
/// series.
fn marker(area: &Area<'_>, series: usize, (x, y): (i32, i32), size: i32) -> Drawing {
    let fill = colour(series).filled();
    let drawn = match series % 4 {
        0 => area.draw(&Circle::new((x, y), size, fill)),
        1 => area.draw(&TriangleMarker::new((x, y), size + 2, fill)),
        2 => area.draw(&Rectangle::new([(x - size + 1, y - size + 1), (x + size, y + size)], fill)),
        _ => {
            let tip = size + 1;
            let corners = vec![(x, y - tip), (x + tip, y), (x, y + tip), (x - tip, y)];
            area.draw(&Polygon::new(corners, fill))
        }
    };
    drawn.map_err(|error| error.to_string())
}

/// Draws a row for each series, named at its left, with a dot for each x in that x's colour.
fn rows(area: &Area<'_>, picture: &Picture) -> Drawing {
    let y = range(all_points(picture).map(|point| point.1), picture.y.scale, true);
    match picture.y.scale {
        Scale::Linear => rows_on(area, picture, y.0..y.1, y),
        Scale::Log => rows_on(area, picture, (y.0..y.1).log_scale(), y),
    }
}

fn rows_on<V>(area: &Area<'_>, picture: &Picture, values: V, (low, high): (f64, f64)) -> Drawing
where
    V: AsRangedCoord<Value = f64>,
    V::CoordDescType: ValueFormatter<f64>,
{
    let failed = |error: DrawingAreaErrorKind<_>| error.to_string();
    let count = picture.series.len();
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(4)
        .x_label_area_size(44)
        .y_label_area_size(164)
        .build_cartesian_2d(values, 0.0..count as f64)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(AXIS)
        .label_style(style(16))
        .axis_desc_style(style(16))
        .x_labels(6)
        .x_label_formatter(&|value| tick(*value))
        .x_desc(picture.y.label.as_str())
        .draw()
        .map_err(failed)?;
    let columns = columns(&picture.series);
    for (row, series) in picture.series.iter().enumerate() {
        let height = (count - row) as f64 - 0.5;
        chart
            .draw_series(LineSeries::new([(low, height), (high, height)], GRID))
            .map_err(failed)?;
        let label = style(16).pos(Pos::new(HPos::Right, VPos::Center));
        let (_, pixel) = chart.backend_coord(&(low, height));
        area.draw(&Text::new(series.name.clone(), (156, pixel), label)).map_err(failed)?;
        for &(x, y) in series.points.iter().rev() {
            let column = columns.iter().position(|&column| column == x).unwrap_or(0);
            marker(area, column, chart.backend_coord(&(y, height)), 4)?;
        }
    }
    Ok(())
}

/// Returns all x of all series, rising.
pub(crate) fn columns(series: &[Series]) -> Vec<f64> {
    let mut columns: Vec<f64> =
        series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    columns
}

/// Formats an axis label: short, without needless digits.
pub(crate) fn tick(value: f64) -> String {
    if value.abs() >= 1e4 {
        let thousands = significant(value / 1e3);
        let trimmed = if thousands.contains('.') {
            thousands.trim_end_matches('0').trim_end_matches('.')
        } else {
            &thousands
        };
        return if value.abs() >= 1e6 {
            format!("{}M", trim(value / 1e6))
        } else {
            format!("{trimmed}k")
        };
    }
    trim(value)
}

fn trim(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Axis;

    fn picture(shape: Shape, scale: Scale) -> Picture {
        let names = if shape == Shape::Map { vec!["lock".to_owned(); 5] } else { Vec::new() };
        let axis = |label: &str| Axis { label: label.to_owned(), scale, names: names.clone() };
        let series = (0..3).map(|index| {
            let points = (1..=4).map(move |x| (f64::from(x), f64::from(10_i32.pow(index) * x)));
            Series::new(format!("lock <{index}>"), points)
        });
        Picture {
            title: "a \"title\"".to_owned(),
            shape,
            x: axis("threads"),
            y: axis("ns"),
            series: series.collect(),
        }
    }

    #[test]
    fn no_fixed_colour_is_left() {
        for shape in [Shape::Lines, Shape::Rows, Shape::Map, Shape::Bars { width: 1.0, bars: 5 }] {
            for scale in [Scale::Linear, Scale::Log] {
                let alone = standalone(&picture(shape, scale)).unwrap();
                let known = alone.split("=\"#").skip(1).all(|colour| !colour.starts_with("0000"));
                assert!(known || shape == Shape::Map, "{alone}");
                for svg in chart(&picture(shape, scale)).unwrap() {
                    assert!(!svg.contains("=\"#"), "{svg}");
                    let first =
                        if shape == Shape::Map { "class=\"fstep1\"" } else { "class=\"f1\"" };
                    assert!(svg.contains(first) && svg.contains("class=\"ftext\""), "{svg}");
                    assert!(svg.contains("aria-label=\"a &quot;title&quot;\""));
                    let doubled =
                        svg.split('<').any(|element| element.matches("class=").count() > 1);
                    assert!(!doubled, "an element has two classes, which is not well-formed");
                }
            }
        }
    }

    #[test]
    fn empty_and_flat_pictures_can_be_drawn() {
        let mut flat = picture(Shape::Lines, Scale::Linear);
        for series in &mut flat.series {
            series.points = vec![(1.0, 0.0)];
        }
        chart(&flat).unwrap();
        flat.series.clear();
        chart(&flat).unwrap();
        for shape in [Shape::Rows, Shape::Map, Shape::Bars { width: 1.0, bars: 5 }] {
            flat.shape = shape;
            chart(&flat).unwrap();
        }
    }

    #[test]
    fn ticks_are_short() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "0.25"),
            (1500.0, "1500"),
            (20_000.0, "20k"),
            (2.5e6, "2.5M"),
            (1e5, "100k"),
        ];
        for (value, expected) in cases {
            assert_eq!(tick(value), expected);
        }
    }
}
