//! The record of a thread that allows to be controlled.

use std::sync::Arc;

use crate::control::Interrupted;
use crate::fork::generation;

/// The memory that the thread's handler finds.
pub(super) struct Record {
    /// The work of the handler.
    pub(super) interrupted: Arc<dyn Interrupted>,
    /// The process in which the thread came.
    pub(super) generation: u32,
}

impl Record {
    /// Returns whether the thread came in this process, and not in one that this one was forked
    /// from.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == generation()
    }
}
