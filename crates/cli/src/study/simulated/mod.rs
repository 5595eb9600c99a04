//! Locks on simulated machines: the same measurements as on this computer, in virtual time.
//!
//! [`program`] runs threads that start together, [`shared`] is what the locks guard, [`registry`] the list of locks, [`contest`], [`pass`],
//! [`copies`] and [`latency`] the measurements, [`cells`] runs many of them, and [`bus`] is what the queueing model says. The locks are the project's
//! own source, compiled against the simulated machine; what a program computes takes as long as is said here, in *turns* ([`shared::turn`]).

pub(crate) mod bus;
pub(crate) mod cells;
pub(crate) mod contest;
pub(crate) mod copies;
pub(crate) mod latency;
pub(crate) mod pass;
pub(crate) mod program;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod show;
