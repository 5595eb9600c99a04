//! The papers' claims: a row for each, with what the paper says, how it fares on the simulated
//! machine at the paper's scale, and how on this computer.

use super::contents::{PAPERS, anchor_of, link};
use super::markup::Markup;
use super::parts::badge;
use super::section::Section;
use crate::experiment::{Kind, Paper};
use crate::outcome::Verdict;
use crate::results::Entry;

/// Experiments that are no claim of a paper.
const NO_CLAIM: [&str; 2] = ["all89/sec3.6", "regret"];

/// The verdicts on one claim.
struct Row<'a> {
    /// Any side of the experiment.
    about: &'a Entry,
    /// The verdict on the paper's own machine, simulated, or of a formula.
    simulated: Option<&'a Entry>,
    /// The verdict on this computer.
    here: Option<&'a Entry>,
}

impl<'a> Row<'a> {
    fn of(section: &Section<'a>) -> Option<Self> {
        let about = section.first();
        if NO_CLAIM.contains(&about.id.as_str()) {
            return None;
        }
        // An experiment names its paper's own machine first.
        let find = |is: fn(&Entry) -> bool| section.sides().iter().copied().find(|side| is(side));
        let here = find(|side| side.on.is_none() && side.kind == Kind::Real);
        let simulated = find(|side| side.on.is_some() || side.kind != Kind::Real);
        Some(Self { about, simulated, here })
    }
}

/// Numbers of claims: those that hold, and those that were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    /// The number of those that hold.
    hold: usize,
    /// The number of those that were judged.
    judged: usize,
}

impl Total {
    fn of<'a>(entries: impl IntoIterator<Item = Option<&'a Entry>>) -> Self {
        let mut total = Self::default();
        for entry in entries.into_iter().flatten() {
            total.hold += usize::from(matches!(entry.outcome.verdict, Verdict::Holds(_)));
            total.judged += usize::from(is_judged(entry));
        }
        total
    }

    fn words(self) -> String {
        match self.judged {
            0 => "–".to_owned(),
            judged => format!("{} of {judged} hold", self.hold),
        }
    }
}

fn is_judged(entry: &Entry) -> bool {
    matches!(entry.outcome.verdict, Verdict::Holds(_) | Verdict::Differs(_))
}

/// The most claims that are named where the page begins.
const NAMED: usize = 3;

