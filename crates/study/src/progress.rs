//! One bar over all parts of a command, such as the experiments of a study, with the time left.
//!
//! The bar is drawn on standard error, and only if that is a terminal: a pipe or a file gets no
//! control characters. Its length is the expected time of all parts, so a long part takes more of
//! the bar than a short one. Within a part the bar follows the steps that the part has planned.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The bar of a command.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The bar on the terminal, which `Progress` and its parts share.
    bar: ProgressBar,
    /// The number of parts, for the message beside the bar.
    parts: usize,
}

/// The interval at which the bar is redrawn while no step ends.
const TICK: Duration = Duration::from_millis(250);

impl Progress {
    /// Starts a bar over `parts` parts that take `expected` together.
    pub fn new(parts: usize, expected: Duration) -> Self {
        let bar = ProgressBar::new(units(expected));
        // The bar has what the rest leaves of the line, so that 40 columns are enough.
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % (left {eta})");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self { bar, parts }
    }

    /// Returns a bar that is never drawn.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), parts: 0 }
    }

    /// Announces that there are more parts than was said, which take `expected` together.
    pub fn add(&mut self, parts: usize, expected: Duration) {
        self.parts += parts;
        self.bar.inc_length(units(expected));
    }

    /// Begins the part `id`, number `index` from 0, which is expected to take `expected`.
    pub fn begin(&self, index: usize, id: &str, expected: Duration) -> Part {
        self.bar.set_message(format!("{}/{} {id}", index + 1, self.parts));
        Part {
            bar: self.bar.clone(),
            from: self.bar.position(),
            share: units(expected),
            steps: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Runs `print` with the bar taken away, so that lines do not run into it.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// One part's share of the bar.
#[derive(Debug)]
pub struct Part {
    /// The bar on the terminal, which `Progress` and its parts share.
    bar: ProgressBar,
    /// The bar's position when the part began.
    from: u64,
    /// The distance that the whole part moves the bar.
    share: u64,
    /// The number of planned steps.
    steps: AtomicU64,
    /// The number of steps done. Several threads may add to it.
    done: AtomicU64,
}

impl Part {
    /// Announces how many steps there will be.
    pub fn plan(&self, steps: usize) {
        // Relaxed, here and below: the numbers are only shown.
        self.steps.store(steps as u64, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// Announces that there are more steps than was planned.
    pub fn plan_more(&self, steps: usize) {
        self.steps.fetch_add(steps as u64, Ordering::Relaxed);
    }

    /// Counts one step as done.
    pub fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let steps = self.steps.load(Ordering::Relaxed).max(done);
        self.bar.set_position(self.from + self.share * done / steps);
    }
}

impl Drop for Part {
    /// Moves the bar to the part's end, whatever the number of steps it took.
    fn drop(&mut self) {
        self.bar.set_position(self.from + self.share);
    }
}

/// Returns the length of the bar for `expected`.
fn units(expected: Duration) -> u64 {
    expected.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_end_where_they_were_expected_to() {
        let mut progress = Progress { bar: ProgressBar::hidden(), parts: 2 };
        progress.bar.set_length(3_000);
        let first = progress.begin(0, "first", Duration::from_secs(1));
        first.plan(4);
        first.step();
        assert_eq!(progress.bar.position(), 250);
        drop(first);
        assert_eq!(progress.bar.position(), 1_000);
        let second = progress.begin(1, "second", Duration::from_secs(2));
        // More steps than were planned do not move the bar beyond the share.
        second.plan(1);
        second.step();
        second.step();
        assert_eq!(progress.bar.position(), 3_000);
        second.plan_more(3);
        second.step();
        assert_eq!(progress.bar.position(), 2_500);
        drop(second);
        assert_eq!(progress.bar.position(), 3_000);
        progress.add(1, Duration::from_secs(2));
        assert_eq!(progress.bar.length(), Some(5_000));
        drop(progress.begin(2, "again", Duration::from_secs(2)));
        assert_eq!(progress.bar.position(), 5_000);
    }
}
