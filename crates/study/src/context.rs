//! The context of a running experiment: how long it may take, its seed, its share of the progress
//! bar, and whether the user has asked to stop.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use stanchion_machine::topology;

use super::interrupt::Interrupt;
use super::progress::{Part, Progress};

/// The reason why an experiment ended without an outcome.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asked to stop.
    Interrupted,
    /// The experiment cannot go on, for this reason.
    Failed(String),
}

/// Values that a command line gives to single experiments, at most one of each type. Only the
/// experiments that read a value know its meaning.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<Arc<dyn Any + Send + Sync>>);

impl Given {
    /// Adds `value`.
    pub fn give<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.push(Arc::new(value));
    }

    /// Returns the value of type `T`, if one was given.
    fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| value.downcast_ref())
    }
}

/// One run of one experiment.
#[derive(Debug)]
pub struct Context {
    /// True if the run is coarse: it takes shorter windows and fewer repeats.
    pub quick: bool,
    /// The seed of everything random in the experiment.
    pub seed: u64,
    /// True if a simulated experiment that differs also runs its counterfactuals.
    pub counterfactuals: bool,
    /// Numbers of the processors to measure on: those that this process may use, but no more than
    /// it can run threads on at once.
    pub processors: Vec<usize>,
    /// Values from the command line for single experiments.
    given: Given,
    /// The flag that Ctrl-C sets; read after each step.
    interrupt: Interrupt,
    /// This run's share of the progress bar.
    part: Part,
}

impl Context {
    /// Makes the context of a run that shows no progress.
    pub fn new(quick: bool, seed: u64, interrupt: Interrupt) -> Self {
        let mut processors = topology::processors();
        // A time quota below the number of processors would stop threads although each has a
        // processor of its own.
        processors.truncate(topology::parallelism());
        let part = Progress::hidden().begin(0, "", Duration::ZERO);
        Self {
            quick,
            seed,
            counterfactuals: false,
            processors,
            given: Given::default(),
            interrupt,
            part,
        }
    }

    /// Returns the same context, which moves its share of a bar.
    #[must_use]
    pub fn with_progress(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// Returns the same context, in which counterfactuals run if `counterfactuals` is true.
    #[must_use]
    pub fn with_counterfactuals(self, counterfactuals: bool) -> Self {
        Self { counterfactuals, ..self }
    }

    /// Returns the same context, with the values that the command line gives.
    #[must_use]
    pub fn with_given(self, given: Given) -> Self {
        Self { given, ..self }
    }

    /// Returns the value of type `T` that the command line gives, if any.
    pub fn given<T: Any>(&self) -> Option<&T> {
        self.given.get()
    }

    /// Announces how many steps there will be.
    pub fn plan(&self, steps: usize) {
        self.part.plan(steps);
    }

    /// Announces that there are more steps than was planned.
    pub fn plan_more(&self, steps: usize) {
        self.part.plan_more(steps);
    }

    /// Counts one step as done. Ends the experiment if the user has asked to stop.
    pub fn step(&self) -> Result<(), Stop> {
        self.part.step();
        self.go_on()
    }

    /// Ends the experiment if the user has asked to stop.
    pub fn go_on(&self) -> Result<(), Stop> {
        if self.interrupt.asked() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Returns `quick` for a quick run, else `full`.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Returns the length of a program's run: `quick` for a quick run, else `full`. In a build that
    /// is not optimized a quick run has a tenth of `quick`. Such a build measures nothing: tests
    /// run it, beside each other. There a program with pinned threads waits for a processor at
    /// every phase.
    pub fn length(&self, quick: u32, full: u32) -> u32 {
        let quick = if cfg!(debug_assertions) { quick.div_ceil(10) } else { quick };
        self.pick(quick, full)
    }

    /// Returns `quick` milliseconds for a quick run, else `full` milliseconds.
    pub fn window(&self, quick: u64, full: u64) -> Duration {
        Duration::from_millis(self.pick(quick, full))
    }

    /// Returns thread counts that occupy no processor twice: every count up to 8 processors, then
    /// steps of about √2. A quick run takes only the powers of two and the last count.
    pub fn within_processors(&self) -> Vec<usize> {
        self.within(self.processors.len())
    }

    /// Returns the same counts for a machine of `processors` processors.
    pub fn within(&self, processors: usize) -> Vec<usize> {
        let counts = up_to(processors);
        let last = counts.last().copied();
        let coarse = |&count: &usize| !self.quick || count.is_power_of_two() || Some(count) == last;
        counts.into_iter().filter(coarse).collect()
    }

    /// Returns the same counts, then 2 and 4 threads a processor.
    pub fn thread_counts(&self) -> Vec<usize> {
        let processors = self.processors.len();
        let mut counts = self.within_processors();
        counts.extend([2 * processors, 4 * processors]);
        counts
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
