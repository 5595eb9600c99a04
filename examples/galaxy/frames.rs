//! Frames: what the display shows, as PNG files.

use stanchion_applications::galaxy::{HEIGHT, Scene, WIDTH};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// A directory that gets a file for each frame: `frame-00000.png`, `frame-00001.png` and so on.
#[derive(Debug)]
pub(crate) struct Frames {
    directory: PathBuf,
    written: u64,
}

/// A frame or its directory that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {}", .0.display(), .1)]
pub(crate) struct Unwritable(PathBuf, io::Error);

impl Frames {
    /// Makes the directory if it is not there.
    pub(crate) fn new(directory: &Path) -> Result<Self, Unwritable> {
        fs::create_dir_all(directory).map_err(|error| Unwritable(directory.to_owned(), error))?;
        Ok(Self { directory: directory.to_owned(), written: 0 })
    }

    /// Writes the next frame.
    pub(crate) fn write(&mut self, scene: &Scene) -> Result<(), Unwritable> {
        let path = self.directory.join(format!("frame-{:05}.png", self.written));
        let written = File::create(&path).and_then(|file| {
            let mut encoder = png::Encoder::new(BufWriter::new(file), WIDTH as u32, HEIGHT as u32);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&image(scene))?;
            Ok(writer.finish()?)
        });
        self.written += 1;
        written.map_err(|error| Unwritable(path, error))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}

/// Red, green and blue of each cell: stars are white, the brighter the more, and the centres are red crosses.
pub(crate) fn image(scene: &Scene) -> Vec<u8> {
    let grey = |stars: u32| match stars {
        0 => 0,
        // One star can be seen, 64 and more are white: a step for each doubling.
        stars => (75 + 30 * stars.ilog2()).min(255) as u8,
    };
    let mut image: Vec<u8> = scene.cells.iter().flat_map(|&stars| [grey(stars); 3]).collect();
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
