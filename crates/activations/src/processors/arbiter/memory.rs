//! The table in the models of `crates/loom` and on simulated machines: two entries in the memory of
//! one process.

use std::path::Path;

use stanchion_machine::atomic::{AtomicU64, Fresh};
use stanchion_machine::sync::Arc;

use super::error::ArbiterError;
use super::wanted;

/// The numbers that all share.
#[derive(Debug)]
struct Words {
    /// The epoch. Changed by each owner of an entry.
    epoch: AtomicU64,
    /// The number that each entry wants. Written by its owner.
    wanted: [AtomicU64; 2],
}

/// The table, and a runtime's entry in it.
#[derive(Debug)]
pub(super) struct Table {
    /// The numbers of both entries.
    words: Arc<Words>,
    /// The entry of this runtime.
    entry: usize,
}

impl Table {
    pub(super) fn open(_name: &str) -> Result<Self, ArbiterError> {
        Err(ArbiterError::Unsupported)
    }

    /// Returns one table's two entries.
    pub(super) fn pair() -> [Self; 2] {
        let fresh = || AtomicU64::fresh(0);
        let words = Arc::new(Words { epoch: fresh(), wanted: [fresh(), fresh()] });
        [0, 1].map(|entry| Self { words: words.clone(), entry })
    }

    pub(super) fn path(&self) -> &Path {
        Path::new("")
    }

    pub(super) fn entry(&self) -> usize {
        self.entry
    }

    pub(super) fn epoch(&self) -> u64 {
        wanted::epoch(&self.words.epoch)
    }

    pub(super) fn request(&self, processors: usize) {
        wanted::request(&self.words.epoch, &self.words.wanted[self.entry], processors);
    }

    pub(super) fn wanted(&self) -> Vec<usize> {
        self.words.wanted.iter().map(wanted::read).collect()
    }
}
