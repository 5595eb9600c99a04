//! What a running experiment is given: how long it may take, its seed, its progress bar, and whether to stop.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use machine::topology;
use stanchion_competitive::waits::Recording;

use super::regret::options::Plan;
use crate::interrupt::Interrupt;

/// Why an experiment ended without an outcome.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The user asked to stop.
    Interrupted,
    /// It cannot go on; the reason.
    Failed(String),
}

/// One run of one experiment.
pub(crate) struct Context {
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    /// As many of the processors this process may use as it can run threads on at once, by number.
    pub(crate) processors: Vec<usize>,
    /// What the study of regret is to do; nothing for other experiments.
    pub(crate) regret: Option<Plan>,
    /// Waits of other programs that are to be judged too.
    pub(crate) given: Vec<Recording>,
    interrupt: Interrupt,
    bar: ProgressBar,
}

impl Context {
    pub(crate) fn new(id: &'static str, quick: bool, seed: u64, interrupt: Interrupt) -> Self {
        // Drawn on standard error, and only if that is a terminal.
        let bar = ProgressBar::new(0).with_message(id);
        let style =
            ProgressStyle::with_template("{msg:16} {bar:30} {pos}/{len} {elapsed} (left {eta})");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let mut processors = topology::processors();
        // A quota of time below the number of processors would stop threads that have one each.
        processors.truncate(topology::parallelism());
        Self { quick, seed, processors, regret: None, given: Vec::new(), interrupt, bar }
    }

    /// Says how many steps there will be.
    pub(crate) fn plan(&self, steps: usize) {
        self.bar.set_length(steps as u64);
    }

    /// One step is done; ends the experiment if the user has asked to.
    pub(crate) fn step(&self) -> Result<(), Stop> {
        self.bar.inc(1);
        self.go_on()
    }

    /// Ends the experiment if the user has asked to.
    pub(crate) fn go_on(&self) -> Result<(), Stop> {
        if self.interrupt.asked() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// `quick` or `full`, whichever is asked for.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// `quick` or `full` milliseconds.
    pub(crate) fn window(&self, quick: u64, full: u64) -> Duration {
        Duration::from_millis(self.pick(quick, full))
    }

    /// Thread counts that occupy no processor twice: all from 1 up to 8 processors, steps of about √2 beyond;
    /// quickly, powers of two and the last.
    pub(crate) fn within_processors(&self) -> Vec<usize> {
        self.within(self.processors.len())
    }

    /// The same for a machine of so many.
    pub(crate) fn within(&self, processors: usize) -> Vec<usize> {
        let counts = up_to(processors);
        let last = counts.last().copied();
        let coarse = |&count: &usize| !self.quick || count.is_power_of_two() || Some(count) == last;
        counts.into_iter().filter(coarse).collect()
    }

    /// The same, then 2 and 4 threads a processor.
    pub(crate) fn thread_counts(&self) -> Vec<usize> {
        let processors = self.processors.len();
        let mut counts = self.within_processors();
        counts.extend([2 * processors, 4 * processors]);
        counts
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn up_to(processors: usize) -> Vec<usize> {
    let steps = [10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
    let mut counts: Vec<usize> =
        (1..=8).chain(steps).take_while(|&count| count < processors).collect();
    counts.push(processors);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_end_with_all_processors() {
        assert_eq!(up_to(1), [1]);
        assert_eq!(up_to(2), [1, 2]);
        assert_eq!(up_to(20), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20]);
        assert_eq!(up_to(8), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
