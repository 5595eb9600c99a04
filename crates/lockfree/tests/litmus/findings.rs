//! The forbidden outcomes of a test, told at its end: one fault does not hide the others.

/// The faults that are found.
#[derive(Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    pub(super) fn note(&mut self, failures: u64, rounds: u64, what: impl FnOnce() -> String) {
        if failures > 0 {
            self.0.push(format!("{}: {failures} of {rounds} rounds", what()));
        }
    }

    pub(super) fn conclude(self) {
        assert!(self.0.is_empty(), "forbidden outcomes:\n{}", self.0.join("\n"));
    }
}
