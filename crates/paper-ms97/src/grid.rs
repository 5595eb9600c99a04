//! The measurements of a figure: elapsed time of every structure, by processors and
//! multiprogramming level, over that of the preemption-safe single lock.
//!
//! *Degraded* is a structure's normalised time at the highest level over its normalised time at
//! level 1. All times are divided by those of one lock, so this is the cost of the level beyond its
//! cost for that lock. *Per granted* divides the elapsed time by the level too. That is the time
//! for which the processors were ours.

use std::ops::Range;

use stanchion_study::outcome::{Axis, Picture, Series, Shape, Table, range};
pub(crate) use stanchion_study::settings::structures::Kind;
use stanchion_study::units::significant;

/// Multiprogramming levels: this application, with one or two others.
pub(crate) const LEVELS: Range<usize> = 1..4;

/// The number of operations all times are scaled to.
pub(crate) const MILLION: f64 = 1e6;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Seconds for a million turns, all processes together.
    pub(crate) elapsed: f64,
    /// The part of the processors' time that the processes had.
    pub(crate) granted: f64,
}

/// The position of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The index of the structure.
    pub(crate) row: usize,
    /// The number of applications that share the processors.
    pub(crate) level: usize,
    /// The number of processors, and of processes of an application.
    pub(crate) processors: usize,
}

/// The elapsed time of a structure over that of another at the same level with as many processors.
/// A verdict uses such ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    /// The index of the structure.
    pub(crate) row: usize,
    /// The index of the structure that it is compared with.
    pub(crate) base: usize,
    /// The multiprogramming level.
    pub(crate) level: usize,
    /// Set for all processors, else one.
    pub(crate) all: bool,
}

impl Ratio {
    /// Returns whether the cell of `setting` is a part of the ratio; `processors` are all.
    pub(crate) fn uses(self, setting: Setting, processors: usize) -> bool {
        let count = if self.all { processors } else { 1 };
        let row = setting.row == self.row || setting.row == self.base;
        row && setting.level == self.level && setting.processors == count
    }
}

/// All measurements of a figure.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// The name and kind of each structure.
    rows: Vec<(&'static str, Kind)>,
    /// The numbers of processors, in ascending order.
    counts: Vec<usize>,
    /// The row all others are divided by.
    base: usize,
    /// The measurements, by level, row, count.
    cells: Vec<Cell>,
    /// The least and the greatest elapsed time of the runs of each cell; empty if each ran once.
    ranges: Vec<(f64, f64)>,
    /// The measured work, for the title of a picture.
    what: &'static str,
}

impl Grid {
    /// Returns all settings of `rows` structures on `counts` processors, in the order in which
    /// [`new`](Self::new) takes their cells.
    pub(crate) fn settings(rows: usize, counts: &[usize]) -> Vec<Setting> {
        let of_row =
            |level, row| counts.iter().map(move |&processors| Setting { row, level, processors });
        LEVELS.flat_map(|level| (0..rows).flat_map(move |row| of_row(level, row))).collect()
    }

