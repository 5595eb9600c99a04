#![doc = include_str!("../README.md")]

mod control_block;
mod free_list;
mod locked;
mod slab;
pub mod strategy;

pub use lock_api;

pub use control_block::{Link, Stack, Task, WORDS};
pub use strategy::{Place, Plan, Strategy, Told};
