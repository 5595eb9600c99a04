//! The times of null threads, by strategy and processors.

use super::PAPER;
use stanchion_study::outcome::{Axis, Picture, Series, Shape, Table};
use stanchion_study::units::{nanos, percent, significant};

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Cell {
    /// Nanoseconds for a thread, all processors together.
    pub(in super::super) pace: f64,
    /// Share of the time in which the bus was busy, where there is a bus that can be measured.
    pub(in super::super) bus: Option<f64>,
}

/// All measurements of a figure.
#[derive(Clone, Debug)]
pub(in super::super) struct Grid {
    /// The label of each row.
    names: Vec<&'static str>,
    /// The numbers of processors.
    counts: Vec<usize>,
    /// The measurements, by row, then count.
    cells: Vec<Cell>,
}

impl Grid {
    /// Returns the settings of `rows` strategies on `counts` processors, as row and count, in the
    /// order in which [`new`](Self::new) takes their cells.
    pub(super) fn settings(rows: usize, counts: &[usize]) -> Vec<(usize, usize)> {
        (0..rows).flat_map(|row| counts.iter().map(move |&count| (row, count))).collect()
    }

    pub(super) fn new(names: Vec<&'static str>, counts: Vec<usize>, cells: Vec<Cell>) -> Self {
        assert_eq!(cells.len(), names.len() * counts.len());
        Self { names, counts, cells }
    }

    pub(in super::super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Returns the column of all processors.
    pub(in super::super) fn all(&self) -> usize {
        self.counts.len() - 1
    }

    pub(in super::super) fn processors(&self) -> usize {
        self.counts[self.all()]
    }

    pub(in super::super) fn name(&self, row: usize) -> &'static str {
        self.names[row]
    }

    pub(in super::super) fn rows(&self) -> usize {
        self.names.len()
    }

    pub(in super::super) fn cell(&self, row: usize, column: usize) -> Cell {
        self.cells[row * self.counts.len() + column]
    }

    pub(in super::super) fn pace(&self, row: usize, column: usize) -> f64 {
        self.cell(row, column).pace
    }

    /// Returns the rate in threads a second.
    pub(in super::super) fn rate(&self, row: usize, column: usize) -> f64 {
        1e9 / self.pace(row, column)
    }

    /// Returns the highest rate of `row`.
    pub(in super::super) fn highest(&self, row: usize) -> f64 {
        (0..self.counts.len()).map(|column| self.rate(row, column)).fold(0.0, f64::max)
    }

    /// Returns the fewest processors with which `row` comes to `share` of its highest rate.
    pub(in super::super) fn reaches(&self, row: usize, share: f64) -> usize {
        let enough = |&column: &usize| self.rate(row, column) >= share * self.highest(row);
        let column = (0..self.counts.len()).find(enough).unwrap_or(self.all());
        self.counts[column]
    }

    /// Returns the highest of the paper's five rates over the lowest.
    pub(in super::super) fn spread(&self, column: usize) -> f64 {
        let rates = (0..PAPER).map(|row| self.rate(row, column));
        rates.clone().fold(0.0, f64::max) / rates.fold(f64::INFINITY, f64::min)
    }

    /// Draws `value` of each cell against processors, a line for each strategy.
    pub(in super::super) fn picture(
        &self,
        title: impl Into<String>,
        y: &str,
        value: impl Fn(f64) -> f64,
    ) -> Picture {
        let line = |row: usize| {
            let at = |column: usize| (self.counts[column] as f64, value(self.pace(row, column)));
            Series::new(self.names[row], (0..self.counts.len()).map(at))
        };
        Picture {
            title: title.into(),
            shape: Shape::Lines,
            x: Axis::linear("processors"),
            y: if self.is_wide() { Axis::log(y) } else { Axis::linear(y) },
            series: (0..self.rows()).map(line).collect(),
        }
    }

    /// Returns whether some cells are so far from others that only a logarithmic axis shows all.
    fn is_wide(&self) -> bool {
        let paces = self.cells.iter().map(|cell| cell.pace);
        paces.clone().fold(0.0, f64::max) > 100.0 * paces.fold(f64::INFINITY, f64::min)
    }

    /// Returns a table with a row for each strategy and a column for each number of processors.
    fn table(&self, title: &str, value: impl Fn(Cell) -> String) -> Table {
        let mut columns = vec!["strategy".to_owned()];
        columns.extend(self.counts.iter().map(usize::to_string));
        let row = |row: usize| {
            let cells = (0..self.counts.len()).map(|column| value(self.cell(row, column)));
            std::iter::once(self.names[row].to_owned()).chain(cells).collect()
        };
        Table { title: title.to_owned(), columns, rows: (0..self.rows()).map(row).collect() }
    }

    /// Returns tables of the time for one thread, and of the load of the bus if it is known.
    pub(in super::super) fn tables(&self) -> Vec<Table> {
        let mut tables =
            vec![self.table("Time for a thread, by processors", |cell| nanos(cell.pace))];
        if self.cells.iter().any(|cell| cell.bus.is_some()) {
            tables.push(self.table("Bus occupied, by processors", |cell| {
                cell.bus.map_or_else(|| "–".to_owned(), percent)
            }));
        }
        tables
    }

    /// Formats the rate in thousands of threads a second.
    pub(in super::super) fn thousands(&self, row: usize, column: usize) -> String {
        significant(self.rate(row, column) / 1e3)
    }
}

#[cfg(test)]
pub(in super::super) mod tests {
    use super::*;

    /// `pace(row, processors)` of the paper's five on `counts`.
    pub(crate) fn grid(counts: &[usize], pace: impl Fn(usize, usize) -> f64) -> Grid {
        let names = vec!["single", "multiple", "free list", "idle", "ready"];
        let cells = Grid::settings(PAPER, counts).into_iter();
        let cells = cells.map(|(row, count)| Cell { pace: pace(row, count), bus: Some(1.0) });
        Grid::new(names, counts.to_vec(), cells.collect())
    }

    #[test]
    fn cells_are_found_where_settings_put_them() {
        let grid = grid(&[1, 4], |row, count| (10 * (row + 1) + count) as f64);
        assert_eq!(grid.pace(2, 1), 34.0);
        assert_eq!(grid.rate(0, 0), 1e9 / 11.0);
        assert_eq!((grid.all(), grid.processors(), grid.rows()), (1, 4, 5));
        assert!((grid.spread(0) - 51.0 / 11.0).abs() < 1e-12);
        assert_eq!(grid.tables()[1].rows[0], ["single", "100\u{a0}%", "100\u{a0}%"]);
    }

    #[test]
    fn a_rate_is_reached_by_the_fewest_processors_that_come_near() {
        // 1, 1.95, 2, 1.9 threads in some time.
        let pace = |_, count| 1e3 / [1.0, 1.95, 2.0, 1.9][count - 1];
        let grid = grid(&[1, 2, 3, 4], pace);
        assert_eq!((grid.reaches(0, 0.9), grid.reaches(0, 1.0)), (2, 3));
        assert!((grid.highest(0) - 2e6).abs() < 1.0);
    }
}
