//! The head of a stack: the name of the thread that runs on it, where a signal handler finds it.
//!
//! Why a copy and not a pointer to the name: a handler may look while the thread ends on another processor, and must not read what has been freed.
//! Why in the stack itself: the line beside it is touched anyway when a thread starts.
//!
//! | `length` | name |
//! | --- | --- |
//! | 0, as in fresh and in discarded memory | none |
//! | 1 to [`Head::MOST`] | so many bytes |
//! | [`CUT`] and a length | so many bytes of a longer one |
//!
//! Core's atomics on every machine: the memory comes from the system as it is, and no algorithm looks at it.
//!
//! # Orderings
//!
//! The bytes are Relaxed, the length Release, and Acquire in [`Head::get`]: who sees a length sees the bytes, unless another name is being written just
//! then. That can be seen only by a thread that has no business there, and shows it a mixture of two names.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::string::String;

/// Bytes of a word.
const WORD: usize = size_of::<usize>();

/// Words of a name: with the length they fill a line.
const WORDS: usize = 64 / WORD - 1;

/// Set in `length` if the name was longer.
const CUT: usize = 1 << (usize::BITS - 1);

/// A line at the base of each stack.
#[repr(C, align(64))]
pub(crate) struct Head {
    length: AtomicUsize,
    bytes: [AtomicUsize; WORDS],
}

impl Head {
    /// Bytes of a name that are kept.
    pub(crate) const MOST: usize = WORDS * WORD;

    /// Only who has the stack calls this.
    #[inline]
    pub(crate) fn set(&self, name: &str) {
        if name.is_empty() {
            // Relaxed: says nothing of the bytes.
            self.length.store(0, Ordering::Relaxed);
        } else {
            self.copy(name);
        }
    }

    fn copy(&self, name: &str) {
        let kept = &name[..name.floor_char_boundary(Self::MOST)];
        // Relaxed: no name meanwhile.
        self.length.store(0, Ordering::Relaxed);
        for (place, chunk) in self.bytes.iter().zip(kept.as_bytes().chunks(WORD)) {
            let mut word = [0; WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            place.store(usize::from_ne_bytes(word), Ordering::Relaxed);
        }
        let cut = if kept.len() < name.len() { CUT } else { 0 };
        self.length.store(kept.len() | cut, Ordering::Release);
    }

    /// Puts the name into `bytes`; says how long it is, and whether it was longer. Async-signal-safe.
    pub(crate) fn get(&self, bytes: &mut [u8; Self::MOST]) -> (usize, bool) {
        let length = self.length.load(Ordering::Acquire);
        for (place, word) in bytes.chunks_mut(WORD).zip(&self.bytes) {
            place.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        ((length & !CUT).min(Self::MOST), length & CUT != 0)
    }

    /// The name, if there is one.
    pub(crate) fn name(&self) -> Option<String> {
        let mut bytes = [0; Self::MOST];
        let (length, _) = self.get(&mut bytes);
        (length > 0).then(|| String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Head {
        // SAFETY: a head is numbers, for which zeros are valid.
        unsafe { core::mem::zeroed() }
    }

    fn kept(name: &str) -> (String, bool) {
        let head = fresh();
        head.set("whoever was here before, with quite a long name");
        head.set(name);
        let mut bytes = [0; Head::MOST];
        let (length, cut) = head.get(&mut bytes);
        (String::from_utf8(bytes[..length].to_vec()).unwrap(), cut)
    }

    #[test]
    fn a_name_comes_back_as_much_as_was_kept() {
        assert_eq!(size_of::<Head>(), 64);
        for length in [0, 1, 7, 8, 9, Head::MOST - 1, Head::MOST] {
            let name = "x".repeat(length);
            assert_eq!(kept(&name), (name, false));
        }
        assert_eq!(kept(&"x".repeat(Head::MOST + 1)), ("x".repeat(Head::MOST), true));
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        let name = "ü".repeat(Head::MOST);
        let (kept, cut) = kept(&name);
        assert!(cut && name.starts_with(&kept) && kept.len() > Head::MOST - 2, "{kept}");
    }

    #[test]
    fn fresh_memory_has_no_name() {
        assert_eq!(fresh().get(&mut [1; Head::MOST]), (0, false));
    }
}
