//! What a running experiment is given: how long it may take, its seed, its share of the bar, and
//! whether to stop.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use machine::topology;

use super::interrupt::Interrupt;
use super::progress::{Part, Progress};

/// Why an experiment ended without an outcome.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asked to stop.
    Interrupted,
    /// It cannot go on; the reason.
    Failed(String),
}

/// What a command line gives to single experiments: at most one value of each type, whose meaning
/// only the experiments know that take it.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<Arc<dyn Any + Send + Sync>>);

impl Given {
    /// Adds `value`.
    pub fn give<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.push(Arc::new(value));
    }

    /// Returns the value of that type.
    fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| value.downcast_ref())
    }
}

/// One run of one experiment.
#[derive(Debug)]
pub struct Context {
    /// Whether the run is coarse: shorter windows, fewer repeats.
    pub quick: bool,
    /// The seed of everything random in the experiment.
    pub seed: u64,
    /// As many of the processors this process may use as it can run threads on at once, by number.
    pub processors: Vec<usize>,
    given: Given,
    interrupt: Interrupt,
    part: Part,
}

impl Context {
    /// Makes the context of a run whose progress is not shown.
    pub fn new(quick: bool, seed: u64, interrupt: Interrupt) -> Self {
        let mut processors = topology::processors();
        // A quota of time below the number of processors would stop threads that have one each.
        processors.truncate(topology::parallelism());
        let part = Progress::hidden().begin(0, "", Duration::ZERO);
        Self { quick, seed, processors, given: Given::default(), interrupt, part }
    }

    /// The same, which moves its share of a bar.
    #[must_use]
    pub fn with_progress(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// The same, with what the command line gives.
    #[must_use]
    pub fn with_given(self, given: Given) -> Self {
        Self { given, ..self }
    }

    /// Returns what the command line gives of that type.
    pub fn given<T: Any>(&self) -> Option<&T> {
        self.given.get()
    }

    /// Says how many steps there will be.
    pub fn plan(&self, steps: usize) {
        self.part.plan(steps);
    }

    /// One step is done; ends the experiment if the user has asked to.
    pub fn step(&self) -> Result<(), Stop> {
        self.part.step();
        self.go_on()
    }

    /// Ends the experiment if the user has asked to.
    pub fn go_on(&self) -> Result<(), Stop> {
        if self.interrupt.asked() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// `quick` or `full`, whichever is asked for.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// `quick` or `full` milliseconds.
    pub fn window(&self, quick: u64, full: u64) -> Duration {
        Duration::from_millis(self.pick(quick, full))
    }

    /// Thread counts that occupy no processor twice: all from 1 up to 8 processors, steps of about
    /// √2 beyond; quickly, powers of two and the last.
    pub fn within_processors(&self) -> Vec<usize> {
        self.within(self.processors.len())
    }

    /// The same for a machine of so many.
    pub fn within(&self, processors: usize) -> Vec<usize> {
        let counts = up_to(processors);
        let last = counts.last().copied();
        let coarse = |&count: &usize| !self.quick || count.is_power_of_two() || Some(count) == last;
        counts.into_iter().filter(coarse).collect()
    }

    /// The same, then 2 and 4 threads a processor.
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
