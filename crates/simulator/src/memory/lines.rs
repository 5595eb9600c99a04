//! The memory system's state of each line that was touched.
//!
//! A hash map, because lines are numbers with gaps. Its hasher is one multiplication, because every
//! access looks here, and the numbers are the run's own, so that no adversary can choose them to
//! collide (Fibonacci hashing, Knuth, The Art of Computer Programming 3, section 6.4).

use super::Line;
use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;

/// An entry for each line; a line that was never touched has the default one.
#[derive(Debug)]
pub(crate) struct Lines<Entry>(HashMap<Line, Entry, BuildHasherDefault<Multiply>>);

impl<Entry> Default for Lines<Entry> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<Entry: Default> Lines<Entry> {
    pub(crate) fn entry(&mut self, line: Line) -> &mut Entry {
        self.0.entry(line).or_default()
    }

    pub(crate) fn get(&self, line: Line) -> Option<&Entry> {
        self.0.get(&line)
    }

    /// All entries, in no order that a result may depend on.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Line, &Entry)> {
        self.0.iter().map(|(&line, entry)| (line, entry))
    }
}

/// Hashes one 64-bit number: the map takes the high bits and the low ones, so both must depend on
/// all of it.
#[derive(Debug, Default)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
