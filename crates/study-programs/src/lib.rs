//! The programs that the papers' experiments run both on this computer and on simulated machines.
//!
//! This crate is compiled twice. Its own package links it with the crates of this computer; its
//! twin links the same source with their twins, for simulated machines. So each program is written
//! once, and an experiment takes it from the package of the machine that it runs on. What a program
//! is told and what it answers, in types that both packages share, is in
//! [`stanchion_study::settings`].

pub mod all89;
pub mod fr92;
pub mod klmo91;
pub mod ms97;
