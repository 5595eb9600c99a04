//! The file that all processes of the program count in.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use stanchion_competitive::waits::shared::{self, Gathered, Shared};

use super::Refusal;

/// Removed when dropped.
pub(super) struct Table {
    /// The file that the program maps.
    path: PathBuf,
}

impl Table {
    pub(super) fn new(cost_ns: u64) -> Result<Self, Refusal> {
        // In memory if there is such a place, so that nothing is written to a disk.
        let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
        let place = places.iter().find(|place| place.is_dir()).unwrap_or(&places[1]);
        let mut number = 0_u32;
        loop {
            let path = place.join(format!("stanchion-{}-{number}.waits", std::process::id()));
            match make(&path, cost_ns) {
                Ok(()) => return Ok(Self { path }),
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1_000 =>
                {
                    number += 1;
                }
                Err(source) => return Err(Refusal::Table { path, source }),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn gather(&self) -> Result<Gathered, Refusal> {
        let damaged = |reason: String| Refusal::Damaged { path: self.path.clone(), reason };
        let bytes = fs::read(&self.path).map_err(|error| damaged(error.to_string()))?;
        // Aligned to 8.
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            })
            .collect();
        let mut words = words;
        // SAFETY: this copy is as long as said, and this function alone has it.
        let table = unsafe { Shared::at(words.as_mut_ptr().cast::<u8>(), bytes.len()) };
        let gathered = table.map_err(|foreign| damaged(foreign.to_string()))?.gather();
        drop(words);
        Ok(gathered)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn make(path: &Path, cost_ns: u64) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let filled =
        file.write_all(&shared::header(cost_ns)).and_then(|()| file.set_len(shared::SIZE as u64));
    if filled.is_err() {
        let _ = fs::remove_file(path);
    }
    filled
}
