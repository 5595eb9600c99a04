//! The programs that the papers' experiments run both on this computer and on simulated machines.
//!
//! This crate is compiled twice. Its own package links it with the crates of this computer. Its
//! twin links the same source with their twins, for simulated machines. So each program is written
//! once, and an experiment takes it from the package of the machine that it runs on. The settings
//! and the results of the programs are in [`stanchion_study::settings`], as types that both
//! packages share.

pub mod all89;
pub mod fr92;
pub mod klmo91;
pub mod ms97;
pub mod sa92;
