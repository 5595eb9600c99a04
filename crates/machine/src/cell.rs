//! A cell that lets the machine check its accesses.
//!
//! [`UnsafeCell`] has loom's shape: all access is inside of a closure. So under loom the extent of
//! every read and write is known, and a data race fails the model. On the real machine the cell
//! costs nothing. On a simulated machine each closure is charged as one access to the line in which
//! the value begins.
//!
//! A cell that is made while threads run should be made by
//! [`Fresh::fresh`](crate::atomic::Fresh::fresh): see the chapter [`checking`](crate::checking).

pub use crate::backend::cell::UnsafeCell;
