//! Settings and results of programs that run both on this computer and on simulated machines.
//!
//! The programs themselves are compiled once for each kind of machine, so their own types differ.
//! These types do not.

pub mod gangs;
pub mod spinning;
pub mod structures;
