//! The paper's way to block: "threads just yield the processor but do not join any explicit blocked queue".
//!
//! > As a result, the blocking overhead is not constant. Rather, it depends on how many times the waiting thread yielded the processor. The program
//! > counts this parameter, and its average value is used for α in the model predictions.

use machine::thread;
use machine::wait::WaitPolicy;

/// Yields the processor between two looks, and counts how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Yielding {
    yields: u64,
}

impl Yielding {
    /// How often it has yielded.
    #[must_use]
    pub fn yields(self) -> u64 {
        self.yields
    }
}

impl WaitPolicy for Yielding {
    fn start() -> Self {
        Self::default()
    }

    fn pause(&mut self) {
        self.yields += 1;
        thread::yield_now();
    }

    fn leaves(&self) -> bool {
        true
    }
}
