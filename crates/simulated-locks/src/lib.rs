//! Locks on simulated machines: the same measurements as on this computer, in virtual time.
//!
//! [`shared`] is what the locks guard, [`registry`] the list of locks, [`contest`], [`pass`],
//! [`copies`] and [`latency`] the measurements, [`show`] what their outcomes show alike, and
//! [`bus`] is what the queueing model says. The locks are the project's own source, compiled
//! against the simulated machine; what a program computes takes as long as is said here, in *turns*
//! ([`shared::turn`]).

pub mod bus;
pub mod contest;
pub mod copies;
pub mod latency;
pub mod pass;
pub mod registry;
pub mod shared;
pub mod show;

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the
/// same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
