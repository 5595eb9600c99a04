//! The progress of a run, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error for `length` of `what`, if it is `shown`; without a length until it is
/// given one.
#[must_use]
pub fn bar(shown: bool, length: Option<u64>, what: &str) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(&format!(
        "{{bar:40}} {{pos}} of {{len}} {what}, {{eta}} left"
    ))
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr()).with_style(style)
}
