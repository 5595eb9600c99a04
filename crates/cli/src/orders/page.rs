//! The section on the orders of locks in a page.

use stanchion_study::report::markup::Markup;
use stanchion_study::units::{count, grouped_count};

use super::graph::{Graph, MOST};
use super::{Cycle, Orders, Step, draw};

/// The most findings of each kind that are written, and the most pairs.
const SHOWN: usize = 100;

/// Writes a warning with a link to the section, if there are cycles.
pub(crate) fn warning(page: &mut Markup, orders: &Orders) {
    if orders.cycles.is_empty() {
        return;
    }
    let found = count(orders.cycles.len(), "possible deadlock");
    page.raw("<p class=\"warning\">").text(&found);
    page.raw(" in the <a href=\"#orders\">orders of locks</a></p>\n");
}

/// Writes the section.
pub(crate) fn write(page: &mut Markup, orders: &Orders) {
    page.raw("<section id=\"orders\">").element("h2", "Orders of locks");
    page.element("p class=\"unit\"", &super::text::summary(orders));
    picture(page, orders);
    if !orders.cycles.is_empty() {
        page.element("h3", "Cycles: possible deadlocks");
        list(page, orders, &orders.cycles, true);
    }
    if !orders.recursions.is_empty() {
        page.element("h3", "Locks that a thread took while it held them");
        page.element(
            "p class=\"unit\"",
            "A reader that reads again blocks forever if a writer waits in between. A writer that takes its lock again blocks itself.",
        );
        for step in orders.recursions.iter().take(SHOWN) {
            page.raw("<details>").element("summary", &super::text::recursion(step, orders));
            details(page, step, orders);
            page.raw("</details>\n");
        }
        more(page, orders.recursions.len());
    }
    if !orders.hints.is_empty() {
        page.element("h3", "Hints: locks of the same places in both orders");
        page.element(
            "p class=\"unit\"",
            "No two threads took the same two locks in both orders. But locks that were made at these places are taken in both.",
        );
        list(page, orders, &orders.hints, false);
    }
    pairs(page, orders);
    page.raw("<ul class=\"notes\">");
    for note in super::text::notes(orders) {
        page.element("li", &note);
    }
    page.raw("</ul></section>\n");
}

/// Draws the graph, and says what is left out.
fn picture(page: &mut Markup, orders: &Orders) {
    let graph = Graph::of(orders);
    if graph.locks.is_empty() {
        page.element("p", "No thread took a lock while it held another one, as far as was seen.");
        return;
    }
    let mut words = String::from(
        "An arrow leads from a lock that a thread held to one that it took meanwhile. Locks stand so that arrows lead down where they can.",
    );
    if graph.has_cycle {
        words += " Red arrows are cycles: their threads can block each other.";
    }
    if graph.all > graph.locks.len() {
        let which = if graph.has_cycle {
            "those in cycles and their neighbours"
        } else {
            "those with the most pairs, for there are no cycles"
        };
        words += &format!(
            " Of {} locks {} are drawn, which is at most {MOST}: {which}.",
            graph.all,
            graph.locks.len()
        );
    }
    page.raw("<figure>").element("p class=\"unit\"", &words);
    draw::write(page, &graph, orders);
    page.raw("</figure>\n");
}

/// Writes cycles, each with the call path of every step.
fn list(page: &mut Markup, orders: &Orders, cycles: &[Cycle], is_open: bool) {
    for (index, cycle) in cycles.iter().enumerate().take(SHOWN) {
        // Few findings are read, many are looked through.
        let open = if is_open && index < 3 { " open" } else { "" };
        page.line(format_args!("<details{open}>"));
        page.element("summary", &super::text::title(cycle));
        page.raw("<ol>");
        for step in &cycle.steps {
            page.raw("<li>").text(&super::text::step(step, orders));
            details(page, step, orders);
            page.raw("</li>");
        }
        page.raw("</ol></details>\n");
    }
    more(page, cycles.len());
}

/// Writes the places of a step, and its call path, the innermost function first as in a backtrace.
fn details(page: &mut Markup, step: &Step, orders: &Orders) {
    let [held, taken] = super::text::acquisitions(step, orders);
    page.raw("<ul class=\"unit\">").element("li", &format!("held: {held}"));
    page.element("li", &format!("took: {taken}"));
    for call in step.calls.iter().rev() {
        page.raw("<li>").element("code", call).raw("</li>");
    }
    page.raw("</ul>");
}

/// Says how many findings are not shown.
fn more(page: &mut Markup, all: usize) {
    if all > SHOWN {
        let more = grouped_count((all - SHOWN) as u64, "more finding");
        page.element("p class=\"unit\"", &format!("{more}: not shown"));
    }
}

/// Writes all pairs as a table.
fn pairs(page: &mut Markup, orders: &Orders) {
    if orders.pairs.is_empty() {
        return;
    }
    page.raw("<details>");
    page.element("summary", &format!("All {}", count(orders.pairs.len(), "pair")));
    let row = |pair: &super::Pair| {
        let Step { held, taken, thread, .. } = &pair.step;
        let [held, taken] = [held, taken].map(|lock| lock.words(orders));
        let cycle = if pair.is_in_cycle { "in a cycle" } else { "" };
        vec![held, taken, thread.clone(), pair.step.function().to_owned(), cycle.to_owned()]
    };
    let rows: Vec<_> = orders.pairs.iter().take(SHOWN).map(row).collect();
    let head = ["held", "taken", "first by thread", "in", ""];
    page.raw("<div class=\"beside\">");
    page.table(&head.map(str::to_owned), &rows).raw("</div>");
    more(page, orders.pairs.len());
    page.raw("</details>\n");
}
