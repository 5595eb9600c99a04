//! Runs in processes of their own, where no other pool has left threads behind.

use std::process::{Command, Stdio};

use crate::cell::Figures;

/// The variable of the environment that tells a child process its run.
const CHILD: &str = "STANCHION_CONTESTS_RUN";

/// Starts this program once more, tells it `told`, and returns the figures that it prints.
pub(super) fn run_apart(told: &str) -> Figures {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).env(CHILD, told).stderr(Stdio::inherit()).output();
    let output = output.expect("this program, run once more");
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Figures = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(
        output.status.success() && !figures.is_empty(),
        "the run {told} ended with {} and said {text:?}: does main call serve_run?",
        output.status
    );
    figures
}

/// Returns what this process was told, if it was started for a run.
pub(super) fn told() -> Option<String> {
    std::env::var(CHILD).ok()
}
