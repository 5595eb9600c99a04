//! A picture as inline SVG, coloured by the page's style sheet.
//!
//! Each picture is drawn twice, wide and narrow, and the page shows the drawing that fits. To scale
//! one drawing would make its text unreadable on a telephone. A third drawing is small and without
//! text, for the line that an experiment is folded to.
//!
//! Every drawing records its labels, its axes and the looks of its series (`canvas`). In a build
//! that is not optimized a drawing panics if a reader could misread it. So each test that writes
//! a page checks the charts of that page.

mod bars;
mod canvas;
mod frame;
mod lines;
mod look;
mod map;
mod rows;
mod small;
mod ticks;

use canvas::{Canvas, escaped};
use look::Look;
pub(super) use look::Sign;
pub(super) use map::legend as steps;
pub(super) use small::small;
pub(super) use ticks::tick;

use crate::outcome::{Picture, Series, Shape, StatedPoint};
use crate::units::significant;

/// Widths in pixels.
const WIDE: f64 = 820.0;
const NARROW: f64 = 340.0;

/// Returns whether a drawing of this width is for a window that is wide enough for it.
fn is_wide(width: f64) -> bool {
    width > 500.0
}

/// A drawing and what its legend has to say.
#[derive(Debug)]
pub(super) struct Drawing {
    /// The SVG.
    pub(super) svg: String,
    /// The entries of the legend: a sign, the letter in the drawing if there is one, a name.
    pub(super) legend: Vec<(Sign, Option<char>, String)>,
}

/// Draws the picture at both widths; none if it has more series than can be told apart.
pub(super) fn chart(picture: &Picture) -> Option<[Drawing; 2]> {
    can_be_drawn(picture).then(|| [WIDE, NARROW].map(|width| drawing(picture, width)))
}

fn drawing(picture: &Picture, width: f64) -> Drawing {
    let canvas = draw(picture, width);
    if cfg!(debug_assertions) {
        let flaws = canvas.flaws();
        assert!(flaws.is_empty(), "the chart `{}` could be misread: {flaws:#?}", picture.title);
    }
    Drawing { svg: canvas.finish(&description(picture)), legend: legend(picture, width) }
}

