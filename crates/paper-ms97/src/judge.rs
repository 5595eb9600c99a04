//! The common parts of the figures' verdicts.

use std::ops::Range;

use super::BASE;
use super::grid::{Grid, Kind, LEVELS, Ratio};
use stanchion_study::outcome::{Comparison, Verdict};
use stanchion_study::units::{percent, significant};

/// The growth of a normalised time from level 1 to level 3 above which a structure degrades.
const DEGRADES: f64 = 1.25;

/// Returns the normalised times of `rows` at each level with all processors, or with one: what
/// [`best`] and [`degrades`] are about.
pub(super) fn normalised(rows: impl IntoIterator<Item = usize>, all: bool) -> Vec<Ratio> {
    let rows = rows.into_iter().filter(|&row| row != BASE);
    rows.flat_map(|row| LEVELS.map(move |level| Ratio { row, base: BASE, level, all })).collect()
}

/// Returns the verdict for one processor.
pub(super) fn alone() -> Verdict {
    Verdict::NotJudged("one processor only: no process waits for another".to_owned())
}

pub(super) fn degrades(grid: &Grid, row: usize) -> bool {
    grid.degraded(row) > DEGRADES
}

/// Returns whether `row` takes at most `most` of the base's time at every level, and no other of
/// `rivals` less at any, with all processors.
pub(super) fn best(grid: &Grid, row: usize, rivals: Range<usize>, most: f64) -> bool {
    let at = |row, level| grid.normalised(row, level, grid.all());
    let unbeaten =
        |level| rivals.clone().all(|rival| rival == row || at(rival, level) >= at(row, level));
    grid.worst(row) <= most && LEVELS.into_iter().all(unbeaten)
}

/// Formats `row`'s gain on the base at its worst level. If another of `rivals` is the best, adds
/// its gain.
pub(super) fn gain(grid: &Grid, row: usize, rivals: Range<usize>) -> String {
    let first = rivals.min_by(|&one, &other| grid.worst(one).total_cmp(&grid.worst(other)));
    let gain = 1.0 - grid.worst(row);
    let words = if gain >= 0.0 { "better" } else { "worse" };
    let mut text = format!(
        "{} is {} {words} than the preemption-safe single lock at its worst level",
        grid.name(row),
        percent(gain.abs())
    );
    if let Some(first) = first.filter(|&first| first != row) {
        text += &format!(", {} {}", grid.name(first), percent(1.0 - grid.worst(first)));
    }
    text
}

/// Compares the preemption-safe single lock's seconds with the paper's, which are for one and for
/// eleven processors at each level.
pub(super) fn absolute(grid: &Grid, paper: [[f64; 2]; 3]) -> Vec<Comparison> {
    let columns = [0, grid.all()];
    let one = |level: usize| {
        let [alone, all] = columns.map(|column| grid.cell(BASE, level, column).elapsed);
        let paper = paper[level - LEVELS.start];
        Comparison::new(
            format!("preemption-safe lock, level {level}: seconds with 1 and all processors"),
            format!("{} and {} (11)", significant(paper[0]), significant(paper[1])),
            format!("{} and {} ({})", significant(alone), significant(all), grid.processors()),
        )
    };
    LEVELS.map(one).collect()
}

/// Compares `row`'s time over the base's with the paper's, at each level with all processors.
pub(super) fn against_base(grid: &Grid, row: usize, paper: &str) -> Comparison {
    let levels: Vec<String> =
        LEVELS.map(|level| significant(grid.normalised(row, level, grid.all()))).collect();
    Comparison::new(
        format!("{} over the preemption-safe lock, levels 1, 2, 3", grid.name(row)),
        paper,
        format!("{} ({} processors)", levels.join(", "), grid.processors()),
    )
}

/// Compares the cost of levels for each of `rows` with the paper's statement. The flag of a row
/// says whether it degrades in the paper.
pub(super) fn levels(grid: &Grid, rows: &[(usize, bool)]) -> Vec<Comparison> {
    let one = |&(row, degrades): &(usize, bool)| {
        Comparison::new(
            format!("{}: normalised time at level 3 over that at level 1", grid.name(row)),
            if degrades { "“degrades significantly”" } else { "“relatively unchanged”" },
            significant(grid.degraded(row)),
        )
    };
    let kinds = [
        (Kind::NonBlocking, "structures without locks", "“relatively unchanged”"),
        (Kind::Ordinary, "ordinary locks", "more"),
    ];
    let dearest = |(kind, name, paper): (Kind, &str, &str)| {
        grid.dearest(kind).map(|cost| {
            Comparison::new(
                format!(
                    "{name}, the dearest: time per processor time granted, over that at level 1"
                ),
                paper,
                significant(cost),
            )
        })
    };
    rows.iter().map(one).chain(kinds.into_iter().filter_map(dearest)).collect()
}
