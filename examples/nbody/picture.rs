//! The cluster, as a picture.

use crate::frames::brightness;
use stanchion_applications::nbody::Vector;

/// Cells from side to side, and from top to bottom.
pub const SIZE: usize = 480;

/// The distance from the centre to the edge of the picture: half of the mass is within a quarter of
/// it.
const REACH: f64 = 3.0;

/// Red, green and blue of each cell, from the top left row by row: the more bodies, the brighter.
/// Seen along the third axis.
pub fn image(positions: impl Iterator<Item = Vector>) -> Vec<u8> {
    let mut cells = vec![0_u32; SIZE * SIZE];
    let scale = SIZE as f64 / (2.0 * REACH);
    for [x, y, _] in positions {
        let (column, row) = ((REACH + x) * scale, (REACH - y) * scale);
        let shown = 0.0..SIZE as f64;
        if shown.contains(&column) && shown.contains(&row) {
            cells[row as usize * SIZE + column as usize] += 1;
        }
    }
    cells.into_iter().flat_map(|bodies| [brightness(bodies); 3]).collect()
}
