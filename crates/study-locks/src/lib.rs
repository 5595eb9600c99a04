//! The locks that the study compares on this computer, ours and those of other crates, and their
//! measurements.
//!
//! [`list`] has our locks. [`registry`] has all locks with the measurements compiled for each:
//! [`contest`], [`pass`] and [`latency`]. [`contender`] is the interface of a lock to the
//! measurements. [`raw`] lets an application run on the locks of crates without `lock_api` 0.5.
//!
//! The same locks on simulated machines are `stanchion-simulated-locks`.

pub mod contender;
pub mod contest;
pub mod latency;
pub mod list;
pub mod pass;
pub mod raw;
pub mod registry;
