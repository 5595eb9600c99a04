//! `--frames`: pictures of a run, as PNG files.

use crate::picture;
pub use crate::picture::Unwritable;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory that gets a file for each frame: `frame-00000.png`, `frame-00001.png` and so on.
#[derive(Debug)]
pub struct Frames {
    /// The directory of the frames.
    directory: PathBuf,
    /// The width and the height.
    size: (usize, usize),
    /// The number of frames so far.
    written: u64,
}

impl Frames {
    /// For frames of `size`, width first. Makes the directory if it is not there.
    ///
    /// # Errors
    ///
    /// [`Unwritable`] if it cannot be made.
    pub fn new(directory: &Path, size: (usize, usize)) -> Result<Self, Unwritable> {
        fs::create_dir_all(directory).map_err(|error| Unwritable::new(directory, error))?;
        Ok(Self { directory: directory.to_owned(), size, written: 0 })
    }

    /// Writes the next frame: red, green and blue of each cell, from the top left row by row.
    ///
    /// # Errors
    ///
    /// [`Unwritable`] names the file.
    pub fn write(&mut self, image: &[u8]) -> Result<(), Unwritable> {
        let path = self.directory.join(format!("frame-{:05}.png", self.written));
        let written = picture::write(&path, self.size, image);
        self.written += 1;
        written
    }

    /// Returns the directory of the frames.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// Returns the brightness of a cell with so many bodies, 0 to 255: one can be seen, 64 and more are
/// white, with a step for each doubling.
#[must_use]
pub fn brightness(bodies: u32) -> u8 {
    match bodies {
        0 => 0,
        bodies => (75 + 30 * bodies.ilog2()).min(255) as u8,
    }
}
