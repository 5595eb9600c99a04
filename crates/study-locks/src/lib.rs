//! The locks that the study compares, and what is measured of them.
//!
//! [`list`] has our locks. [`real`] are they and those of other crates on this computer, with the measurements compiled for each;
//! [`simulated`] are they on simulated machines, with the same measurements in virtual time.

pub mod list;
pub mod real;
pub mod simulated;

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
