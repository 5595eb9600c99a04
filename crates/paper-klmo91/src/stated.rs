//! The figures that the paper states of its machine, which are what the simulated Firefly is told,
//! and the points that its tables state for the charts.

use stanchion_study::experiment::Paper;
use stanchion_study::stated::{Beside, Point, Stated, Unit, X};

use super::paper::{self, Elapsed};
use super::race::HERE;
use super::waits::judge::{COLUMNS, SPIN};
use super::{table1, table3, table4};

/// Returns the figures that the paper states.
pub fn stated() -> Vec<Stated> {
    vec![
        Stated::input(
            (Paper::Klmo91, "section 4"),
            "C, the context switch",
            (Unit::Nanos, 200_000.0),
        ),
        Stated::not_comparable(
            (Paper::Klmo91, "tables 1 to 4"),
            "seconds of programs",
            "their inputs and the programs that ran beside them are not known",
        ),
    ]
}

/// The programs of the paper that are built anew. Of the others no waits stand beside the paper's.
const PROGRAMS: [&str; 3] = ["Galaxy", "Hanoi", "Regsim"];

/// Returns the points that the paper states for the charts.
pub fn points() -> Vec<Point> {
    let cost = |program: &'static str| {
        let costs = paper::costs(program).into_iter().flatten().zip(COLUMNS);
        // The paper's recorder cut the waits of always-spin; those of the chart are whole.
        let comparable = costs.filter(|(_, column)| column.head != COLUMNS[SPIN].head);
        comparable.map(move |(&y, column)| Point {
            experiment: table1::EXPERIMENT.id,
            series: column.head,
            x: X::Named(program),
            y,
            beside: Beside::All,
            passage: format!("Table 1, {program}: {y:.3}."),
        })
    };
    let elapsed = |(experiment, number, table): (_, _, [Elapsed; 8])| {
        table.map(|row| Point {
            experiment,
            series: row.strategy,
            x: X::Named(HERE),
            y: row.seconds / table[0].seconds,
            beside: Beside::All,
            passage: format!(
                "Table {number}, {}: {:.1} seconds, always-block {:.1}.",
                row.strategy, row.seconds, table[0].seconds
            ),
        })
    };
    let tables =
        [(table3::EXPERIMENT.id, 3, paper::TABLE_3), (table4::EXPERIMENT.id, 4, paper::TABLE_4)];
    PROGRAMS.into_iter().flat_map(cost).chain(tables.into_iter().flat_map(elapsed)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::race::standings;
    use super::*;
    use stanchion_study::stated::place;

    #[test]
    fn each_strategy_has_the_point_of_its_row() {
        for experiment in [table3::EXPERIMENT.id, table4::EXPERIMENT.id] {
            let mut pictures = [standings([1.0; 11]).picture("made up")];
            assert_eq!(place(&points(), experiment, &mut pictures, true), Ok(()));
            let stated = pictures[0].series.iter().map(|series| series.stated.len());
            assert_eq!(stated.collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
        }
    }
}
