//! The display: how many stars each cell shows, in bands of columns before a lock each.
//!
//! Why columns and not rows: the galaxies come from the left and the right, so the stars are spread
//! over more bands.
//!
//! A star that moves leaves one cell and comes to another. The changes of a
//! [chunk](super::stars::Chunk) are sorted by band and made band by band, so a thread takes each
//! lock at most once for a chunk, holds it for as many additions as there are changes, and holds no
//! other.

use crate::body::Vector;
use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use lock_api::RawMutex;

/// Cells from left to right.
pub const WIDTH: usize = 320;

/// Cells from top to bottom.
pub const HEIGHT: usize = 240;

/// Bands of columns with a lock each: with the pool, the centres and the phase, 13 locks, as the
/// paper counted.
pub const BANDS: usize = 10;

/// Columns of a band.
const BAND: usize = WIDTH / BANDS;

/// Instructions of making a change: finding the cell, counting, and drawing it.
const CHANGE: u64 = 20;

/// The part of the plane that is shown: this far from the origin to the left and to the right.
const REACH: f64 = 6.0;

/// A cell's length.
const CELL: f64 = 2.0 * REACH / WIDTH as f64;

/// A star leaves a cell or comes to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Leaves(u32),
    Comes(u32),
}

/// The cell, counted from the top left row by row, that shows `position`; none if it is beyond the
/// edge.
#[inline]
pub(super) fn cell(position: Vector) -> Option<u32> {
    let (x, y) = pixel(position)?;
    Some((y * WIDTH + x) as u32)
}

/// The same as column and row.
#[inline]
pub(super) fn pixel([x, y, _]: Vector) -> Option<(usize, usize)> {
    let column = (x + REACH) / CELL;
    let row = HEIGHT as f64 / 2.0 - y / CELL;
    let shown = (0.0..WIDTH as f64).contains(&column) && (0.0..HEIGHT as f64).contains(&row);
    shown.then_some((column as usize, row as usize))
}

/// Changes that were not yet made, by band.
#[derive(Debug)]
pub(super) struct Changes([Vec<Change>; BANDS]);

impl Changes {
    pub(super) fn new() -> Self {
        Self([const { Vec::new() }; BANDS])
    }

    #[inline]
    pub(super) fn add(&mut self, change: Change) {
        let (Change::Leaves(cell) | Change::Comes(cell)) = change;
        self.0[cell as usize % WIDTH / BAND].push(change);
    }
}

/// The bands.
pub(super) struct Display<L> {
    /// The bands of the display, each under its own lock. Written by every thread.
    bands: Vec<Named<L, Box<[u32]>>>,
    /// The pace of a simulated machine.
    pace: Pace,
}

impl<L: RawMutex> Display<L> {
    /// Nothing shown.
    pub(super) fn new(pace: Pace, locks: &mut Locksmith<'_, L>) -> Self {
        let band = |number| {
            locks.lock(format!("band {number}"), vec![0; BAND * HEIGHT].into_boxed_slice())
        };
        Self { bands: (0..BANDS).map(band).collect(), pace }
    }

    /// Makes the changes and forgets them.
    pub(super) fn make(&self, changes: &mut Changes, ledger: &mut Ledger) {
        for (band, changes) in self.bands.iter().zip(&mut changes.0) {
            if changes.is_empty() {
                continue;
            }
            let mut cells = ledger.lock(band);
            self.pace.compute(SECTION);
            for change in changes.drain(..) {
                let (Change::Leaves(cell) | Change::Comes(cell)) = change;
                stanchion_machine::write(&cells[within(cell)]);
                self.pace.compute(CHANGE);
                match change {
                    Change::Leaves(cell) => cells[within(cell)] -= 1,
                    Change::Comes(cell) => cells[within(cell)] += 1,
                }
            }
        }
    }

    /// Returns the contents of all cells, from the top left row by row.
    pub(super) fn cells(&self, ledger: &mut Ledger) -> Vec<u32> {
        let mut all = vec![0; WIDTH * HEIGHT];
        for (number, band) in self.bands.iter().enumerate() {
            let cells = ledger.lock(band);
            for (row, cells) in cells.chunks_exact(BAND).enumerate() {
                all[row * WIDTH + number * BAND..][..BAND].copy_from_slice(cells);
            }
        }
        all
    }
}

/// Returns the position of a cell in its band, which holds its rows one after another.
#[inline]
fn within(cell: u32) -> usize {
    let (row, column) = (cell as usize / WIDTH, cell as usize % WIDTH);
    row * BAND + column % BAND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corners() {
        let edge = |x: f64, y: f64| pixel([x, y, 0.0]);
        assert_eq!(edge(-6.0, 4.5), Some((0, 0)));
        assert_eq!(edge(5.999, -4.499), Some((WIDTH - 1, HEIGHT - 1)));
        assert_eq!(edge(0.0, 0.0), Some((WIDTH / 2, HEIGHT / 2)));
        for (x, y) in
            [(6.0, 0.0), (-6.001, 0.0), (0.0, 4.501), (0.0, -4.5), (f64::NAN, 0.0), (0.0, f64::NAN)]
        {
            assert_eq!(edge(x, y), None, "({x}, {y})");
        }
        assert_eq!(cell([5.999, -4.499, 9.0]), Some((WIDTH * HEIGHT - 1) as u32));
    }

    #[test]
    fn what_comes_is_shown_until_it_leaves() {
        let make = |_: &str| parking_lot::RawMutex::INIT;
        let mut locks = Locksmith::<parking_lot::RawMutex>::new(&make);
        let display = Display::new(Pace::new(0), &mut locks);
        let mut ledger = Ledger::new(locks.names().len());
        let mut show = |list: &[Change]| {
            let mut changes = Changes::new();
            list.iter().for_each(|&change| changes.add(change));
            display.make(&mut changes, &mut ledger);
            let cells = display.cells(&mut ledger);
            (0..).zip(cells).filter(|cell| cell.1 > 0).collect::<Vec<(u32, u32)>>()
        };
        let last = (WIDTH * HEIGHT - 1) as u32;
        assert_eq!(
            show(&[Change::Comes(0), Change::Comes(last), Change::Comes(0)]),
            [(0, 2), (last, 1)]
        );
        assert_eq!(
            show(&[Change::Leaves(last), Change::Comes(1_234), Change::Leaves(0)]),
            [(0, 1), (1_234, 1)]
        );
    }
}