/// Writes one line: how many claims hold, and the first that differ.
pub(super) fn line(page: &mut Markup, sections: &[Section<'_>]) {
    let rows: Vec<Row<'_>> = sections.iter().filter_map(Row::of).collect();
    if rows.is_empty() {
        return;
    }
    page.raw("<p class=\"claims\"><strong>The papers' claims:</strong> ");
    let simulated = Total::of(rows.iter().map(|row| row.simulated));
    let here = Total::of(rows.iter().map(|row| row.here));
    let parts = [("simulated at the papers' scale", simulated), ("on this computer", here)];
    let parts = parts.into_iter().filter(|(_, total)| total.judged > 0);
    let parts: Vec<String> = parts.map(|(of, total)| format!("{of} {}", total.words())).collect();
    page.text(&if parts.is_empty() { "none was judged".to_owned() } else { parts.join(", ") });
    let sides = rows.iter().flat_map(|row| [row.here, row.simulated]).flatten();
    let differ = |side: &&Entry| matches!(side.outcome.verdict, Verdict::Differs(_));
    let mut named: Vec<&Entry> = sides.filter(differ).collect();
    named.dedup_by_key(|side| &side.id);
    for (place, side) in named.iter().take(NAMED).enumerate() {
        page.raw(if place == 0 { ". Some differ: " } else { "; " });
        link(page, side);
        page.raw(" ").text(&side.title);
    }
    page.raw(". <a href=\"#claims\">All claims</a></p>\n");
}

/// Writes the table, if there is a claim.
pub(super) fn write(page: &mut Markup, sections: &[Section<'_>]) {
    let rows: Vec<Row<'_>> = sections.iter().filter_map(Row::of).collect();
    if rows.is_empty() {
        return;
    }
    page.raw("<section aria-labelledby=\"claims\">");
    page.element("h2 id=\"claims\"", "The papers' claims");
    page.element(
        "p class=\"unit\"",
        "Simulated: on the paper's own machine, with as many processors as it had. The name of a claim \
         leads to its figures.",
    );
    page.raw("<div class=\"scroll\" tabindex=\"0\"><table class=\"scoreboard\"><thead><tr>");
    for column in ["claim", "paper", "simulated at the paper's scale", "this computer"] {
        page.element("th scope=\"col\"", column);
    }
    page.raw("</tr></thead>");
    for paper in PAPERS {
        let of: Vec<&Row<'_>> = rows.iter().filter(|row| row.about.paper == paper).collect();
        if !of.is_empty() {
            page.raw("<tbody>");
            heading(page, paper, &of);
            of.iter().for_each(|row| one(page, row));
            page.raw("</tbody>");
        }
    }
    page.raw("</table></div></section>\n");
}

/// Writes the paper's name and its totals.
fn heading(page: &mut Markup, paper: Paper, rows: &[&Row<'_>]) {
    page.line(format_args!(
        "<tr class=\"paper\"><th scope=\"rowgroup\" colspan=\"2\"><a href=\"#{}\">",
        anchor_of(paper)
    ));
    page.text(paper.name()).raw("</a></th>");
    let simulated = Total::of(rows.iter().map(|row| row.simulated));
    let here = Total::of(rows.iter().map(|row| row.here));
    page.element("td data-of=\"simulated\"", &simulated.words());
    page.element("td data-of=\"here\"", &here.words()).raw("</tr>");
}

fn one(page: &mut Markup, row: &Row<'_>) {
    let about = row.about;
    page.raw("<tr><th scope=\"row\">");
    link(page, about);
    page.raw("</th>").element("td", &about.claim);
    for (of, side) in [("simulated", row.simulated), ("here", row.here)] {
        page.line(format_args!("<td data-of=\"{of}\">"));
        match side {
            Some(side) => verdict(page, side),
            None => _ = page.raw("–"),
        }
        page.raw("</td>");
    }
    page.raw("</tr>");
}

/// Writes a verdict and the simulated machine's name, or in grey why there is none.
fn verdict(page: &mut Markup, side: &Entry) {
    let Verdict::NotJudged(reason) = &side.outcome.verdict else {
        badge(page, &side.outcome.verdict);
        if let Some(on) = &side.on {
            page.element("span class=\"unit\"", &format!("{}, {}", on.name, on.processors));
        }
        return;
    };
    page.raw("<span class=\"unit\" title=\"").text(reason).raw("\">");
    page.text(in_short(reason)).raw("</span>");
}

/// Returns in a few words why a claim was not judged.
fn in_short(reason: &str) -> &'static str {
    let has = |words: &str| reason.contains(words);
    if has("others took the processors") || has("other programs run") {
        "the computer was busy"
    } else if has("precise") {
        "not precise enough"
    } else if has("processor") {
        "too few processors"
    } else {
        "not judged"
    }
}

#[cfg(test)]
mod tests {
    use super::super::section::sections;
    use super::*;
    use crate::experiment::{Bodies, Experiment};
    use crate::host::Host;
    use crate::results::{Here, On, Results, Took};
    use crate::target::Task;

    /// A study of one experiment with that verdict, simulated or on this computer.
    fn study(id: &'static str, on: Option<On>, verdict: Verdict) -> Results {
        let bodies = Bodies::real(|_| unreachable!("it does not run"), "of a test");
        let experiment =
            Experiment { id, paper: Paper::Ms97, title: "title", claim: "Queues < locks.", bodies };
        let kind = if on.is_some() { Kind::Simulated } else { Kind::Real };
        let task = Task { experiment: &experiment, kind, call: Err("of a test") };
        let here = Here { written: 0, ended: None, resumed: Vec::new(), machine: Host::here() };
        let mut results = Results::waiting(&[task], on.is_none().then_some(here), true, 1);
        let entry = &mut results.entries[0];
        entry.on = on;
        entry.seconds = Took::Untold;
        entry.left = false;
        entry.outcome.verdict = verdict;
        results
    }

    #[test]
    fn a_claim_has_a_row_with_both_verdicts() {
        let few = Verdict::NotJudged("one processor only: no process waits".to_owned());
        let real = study("ms97/fig1", None, few);
        let challenge = On { name: "challenge".to_owned(), processors: 11 };
        let holds = Verdict::Holds("0.5".to_owned());
        let simulated = study("ms97/fig1", Some(challenge), holds);
        let mut page = Markup::default();
        write(&mut page, &sections(&real, Some(&simulated)));
        let page = page.finish();
        for part in [
            "<a href=\"#ms97-fig1\">ms97/fig1</a>",
            "Queues &lt; locks.",
            "✓ holds",
            "challenge, 11",
            "too few processors",
            "1 of 1 hold",
            "data-of=\"here\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.find("✓ holds") < page.find("too few processors"), "{page}");
        let mut page = Markup::default();
        line(&mut page, &sections(&simulated, None));
        let page = page.finish();
        assert!(page.contains("simulated at the papers' scale 1 of 1 hold. <a"), "{page}");
        let ours = study("regret", None, Verdict::Differs("no claim of a paper".to_owned()));
        let mut page = Markup::default();
        write(&mut page, &sections(&ours, None));
        assert_eq!(page.finish(), "");
    }

    #[test]
    fn totals_are_of_the_judged() {
        assert_eq!(Total { hold: 3, judged: 4 }.words(), "3 of 4 hold");
        assert_eq!(Total::default().words(), "–");
    }

    #[test]
    fn reasons_are_short() {
        assert_eq!(in_short("one processor only: no thread waits"), "too few processors");
        assert_eq!(in_short("others took the processors: in one"), "the computer was busy");
        assert_eq!(in_short("a deciding figure is not precise enough"), "not precise enough");
        assert_eq!(in_short("the off-line optimum never spins here"), "not judged");
    }
}
