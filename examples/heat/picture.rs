//! A plate, as a picture.

use super::plate::HOT;

/// Red, green and blue of each cell: black is cold, then red, then yellow, and white is hot.
pub fn image(cells: &[f64]) -> Vec<u8> {
    let shade = |part: f64| (part.clamp(0.0, 1.0) * 255.0).round() as u8;
    let colour = |&cell: &f64| {
        let warmth = (cell / HOT).clamp(0.0, 1.0).sqrt() * 3.0;
        [shade(warmth), shade(warmth - 1.0), shade(warmth - 2.0)]
    };
    cells.iter().flat_map(colour).collect()
}
