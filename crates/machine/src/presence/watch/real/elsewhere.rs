//! Systems where no switch is seen.

use super::sleep_blind;
use crate::atomic::AtomicU32;
use crate::clock::Deadline;
use crate::park;
use crate::presence::Refused;
use crate::presence::watch::Slept;

/// Sees nothing.
#[derive(Debug)]
pub(crate) struct Eye(Refused);

impl Eye {
    pub(crate) fn new() -> Self {
        Self(Refused::Unsupported { os: std::env::consts::OS })
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        Some(&self.0)
    }

    pub(crate) fn arm(&self, _word: &AtomicU32, _index: usize) -> bool {
        false
    }

    pub(crate) fn disarm(&self, _word: &AtomicU32, _index: usize) {}

    pub(crate) fn sleep(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> Slept {
        sleep_blind(word, expected, deadline)
    }

    pub(crate) fn ring(&self, word: &AtomicU32) {
        park::wake_one(word);
    }
}
