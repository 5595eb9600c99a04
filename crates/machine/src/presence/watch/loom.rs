//! A watch in a model: a watched thread switches by [`choice`](crate::choice), before the sleep or
//! not at all. The model explores the word itself.

use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Deadline;
use crate::park;
use crate::presence::Refused;
use crate::presence::watch::Slept;

/// The registrations of a watch, of which a model keeps none: the script of choices decides what is
/// seen.
#[derive(Debug)]
pub(crate) struct Eye(());

impl Eye {
    pub(crate) fn new() -> Self {
        Self(())
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        None
    }

    pub(crate) fn arm(&self, _word: &AtomicU32, _index: usize) -> bool {
        true
    }

    pub(crate) fn disarm(&self, _word: &AtomicU32, _index: usize) {}

    pub(crate) fn sleep(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> Slept {
        if crate::choice() {
            return Slept::Switched;
        }
        // Relaxed, here and below: a thread that finds another value acquires it later.
        while word.load(Ordering::Relaxed) == expected {
            if park::wait(word, expected, deadline) == park::Woken::TimedOut {
                return Slept::TimedOut;
            }
        }
        Slept::Changed
    }

    pub(crate) fn ring(&self, word: &AtomicU32) {
        park::wake_one(word);
    }
}
