//! The parts of every page: its beginning and end, verdict marks, and pictures with their legends
//! and numbers.

use super::chart::{Drawing, chart, columns, is_shown, statement, steps, tick};
use super::markup::Markup;
use crate::outcome::{Picture, Series, Shape, Verdict};
use crate::units::significant;

const STYLE: &str = include_str!("style.css");

/// Writes everything before the first heading of a page.
pub fn start(page: &mut Markup, title: &str) {
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">")
        .element("title", title)
        .raw("<style>\n")
        .raw(STYLE)
        .raw("</style></head><body><main>\n");
}

/// Writes the end of a page.
pub fn finish(page: &mut Markup) {
    page.raw("</main></body></html>\n");
}

/// Writes the mark of a verdict.
pub fn badge(page: &mut Markup, verdict: &Verdict) {
    let (class, mark) = match verdict {
        Verdict::Holds(_) => ("holds", "✓"),
        Verdict::Differs(_) => ("differs", "≠"),
        Verdict::NotJudged(_) => ("not-run", "?"),
        Verdict::NotRun(_) => ("not-run", "–"),
    };
    page.line(format_args!("<span class=\"badge {class}\">{mark} {}</span> ", verdict.name()));
}

/// Returns the name of an experiment's section in the page.
pub(super) fn anchor(id: &str) -> String {
    id.replace(['/', '.'], "-")
}

/// Writes the picture at the width that fits, its legend, and its numbers.
pub fn figure(page: &mut Markup, picture: &Picture) {
    page.raw("<figure>").element("figcaption", &picture.title);
    match chart(picture) {
        Some([wide, narrow]) => {
            drawing(page, "wide", picture, &wide);
            drawing(page, "narrow", picture, &narrow);
        }
        None => {
            page.element("p", "Too many series for a picture; the table has their numbers.");
        }
    }
    numbers(page, picture);
    page.raw("</figure>\n");
}

fn drawing(page: &mut Markup, class: &str, picture: &Picture, drawing: &Drawing) {
    page.line(format_args!("<div class=\"{class}\">"));
    if picture.shape == Shape::Map {
        legend_of_map(page);
    }
    if !drawing.legend.is_empty() {
        page.raw("<ul class=\"legend\">");
        for (sign, letter, name) in &drawing.legend {
            let mark = sign.mark(7.0, 7.0, 5.0);
            page.line(format_args!(
                "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\">{mark}</svg>"
            ));
            if let Some(letter) = letter {
                page.line(format_args!("<b>{letter}</b> "));
            }
            page.text(name).raw("</li>");
        }
        page.raw("</ul>");
    }
    // A map may be wider than the window.
    let scrolls = if picture.shape == Shape::Map { " tabindex=\"0\"" } else { "" };
    page.line(format_args!("<div class=\"scroll\"{scrolls}>{}</div></div>\n", drawing.svg));
}

/// Writes the table with the value of every point.
fn numbers(page: &mut Markup, picture: &Picture) {
    let xs = columns(&picture.series);
    page.raw("<details><summary>The numbers</summary>");
    let has_spread = picture.series.iter().any(|series| !series.spread.is_empty());
    let runs = if has_spread { "; in brackets the least and the greatest of the runs" } else { "" };
    let unit = format!("{} by {}{runs}", picture.y.label, picture.x.label);
    page.element("p class=\"unit\"", &unit);
    let name = |x: f64| picture.x.names.get(x as usize).cloned().unwrap_or_else(|| tick(x));
    // If there are few series over many x, a column for each series reads better.
    let (head, rows): (Vec<String>, Vec<Vec<String>>) =
        if picture.series.len() <= 3 && xs.len() > 12 {
            let row = |&x: &f64| {
                let cells = picture.series.iter().map(|series| cell(series, x));
                std::iter::once(name(x)).chain(cells).collect()
            };
            let names = picture.series.iter().map(|series| series.name.clone());
            (names.collect(), xs.iter().map(row).collect())
        } else {
            let row = |series: &Series| {
                let cells = xs.iter().map(|&x| cell(series, x));
                std::iter::once(series.name.clone()).chain(cells).collect()
            };
            let names = xs.iter().map(|&x| name(x));
            (names.collect(), picture.series.iter().map(row).collect())
        };
    let head: Vec<String> = std::iter::once(picture.x.label.clone()).chain(head).collect();
    page.table(&head, &rows);
    passages(page, picture);
    page.raw("</details>");
}

/// Writes what the paper states, also beyond the ends of the chart.
fn passages(page: &mut Markup, picture: &Picture) {
    if picture.series.iter().all(|series| series.stated.is_empty()) {
        return;
    }
    page.raw("<ul class=\"notes\">");
    for series in &picture.series {
        for point in &series.stated {
            let beyond = if is_shown(picture, point.x) { "" } else { " It is beyond this chart." };
            let said = statement(picture, series, point);
            page.element("li", &format!("{said}{beyond}"));
        }
    }
    page.raw("</ul>");
}

/// Formats all values of a series at `x`; a dash if there are none.
fn cell(series: &Series, x: f64) -> String {
    let at = series.points.iter().enumerate().filter(|(_, point)| point.0 == x);
    let values: Vec<String> = at
        .map(|(index, point)| match series.spread.get(index) {
            Some(&(low, high)) => {
                format!("{} ({}–{})", significant(point.1), significant(low), significant(high))
            }
            None => significant(point.1),
        })
        .collect();
    if values.is_empty() { "–".to_owned() } else { values.join(", ") }
}

/// Writes the legend of a map: its colours.
fn legend_of_map(page: &mut Markup) {
    page.raw("<ul class=\"legend\">");
    for (index, name) in steps().iter().enumerate() {
        page.line(format_args!(
            "<li><svg width=\"20\" height=\"12\" aria-hidden=\"true\"><rect width=\"20\" \
             height=\"12\" class=\"fstep{}\"/></svg>",
            index + 1
        ))
        .text(name)
        .raw("</li>");
    }
    page.raw("</ul>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Axis, StatedPoint};

    #[test]
    fn the_table_has_every_point() {
        let mut series = Series::new("lock", [(1.0, 2.0), (1.0, 3.0), (2.0, 4.0)]);
        let stated = |x| StatedPoint { x, y: 3.0, passage: "thrice".to_owned() };
        series.stated = [2.0, 11.0].map(stated).into();
        let spread = Series::new("queue", [(1.0, 5.0)]).with_spread([(4.5, 6.0)]);
        let picture = Picture {
            title: "twice at one x".to_owned(),
            shape: Shape::Lines,
            x: Axis::linear("threads"),
            y: Axis::linear("ns"),
            series: vec![series, spread],
        };
        let mut page = Markup::default();
        figure(&mut page, &picture);
        let page = page.finish();
        assert!(page.contains("<td>2.00, 3.00</td><td>4.00</td>"), "{page}");
        assert!(page.contains("<td>5.00 (4.50–6.00)</td><td>–</td>"), "{page}");
        assert!(page.contains("2 threads: 3.00, stated by the paper. “thrice”</li>"), "{page}");
        let beyond = "11 threads: 3.00, stated by the paper. “thrice” It is beyond this chart.";
        assert!(page.contains(beyond), "{page}");
    }
}