/// Draws the wide picture as a file of its own: in fixed colours, on white, with its title and a
/// legend. If the picture has too many series to be drawn, the file says so.
pub fn standalone(picture: &Picture) -> String {
    let canvas = if can_be_drawn(picture) { draw(picture, WIDE) } else { Canvas::new(WIDE, 0.0) };
    let entries = legend(picture, WIDE);
    let above = 30.0 + canvas::LINE * entries.len().min(look::LOOKS) as f64;
    let mut file = Canvas::new(canvas.width, canvas.height + above);
    let mut style = String::from(
        ".chart{font-family:sans-serif} .ftext,.fon-pale{fill:#1b1f24} .fon-dark{fill:#fff} \
         .sgrid{stroke:#d5dae0} .saxis{stroke:#59636e} .open{fill:none;stroke-width:2} \
         .series{fill:none;stroke-width:2} .lead{stroke-opacity:.5} \
         .spread{stroke-opacity:.5} .band{fill-opacity:.15}",
    );
    for (class, colour) in (1..).zip(look::LIGHT) {
        style += &format!(" .f{class}{{fill:{colour}}} .s{class}{{stroke:{colour}}}");
    }
    let title = escaped(&picture.title);
    file.add(format_args!(
        "<title>{title}</title>\n<style>{style}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    ));
    let shown = canvas::shortened(&picture.title, canvas.width - 8.0);
    file.text((4.0, 14.0), canvas::Anchor::Start, "ftext", &shown);
    for (line, (sign, letter, name)) in entries.iter().enumerate().take(look::LOOKS) {
        let y = 34.0 + canvas::LINE * line as f64;
        file.raw(&sign.mark(12.0, y, 4.0));
        let name = letter.map_or_else(|| name.clone(), |letter| format!("{letter}: {name}"));
        file.text((24.0, y), canvas::Anchor::Start, "ftext", &name);
    }
    file.add(format_args!("<g transform=\"translate(0 {above})\">{}</g>\n", canvas.body()));
    file.finish(&description(picture))
}

fn can_be_drawn(picture: &Picture) -> bool {
    let looks = match picture.shape {
        Shape::Lines | Shape::Bars { .. } => picture.series.len(),
        Shape::Rows => columns(&picture.series).len(),
        Shape::Map => 0,
    };
    looks <= look::LOOKS
}

fn draw(picture: &Picture, width: f64) -> Canvas {
    match picture.shape {
        Shape::Lines => lines::draw(picture, width),
        Shape::Rows => rows::draw(picture, width),
        Shape::Map => map::draw(picture, width),
        Shape::Bars { width: bar, bars } => bars::draw(picture, width, bar, bars),
    }
}

/// Describes the picture to a reader that cannot see it.
fn description(picture: &Picture) -> String {
    let number = picture.series.len();
    let what = match picture.shape {
        Shape::Lines => "lines",
        Shape::Rows => "rows of dots",
        Shape::Map => "rows of fields",
        Shape::Bars { .. } => "rows of bars",
    };
    let marks = match stated(picture).count() {
        0 => String::new(),
        count => format!(" Hollow marks are points that the paper states: {count}."),
    };
    format!(
        "{}. Chart with {number} {what}: {} by {}.{marks} The numbers are in the table below.",
        picture.title, picture.y.label, picture.x.label
    )
}

/// Returns the legend of a drawing of this width. Lines with their names at their ends need none
/// for their series.
fn legend(picture: &Picture, width: f64) -> Vec<(Sign, Option<char>, String)> {
    let mut legend = legend_of_series(picture, width);
    if stated(picture).next().is_some() {
        legend.push((Sign::Stated, None, "stated by the paper".to_owned()));
    }
    legend
}

fn legend_of_series(picture: &Picture, width: f64) -> Vec<(Sign, Option<char>, String)> {
    let sign = |index| Sign::Series(Look::of(index));
    let named = |letters: bool| {
        let entry = |(index, series): (usize, &Series)| {
            (sign(index), letters.then(|| lines::letter(index)), series.name.clone())
        };
        picture.series.iter().enumerate().map(entry).collect()
    };
    match picture.shape {
        Shape::Lines if lines::has_letters(picture, width) => named(true),
        Shape::Lines | Shape::Map => Vec::new(),
        Shape::Bars { .. } if picture.series.len() > 1 => named(false),
        Shape::Bars { .. } => Vec::new(),
        Shape::Rows => {
            let columns = columns(&picture.series);
            let entry = |(index, &x): (usize, &f64)| (sign(index), None, place(picture, x));
            if columns.len() < 2 {
                Vec::new()
            } else {
                columns.iter().enumerate().map(entry).collect()
            }
        }
    }
}

/// Names the place `x` along the horizontal axis.
fn place(picture: &Picture, x: f64) -> String {
    let name = picture.x.names.get(x as usize).cloned();
    name.unwrap_or_else(|| with_unit(x, &picture.x.label))
}

/// Says what the paper states of a series at one place.
pub(super) fn statement(picture: &Picture, series: &Series, point: &StatedPoint) -> String {
    let (place, y) = (place(picture, point.x), significant(point.y));
    format!("{}, {place}: {y}, stated by the paper. “{}”", series.name, point.passage)
}

/// Returns whether a chart shows what the paper states for `x`. A line shows it between its own
/// ends, so that a chart of two processors is not squeezed for a point at eleven. Rows show it if
/// they have a colour for `x`.
pub(super) fn is_shown(picture: &Picture, x: f64) -> bool {
    let columns = columns(&picture.series);
    match (picture.shape, columns.first(), columns.last()) {
        (Shape::Lines, Some(&first), Some(&last)) => (first..=last).contains(&x),
        (Shape::Rows, _, _) => columns.contains(&x),
        _ => false,
    }
}

/// Returns the points that the paper states and the chart shows, each with its series's number.
fn stated(picture: &Picture) -> impl Iterator<Item = (usize, &StatedPoint)> {
    let all = picture.series.iter().enumerate();
    let all = all.flat_map(|(index, series)| series.stated.iter().map(move |of| (index, of)));
    all.filter(|(_, point)| is_shown(picture, point.x))
}

/// Formats `x` with the unit of `label`: "1 thread", "8 threads", "50 ns of critical section".
fn with_unit(x: f64, label: &str) -> String {
    let count = tick(x);
    match (label.split_once(", "), label.strip_suffix('s')) {
        (Some((what, unit)), _) => format!("{count} {unit} of {what}"),
        (None, Some(one)) if x == 1.0 => format!("{count} {one}"),
        _ => format!("{count} {label}"),
    }
}

fn all_points(picture: &Picture) -> impl Iterator<Item = (f64, f64)> + '_ {
    picture.series.iter().flat_map(|series| series.points.iter().copied())
}

/// Returns the ends of the ranges of all runs.
fn spreads(picture: &Picture) -> impl Iterator<Item = f64> + '_ {
    let all = picture.series.iter().flat_map(|series| series.spread.iter());
    all.flat_map(|&(low, high)| [low, high])
}

