//! The beginning of the page: what to use on this computer, a line for each family, and below the
//! figures behind each line.

use super::markup::Markup;
use super::page::date;
use super::parts::figure;
use super::section::target;
use crate::grids::{Choice, Condition, FAMILIES, Standing};
use crate::outcome::{Axis, Picture, Series, Shape};
use crate::units::{count, significant};

/// Writes the answers, a line for each family.
pub(super) fn answers(page: &mut Markup, answers: &[Choice]) {
    page.raw("<section class=\"opening\" aria-labelledby=\"use\">");
    page.element("h2 id=\"use\"", "What to use on this computer");
    if answers.is_empty() {
        let said = "Not measured yet. This command measures mutexes, in half an hour at most; the \
                    whole study has a first look at all families.";
        page.element("p", said).element("pre", &Choice::command("locks")).raw("</section>\n");
        return;
    }
    page.raw("<ul class=\"answers\">");
    for answer in answers {
        page.line(format_args!("<li><a href=\"#use-{}\">", answer.family));
        page.text(&answer.title).raw("</a> <span class=\"answer\">");
        let (first, equal) = answer
            .choose
            .split_first()
            .map_or(("", &[][..]), |(first, equal)| (first.as_str(), equal));
        page.element("strong", first);
        if !equal.is_empty() {
            let names = match equal {
                [one, other, _, ..] => {
                    format!(" · equal: {one}; {other}; and {} more", equal.len() - 2)
                }
                few => format!(" · equal: {}", few.join("; ")),
            };
            page.element("span class=\"equals\"", &names);
            // On a narrow screen, where the names would push the papers off it.
            let others = count(equal.len(), "other");
            page.element("span class=\"few\"", &format!(" · {others} equal"));
        }
        page.raw("</span> ").element("span class=\"sure\"", &answer.sure()).raw("</li>\n");
    }
    page.raw("</ul></section>\n");
}

/// Writes how to get a whole grid, if some answers are of a brief look or missing.
pub(super) fn commands(page: &mut Markup, answers: &[Choice]) {
    let brief = answers.iter().find(|answer| answer.brief).map(|answer| answer.family.as_str());
    let has = |family: &str| answers.iter().any(|answer| answer.family == family);
    let missing = FAMILIES.iter().map(|(family, _)| *family).find(|family| !has(family));
    if let Some(family) = brief.or(missing).filter(|_| !answers.is_empty()) {
        let said = "A cell is a load that was drawn at random. Throughputs that are called equal \
                    may differ by the ±. A first look has few cells. This command measures more, \
                    for one family: ";
        page.raw("<p class=\"unit\">").text(said);
        page.element("code", &Choice::command(family)).raw("</p>\n");
    }
}

/// Writes for each family its regrets, its runner-up, and where the choice flips.
pub(super) fn families(page: &mut Markup, answers: &[Choice]) {
    if answers.is_empty() {
        return;
    }
    page.raw("<section>").element("h2", "Why: each family");
    let regret = "The regret of a contestant in a cell is the throughput of the best there over its \
                  own. The best may be ours or of another crate; a contestant that starves a \
                  thread sets no best.";
    page.element("p class=\"source\"", regret);
    for answer in answers {
        page.raw("<details class=\"experiment\"><summary><span class=\"name\">");
        page.raw("<h3>").text(&answer.title).raw("</h3>").text(&answer.answer()).raw("</span>");
        page.element("span class=\"sure\"", &answer.sure()).raw("</summary><div class=\"body\">");
        page.raw(&target(&format!("use-{}", answer.family)));
        family(page, answer);
        page.raw("</div></details>\n");
    }
    page.raw("</section>\n");
}

fn family(page: &mut Markup, answer: &Choice) {
    page.element(
        "p class=\"source\"",
        &format!(
            "{} drawn cells of seed {}, {} · version {}, {} processors · {}",
            answer.cells,
            answer.seed,
            if answer.brief { "a first look" } else { "a whole grid" },
            answer.version,
            answer.processors,
            date(answer.written)
        ),
    );
    let second = answer.standings.iter().find(|of| !answer.choose.contains(&of.name));
    if let (Some(first), Some(second)) = (answer.standings.first(), second) {
        let times = second.mean / first.mean;
        page.element(
            "p",
            &format!("The runner-up is {}, with {times:.2} times that regret.", second.name),
        );
    }
    let flips = answer.flips();
    for flip in &flips {
        page.element("p", flip);
    }
    if flips.is_empty() {
        page.element("p", "In no part of the cells another contestant is better.");
    }
    for (name, reason) in &answer.left_out {
        page.element("p", &format!("Left out: {name}, because it {reason}."));
    }
    let columns = ["", "regret", "p90", "worst", "processor time", "p99.9 wait"];
    let columns: Vec<String> = columns.map(str::to_owned).into();
    let figure_of = |figure: Option<f64>| figure.map_or_else(|| "–".to_owned(), significant);
    let row = |of: &Standing| {
        vec![
            of.name.clone(),
            significant(of.mean),
            significant(of.p90),
            significant(of.worst),
            figure_of(of.processor_time),
            figure_of(of.tail),
        ]
    };
    let rows: Vec<Vec<String>> = answer.standings.iter().map(row).collect();
    page.table(&columns, &rows);
    page.element(
        "p class=\"unit\"",
        "Regret: the geometric mean over the cells, the 90th percentile, the worst. Processor time \
         and the 99.9th percentile of waits: over the least of the cell, geometric means.",
    );
    figure(page, &map(answer));
}

/// Draws the regrets in each part of the cells.
fn map(answer: &Choice) -> Picture {
    let columns = answer.conditions.first().map_or(0, |condition| condition.means.len());
    let names = answer.standings.iter().take(columns).map(|standing| standing.name.clone());
    let row = |condition: &Condition| {
        let points = condition.means.iter().enumerate().map(|(at, &mean)| (at as f64, mean));
        Series::new(format!("{} ({})", condition.words, condition.cells), points)
    };
    Picture {
        title: "Mean regret, by threads, length of the work and other programs".to_owned(),
        shape: Shape::Map,
        x: Axis::named("contestant", names.collect()),
        y: Axis::log("regret"),
        series: answer.conditions.iter().map(row).collect(),
    }
}
