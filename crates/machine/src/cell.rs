//! A cell whose accesses the machine can check.
//!
//! [`UnsafeCell`] has loom's shape: access only inside a closure, so that under loom the extent of every read and write is
//! known and a data race is an error of the model instead of silence. On the real machine it costs nothing; on a simulated one each
//! closure is charged as one access to the line in which the value begins.
//!
//! A cell that is made while threads run should be made by [`Fresh::fresh`](crate::atomic::Fresh::fresh): see the
//! chapter [`checking`](crate::checking).

pub use crate::backend::cell::UnsafeCell;
