#![doc = include_str!("../README.md")]

mod checked;
mod condvar;
mod mutex;
mod rw_lock;
pub mod std;

pub use checked::{Checked, mutex, rw_lock};
/// The recorder, with its reports.
pub use stanchion_order as order;
pub use stanchion_order::{report, switch_on};
