//! The parts of every page: its beginning and end, verdict marks, and pictures with their legends
//! and numbers.

use super::chart::{COLOURS, chart, columns, tick};
use super::map;
use super::markup::Markup;
use crate::error::Error;
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
pub fn figure(page: &mut Markup, id: &str, picture: &Picture) -> Result<(), Error> {
    let [wide, narrow] =
        chart(picture).map_err(|reason| Error::Draw { id: id.to_owned(), reason })?;
    page.raw("<figure>").element("figcaption", &picture.title);
    legend(page, picture);
    page.line(format_args!(
        "<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>\n"
    ));
    let xs = columns(&picture.series);
    let downwards = picture.series.len() <= 3 && xs.len() > 12;
    // A long table starts folded, because it would push the rest of the page out of sight.
    let open = if downwards || picture.shape == Shape::Map { "" } else { " open" };
    page.line(format_args!("<details{open}><summary>The numbers</summary>"));
    let unit = match picture.shape {
        Shape::Lines | Shape::Rows | Shape::Map | Shape::Bars { .. } => {
            format!("{} by {}", picture.y.label, picture.x.label)
        }
    };
    page.element("p class=\"unit\"", &unit);
    let cell = |points: &[(f64, f64)], x: f64| {
        points
            .iter()
            .find(|point| point.0 == x)
            .map_or_else(|| "–".to_owned(), |point| significant(point.1))
    };
    // If there are few series over many x, a column for each series reads better.
    if downwards {
        let mut head = vec![picture.x.label.clone()];
        head.extend(picture.series.iter().map(|series| series.name.clone()));
        let row = |&x: &f64| {
            let cells = picture.series.iter().map(|series| cell(&series.points, x));
            std::iter::once(tick(x)).chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = xs.iter().map(row).collect();
        page.table(&head, &rows);
    } else {
        let mut head = vec![picture.x.label.clone()];
        let name = |x: f64| picture.x.names.get(x as usize).cloned().unwrap_or_else(|| tick(x));
        head.extend(xs.iter().map(|&x| name(x)));
        let row = |series: &Series| {
            let cells = xs.iter().map(|&x| cell(&series.points, x));
            std::iter::once(series.name.clone()).chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = picture.series.iter().map(row).collect();
        page.table(&head, &rows);
    }
    page.raw("</details></figure>\n");
    Ok(())
}

fn legend(page: &mut Markup, picture: &Picture) {
    if picture.shape == Shape::Map {
        return steps(page);
    }
    let names: Vec<String> = match picture.shape {
        Shape::Lines | Shape::Bars { .. } => {
            picture.series.iter().map(|series| series.name.clone()).collect()
        }
        Shape::Rows => {
            let named = |&x: &f64| picture.x.names.get(x as usize).cloned();
            let name = |x: &f64| named(x).unwrap_or_else(|| with_unit(*x, &picture.x.label));
            columns(&picture.series).iter().map(name).collect()
        }
        Shape::Map => Vec::new(),
    };
    if names.len() < 2 {
        return;
    }
    page.raw("<ul class=\"legend\">");
    for (index, name) in names.iter().enumerate() {
        let colour = index % COLOURS + 1;
        let mark = match index % 4 {
            0 => "<circle cx=\"6\" cy=\"6\" r=\"5\"",
            1 => "<polygon points=\"6,1 11,11 1,11\"",
            2 => "<rect x=\"2\" y=\"2\" width=\"8\" height=\"8\"",
            _ => "<polygon points=\"6,0 12,6 6,12 0,6\"",
        };
        page.line(format_args!(
            "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\">{mark} \
             class=\"f{colour}\"/></svg>"
        ))
        .text(name)
        .raw("</li>");
    }
    page.raw("</ul>");
}

/// Writes the legend of a map: its colours.
fn steps(page: &mut Markup) {
    page.raw("<ul class=\"legend\">");
    for (index, name) in map::legend().iter().enumerate() {
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

/// Formats `x` with the unit of `label`: "1 thread", "8 threads", "50 ns of critical section".
fn with_unit(x: f64, label: &str) -> String {
    let count = tick(x);
    match (label.split_once(", "), label.strip_suffix('s')) {
        (Some((what, unit)), _) => format!("{count} {unit} of {what}"),
        (None, Some(one)) if x == 1.0 => format!("{count} {one}"),
        _ => format!("{count} {label}"),
    }
}

#[cfg(test)]
mod tests {
    use super::with_unit;

    #[test]
    fn units() {
        assert_eq!(with_unit(1.0, "threads"), "1 thread");
        assert_eq!(with_unit(8.0, "threads"), "8 threads");
        assert_eq!(with_unit(50.0, "critical section, ns"), "50 ns of critical section");
    }
}