/// Returns all x of all series, rising.
pub(super) fn columns(series: &[Series]) -> Vec<f64> {
    let mut columns: Vec<f64> =
        series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Axis, Scale};

    const SHAPES: [Shape; 4] =
        [Shape::Lines, Shape::Rows, Shape::Map, Shape::Bars { width: 1.0, bars: 5 }];

    fn picture(
        shape: Shape,
        scale: Scale,
        series: usize,
        value: fn(usize, usize) -> f64,
    ) -> Picture {
        let names = if shape == Shape::Map { vec!["lock".to_owned(); 5] } else { Vec::new() };
        let axis = |label: &str| Axis { label: label.to_owned(), scale, names: names.clone() };
        let series = (0..series).map(|index| {
            let points = (1..=4).map(move |x| (x as f64, value(index, x)));
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

    fn usual(index: usize, x: usize) -> f64 {
        10_f64.powi(index as i32 % 9) * x as f64
    }

    #[test]
    fn drawings_have_no_colours_and_files_of_their_own_have_all() {
        for shape in SHAPES {
            for scale in [Scale::Linear, Scale::Log] {
                let picture = picture(shape, scale, 3, usual);
                let alone = standalone(&picture);
                assert!(alone.contains(".f1{fill:#0f0dce}"), "{alone}");
                for drawing in chart(&picture).unwrap() {
                    let svg = drawing.svg;
                    assert!(!svg.contains("=\"#"), "{svg}");
                    let first =
                        if shape == Shape::Map { "class=\"fstep1\"" } else { "class=\"f1\"" };
                    assert!(svg.contains(first) && svg.contains("class=\"ftext"), "{svg}");
                    assert!(svg.contains("aria-label=\"a &quot;title&quot;"));
                    let doubled =
                        svg.split('<').any(|element| element.matches("class=").count() > 1);
                    assert!(!doubled, "an element has two classes, which is not well-formed");
                }
            }
        }
    }

    /// In this build a drawing that could be misread panics.
    #[test]
    fn no_figures_make_a_chart_that_could_be_misread() {
        let values: [fn(usize, usize) -> f64; 10] = [
            usual,
            |_, _| 0.0,
            |_, _| 1.0,
            |_, _| -3.5,
            |index, x| 1.0 + 1e-9 * (index * x) as f64,
            |index, x| if index == x { f64::NAN } else { f64::INFINITY },
            |index, x| 1e300_f64.powf((index * x) as f64 / 200.0),
            |index, x| 1e-12 * (1 + index + x) as f64,
            |index, _| 123_456_789.0 + index as f64,
            |index, x| ((index * 7919 + x * 104_729) % 1000) as f64,
        ];
        let long = "elapsed time over that of the preemption-safe single lock ";
        for shape in SHAPES {
            for scale in [Scale::Linear, Scale::Log] {
                for number in [0, 1, 2, 7, 14, look::LOOKS] {
                    for value in values {
                        let mut picture = picture(shape, scale, number, value);
                        assert!(chart(&picture).is_some());
                        for (index, series) in picture.series.iter_mut().enumerate() {
                            series.name = long.repeat(1 + index % 3);
                            series.spread =
                                series.points.iter().map(|&(_, y)| (y / 3.0, y * 5.0)).collect();
                        }
                        picture.y.label = long.repeat(3);
                        picture.x.label = long.repeat(2);
                        small(&picture);
                        assert!(chart(&picture).is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn one_point_and_many_points_can_be_drawn() {
        for (first, last) in [(1, 1), (3, 3), (2, 3), (1, 64), (1, 400)] {
            for scale in [Scale::Linear, Scale::Log] {
                let mut picture = picture(Shape::Lines, scale, 5, usual);
                for (index, series) in picture.series.iter_mut().enumerate() {
                    let points = (first..=last).map(|x| (f64::from(x), f64::from(x + 1)));
                    series.points = points.collect();
                    series.spread = series.points.iter().map(|&(_, y)| (y, 2.0 * y)).collect();
                    series.dots = index == 1;
                }
                chart(&picture).unwrap();
            }
        }
    }

    #[test]
    fn more_series_than_looks_are_not_drawn() {
        let many = picture(Shape::Lines, Scale::Linear, look::LOOKS + 1, usual);
        assert!(chart(&many).is_none());
        assert!(standalone(&many).contains("a &quot;title&quot;"));
        assert!(chart(&picture(Shape::Rows, Scale::Linear, look::LOOKS + 1, usual)).is_some());
    }

    #[test]
    fn long_names_are_letters_at_the_ends_of_lines() {
        let mut picture = picture(Shape::Lines, Scale::Linear, 2, usual);
        assert!(legend(&picture, WIDE).is_empty());
        picture.series[1].name = "a name of some twenty letters".to_owned();
        assert!(legend(&picture, WIDE).is_empty());
        let letters: Vec<_> = legend(&picture, NARROW).iter().map(|entry| entry.1).collect();
        assert_eq!(letters, [Some('a'), Some('b')]);
    }

    #[test]
    fn stated_points_are_rings_where_a_point_of_their_series_would_be() {
        let at = |x, y| StatedPoint { x, y, passage: "more than <40> %".to_owned() };
        for shape in [Shape::Lines, Shape::Rows] {
            let mut picture = picture(shape, Scale::Linear, 2, usual);
            // The first lies on a point of the series, the last beyond the chart.
            picture.series[1].stated = vec![at(2.0, 20.0), at(3.0, 55.0), at(11.0, 5.0)];
            for drawing in chart(&picture).unwrap() {
                let rings: Vec<_> = drawing.svg.split("<g><title>").skip(1).collect();
                assert_eq!(rings.len(), 2, "{}", drawing.svg);
                // The colour of rows is that of their column.
                let colours = if shape == Shape::Lines { [2, 2] } else { [2, 3] };
                for (ring, colour) in rings.iter().zip(colours) {
                    assert!(ring.contains(&format!("class=\"s{colour} open stated\"")), "{ring}");
                }
                let said = "lock &lt;1&gt;, 2 threads: 20.0, stated by the paper. \
                            “more than &lt;40&gt; %”</title>";
                assert!(rings[0].starts_with(said), "{}", rings[0]);
                let number = |text: &str, from: &str| -> f64 {
                    let begun = text.split_once(from).unwrap().1;
                    begun.split_once('"').unwrap().0.parse().unwrap()
                };
                let middle = [number(rings[0], "cx=\""), number(rings[0], "cy=\"")];
                // The same numbers are corners of a mark of the series: a triangle around them.
                let corner = format!("{:.1},{:.1} ", middle[0], middle[1] - 4.8);
                let top = format!("points=\"{corner}");
                assert!(drawing.svg.contains(&top), "{top} is not in {}", drawing.svg);
                let last = drawing.legend.last().unwrap();
                assert_eq!((last.0, &*last.2), (Sign::Stated, "stated by the paper"));
            }
            assert!(standalone(&picture).contains(">stated by the paper</text>"));
        }
    }

    #[test]
    fn a_stated_point_beyond_the_values_of_a_chart_makes_room_for_itself() {
        for shape in [Shape::Lines, Shape::Rows] {
            for scale in [Scale::Linear, Scale::Log] {
                let mut picture = picture(shape, scale, 1, usual);
                let before = chart(&picture).unwrap()[0].svg.clone();
                let passage = String::new();
                picture.series[0].stated = vec![StatedPoint { x: 2.0, y: 90.0, passage }];
                let after = &chart(&picture).unwrap()[0].svg;
                let marks = |svg: &str| svg.split("class=\"f").next().unwrap().to_owned();
                assert_ne!(marks(&before), marks(after), "the axis is the same");
            }
        }
    }

    #[test]
    fn units() {
        assert_eq!(with_unit(1.0, "threads"), "1 thread");
        assert_eq!(with_unit(8.0, "threads"), "8 threads");
        assert_eq!(with_unit(50.0, "critical section, ns"), "50 ns of critical section");
    }
}
