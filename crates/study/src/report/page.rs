//! The page: the summary, then each experiment that ran on any machine, then the experiments that
//! did not run.

use super::markup::Markup;
use super::parts::{anchor, badge, finish, start};
use super::section::{self, Section};
use crate::results::{Entry, Results};

/// Writes the whole document: the findings of this study, beside earlier findings of the same
/// experiments on the other kind of machine.
pub(crate) fn page(results: &Results, earlier: Option<&Results>) -> String {
    let mut page = Markup::default();
    start(&mut page, "Stanchion study");
    head(&mut page, results, earlier);
    let sections = section::sections(results, earlier);
    summary(&mut page, &sections);
    for section in &sections {
        section.write(&mut page);
    }
    let shown = |entry: &&Entry| sections.iter().any(|section| section.shows(entry));
    let waiting: Vec<_> = results.entries.iter().filter(|entry| !shown(entry)).collect();
    not_run(&mut page, &waiting);
    finish(&mut page);
    page.finish()
}

fn head(page: &mut Markup, results: &Results, earlier: Option<&Results>) {
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
        let end = here.ended.map_or_else(|| "not yet".to_owned(), date);
        lines.insert(0, ("ended", end));
        lines.insert(0, ("began", date(here.written)));
    }
    if !results.complete {
        lines.push(("complete", "no: the study had not finished when this was written".to_owned()));
    }
    for machine in &results.machines {
        lines.push(("simulated", format!("{}, {} processors", machine.name, machine.processors)));
    }
    match earlier.map(|earlier| earlier.here.as_ref().map(|here| here.written)) {
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

/// Formats seconds since 1970 as a date and time, UTC (Hinnant's civil-from-days).
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
    use super::date;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_798_761_540), "2026-12-31 23:59 UTC");
    }
}
