//! The sleepers of the model's futex.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The sleepers of one execution, in the order they went to sleep.
pub(super) struct Parked {
    /// The lock of the table.
    pub(super) table: loom::sync::Mutex<()>,
    /// The sleepers. Touched only under `table`.
    pub(super) sleepers: RefCell<VecDeque<Rc<Sleeper>>>,
}

/// A sleeping thread.
pub(super) struct Sleeper {
    /// The address of the word that it waits on.
    pub(super) address: usize,
    /// True once a waker has removed it from the list, which the waker writes under `table`.
    pub(super) awake: Cell<bool>,
    /// The condition variable that it sleeps on.
    pub(super) signal: loom::sync::Condvar,
}

impl Parked {
    pub(super) fn new() -> Self {
        Self { table: loom::sync::Mutex::new(()), sleepers: RefCell::default() }
    }
}
