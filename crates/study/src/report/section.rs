//! One experiment on the page: figures of the paper, a model, simulated machines and this computer,
//! side by side.
//!
//! A *side* is one run: on this computer, on a simulated machine, or of a formula. The figures of
//! all sides stand in one table. Other content of a side follows under its name.

use std::collections::BTreeSet;

use super::chart::small;
use super::markup::Markup;
use super::parts::{anchor, badge, figure};
use crate::outcome::Outcome;
use crate::results::{Entry, Results, Took};

/// All sides of one experiment, at least one.
pub(super) struct Section<'a>(Vec<&'a Entry>);

/// Returns the experiments of `results` that ran now or earlier, simulated sides first and this
/// computer last.
pub(super) fn sections<'a>(results: &'a Results, earlier: Option<&'a Results>) -> Vec<Section<'a>> {
    let real = results.here.is_some();
    let now: Vec<&Entry> = results.entries.iter().collect();
    let before: Vec<&Entry> =
        earlier.map_or_else(Vec::new, |earlier| earlier.entries.iter().collect());
    let (simulated, real) = if real { (before, now) } else { (now, before) };
    let mut seen = BTreeSet::new();
    let mut sections = Vec::new();
    for entry in &results.entries {
        if seen.insert(&entry.id) {
            // A formula that ran in both studies is one side.
            let mut places = BTreeSet::new();
            let sides: Vec<&Entry> = simulated
                .iter()
                .chain(&real)
                .filter(|side| side.id == entry.id && side.ran() && places.insert(side.place()))
                .copied()
                .collect();
            if !sides.is_empty() {
                sections.push(Section(sides));
            }
        }
    }
    sections
}

impl<'a> Section<'a> {
    pub(super) fn sides(&self) -> &[&'a Entry] {
        &self.0
    }

    /// Returns the first side, which has the experiment's name and title.
    pub(super) fn first(&self) -> &'a Entry {
        self.0[0]
    }

    pub(super) fn id(&self) -> &'a str {
        &self.first().id
    }

    /// Returns true if `entry` is of this experiment.
    pub(super) fn shows(&self, entry: &Entry) -> bool {
        self.0.iter().any(|side| side.id == entry.id)
    }

    /// Writes the marks of the verdicts: one mark if all sides agree.
    pub(super) fn badges(&self, page: &mut Markup) {
        let mut seen: Vec<&str> = Vec::new();
        for side in &self.0 {
            let verdict = &side.outcome.verdict;
            if !seen.contains(&verdict.name()) {
                seen.push(verdict.name());
                badge(page, verdict);
            }
        }
    }

    /// Writes the experiment, folded to one line. A browser that follows a link to something that
    /// is folded unfolds it, so the name that links lead to is inside.
    pub(super) fn write(&self, page: &mut Markup) {
        let first = self.first();
        let one = self.0.len() == 1;
        page.raw("<details class=\"experiment\"><summary><span class=\"name\">");
        page.raw("<h3><code>").text(&first.id).raw("</code> ").text(&first.title).raw("</h3>");
        self.badges(page);
        page.raw("</span>");
        let pictures = self.0.iter().rev().flat_map(|side| &side.outcome.pictures);
        if let Some(picture) = pictures.into_iter().next() {
            page.raw(&small(picture));
        }
        page.raw("</summary>");
        page.raw("<div class=\"body\">").raw(&target(&anchor(&first.id)));
        let took = match first.seconds {
            Took::Seconds(seconds) if one => format!(" · took {seconds:.1} s"),
            _ => String::new(),
        };
        let place = if one { format!(" · {}", first.place()) } else { String::new() };
        page.element("p class=\"source\"", &format!("{}{place}{took}", first.source));
        page.raw("<p><strong>Claim.</strong> ").text(&first.claim).raw("</p>\n");
        for side in &self.0 {
            page.raw("<p class=\"verdict\">");
            badge(page, &side.outcome.verdict);
            if !one {
                page.element("strong", &format!("{}:", side.place())).raw(" ");
            }
            page.text(side.outcome.verdict.because()).raw("</p>\n");
        }
        self.compare(page);
        for side in &self.0 {
            if !one {
                page.element("h4 class=\"place\"", &side.place());
            }
            details(page, &side.outcome);
        }
        page.raw("</div></details>\n");
    }

    /// Writes the figures of all sides. Figures with the same name stand in one row.
    fn compare(&self, page: &mut Markup) {
        let all = || self.0.iter().flat_map(|side| &side.outcome.comparisons);
        let modelled = all().any(|comparison| comparison.model.is_some());
        let mut columns = vec![String::new(), "paper".to_owned()];
        columns.extend(modelled.then(|| "model".to_owned()));
        columns.extend(self.0.iter().map(|side| side.place()));
        let mut seen = BTreeSet::new();
        let mut rows = Vec::new();
        for comparison in all() {
            if !seen.insert(&comparison.what) {
                continue;
            }
            let mut row = vec![comparison.what.clone(), comparison.paper.clone()];
            let same = |side: &Entry| {
                let mut of_side = side.outcome.comparisons.iter();
                of_side.find(|other| other.what == comparison.what).cloned()
            };
            let sides: Vec<_> = self.0.iter().map(|side| same(side)).collect();
            let none = || "–".to_owned();
            if modelled {
                let model = sides.iter().flatten().find_map(|side| side.model.clone());
                row.push(model.unwrap_or_else(none));
            }
            row.extend(sides.into_iter().map(|side| side.map_or_else(none, |side| side.here)));
            rows.push(row);
        }
        if !rows.is_empty() {
            page.raw("<div class=\"beside\">").table(&columns, &rows).raw("</div>");
        }
    }
}

/// Returns an element inside something folded that links lead to. It lies at the top of the line,
/// so a reader sees the line as well.
pub(super) fn target(id: &str) -> String {
    format!("<span class=\"target\" id=\"{id}\"></span>")
}

/// Writes the pictures, tables and notes of one side.
fn details(page: &mut Markup, outcome: &Outcome) {
    for picture in &outcome.pictures {
        figure(page, picture);
    }
    for drawn in &outcome.timelines {
        page.raw("<details>").element("summary", &format!("Timeline: {}", drawn.title));
        page.raw("<div class=\"scroll\" tabindex=\"0\">")
            .raw(&drawn.picture)
            .raw("</div></details>\n");
    }
    for table in &outcome.tables {
        page.element("h4", &table.title).table(&table.columns, &table.rows);
    }
    for swept in &outcome.counterfactuals {
        let table = swept.table();
        page.element("h4", &table.title).element("p", &swept.piece);
        if table.rows.is_empty() {
            page.raw("<p><code>--counterfactuals</code> runs it.</p>\n");
        } else {
            page.table(&table.columns, &table.rows);
        }
    }
    for table in &outcome.folded {
        page.raw("<details>").element("summary", &table.title);
        page.table(&table.columns, &table.rows).raw("</details>");
    }
    if !outcome.notes.is_empty() {
        page.raw("<ul class=\"notes\">");
        for note in &outcome.notes {
            page.element("li", note);
        }
        page.raw("</ul>\n");
    }
}
