//! Quicksort: threads sort an array together, and a shared queue or stack holds the intervals that
//! are still to be sorted.
//!
//! One of the programs that Michael and Scott used to compare structures without locks and with
//! them. The paper says of it:
//!
//! > We performed experiments on two versions of a parallel quicksort application, one that uses a
//! > link-based queue, and another that uses a link-based stack for distributing items to be sorted
//! > among the cooperating processes. [...] In each execution, the processes cooperate in sorting
//! > an array of 500,000 pseudo-random numbers using quicksort for intervals of more than 20
//! > elements, and insertion sort for smaller intervals.
//!
//! The paper does not say which data goes through the structure, how the pivot is chosen, and how
//! the threads know that they are done. These parts are additions of this crate:
//!
//! - [`Pool`]: the structure, [`InQueue`] or [`InStack`] of any type with the traits of `lockfree`.
//! - [`sort`](mod@self): every interval of more than 20 numbers goes through the structure. Smaller
//!   intervals are sorted where they arise.
//! - [`Outstanding`](crate::outstanding::Outstanding): the end, when all is sorted.
//!
//! The pivot is the median of three numbers, at indices that depend on the interval and the seed
//! alone. So the set of intervals does not depend on the threads or the structure: every run of the
//! same numbers does the same work.
//!
//! Source: M. Michael, M. Scott, *Relative performance of preemption-safe locking and non-blocking
//! synchronization on multiprogrammed shared-memory multiprocessors*, 1997, section 4.5.

mod outcome;
mod partition;
mod pool;
mod sort;

pub use crate::crew::MAX_THREADS;
pub use outcome::{CUTOFF, Fault, NUMBERS, Options, Refused, Run, Share};
pub use pool::{InQueue, InStack, Interval, Pool};
pub use sort::{numbers, run, run_with};
