//! The page: how the papers' claims fare, the contents, then each experiment that ran on any
//! machine, folded to one line, then the experiments that did not run.

use std::path::Path;

use super::contents;
use super::markup::Markup;
use super::opening;
use super::parts::{finish, start};
use super::scoreboard;
use super::section::{self, Section};
use crate::results::{Entry, Results};
use crate::units::{count, named};

/// Writes the whole document: the findings of this study, beside earlier findings of the same
/// experiments on the other kind of machine. The results lie in the folder `out`, if it is known.
pub(crate) fn page(results: &Results, earlier: Option<&Results>, out: Option<&Path>) -> String {
    let mut page = Markup::default();
    start(&mut page, "Stanchion study");
    let sections = section::sections(results, earlier);
    head(&mut page, results, out);
    if results.is_real() {
        opening::answers(&mut page, &results.answers);
    }
    scoreboard::line(&mut page, &sections);
    opening::commands(&mut page, &results.answers);
    scoreboard::write(&mut page, &sections);
    facts(&mut page, results, earlier);
    opening::families(&mut page, &results.answers);
    contents::contents(&mut page, &sections);
    for paper in contents::PAPERS {
        let of: Vec<&Section<'_>> =
            sections.iter().filter(|section| section.first().paper == paper).collect();
        if of.is_empty() {
            continue;
        }
        page.line(format_args!("<section id=\"{}\">", contents::anchor_of(paper)));
        page.element("h2", paper.name()).raw("<p class=\"source\">");
        contents::write_counts(&mut page, &of);
        page.raw("</p>\n");
        of.iter().for_each(|section| section.write(&mut page));
        page.raw("</section>\n");
    }
    let shown = |entry: &&Entry| sections.iter().any(|section| section.shows(entry));
    let waiting: Vec<_> = results.entries.iter().filter(|entry| !shown(entry)).collect();
    not_run(&mut page, &waiting);
    finish(&mut page);
    page.finish()
}

fn head(page: &mut Markup, results: &Results, out: Option<&Path>) {
    page.element("h1", "Stanchion study");
    let lead = match &results.here {
        Some(_) => {
            "How locks, queues, pools and barriers behave on this computer, beside what five papers \
             measured on theirs."
        }
        None => {
            "How each way of waiting for a lock behaves on the machines of five papers, simulated \
             in virtual time, beside what the papers measured on them."
        }
    };
    page.element("p class=\"lead\"", lead);
    if let Some(warning) = results.warning() {
        page.raw("<p class=\"warning\"><strong>Read with care:</strong> ");
        page.text(&warning).raw("</p>\n");
    }
    if !results.complete {
        page.raw("<p class=\"warning\">").text(&unfinished(&results.missing()));
        if let Some((asked, out)) = results.asked.as_ref().zip(out) {
            page.raw(" This command goes on: ").element("code", &asked.command(out));
        }
        page.raw("</p>\n");
    }
}

/// Says that the study had not finished, and names the experiments that are missing.
fn unfinished(missing: &[&str]) -> String {
    let verb = if missing.len() == 1 { "is" } else { "are" };
    let missing = match missing.len() {
        0 => String::new(),
        number => format!(" {} {verb} missing: {}.", count(number, "experiment"), named(missing)),
    };
    format!("The study had not finished when this was written.{missing}")
}

/// Writes what was run, where and when, folded.
fn facts(page: &mut Markup, results: &Results, earlier: Option<&Results>) {
    let pace = if results.quick { "quick" } else { "full" };
    page.raw("<details id=\"run\"><summary>This run and its computer</summary>");
    page.raw("<dl class=\"machine\">");
    let mut lines = vec![("run", format!("{pace}, seed {}", results.seed))];
    if let Some(here) = &results.here {
        let end = here.ended.map_or_else(|| "not yet".to_owned(), date);
        lines.insert(0, ("ended", end));
        for &time in here.resumed.iter().rev() {
            lines.insert(0, ("went on", date(time)));
        }
        lines.insert(0, ("began", date(here.written)));
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
    page.raw("</dl></details>\n");
}

fn not_run(page: &mut Markup, waiting: &[&Entry]) {
    if waiting.is_empty() {
        return;
    }
    page.raw("<section>").element("h2", "Not run");
    let number = count(waiting.len(), "experiment");
    page.raw("<details class=\"experiment\"><summary>").text(&number).raw("</summary>");
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
    page.raw("<div class=\"prose body\">").raw(&section::target("not-run")).table(&columns, &rows);
    page.raw("</div></details></section>\n");
}

/// Formats seconds since 1970 as a date and time, UTC (Hinnant's civil-from-days).
pub(super) fn date(seconds: u64) -> String {
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
    use super::*;
    use crate::asked::Asked;
    use crate::grids::{self, Grid};
    use crate::host::Host;
    use crate::results::Here;

    /// A study of this computer with a grid of one family.
    fn results(cells: usize, brief: bool) -> Results {
        let machine = Host::here();
        let mut grid = grids::tests::grid(&vec![&[10.0, 5.0, 3.0][..]; cells]);
        grid = Grid {
            brief,
            processor: machine.processor.clone(),
            processors: machine.parallelism,
            ..grid
        };
        let here = Here { written: 0, ended: None, resumed: Vec::new(), machine };
        let mut results = Results::waiting(&[], Some(here), true, 1);
        results.answer(&[grid]);
        results
    }

    #[test]
    fn the_page_opens_with_what_to_use() {
        let whole = page(&results(12, false), None, None);
        let place = |part: &str| whole.find(part).unwrap_or_else(|| panic!("{part}: {whole}"));
        assert!(place("<strong>stanchion A</strong>") < place("12 cells, ± 1\u{a0}%"));
        assert!(place("href=\"#use-locks\"") < place("id=\"use-locks\""));
        assert!(place("The runner-up is B, with 2.00 times that regret.") < place("busy programs"));
        let brief = page(&results(12, true), None, None);
        assert!(brief.contains("first look: 12 cells"), "{brief}");
        assert!(brief.contains("study regret --random 60 --family locks"), "{brief}");
    }

    #[test]
    fn without_a_grid_of_this_computer_the_page_says_how_to_make_one() {
        let mut results = results(12, false);
        let other = Grid { processors: 4096, ..grids::tests::grid(&[&[1.0, 2.0][..]; 9]) };
        results.answer(&[other]);
        assert!(results.answers.is_empty());
        let page = page(&results, None, None);
        assert!(page.contains("Not measured yet") && page.contains("--random 60"), "{page}");
    }

    #[test]
    fn an_unfinished_study_says_what_is_missing_and_how_to_go_on() {
        let many: Vec<String> = (0..9).map(|number| format!("fig{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(unfinished(&many).contains("9 experiments are missing: fig0, fig1,"));
        assert!(unfinished(&many).ends_with("fig5 and 3 more."));
        assert!(unfinished(&["regsim"]).ends_with(" 1 experiment is missing: regsim."));
        assert!(unfinished(&[]).ends_with("when this was written."));
        let mut results = results(12, false);
        results.asked = Some(Asked::new(&["a<b".to_owned()]));
        let command = "<code>stanchion study 'a&lt;b' --output there --resume</code>";
        let whole = page(&results, None, Some(Path::new("there")));
        assert!(whole.contains(command), "{whole}");
        results.complete = true;
        assert!(!page(&results, None, Some(Path::new("there"))).contains("--resume"));
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_798_761_540), "2026-12-31 23:59 UTC");
    }
}
