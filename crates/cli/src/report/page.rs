//! The page: summary first, then each experiment that ran anywhere, then those that did not.

use super::chart::{COLOURS, chart, columns, tick};
use super::map;
use super::markup::Markup;
use super::section::{self, Section};
use crate::error::Error;
use crate::study::outcome::{Picture, Shape, Verdict};
use crate::study::{Earlier, Entry, Results};
use crate::units::significant;

const STYLE: &str = include_str!("style.css");

/// The whole document: what this study found, beside what is known of the same experiments on the other kind of machine.
pub(crate) fn page(results: &Results, earlier: Option<&Earlier>) -> Result<String, Error> {
    let mut page = Markup::default();
    start(&mut page, "Stanchion study");
    head(&mut page, results, earlier);
    let sections = section::sections(results, earlier);
    summary(&mut page, &sections);
    for section in &sections {
        section.write(&mut page)?;
    }
    let shown = |entry: &&Entry| sections.iter().any(|section| section.shows(entry));
    let waiting: Vec<_> = results.entries.iter().filter(|entry| !shown(entry)).collect();
    not_run(&mut page, &waiting);
    finish(&mut page);
    Ok(page.finish())
}

/// What comes before the first heading of a page.
pub(super) fn start(page: &mut Markup, title: &str) {
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">")
        .element("title", title)
        .raw("<style>\n")
        .raw(STYLE)
        .raw("</style></head><body><main>\n");
}

/// What comes at the end of a page.
pub(super) fn finish(page: &mut Markup) {
    page.raw("</main></body></html>\n");
}

fn head(page: &mut Markup, results: &Results, earlier: Option<&Earlier>) {
    page.element("h1", "Stanchion study");
    let pace = if results.quick { "quick" } else { "full" };
    let lead = match &results.here {
        Some(_) => {
            "How each way of waiting for a lock behaves on this computer, beside what five papers \
             measured on theirs."
        }
        None => {
            "How each way of waiting for a lock behaves on the machines of five papers, simulated \
             in virtual time, beside what the papers measured on them."
        }
    };
    page.element("p class=\"lead\"", lead);
    page.raw("<dl class=\"machine\">");
    let mut lines = vec![("run", format!("{pace}, seed {}", results.seed))];
    if let Some(here) = &results.here {
        lines.insert(0, ("written", date(here.written)));
    }
    if !results.complete {
        lines.push(("complete", "no: more was to be run when this was written".to_owned()));
    }
    for machine in &results.machines {
        lines.push(("simulated", format!("{}, {} processors", machine.name, machine.processors)));
    }
    match earlier.map(|earlier| earlier.written) {
        Some(Some(written)) => {
            lines.push(("real", format!("from results.json of {}", date(written))));
        }
        Some(None) => lines.push(("simulated", "from simulated.json".to_owned())),
        None => {}
    }
    lines.extend(results.here.iter().flat_map(|here| here.machine.lines()));
    for (what, value) in lines {
        page.raw("<div>").element("dt", what).element("dd", &value).raw("</div>");
    }
    page.raw("</dl>\n");
    if let Some(warning) = results.here.as_ref().and_then(|here| here.machine.warning()) {
        page.raw("<p class=\"warning\"><strong>Read with care:</strong> ")
            .text(&warning)
            .raw(".</p>\n");
    }
}

fn summary(page: &mut Markup, sections: &[Section<'_>]) {
    if sections.is_empty() {
        return;
    }
    page.raw("<h2>What was found</h2>\n<ul class=\"summary\">");
    for section in sections {
        for entry in section.sides() {
            page.raw("<li>");
            badge(page, &entry.outcome.verdict);
            page.line(format_args!("<a href=\"#{}\">", anchor(&entry.id)))
                .text(&entry.id)
                .raw("</a> ")
                .element("span", &entry.title)
                .raw(" ")
                .element("span class=\"place\"", &entry.place())
                .raw("</li>\n");
        }
    }
    page.raw("</ul>\n");
}

pub(super) fn badge(page: &mut Markup, verdict: &Verdict) {
    let (class, mark) = match verdict {
        Verdict::Holds(_) => ("holds", "✓"),
        Verdict::Differs(_) => ("differs", "≠"),
        Verdict::NotJudged(_) => ("not-run", "?"),
        Verdict::NotRun(_) => ("not-run", "–"),
    };
    page.line(format_args!("<span class=\"badge {class}\">{mark} {}</span> ", verdict.name()));
}

pub(super) fn anchor(id: &str) -> String {
    id.replace(['/', '.'], "-")
}

/// The picture at the width that fits, its legend, and its numbers.
pub(super) fn figure(page: &mut Markup, id: &str, picture: &Picture) -> Result<(), Error> {
    let [wide, narrow] =
        chart(picture).map_err(|reason| Error::Draw { id: id.to_owned(), reason })?;
    page.raw("<figure>").element("figcaption", &picture.title);
    legend(page, picture);
    page.line(format_args!(
        "<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>\n"
    ));
    let xs = columns(&picture.series);
    let downwards = picture.series.len() <= 3 && xs.len() > 12;
    // A long table would push what follows out of sight.
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
    // Few series over many x read better downwards.
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
        let row = |series: &crate::study::outcome::Series| {
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

/// The colours of a map.
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

/// `x` with what it counts: "1 thread", "8 threads", "50 ns of critical section".
fn with_unit(x: f64, label: &str) -> String {
    let count = tick(x);
    match (label.split_once(", "), label.strip_suffix('s')) {
        (Some((what, unit)), _) => format!("{count} {unit} of {what}"),
        (None, Some(one)) if x == 1.0 => format!("{count} {one}"),
        _ => format!("{count} {label}"),
    }
}

fn not_run(page: &mut Markup, waiting: &[&Entry]) {
    if waiting.is_empty() {
        return;
    }
    page.raw("<section id=\"not-run\">").element("h2", "Not run");
    let columns = ["experiment", "what it shows", "claim to check", "why not"].map(str::to_owned);
    let row = |entry: &&Entry| {
        vec![
            entry.id.clone(),
            entry.title.clone(),
            entry.claim.clone(),
            entry.outcome.verdict.because().to_owned(),
        ]
    };
    let rows: Vec<_> = waiting.iter().map(row).collect();
    page.raw("<div class=\"prose\">").table(&columns, &rows).raw("</div></section>\n");
}

/// Seconds since 1970 as a date and time, UTC (Hinnant's civil-from-days).
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::{date, with_unit};

    #[test]
    fn units() {
        assert_eq!(with_unit(1.0, "threads"), "1 thread");
        assert_eq!(with_unit(8.0, "threads"), "8 threads");
        assert_eq!(with_unit(50.0, "critical section, ns"), "50 ns of critical section");
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_798_761_540), "2026-12-31 23:59 UTC");
    }
}
