//! Pictures, as PNG files.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// A file or a directory that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {}", .0.display(), .1)]
pub struct Unwritable(PathBuf, #[source] io::Error);

impl Unwritable {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        Self(path.to_owned(), error)
    }
}

/// Writes a picture of `size`, width first: red, green and blue of each cell, from the top left row
/// by row.
///
/// # Errors
///
/// [`Unwritable`] names the file.
pub fn write(path: &Path, size: (usize, usize), image: &[u8]) -> Result<(), Unwritable> {
    let written = File::create(path).and_then(|file| {
        let (width, height) = size;
        let mut encoder = png::Encoder::new(BufWriter::new(file), width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(image)?;
        Ok(writer.finish()?)
    });
    written.map_err(|error| Unwritable::new(path, error))
}
