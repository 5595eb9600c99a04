//! The display of a run, as a picture.

use crate::frames::brightness;
use stanchion_applications::galaxy::{HEIGHT, Scene, WIDTH};

/// Red, green and blue of each cell: stars are white, the brighter the more, and the centres are
/// red crosses.
pub fn image(scene: &Scene) -> Vec<u8> {
    let mut image: Vec<u8> = scene.cells.iter().flat_map(|&stars| [brightness(stars); 3]).collect();
    for (x, y) in scene.centres.into_iter().flatten() {
        let cross = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)];
        for (right, down) in cross {
            let (Some(x), Some(y)) = (x.checked_add_signed(right), y.checked_add_signed(down))
            else {
                continue;
            };
            if x < WIDTH && y < HEIGHT {
                let first = 3 * (y * WIDTH + x);
                image[first..first + 3].copy_from_slice(&[255, 40, 40]);
            }
        }
    }
    image
}
