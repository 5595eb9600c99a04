//! `--frames`: pictures of a run, as PNG files.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// A directory that gets a file for each frame: `frame-00000.png`, `frame-00001.png` and so on.
#[derive(Debug)]
pub struct Frames {
    directory: PathBuf,
    size: (usize, usize),
    written: u64,
}

/// A frame or its directory that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {}", .0.display(), .1)]
pub struct Unwritable(PathBuf, #[source] io::Error);

impl Frames {
    /// For frames of `size`, width first. Makes the directory if it is not there.
    ///
    /// # Errors
    ///
    /// [`Unwritable`] if it cannot be made.
    pub fn new(directory: &Path, size: (usize, usize)) -> Result<Self, Unwritable> {
        fs::create_dir_all(directory).map_err(|error| Unwritable(directory.to_owned(), error))?;
        Ok(Self { directory: directory.to_owned(), size, written: 0 })
    }

    /// Writes the next frame: red, green and blue of each cell, from the top left row by row.
    ///
    /// # Errors
    ///
    /// [`Unwritable`] names the file.
    pub fn write(&mut self, image: &[u8]) -> Result<(), Unwritable> {
        let path = self.directory.join(format!("frame-{:05}.png", self.written));
        let (width, height) = self.size;
        let written = File::create(&path).and_then(|file| {
            let mut encoder = png::Encoder::new(BufWriter::new(file), width as u32, height as u32);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(image)?;
            Ok(writer.finish()?)
        });
        self.written += 1;
        written.map_err(|error| Unwritable(path, error))
    }

    /// Where the frames are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many there are.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// How bright a cell with so many bodies is, 0 to 255: one can be seen, 64 and more are white, with a step for each doubling.
#[must_use]
pub fn brightness(bodies: u32) -> u8 {
    match bodies {
        0 => 0,
        bodies => (75 + 30 * bodies.ilog2()).min(255) as u8,
    }
}
