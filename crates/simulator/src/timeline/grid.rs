//! A timeline laid on a grid: for each row and each column of a drawing, the time of each activity
//! there.
//!
//! Why a grid and not the spans themselves: a run of a second has millions of spans and a drawing a
//! thousand columns. The grid is as large as the drawing for any run. One pass over the spans fills
//! it, and spans that fall into one column keep their shares of it.
//!
//! # Invariants
//!
//! 1. The columns divide the drawn time without gap or overlap; a column has at least a picosecond.
//! 2. As the spans of a row do not overlap, the shares of a cell add up to the length of its column
//!    at most.

use super::{Rows, Span};
use crate::Time;
use crate::statistics::Activity;

const ACTIVITIES: usize = Activity::ALL.len();

/// One row in one column.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// Picoseconds by activity.
    pub(super) shares: [u64; ACTIVITIES],
    /// The processor of a thread's row, the thread of a processor's, that had the longest piece.
    pub(super) occupant: Option<usize>,
    /// The length of that piece.
    longest: u64,
}

/// All rows and columns.
#[derive(Debug)]
pub(super) struct Grid {
    /// The beginning of the drawn time, in picoseconds.
    from: u64,
    /// The length of the drawn time, in picoseconds.
    length: u64,
    /// The number of columns.
    columns: usize,
    /// The cells, row by row.
    cells: Vec<Cell>,
}

impl Grid {
    /// `rows` by `columns` cells over the time between `from` and `to`, filled from `spans`.
    pub(super) fn new(
        spans: &[Span],
        kind: Rows,
        (rows, columns): (usize, usize),
        (from, to): (Time, Time),
    ) -> Self {
        let length = to.since(from).as_picos().max(1);
        // Invariant 1.
        let columns = columns.min(usize::try_from(length).unwrap_or(usize::MAX));
        let cells = vec![Cell::default(); rows * columns];
        let mut grid = Self { from: from.as_picos(), length, columns, cells };
        for span in spans {
            let (row, occupant) = match kind {
                Rows::Threads => (Some(span.thread), span.processor),
                Rows::Processors => (span.processor, Some(span.thread)),
            };
            if let Some(row) = row.filter(|&row| row < rows) {
                grid.add(row, occupant, span);
            }
        }
        grid
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the length of a column, in picoseconds.
    pub(super) fn width(&self, column: usize) -> u64 {
        self.begin(column + 1) - self.begin(column)
    }

    pub(super) fn row(&self, row: usize) -> &[Cell] {
        &self.cells[row * self.columns..][..self.columns]
    }

    /// Picoseconds by activity of a row.
    pub(super) fn sums(&self, row: usize) -> [u64; ACTIVITIES] {
        let mut sums = [0; ACTIVITIES];
        for cell in self.row(row) {
            sums.iter_mut().zip(cell.shares).for_each(|(sum, share)| *sum += share);
        }
        sums
    }

    /// Returns the beginning of a column, counted from the beginning of the drawing.
    fn begin(&self, column: usize) -> u64 {
        (u128::from(self.length) * column as u128 / self.columns as u128) as u64
    }

    /// The column of a moment that lies in the drawing.
    fn column(&self, moment: u64) -> usize {
        let near = (u128::from(moment) * self.columns as u128 / u128::from(self.length)) as usize;
        // The division may land on the column before.
        if self.begin(near + 1) <= moment { near + 1 } else { near }
    }

    fn add(&mut self, row: usize, occupant: Option<usize>, span: &Span) {
        let clip = |time: Time| time.as_picos().saturating_sub(self.from).min(self.length);
        let (mut start, end) = (clip(span.start), clip(span.end));
        while start < end {
            let column = self.column(start);
            let piece = end.min(self.begin(column + 1)) - start;
            let cell = &mut self.cells[row * self.columns + column];
            cell.shares[span.activity as usize] += piece;
            if occupant.is_some() && piece > cell.longest {
                (cell.longest, cell.occupant) = (piece, occupant);
            }
            start += piece;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, end: u64, activity: Activity) -> Span {
        let (start, end) = (Time::picos(start), Time::picos(end));
        Span { thread: 0, processor: Some(3), activity, start, end }
    }

    #[test]
    fn what_falls_into_one_column_keeps_its_share() {
        let spans = [span(0, 3, Activity::Useful), span(3, 25, Activity::Stalled)];
        let grid = Grid::new(&spans, Rows::Threads, (1, 4), (Time::ZERO, Time::picos(40)));
        let shares: Vec<_> =
            grid.row(0).iter().map(|cell| (cell.shares[0], cell.shares[1])).collect();
        assert_eq!(shares, [(3, 7), (0, 10), (0, 5), (0, 0)]);
        assert_eq!(grid.row(0)[2].occupant, Some(3));
        assert_eq!(grid.row(0)[3].occupant, None);
    }

    #[test]
    fn a_time_shorter_than_the_drawing_has_fewer_columns() {
        let spans = [span(0, 3, Activity::Useful)];
        let grid = Grid::new(&spans, Rows::Threads, (1, 100), (Time::ZERO, Time::picos(3)));
        assert_eq!(grid.columns(), 3);
        assert_eq!(grid.sums(0)[0], 3);
    }

    proptest! {
        /// Invariants 1 and 2, and nothing is lost.
        #[test]
        fn all_that_lies_in_the_drawing_is_counted_once(
            lengths in proptest::collection::vec((1_u64..5_000, 0..ACTIVITIES), 1..60),
            columns in 1_usize..200,
            window in (0_u64..20_000, 1_u64..200_000),
        ) {
            let (mut spans, mut at) = (Vec::new(), 0);
            for (length, activity) in lengths {
                spans.push(span(at, at + length, Activity::ALL[activity]));
                at += length;
            }
            let (from, to) = (window.0, window.0 + window.1);
            let grid = Grid::new(&spans, Rows::Threads, (1, columns), (Time::picos(from), Time::picos(to)));
            let inside = at.min(to).saturating_sub(from);
            prop_assert_eq!(grid.sums(0).iter().sum::<u64>(), inside);
            prop_assert_eq!((0..grid.columns()).map(|column| grid.width(column)).sum::<u64>(), to - from);
            for (column, cell) in grid.row(0).iter().enumerate() {
                prop_assert!(cell.shares.iter().sum::<u64>() <= grid.width(column));
            }
        }
    }
}
