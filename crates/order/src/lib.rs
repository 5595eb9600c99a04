#![doc = include_str!("../README.md")]

pub mod current;
mod entry;
mod file;
pub mod foreign;
mod graph;
mod identity;
mod json;
mod local;
mod mode;
mod path;
mod process;
mod recorder;
mod report;
mod switch;
mod totals;
mod wait;

pub use identity::{Identity, is_switched_on, report, switch_on};
pub use mode::Mode;
pub use path::{CallPath, Frame};
pub use report::{
    CallSite, Cycle, HeldAcross, Lock, Losses, Recursion, Report, Step, WaitClass, WaitTotal,
};
pub use wait::{Wait, mutex_acquired, mutex_released};
