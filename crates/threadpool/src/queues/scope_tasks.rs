//! The tasks of scopes that must be run by their waiters: a list for each worker slot.
//!
//! Under [`Wait::Isolated`](crate::Wait), `Leapfrog` and `Park` a worker that waits for its scope
//! must run the scope's own tasks, as perhaps no other worker would. It could not pick them out of
//! the strategy. The same holds under `Any` for a scope that begins where
//! [`MAX_NESTED_TASKS`](crate::MAX_NESTED_TASKS) tasks lie above each other. So there the tasks lie
//! in the list of the waiter's slot. The strategy gets *vouchers*: a worker that takes a voucher
//! runs a task of the list.
//!
//! ```text
//! slot 3:  outermost scope: tasks │ next scope: tasks │ innermost scope: tasks
//!          ▲                                            ▲
//!          a worker with a voucher for slot 3           the worker of slot 3, which takes
//!                                                       only tasks of the scope it waits for
//! strategy:  … voucher for 3 … voucher for 3 …
//! ```
//!
//! Why a list for each slot and not for each scope: a voucher cannot be taken out of the strategy
//! again. With a list for each scope, a worker that runs scope after scope by itself leaves a
//! voucher behind each time, which lies there until a worker is idle. Here the next scope finds
//! that there is one.
//!
//! # Invariants
//!
//! 1. The scopes of a slot begin and end like the frames of its worker's stack. The level of a
//!    scope is the number of scopes outside of it.
//! 2. `vouchers` vouchers of this slot are ready, or are being made ready. There are at least as
//!    many as tasks in the list, up to the number of slots, and never more than that. A worker that
//!    takes a voucher restores this before it runs its task. So a task that blocks keeps no other
//!    worker from the list.

use core::fmt;
use std::collections::VecDeque;

use stanchion_competitive::Mutex;

/// The tasks of a slot's scopes.
pub(crate) struct ScopeTasks<T>(Mutex<ScopeLists<T>>);

struct ScopeLists<T> {
    /// The tasks of each scope, outermost first (Invariant 1).
    levels: Vec<VecDeque<T>>,
    /// The number of tasks in all levels.
    tasks: usize,
    /// The number of vouchers in the strategy (Invariant 2).
    vouchers: usize,
}

impl<T> ScopeTasks<T> {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ScopeLists { levels: Vec::new(), tasks: 0, vouchers: 0 }))
    }

    /// Begins a scope on this slot. Returns its level.
    pub(crate) fn begin_scope(&self) -> usize {
        let mut lists = self.0.lock();
        lists.levels.push(VecDeque::new());
        lists.levels.len() - 1
    }

    /// Ends the innermost scope.
    pub(crate) fn end_scope(&self) {
        let last = self.0.lock().levels.pop();
        debug_assert!(last.is_some_and(|tasks| tasks.is_empty()), "a scope ends after its tasks");
    }

    /// Adds a task. Returns how many there are, and whether the caller must make a voucher. There
    /// are at most `most` vouchers.
    pub(crate) fn push(&self, level: usize, task: T, most: usize) -> (usize, bool) {
        let mut lists = self.0.lock();
        lists.levels[level].push_back(task);
        lists.tasks += 1;
        (lists.tasks, lists.wants_voucher(most))
    }

    /// Returns whether the scope at `level` has a task that no thread has begun.
    pub(crate) fn has_task(&self, level: usize) -> bool {
        !self.0.lock().levels[level].is_empty()
    }

    /// Takes a task of the scope at `level`, if there is one that no thread has begun.
    pub(crate) fn take(&self, level: usize) -> Option<T> {
        self.0.lock().take(level)
    }

    /// Takes a task for a voucher, if there is one left. Returns also whether the caller must make
    /// another voucher. There are at most `most` vouchers.
    pub(crate) fn redeem(&self, innermost_first: bool, most: usize) -> (Option<T>, bool) {
        let mut lists = self.0.lock();
        lists.vouchers -= 1;
        let mut levels = lists.levels.iter();
        let level = if innermost_first {
            levels.rposition(|tasks| !tasks.is_empty())
        } else {
            levels.position(|tasks| !tasks.is_empty())
        };
        (level.and_then(|level| lists.take(level)), lists.wants_voucher(most))
    }
}

impl<T> ScopeLists<T> {
    fn take(&mut self, level: usize) -> Option<T> {
        let task = self.levels[level].pop_front()?;
        self.tasks -= 1;
        Some(task)
    }

    /// Returns whether a voucher is missing, and counts it at once.
    fn wants_voucher(&mut self, most: usize) -> bool {
        let wants = self.vouchers < self.tasks.min(most);
        self.vouchers += usize::from(wants);
        wants
    }
}

impl<T> fmt::Debug for ScopeTasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeTasks").finish_non_exhaustive()
    }
}
