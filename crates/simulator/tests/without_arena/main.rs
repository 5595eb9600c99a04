//! Runs without the arena, in one program: linking each by itself takes longer.

mod basics;
#[path = "../common/mod.rs"]
mod common;
mod instructions;
mod jitter;
mod timeline;
