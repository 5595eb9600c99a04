//! The counts of a run and of each of its threads.

use super::activity::Times;
use super::words::WordStatistics;
use crate::Time;
use crate::memory::Accesses;
use serde::{Deserialize, Serialize};

/// The counts of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStatistics {
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// The activities of its life.
    pub times: Times,
    /// Its accesses to the memory.
    pub accesses: Accesses,
    /// The number of times that it was taken off its processor while it could have gone on.
    pub preemptions: u64,
    /// The number of times that it stayed beyond its slice because it had asked not to be
    /// preempted; see [`os::keep`](crate::os::keep).
    pub graces: u64,
    /// The number of times that it was preempted all the same: it kept its processor for too long.
    pub breaches: u64,
    /// The number of times that it was put on another processor than the last.
    pub migrations: u64,
    /// The times when it began and ended.
    pub life: (Time, Time),
}

/// The counts of a run. The same on every run of one build with the same seed, on every computer.
///
/// Its [`Display`](core::fmt::Display) is tables to read.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use stanchion_simulator::inside::{self, Kind};
/// use stanchion_simulator::{Simulation, machines};
///
/// let run = Simulation::new(machines::modern(2)).words(4).run(|| {
///     let count = AtomicU64::new(0);
///     inside::label((&raw const count).cast(), size_of_val(&count), "count");
///     for _ in 0..10 {
///         inside::access((&raw const count).cast(), Kind::Exchange);
///         count.fetch_add(1, Relaxed);
///     }
/// })?;
/// let count = run.statistics.word("count").expect("it was touched");
/// assert_eq!((count.accesses.exchanges, count.accesses.misses), (10, 1));
/// assert_eq!(run.statistics.accesses.per(10).exchanges, 1.0);
/// println!("{}", run.statistics);
/// # Ok::<(), stanchion_simulator::Failure>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// The length of the run, in virtual time.
    pub elapsed: Time,
    /// The accesses of all threads to the memory.
    pub accesses: Accesses,
    /// The instructions of all threads between their accesses, in hundredths. They are counted on
    /// each machine, and take time on those with a fitted [`Processor`](crate::machine::Processor).
    pub instructions: u64,
    /// The interrupts that asymmetric fences sent to other processors; see
    /// [`Membarrier`](crate::machine::Membarrier).
    pub interrupts: u64,
    /// One entry for each thread, in the order in which they were made.
    pub threads: Vec<ThreadStatistics>,
    /// The time that each processor had a thread of the program on it.
    pub processors: Vec<Time>,
    /// The accesses to words, the longest waited for first: all words that have a label, and as
    /// many others as [`Simulation::words`](crate::Simulation::words) asked for. Empty if it did
    /// not.
    pub words: Vec<WordStatistics>,
}

impl Statistics {
    /// Returns the activities of all threads.
    #[must_use]
    pub fn times(&self) -> Times {
        self.threads.iter().map(|thread| thread.times).sum()
    }

    /// Returns the part of the run that the bus was busy. On a machine with several links or
    /// memories it is the sum of theirs, which can be more than 1.
    #[must_use]
    pub fn bus_use(&self) -> f64 {
        if self.elapsed == Time::ZERO {
            return 0.0;
        }
        self.accesses.occupied.as_secs() / self.elapsed.as_secs()
    }

    /// Returns the accesses to the words of that label, if the run counted words and one of these
    /// was touched.
    #[must_use]
    pub fn word(&self, label: &str) -> Option<&WordStatistics> {
        self.words.iter().find(|word| word.labelled && word.name == label)
    }

    /// Returns the name of a thread in reports: its number, and its name if it has one.
    pub(crate) fn thread_name(&self, thread: usize) -> String {
        match self.threads.get(thread).and_then(|thread| thread.name.as_deref()) {
            Some(name) => format!("{thread} {name}"),
            None => format!("thread {thread}"),
        }
    }
}
