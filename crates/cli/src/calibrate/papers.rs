//! `stanchion calibrate --papers`: the absolute figures that the papers state, beside those of the
//! simulated machines.

use std::time::Duration;

use stanchion_study::context::{Context, Stop};
use stanchion_study::interrupt::Interrupt;
use stanchion_study::output::Output;
use stanchion_study::progress::Progress;
use stanchion_study::stated::{Ours, Stated};

use crate::error::Error;

/// The seed of all simulated runs, as of `stanchion study`.
const SEED: u64 = 1989;
/// The time that all take, about.
const EXPECTED: Duration = Duration::from_secs(20);

/// A paper and the machine of its figures.
type List = (&'static str, fn(&Context) -> Result<Vec<Stated>, Stop>);

/// The papers, with the names of their simulated machines.
const PAPERS: [List; 5] = [
    ("Symmetry A", stanchion_paper_all89::stated),
    ("Firefly", |_| Ok(stanchion_paper_klmo91::stated())),
    ("Firefly", stanchion_paper_sa92::stated),
    ("Makbilan", stanchion_paper_fr92::stated),
    ("Challenge", stanchion_paper_ms97::stated),
];

/// Measures and prints them.
pub(super) fn run() -> Result<(), Error> {
    let progress = Progress::new(PAPERS.len(), EXPECTED);
    let mut text = String::new();
    let mut all = Vec::new();
    for (index, (machine, stated)) in PAPERS.into_iter().enumerate() {
        let part = progress.begin(index, machine, EXPECTED / PAPERS.len() as u32);
        let context = Context::new(false, SEED, Interrupt::default()).with_progress(part);
        let stated = stated(&context).map_err(|stop| failed(machine, stop))?;
        text += &table(machine, &stated);
        all.extend(stated);
    }
    progress.finish();
    let out = Output::Stdout;
    out.line(format_args!("{text}{}", summary(&all)));
    Ok(())
}

fn failed(machine: &'static str, stop: Stop) -> Error {
    let reason = match stop {
        Stop::Interrupted => "interrupted".to_owned(),
        Stop::Failed(reason) => reason,
    };
    Error::Papers { machine, reason }
}

/// Returns the rows of one paper below their headings.
fn table(machine: &str, rows: &[Stated]) -> String {
    let paper = rows.first().map_or("", |row| row.paper.name());
    let mut text = format!(
        "{paper}\nmachine: {machine}\n{:<14}{:<52}{:>12}{:>12}{:>9}\n",
        "place", "figure", "paper", "simulated", "off"
    );
    for row in rows {
        let theirs = row.theirs.map_or_else(|| "-".to_owned(), |theirs| row.unit.text(theirs));
        let (ours, off) = match &row.ours {
            Ours::Computed { figure, .. } => {
                let mark = if row.is_within() == Some(false) { " !" } else { "" };
                let off = row.off().unwrap_or_default();
                let sign = if off < 0.0 { "-" } else { "+" };
                (row.unit.text(*figure), format!("{sign}{:.1}\u{a0}%{mark}", 100.0 * off.abs()))
            }
            Ours::Input => ("input".to_owned(), String::new()),
            Ours::NotComparable(reason) => (format!("not comparable: {reason}"), String::new()),
        };
        let line = format!("{:<15}{:<51}{theirs:>10}  {ours:>10}  {off:>9}", row.place, row.what);
        text += line.trim_end();
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Returns how many of the figures with a bound are within it.
fn summary(all: &[Stated]) -> String {
    let bounded = all.iter().filter_map(Stated::is_within);
    let (within, beyond) = bounded.fold((0, 0), |(within, beyond), is_within| match is_within {
        true => (within + 1, beyond),
        false => (within, beyond + 1),
    });
    format!(
        "{within} of {} figures with a bound are within it; those beyond are marked (!)",
        within + beyond
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_study::experiment::Paper;
    use stanchion_study::stated::Unit;

    #[test]
    fn what_is_beyond_its_bound_is_marked_and_counted() {
        let place = (Paper::Ms97, "figure 1");
        let rows = [
            Stated::computed(place, "near", (Unit::Nanos, 1e9), 1.05e9, Some(0.1)),
            Stated::computed(place, "far", (Unit::Nanos, 1e9), 0.8e9, Some(0.1)),
            Stated::computed(place, "free", (Unit::Times, 3.0), 1.0, None),
            Stated::input(place, "told", (Unit::Nanos, 1e3)),
            Stated::not_comparable(place, "lost", "nothing is known"),
        ];
        let text = table("Challenge", &rows);
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(!line("near").contains('!') && line("near").contains("+5"), "{text}");
        assert!(line("far").ends_with('!') && line("far").contains("-20"), "{text}");
        assert!(!line("free").contains('!') && line("told").ends_with("input"), "{text}");
        assert!(line("lost").ends_with("not comparable: nothing is known"), "{text}");
        assert!(summary(&rows).starts_with("1 of 2 figures"), "{}", summary(&rows));
    }
}
