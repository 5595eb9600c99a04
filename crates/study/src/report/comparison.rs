//! The page of several computers: what is safe on all, a line for each family, the computers, and
//! below for each family the answer on each. Files are named by their number, because their names
//! may name computers.

use super::markup::Markup;
use super::parts::{figure, finish, start};
use super::section::target;
use crate::outcome::{Axis, Picture, Series, Shape};
use crate::share::{Comparison, Question, Row};
use crate::units::{count, significant};

/// The most contestants in the map.
const COLUMNS: usize = 8;

/// Writes the whole document.
pub(super) fn page(comparison: &Comparison) -> String {
    let mut page = Markup::default();
    start(&mut page, "Stanchion comparison");
    page.element("h1", "Stanchion comparison");
    let computers = count(comparison.computers.len(), "computer");
    let lead = format!("What to use on {computers}, and what is safe on all of them.");
    page.element("p class=\"lead\"", &lead);
    safe(&mut page, &comparison.questions);
    list(&mut page, comparison);
    if !comparison.questions.is_empty() {
        page.raw("<section>").element("h2", "Each family");
        comparison.questions.iter().for_each(|of| question(&mut page, of));
        page.raw("</section>\n");
    }
    finish(&mut page);
    page.finish()
}

/// Writes what is safe on all, a line for each family.
fn safe(page: &mut Markup, questions: &[Question]) {
    page.raw("<section class=\"opening\" aria-labelledby=\"safe\">");
    page.element("h2 id=\"safe\"", "What is safe on all");
    if questions.is_empty() {
        page.element("p", "No family has enough cells on any of these computers.");
    }
    page.raw("<ul class=\"answers\">");
    for question in questions {
        page.line(format_args!("<li><a href=\"#all-{}\">", question.family));
        page.text(&question.title).raw("</a> <span class=\"answer\">");
        match question.rows.first() {
            Some(row) => {
                page.element("strong", &row.name);
                page.text(&format!(
                    " · at worst the best is {} times as fast",
                    significant(row.worst())
                ));
                page.text(&row.starved());
            }
            None => {
                page.text("no contestant can be chosen on all");
            }
        }
        page.raw("</span> ").element("span class=\"sure\"", &question.sure()).raw("</li>\n");
    }
    let said = "Safe is the contestant with the smallest worst regret in any cell of any computer. \
                The regret in a cell is the throughput of the best there over the contestant's own. \
                Each computer has as many cells as the one with the fewest.";
    page.raw("</ul>").element("p class=\"unit\"", said).raw("</section>\n");
}

/// Writes the computers, and the files that do not count.
fn list(page: &mut Markup, comparison: &Comparison) {
    page.raw("<section>").element("h2", "The computers");
    let columns =
        ["", "processor", "processors", "cores", "sockets", "NUMA nodes", "kernel", "memory"];
    let known = |number: Option<usize>| number.map_or_else(|| "–".to_owned(), |n| n.to_string());
    let rows: Vec<Vec<String>> = (comparison.computers.iter().enumerate())
        .map(|(at, (computer, _))| {
            let memory = computer.memory_gib.map(|gib| format!("up to {gib} GiB"));
            vec![
                (at + 1).to_string(),
                computer.processor.clone(),
                computer.processors.to_string(),
                known(computer.cores),
                known(computer.sockets),
                known(computer.nodes),
                computer.kernel.clone(),
                memory.unwrap_or_else(|| "–".to_owned()),
            ]
        })
        .collect();
    page.table(&columns.map(str::to_owned), &rows);
    let certain = comparison.left_out.iter().filter(|out| out.certain).count();
    let perhaps = comparison.left_out.len() - certain;
    if certain > 0 {
        let files = count(certain, "further file");
        let said = format!("Not counted: {files} with the random number of one of these.");
        page.element("p class=\"unit\"", &said);
    }
    if perhaps > 0 {
        let said = format!(
            "Not counted: {} of perhaps the same computer as one of these: equal processor, count \
             and kernel. With --distinct they count.",
            count(perhaps, "further file")
        );
        page.element("p class=\"unit\"", &said);
    }
    page.raw("</section>\n");
}

/// Writes the answer of each computer, and the regrets of each contestant.
fn question(page: &mut Markup, question: &Question) {
    page.raw("<details class=\"experiment\"><summary><span class=\"name\">");
    page.raw("<h3>").text(&question.title).raw("</h3>");
    page.text(question.rows.first().map_or("none on all", |row| &row.name)).raw("</span>");
    page.element("span class=\"sure\"", &question.sure()).raw("</summary><div class=\"body\">");
    page.raw(&target(&format!("all-{}", question.family)));
    let columns = ["computer", "what to use there", "how sure", "seed", "version"];
    let rows: Vec<Vec<String>> = (question.answers.iter())
        .map(|answer| {
            let choice = &answer.choice;
            vec![
                (answer.computer + 1).to_string(),
                choice.answer(),
                choice.sure(),
                choice.seed.to_string(),
                choice.version.clone(),
            ]
        })
        .collect();
    page.table(&columns.map(str::to_owned), &rows);
    if question.rows.is_empty() {
        page.element("p", "No contestant can be chosen on all of these computers.");
    } else {
        regrets(page, question);
    }
    page.raw("</div></details>\n");
}

fn regrets(page: &mut Markup, question: &Question) {
    let places = question.answers.iter().map(|answer| format!("on {}", answer.computer + 1));
    let columns: Vec<String> = ["".to_owned(), "worst".to_owned()]
        .into_iter()
        .chain(places)
        .chain(["cells with a starved thread".to_owned()])
        .collect();
    let row = |row: &Row| {
        let regret = |&(mean, worst): &(f64, f64)| {
            format!("{} (mean {})", significant(worst), significant(mean))
        };
        let ends = [row.name.clone(), significant(row.worst())];
        let regrets = row.regrets.iter().map(regret);
        ends.into_iter().chain(regrets).chain([row.starves.to_string()]).collect()
    };
    let rows: Vec<Vec<String>> = question.rows.iter().map(row).collect();
    page.element("h4", "Worst regrets").table(&columns, &rows);
    let unit = format!("{}; the safest first.", question.sure());
    page.element("p class=\"unit\"", &unit);
    figure(page, &map(question));
}

/// Draws the worst regret on each computer.
fn map(question: &Question) -> Picture {
    let shown = || question.rows.iter().take(COLUMNS);
    let series = question.answers.iter().enumerate().map(|(at, answer)| {
        let worst = shown().enumerate().map(|(column, row)| (column as f64, row.regrets[at].1));
        Series::new(format!("computer {}", answer.computer + 1), worst)
    });
    Picture {
        title: "Worst regret on each computer".to_owned(),
        shape: Shape::Map,
        x: Axis::named("contestant", shown().map(|row| row.name.clone()).collect()),
        y: Axis::log("regret"),
        series: series.collect(),
    }
}
