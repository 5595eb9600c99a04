//! The options of a run, its result, and the errors of options.

use super::bound::Bound;
use super::tour::MOST_CITIES;
use crate::crew::MAX_THREADS;
use crate::pace::CVAX_INSTRUCTION_NS;
use core::ops::RangeInclusive;
use core::time::Duration;
use thiserror::Error;

/// The number of cities that may be left of a tour on the stack.
pub const LEAF: RangeInclusive<usize> = 1..=12;

/// The options of a run.
///
/// ```
/// use stanchion_applications::tsp::{Bound, Options};
/// let options = Options { threads: 2, ..Options::default() };
/// assert_eq!((options.bound, options.head_start), (Bound::Ascent, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads, 1 to [`MAX_THREADS`]. The caller is one of them.
    pub threads: usize,
    /// The bound by which tours are compared.
    pub bound: Bound,
    /// Set if the search begins with a tour that is good already. Otherwise it has to find its
    /// first.
    pub head_start: bool,
    /// A tour with at most so many cities left, within [`LEAF`], goes on the stack and is completed
    /// by one thread.
    pub leaf: usize,
    /// The most bounds. An instance is refused if it is estimated to need more. A search is broken
    /// off if a thread has computed more. One bound takes about a microsecond.
    pub limit: u64,
    /// Set if each thread stays on one processor; processors are dealt out in turn.
    pub pinned: bool,
    /// The time that a simulated machine takes for an instruction, in nanoseconds. It has no effect
    /// on the real one.
    pub instruction_ns: u64,
}

impl Default for Options {
    /// One thread, the better bound, with a head start; 7 cities left on the stack; at most 5,000
    /// million bounds; not pinned.
    fn default() -> Self {
        Self {
            threads: 1,
            bound: Bound::Ascent,
            head_start: true,
            leaf: 7,
            limit: 5_000_000_000,
            pinned: false,
            instruction_ns: CVAX_INSTRUCTION_NS,
        }
    }
}

/// Why nothing was searched.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Fewer than three cities.
    #[error("{0} cities: must be at least 3")]
    Few(usize),
    /// More than [`MOST_CITIES`].
    #[error(
        "{cities} cities are too many for an exact search: there are about 10^{log10:.0} tours; the limit is {MOST_CITIES} cities"
    )]
    Many {
        /// The number that there are.
        cities: usize,
        /// The decimal logarithm of the number of tours.
        log10: f64,
    },
    /// The estimate is beyond [`Options::limit`].
    #[error(
        "{cities} cities are too many for an exact search: it is estimated to look at {estimate:.1e} tours, some {:.0} hours on one processor; the limit is {limit:.1e}",
        estimate / 3.6e9
    )]
    Long {
        /// The number that there are.
        cities: usize,
        /// Bounds to be computed, by Knuth's random dives.
        estimate: f64,
        /// The limit.
        limit: u64,
    },
    /// The estimate was too low: a thread has come to [`Options::limit`] without an end.
    #[error(
        "{cities} cities are too many for an exact search: it was broken off after {looked} tours, of which it was estimated to look at {estimate:.1e}; the limit is {limit:.1e} for each thread"
    )]
    Endless {
        /// The number that there are.
        cities: usize,
        /// Bounds computed, all threads together.
        looked: u64,
        /// Bounds expected.
        estimate: f64,
        /// The limit.
        limit: u64,
    },
    /// Not 1 to [`MAX_THREADS`].
    #[error("{0} threads: must be 1 to {MAX_THREADS}")]
    Threads(usize),
    /// Outside of [`LEAF`].
    #[error("{0} cities left on the stack: must be {least} to {most}", least = LEAF.start(), most = LEAF.end())]
    Leaf(usize),
}

/// The state that a watcher sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Tours made so far: put on the heap or on the stack.
    pub made: u64,
    /// Tours done with.
    pub done: u64,
    /// The shortest whole tour so far; none before the first.
    pub best: Option<u64>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The length of the shortest tour.
    pub length: u64,
    /// Its cities, from 0 on. If several are as short, which one depends on the schedule.
    pub tour: Vec<usize>,
    /// The fault, if there is one.
    pub fault: Option<Fault>,
    /// Bounds that were expected when it began; the work done depends on the schedule a little, for
    /// a shorter tour found early saves some.
    pub estimate: f64,
    /// From before the first thread is started until all are done.
    pub elapsed: Duration,
    /// The work of each thread.
    pub threads: Vec<Share>,
}

/// One thread's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Tours it took from the heap.
    pub from_heap: u64,
    /// Tours it took from the stack.
    pub from_stack: u64,
    /// Tours it made and put into either.
    pub made: u64,
    /// Bounds it computed.
    pub bounds: u64,
    /// The processor it stayed on; none if it was left to the system.
    pub processor: Option<usize>,
}

/// A fault at the end of a run: a structure lost something or gave it out twice, or the program is
/// wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// No tour was found, or it is none.
    #[error("the tour {0:?} does not visit each city once")]
    Tour(Vec<usize>),
    /// The tour has another length than was said.
    #[error("the tour is {found} long, not {said}")]
    Length {
        /// As long as it is.
        found: u64,
        /// As long as was said.
        said: u64,
    },
    /// A counter has another value than the threads added to it.
    #[error("{what}: the counter says {found}, the threads have counted {expected}")]
    Count {
        /// The name of the number.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The value that it should have.
        expected: u64,
    },
    /// Tours were lost, or came twice.
    #[error("{made} tours were put into the structures, {taken} came out")]
    Tours {
        /// As many were put in.
        made: u64,
        /// As many came out.
        taken: u64,
    },
}
