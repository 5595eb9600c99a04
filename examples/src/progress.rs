//! The progress of a run of many steps: a bar on a terminal, and elsewhere a line now and then.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

/// The least time from one line to the next.
const EVERY: Duration = Duration::from_secs(10);

/// Steps that are counted where a user sees them: on standard error.
#[derive(Debug)]
pub struct Progress {
    /// The name of the program.
    program: &'static str,
    /// The name of the steps.
    what: &'static str,
    /// The number of steps.
    steps: u64,
    /// Hidden where there is no terminal.
    bar: ProgressBar,
    /// The time when the run began.
    began: Instant,
    /// The time when the next line is due.
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

    /// Counts a step that is done. Without a terminal, writes a line if the last one, or the
    /// beginning, is ten seconds ago.
    pub fn step(&self) {
        self.bar.inc(1);
        if self.bar.is_hidden()
            && let Some(line) = self.line(self.began.elapsed())
        {
            eprintln!("{line}");
        }
    }

    /// Returns the line to write so long after the beginning, if one is due.
    pub fn line(&self, elapsed: Duration) -> Option<String> {
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