    /// Makes a grid of the measurements of `rows`, in the order of [`settings`](Self::settings).
    pub(crate) fn new(
        rows: Vec<(&'static str, Kind)>,
        counts: Vec<usize>,
        base: usize,
        cells: Vec<Cell>,
    ) -> Self {
        assert_eq!(cells.len(), LEVELS.len() * rows.len() * counts.len());
        let what = "a million turns of all processes together";
        let ranges = Vec::new();
        Self { rows, counts, base, cells, ranges, what }
    }

    /// Returns the same grid, with the elapsed times of all `runs` of each cell.
    pub(crate) fn with_runs(self, runs: &[Vec<Cell>]) -> Self {
        let ranges = runs.iter().map(|runs| range(runs.iter().map(|cell| cell.elapsed))).collect();
        Self { ranges, ..self }
    }

    /// Returns the grid for times of `what` instead of a million turns.
    pub(crate) fn of(self, what: &'static str) -> Self {
        Self { what, ..self }
    }

    pub(crate) fn cell(&self, row: usize, level: usize, column: usize) -> Cell {
        self.cells[self.place(row, level, column)]
    }

    fn place(&self, row: usize, level: usize, column: usize) -> usize {
        ((level - LEVELS.start) * self.rows.len() + row) * self.counts.len() + column
    }

    /// Returns the column of all processors.
    pub(crate) fn all(&self) -> usize {
        self.counts.len() - 1
    }

    pub(crate) fn processors(&self) -> usize {
        self.counts[self.all()]
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn name(&self, row: usize) -> &'static str {
        self.rows[row].0
    }

    /// Returns the elapsed time over that of the base at the same level with as many processors.
    pub(crate) fn normalised(&self, row: usize, level: usize, column: usize) -> f64 {
        self.cell(row, level, column).elapsed / self.cell(self.base, level, column).elapsed
    }

    /// Returns the ratio's value.
    pub(crate) fn ratio(&self, ratio: Ratio) -> f64 {
        let column = if ratio.all { self.all() } else { 0 };
        let elapsed = |row| self.cell(row, ratio.level, column).elapsed;
        elapsed(ratio.row) / elapsed(ratio.base)
    }

    /// Returns the largest of `row`'s normalised times with all processors, over all levels.
    pub(crate) fn worst(&self, row: usize) -> f64 {
        LEVELS.map(|level| self.normalised(row, level, self.all())).fold(0.0, f64::max)
    }

    /// Returns *degraded* of the module's documentation, with all processors.
    pub(crate) fn degraded(&self, row: usize) -> f64 {
        let at = |level| self.normalised(row, level, self.all());
        at(LEVELS.end - 1) / at(LEVELS.start)
    }

    /// Returns the elapsed time for the time granted, over that at level 1, with all processors.
    pub(crate) fn per_granted(&self, row: usize, level: usize) -> f64 {
        let at = |level| {
            let cell = self.cell(row, level, self.all());
            cell.elapsed * cell.granted
        };
        at(level) / at(LEVELS.start)
    }

    /// Returns the largest cost of a level for any row of `kind`, per processor time granted.
    pub(crate) fn dearest(&self, kind: Kind) -> Option<f64> {
        let rows = (0..self.rows()).filter(|&row| self.rows[row].1 == kind);
        rows.flat_map(|row| LEVELS.map(move |level| self.per_granted(row, level))).reduce(f64::max)
    }

    /// Draws the paper's three graphs.
    pub(crate) fn pictures(&self) -> Vec<Picture> {
        let picture = |level: usize| Picture {
            title: format!("Multiprogramming level {level}"),
            shape: Shape::Lines,
            x: Axis::linear("processors"),
            y: Axis::linear("elapsed time over that of the preemption-safe single lock"),
            series: (0..self.rows()).map(|row| self.line(row, level)).collect(),
        };
        LEVELS.map(picture).collect()
    }

    fn line(&self, row: usize, level: usize) -> Series {
        let at =
            |(column, &count): (usize, &usize)| (count as f64, self.normalised(row, level, column));
        let spread = |column: usize| {
            let &(low, high) = self.ranges.get(self.place(row, level, column))?;
            let base = self.cell(self.base, level, column).elapsed;
            Some((low / base, high / base))
        };
        Series::new(self.name(row), self.counts.iter().enumerate().map(at))
            .with_spread((0..self.counts.len()).filter_map(spread))
    }

    /// Returns tables of the seconds for a million, and of the cost of the level.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let last = self.all();
        let mut columns = vec!["structure".to_owned()];
        let corners = if last == 0 { vec![0] } else { vec![0, last] };
        for level in LEVELS {
            columns.extend(
                corners
                    .iter()
                    .map(|&column| format!("level {level}, {} of processors", self.counts[column])),
            );
        }
        let seconds = |row| {
            let cells = LEVELS.flat_map(|level| corners.iter().map(move |&c| (level, c)));
            let cells = cells.map(|(level, c)| significant(self.cell(row, level, c).elapsed));
            std::iter::once(self.name(row).to_owned()).chain(cells).collect()
        };
        let cost = |row| {
            let granted = (LEVELS.start + 1..LEVELS.end)
                .map(|level| significant(self.per_granted(row, level)));
            std::iter::once(self.name(row).to_owned())
                .chain(granted)
                .chain([significant(self.degraded(row))])
                .collect()
        };
        vec![
            Table {
                title: format!("Seconds for {}", self.what),
                columns,
                rows: (0..self.rows()).map(seconds).collect(),
            },
            Table {
                title: format!(
                    "What the level costs with {} processors: time per processor time granted, over that at level 1; and normalised time at level 3 over that at level 1",
                    self.processors()
                ),
                columns: ["structure", "level 2", "level 3", "normalised"]
                    .map(str::to_owned)
                    .into(),
                rows: (0..self.rows()).map(cost).collect(),
            },
        ]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `elapsed(row, level, column)` for one and eleven processors; at level L a process has 1/L of
    /// the time.
    pub(in super::super) fn grid(
        names: &[&'static str],
        elapsed: impl Fn(usize, usize, usize) -> f64,
    ) -> Grid {
        let counts = vec![1, 11];
        let column = |setting: &Setting| usize::from(setting.processors == 11);
        let cells = Grid::settings(names.len(), &counts)
            .iter()
            .map(|setting| Cell {
                elapsed: elapsed(setting.row, setting.level, column(setting)),
                granted: 1.0 / setting.level as f64,
            })
            .collect();
        let kinds = [Kind::Ordinary, Kind::Safe, Kind::NonBlocking];
        let kind = |row: usize| kinds[row.min(2)];
        let rows = names.iter().enumerate().map(|(row, &name)| (name, kind(row))).collect();
        Grid::new(rows, counts, 1, cells)
    }

    /// Returns the same grid, in which only cells that a ratio of `deciding` uses have a time. If
    /// its verdict is the same, the verdict uses no other cell.
    pub(in super::super) fn only(grid: &Grid, deciding: &[Ratio]) -> Grid {
        let mut only = grid.clone();
        let settings = Grid::settings(grid.rows(), &grid.counts);
        for (&setting, cell) in settings.iter().zip(&mut only.cells) {
            if !deciding.iter().any(|ratio| ratio.uses(setting, grid.processors())) {
                *cell = Cell { elapsed: f64::NAN, granted: f64::NAN };
            }
        }
        only
    }

    #[test]
    fn a_ratio_is_that_of_the_cells_that_it_uses() {
        let code = |row, level, column| (100 * level + 10 * row + column) as f64;
        let grid = grid(&["a", "b", "c"], code);
        for (all, value) in [(true, 221.0 / 201.0), (false, 220.0 / 200.0)] {
            let ratio = Ratio { row: 2, base: 0, level: 2, all };
            assert_eq!(grid.ratio(ratio), value);
            assert_eq!(only(&grid, &[ratio]).ratio(ratio), value);
            let other = Ratio { all: !all, ..ratio };
            assert!(only(&grid, &[other]).ratio(ratio).is_nan());
        }
    }

    #[test]
    fn cells_are_found_where_settings_put_them() {
        let code = |row, level, column| (100 * level + 10 * row + column) as f64;
        let grid = grid(&["a", "b", "c"], code);
        for level in LEVELS {
            for row in 0..3 {
                for column in 0..2 {
                    assert_eq!(grid.cell(row, level, column).elapsed, code(row, level, column));
                }
            }
        }
        assert_eq!((grid.all(), grid.processors()), (1, 11));
    }

    #[test]
    fn what_the_level_costs_is_beyond_what_it_costs_the_base() {
        // The base takes as long as the level is high, the first row grows faster, the last not at
        // all.
        let grid = grid(&["a", "base", "c"], |row, level, _| match row {
            0 => (level * level) as f64,
            1 => level as f64,
            _ => 0.5,
        });
        assert_eq!(grid.degraded(0), 3.0);
        assert_eq!(grid.degraded(1), 1.0);
        assert_eq!(grid.per_granted(0, 3), 3.0);
        assert_eq!(grid.per_granted(1, 3), 1.0);
        assert_eq!(grid.worst(2), 0.5);
        assert_eq!(grid.dearest(Kind::Ordinary), Some(3.0));
        assert_eq!(grid.dearest(Kind::NonBlocking), Some(1.0), "level 1 is no dearer than itself");
        assert_eq!(grid.pictures().len(), 3);
        assert_eq!(grid.tables()[0].rows.len(), 3);
    }
}
