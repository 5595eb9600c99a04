//! A place in the program's source, as text that other processes read.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

/// The words of a place's text.
const WORDS: usize = 13;

/// A place. It is written once, by the thread that first uses it.
#[repr(C)]
pub(super) struct Place {
    /// The address of the place in the program, or 0 if this one is free.
    pointer: AtomicU64,
    /// The length of the text plus 1, or 0 as long as it is not written.
    length: AtomicU64,
    /// The line in the upper half and the column in the lower.
    position: AtomicU64,
    /// The end of the path of the file.
    text: [AtomicU64; WORDS],
}

impl Place {
    /// Returns true if this is the place with that address, or becomes it because it was free.
    #[inline]
    pub(super) fn is_or_becomes(&self, pointer: u64, place: &Location<'_>) -> bool {
        // Relaxed: only the address counts here. Only a reader looks at the text.
        match self.pointer.load(Ordering::Relaxed) {
            0 => self.become_it(pointer, place),
            found => found == pointer,
        }
    }

    #[cold]
    fn become_it(&self, pointer: u64, place: &Location<'_>) -> bool {
        match self.pointer.compare_exchange(0, pointer, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => self.write(place),
            // Another thread has taken it, perhaps for the same place.
            Err(found) => return found == pointer,
        }
        true
    }

    fn write(&self, place: &Location<'_>) {
        let file = end_of(place.file());
        for (word, bytes) in self.text.iter().zip(file.as_bytes().chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        let position = u64::from(place.line()) << 32 | u64::from(place.column());
        self.position.store(position, Ordering::Relaxed);
        // Release: pairs with the Acquire of `text`.
        self.length.store(file.len() as u64 + 1, Ordering::Release);
    }

    /// Returns the file, line and column, if they are written.
    pub(super) fn text(&self) -> Option<String> {
        // Acquire: pairs with the Release of `write`.
        let length = self.length.load(Ordering::Acquire).checked_sub(1)? as usize;
        let bytes: Vec<u8> = self
            .text
            .iter()
            .flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes())
            .take(length)
            .collect();
        let position = self.position.load(Ordering::Relaxed);
        let (line, column) = (position >> 32, position as u32);
        let file = String::from_utf8_lossy(&bytes);
        let file: String = file.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Some(format!("{file}:{line}:{column}"))
    }
}

/// Returns the path of a file from its crate on if the crate is of a registry, or else the end of
/// the path for which there is room.
fn end_of(file: &str) -> &str {
    let of_registry = file.split_once("/registry/src/");
    let file = of_registry.and_then(|(_, file)| file.split_once('/')).map_or(file, |(_, to)| to);
    let mut start = file.len().saturating_sub(WORDS * 8);
    while !file.is_char_boundary(start) {
        start += 1;
    }
    &file[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_keep_their_ends() {
        let of_registry = "/home/me/.cargo/registry/src/index-1/dashmap-6.2.1/src/lib.rs";
        assert_eq!(end_of(of_registry), "dashmap-6.2.1/src/lib.rs");
        let long = format!("{}ü/main.rs", "a/".repeat(80));
        let end = end_of(&long);
        assert!(end.len() <= 8 * WORDS && end.ends_with("ü/main.rs"));
        let split = format!("ü{}", "a".repeat(8 * WORDS - 1));
        assert_eq!(end_of(&split), &split[2..]);
    }

    #[test]
    fn wild_words_are_some_text() {
        let wild = || AtomicU64::new(u64::MAX);
        let place = Place {
            pointer: wild(),
            length: wild(),
            position: wild(),
            text: [const { AtomicU64::new(u64::MAX) }; WORDS],
        };
        assert!(place.text().is_some_and(|text| text.ends_with(":4294967295:4294967295")));
    }
}
