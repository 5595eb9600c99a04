//! Records of the waits of a program's locks: their lengths, whether they spun or blocked, and how
//! many others waited.
//!
//! A [`Recorder`] around a policy counts the waits of each lock that has one, under the lock's
//! name. [`snapshot`] collects all of them as a [`Recording`]. A recording can be written to a file
//! and read by `stanchion advise`, which computes the cost of each policy.
//!
//! ```
//! use stanchion_competitive::{PolicyMutex, RawPolicyMutex, policy::RandomWalk};
//! use stanchion_competitive::waits::{self, Recorder, Waits as _};
//!
//! static QUEUE: PolicyMutex<Vec<u32>, Recorder<RandomWalk>> = PolicyMutex::from_raw(
//!     RawPolicyMutex::with_policy(Recorder::with_policy("queue", RandomWalk::new())),
//!     Vec::new(),
//! );
//!
//! std::thread::scope(|scope| {
//!     for thread in 0..4 {
//!         scope.spawn(move || (0..1_000).for_each(|_| QUEUE.lock().push(thread)));
//!     }
//! });
//! println!("{}", QUEUE.waits().table());
//! let recording = waits::snapshot();
//! println!("{} locks had contention", recording.locks.len());
//! ```
//!
//! Only contended waits are counted, as in section 3 of Karlin et al. 1991: a lock that is found
//! free costs nothing more than without a recorder.
//!
//! # What is global
//!
//! One table for the process, of [`NAMES`] names and [`SLOTS`] locks that have a slot of their own.
//! Beyond that, locks share slots, and names become one called [`OTHERS`]. The recording tells
//! that. The table is static and takes memory only as it is used.

mod buckets;
mod counters;
pub mod current;
mod distribution;
#[cfg(feature = "wait_files")]
mod document;
mod entry;
pub mod events;
#[cfg(feature = "wait_files")]
mod events_file;
pub mod log;
mod loss;
mod record;
mod recorder;
mod recording;
#[cfg(feature = "wait_files")]
mod recording_file;
pub mod shared;
mod table;
mod text;
#[cfg(feature = "wait_files")]
mod thresholds;

pub use buckets::{ARRIVALS, MAX_LENGTH_NS, MAX_UNIT_NS};
pub use distribution::{Bucket, Distribution, Observation, UnitsDiffer};
#[cfg(feature = "wait_files")]
pub use document::FileError;
pub use loss::Loss;
pub use record::Record;
pub use recorder::{Recorder, Waits};
pub use recording::{Recording, restart, restart_with_cost, snapshot};
pub use table::{MAX_NAME, NAMES, OTHERS, SLOTS, UNNAMED, intern};
#[cfg(feature = "wait_files")]
pub use thresholds::Thresholds;
