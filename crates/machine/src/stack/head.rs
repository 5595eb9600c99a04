//! The head of a stack: the name of the thread that runs on it, where a signal handler finds it.
//!
//! Why a copy and not a pointer to the name: a handler may read while the thread ends on another
//! processor, and must not read freed memory. Why in the stack itself: the line beside it is
//! touched anyway when a thread starts.
//!
//! | `length` | name |
//! | --- | --- |
//! | 0, as in fresh and in discarded memory | none |
//! | 1 to [`Head::MOST`] | that many bytes |
//! | [`CUT`] and a length | that many bytes of a longer name |
//!
//! The atomics are core's on every machine: the system provides the memory, and no algorithm
//! depends on it.
//!
//! # Orderings
//!
//! The bytes are Relaxed. The length is stored with Release, and loaded with Acquire in
//! [`Head::get`]. So a thread that sees a length also sees the bytes, unless another name is being
//! written at that moment. Only a thread that neither owns the stack nor runs on it can observe
//! that, and it sees a mixture of two names.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::string::String;

/// The number of bytes in a word.
const WORD: usize = size_of::<usize>();

/// The number of words in a name: together with the length they fill a line.
const WORDS: usize = 64 / WORD - 1;

/// The bit in `length` that is set if the name was longer.
const CUT: usize = 1 << (usize::BITS - 1);

/// The name of a stack's thread, in one line at the base of the stack.
#[repr(C, align(64))]
pub(crate) struct Head {
    /// The number of bytes kept, and `CUT`. The owner of the stack or the thread on it writes it.
    length: AtomicUsize,
    /// The bytes of the name. The same thread writes them.
    bytes: [AtomicUsize; WORDS],
}

impl Head {
    /// The number of bytes of a name that are kept.
    pub(crate) const MOST: usize = WORDS * WORD;

    /// Sets the name. Only the owner of the stack or the thread that runs on it calls this.
    #[inline]
    pub(crate) fn set(&self, name: &str) {
        if name.is_empty() {
            // Relaxed: a length of 0 publishes no bytes.
            self.length.store(0, Ordering::Relaxed);
        } else {
            self.copy(name);
        }
    }

    fn copy(&self, name: &str) {
        let kept = &name[..name.floor_char_boundary(Self::MOST)];
        // Relaxed: there is no name while the bytes are written.
        self.length.store(0, Ordering::Relaxed);
        for (place, chunk) in self.bytes.iter().zip(kept.as_bytes().chunks(WORD)) {
            let mut word = [0; WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            place.store(usize::from_ne_bytes(word), Ordering::Relaxed);
        }
        let cut = if kept.len() < name.len() { CUT } else { 0 };
        self.length.store(kept.len() | cut, Ordering::Release);
    }

    /// Copies the name into `bytes`. Returns its length, and whether the name was longer.
    /// Async-signal-safe.
    pub(crate) fn get(&self, bytes: &mut [u8; Self::MOST]) -> (usize, bool) {
        let length = self.length.load(Ordering::Acquire);
        for (place, word) in bytes.chunks_mut(WORD).zip(&self.bytes) {
            place.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        ((length & !CUT).min(Self::MOST), length & CUT != 0)
    }

    /// Returns the name, if there is one.
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
        head.set("the name of an earlier thread, which is quite a long one");
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
