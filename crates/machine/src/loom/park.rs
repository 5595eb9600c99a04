//! A futex: threads asleep on the address of a word.
//!
//! One table for all words, as a kernel's bucket: a mutex around the list of sleepers, a condition variable for each. A sleeper may
//! wake for no reason and a deadline may pass, both by [`choice`](crate::choice).

use core::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::world::World;
use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Deadline;

/// The sleepers of one execution, in the order they went to sleep.
pub(super) struct Parked {
    table: loom::sync::Mutex<()>,
    /// Touched only under `table`; kept beside it because loom's mutex would drop it outside the execution.
    sleepers: RefCell<VecDeque<Rc<Sleeper>>>,
}

struct Sleeper {
    address: usize,
    awake: core::cell::Cell<bool>,
    signal: loom::sync::Condvar,
}

impl Parked {
    pub(super) fn new() -> Self {
        Self { table: loom::sync::Mutex::new(()), sleepers: RefCell::default() }
    }
}
