#![doc = include_str!("../README.md")]

mod builder;
mod carrier;
mod error;
mod fiber;
mod join;
mod local;
mod packet;
mod park;
mod ready;
mod reserve;
mod runtime;
mod seat;
mod shared;
mod sleeping;
mod standing;
mod thread;
mod timers;

pub use builder::RuntimeBuilder;
pub use error::BuildError;
pub use join::JoinHandle;
pub use park::{park, park_timeout};
pub use runtime::Runtime;
pub use thread::{Thread, ThreadId, current, spawn, yield_now};
