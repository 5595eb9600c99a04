//! Locks on simulated machines: the same measurements as on this computer, in virtual time.
//!
//! [`shared`] has the data that the locks guard, and [`registry`] has the list of locks.
//! [`contest`], [`pass`], [`copies`] and [`latency`] are the measurements. [`show`] has the parts
//! that their outcomes share, and [`bus`] has the predictions of the queueing model. The locks are
//! the project's own source, compiled against the simulated machine. The computation of a program
//! is not simulated: it takes a time given here, in *turns* ([`shared::turn`]).

pub mod bus;
pub mod contest;
pub mod copies;
pub mod latency;
pub mod pass;
pub mod registry;
pub mod shared;
pub mod show;

/// An allocator that puts the allocations of a test's simulated program at addresses chosen by its
/// run, so that they are the same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
