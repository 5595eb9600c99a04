//! The contents of the page: the experiments by question and by paper.

use super::markup::Markup;
use super::parts::anchor;
use super::section::Section;
use crate::experiment::Paper;
use crate::outcome::Verdict;
use crate::results::Entry;
use crate::units::count;

/// The questions that experiments answer, with the beginnings of the experiments' names.
const QUESTIONS: [(&str, &[&str]); 6] = [
    ("Which spin lock is fast", &["all89/table3.1", "all89/fig4"]),
    ("How to manage ready threads", &["all89/"]),
    ("How long to spin before sleeping", &["klmo91/", "regsim", "regret"]),
    ("What user-level threads need of the kernel", &["sa92/"]),
    ("When to run threads at the same time", &["fr92/"]),
    ("Which structures bear that processors are shared", &["ms97/"]),
];

/// Returns the number of the question that an experiment answers.
fn question(id: &str) -> Option<usize> {
    let is_of = |begins: &[&str]| begins.iter().any(|begin| id.starts_with(begin));
    QUESTIONS.iter().position(|(_, begins)| is_of(begins))
}

/// All papers, in the order of the page.
pub(super) const PAPERS: [Paper; 5] =
    [Paper::All89, Paper::Klmo91, Paper::Sa92, Paper::Fr92, Paper::Ms97];

/// Returns the name of a paper's part of the page.
pub(super) fn anchor_of(paper: Paper) -> String {
    format!("paper-{}", format!("{paper:?}").to_lowercase())
}

/// The numbers of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Claims that hold.
    holds: usize,
    /// Claims that do not hold.
    differs: usize,
    /// Claims that these machines cannot decide.
    not_judged: usize,
}

impl Counts {
    /// Counts the verdicts of `entries`. An experiment that did not run has none.
    pub(super) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            match entry.outcome.verdict {
                Verdict::Holds(_) => counts.holds += 1,
                Verdict::Differs(_) => counts.differs += 1,
                Verdict::NotJudged(_) => counts.not_judged += 1,
                Verdict::NotRun(_) => {}
            }
        }
        counts
    }

    fn all(self) -> usize {
        self.holds + self.differs + self.not_judged
    }

    /// Returns the numbers for a reader: "5 hold, 1 differs".
    pub(super) fn words(self) -> String {
        let verb = |number: usize, one: &str, many: &str| {
            (number > 0).then(|| format!("{number} {}", if number == 1 { one } else { many }))
        };
        let parts = [
            verb(self.holds, "holds", "hold"),
            verb(self.differs, "differs", "differ"),
            verb(self.not_judged, "cannot be judged", "cannot be judged"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "none ran".to_owned() } else { parts.join(", ") }
    }
}

pub(super) fn link(page: &mut Markup, entry: &Entry) {
    page.line(format_args!("<a href=\"#{}\">", anchor(&entry.id)));
    page.text(&entry.id).raw("</a>");
}

/// Writes the contents, by question and by paper.
pub(super) fn contents(page: &mut Markup, sections: &[Section<'_>]) {
    if sections.is_empty() {
        return;
    }
    page.raw("<nav id=\"contents\" aria-labelledby=\"contents-head\">");
    page.element("h2 id=\"contents-head\"", "Contents").raw("<div class=\"contents\"><div>");
    page.element("h3", "By question").raw("<ul>");
    for (number, (asked, _)) in QUESTIONS.iter().enumerate() {
        let of: Vec<&Section<'_>> =
            sections.iter().filter(|section| question(section.id()) == Some(number)).collect();
        if of.is_empty() {
            continue;
        }
        page.raw("<li><details><summary>").text(asked).raw(" ");
        write_counts(page, &of);
        page.raw("</summary><ul>");
        for section in of {
            page.raw("<li>");
            section.badges(page);
            page.raw(" ");
            link(page, section.first());
            page.raw(" ").text(&section.first().title).raw("</li>");
        }
        page.raw("</ul></details></li>");
    }
    page.raw("</ul></div><div>").element("h3", "By paper").raw("<ul>");
    for paper in PAPERS {
        let of: Vec<&Section<'_>> =
            sections.iter().filter(|section| section.first().paper == paper).collect();
        if !of.is_empty() {
            page.line(format_args!("<li><a href=\"#{}\">", anchor_of(paper)));
            page.text(paper.name()).raw("</a> ");
            write_counts(page, &of);
            page.raw("</li>");
        }
    }
    page.raw("</ul></div></div></nav>\n");
}

/// Writes how many experiments there are, and how their claims fare.
pub(super) fn write_counts(page: &mut Markup, sections: &[&Section<'_>]) {
    let sides = sections.iter().flat_map(|section| section.sides().iter().copied());
    let counts = Counts::of(sides);
    let mut number = count(sections.len(), "experiment");
    if counts.all() > sections.len() {
        number += &format!(", {} verdicts", counts.all());
    }
    page.element("span class=\"counts\"", &format!("{number}: {}", counts.words()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_words() {
        let counts = |holds, differs, not_judged| Counts { holds, differs, not_judged }.words();
        assert_eq!(counts(5, 1, 0), "5 hold, 1 differs");
        assert_eq!(counts(1, 0, 2), "1 holds, 2 cannot be judged");
        assert_eq!(counts(0, 0, 0), "none ran");
    }

    #[test]
    fn experiments_answer_questions() {
        assert_eq!(question("all89/table3.1"), Some(0));
        assert_eq!(question("all89/fig3.1"), Some(1));
        assert_eq!(question("regret"), Some(2));
        assert_eq!(question("ms97/levels"), Some(5));
        assert_eq!(question("xy00/fig1"), None);
    }
}
