//! The travelling salesman: an exact branch and bound with threads that share a heap, a stack and
//! counters.
//!
//! One of the programs that Michael and Scott used to compare structures without locks and with
//! them. The paper says of it:
//!
//! > The program uses a shared heap, stack, and counters. [...] In each execution, the processes
//! > cooperate to find the shortest tour in a 17-city graph. The processes use the priority queue
//! > heap to share information about the most promising tours, and the stack to keep track of the
//! > tours that are yet to be computed.
//!
//! A *tour* here is the beginning of one: some cities in order. The paper does not say how the
//! bound is computed, where a tour goes from the heap to the stack, and how the threads know that
//! they are done. These parts are additions of this crate:
//!
//! - [`Instance`], `tsplib`: the cities, and the reader of TSPLIB files.
//! - `start`: a tour to begin with, by nearest neighbours and exchanges.
//! - `bound`: the lower bound of a tour. It is a spanning tree of the cities that are left, in
//!   distances made even by Held and Karp's ascent.
//! - `search`: the threads. A tour with many cities left is on the heap, by its bound. A tour with
//!   few left is on the stack, and is completed by the thread that takes it.
//! - `estimate`: the length of the search, by Knuth's random dives.
//!
//! ```
//! use stanchion_applications::tsp::Instance;
//! let square = Instance::new("square", 4, |a, b| if a - b == 2 { 14 } else { 10 });
//! assert_eq!(square.length(&[0, 1, 2, 3]), 40);
//! ```
//!
//! Source: M. Michael, M. Scott, *Relative performance of preemption-safe locking and non-blocking
//! synchronization on multiprogrammed shared-memory multiprocessors*, 1997, section 4.6.

mod bound;
mod distance;
mod error;
mod estimate;
mod instance;
mod outcome;
mod search;
mod start;
mod tour;
mod tsplib;

pub use crate::crew::MAX_THREADS;
pub use bound::Bound;
pub use error::{ParseError, Reason, Word};
pub use instance::Instance;
pub use outcome::{Fault, LEAF, Options, Refused, Run, Scene, Share};
pub use search::{Structures, run, run_with};
pub use tour::{MOST_CITIES, Tour};
pub use tsplib::{MAX_CITIES, MAX_LINE};

/// 17 cities, as many as the paper's. The shortest tour is 2938 long.
///
/// They are points of a square, and a road between two of them is up to a fifth longer than the
/// line. `tests/together/tsp.rs` has the program that draws them, and a proof of the shortest tour
/// by another method. The number that they are made from was chosen so that the search is as long
/// as that of TSPLIB's `gr17`, which has no licence: 1.22 million bounds by spanning trees, against
/// 1.24 million.
///
/// ```
/// use stanchion_applications::tsp::{Instance, STANCHION17};
/// let instance = Instance::parse(STANCHION17.as_bytes())?;
/// assert_eq!((instance.name(), instance.cities()), ("stanchion17", 17));
/// assert_eq!(instance.distance(0, 1), 568);
/// # Ok::<(), stanchion_applications::tsp::ParseError>(())
/// ```
pub const STANCHION17: &str = include_str!("../../data/stanchion17.tsp");
