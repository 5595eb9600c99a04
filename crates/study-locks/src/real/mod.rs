//! The locks of the study, ours and others', and what is done to them.
//!
//! [`contender`] is what the measurements ask of a lock, [`registry`] the list, [`raw`] what lets an application
//! run on the locks of crates without `lock_api` 0.5, [`contest`], [`pass`] and [`latency`] the measurements.

pub mod contender;
pub mod contest;
pub mod latency;
pub mod pass;
pub mod raw;
pub mod registry;
