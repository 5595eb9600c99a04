//! What programs are told and what they answer, where the same program runs on this computer and on
//! simulated machines.
//!
//! The programs themselves are compiled once for each, so their own types differ; these do not.

pub mod gangs;
pub mod spinning;
pub mod structures;
