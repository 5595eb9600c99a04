//! How far a run of many steps is: a bar on a terminal, and elsewhere a line now and then.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

/// How often a line is written, at most.
const EVERY: Duration = Duration::from_secs(10);

/// Steps that are counted where a user sees them: on standard error.
#[derive(Debug)]
pub struct Progress {
    program: &'static str,
    what: &'static str,
    steps: u64,
    /// Hidden where there is no terminal.
    bar: ProgressBar,
    began: Instant,
    /// When the next line is due.
    next: Mutex<Duration>,
}

impl Progress {
    /// None of so many `steps` of `what` is done; on a `terminal` that is a bar.
    #[must_use]
    pub fn new(program: &'static str, terminal: bool, steps: u64, what: &'static str) -> Self {
        Self {
            program,
            what,
            steps,
            bar: crate::bar(terminal, Some(steps), what),
            began: Instant::now(),
            next: Mutex::new(EVERY),
        }
    }

    /// A step is done. Without a terminal that is told if it is ten seconds since the beginning, or
    /// since it was told last.
    pub fn step(&self) {
        self.bar.inc(1);
        if self.bar.is_hidden()
            && let Some(line) = self.line(self.began.elapsed())
        {
            eprintln!("{line}");
        }
    }

    /// What there is to be told so long after the beginning.
    fn line(&self, elapsed: Duration) -> Option<String> {
        let mut next = self.next.lock().ok()?;
        (elapsed >= *next).then(|| {
            *next = elapsed + EVERY;
            let Self { program, what, steps, bar, .. } = self;
            let done = bar.position();
            format!("{program}: {done} of {steps} {what} after {} s", elapsed.as_secs())
        })
    }

    /// Nothing more is to be seen.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_every_ten_seconds_at_most() {
        let progress = Progress::new("hanoi", false, 40, "moves");
        progress.step();
        assert_eq!(progress.line(Duration::from_secs(9)), None);
        let line = |seconds| progress.line(Duration::from_secs(seconds));
        assert_eq!(line(12).as_deref(), Some("hanoi: 1 of 40 moves after 12 s"));
        progress.step();
        assert_eq!(line(21), None);
        assert_eq!(line(22).as_deref(), Some("hanoi: 2 of 40 moves after 22 s"));
    }
}
