//! The locks of the study, ours and others', and what is done to them.
//!
//! [`contender`] is what the measurements ask of a lock, [`registry`] the list, [`raw`] what lets an application
//! run on the locks of crates without `lock_api` 0.5, [`contest`], [`pass`] and [`latency`] the measurements, and
//! [`sweep`] runs one measurement over many locks, interleaved.

pub(crate) mod contender;
pub(crate) mod contest;
pub(crate) mod latency;
pub(crate) mod pass;
pub(crate) mod raw;
pub(crate) mod registry;
pub(crate) mod start;
pub(crate) mod sweep;
