//! The tasks of scopes whose waiters run no others, a list for each seat.
//!
//! Under [`Wait::Isolated`](crate::Wait), `Leapfrog` and `Park` a worker that waits for its scope must run the scope's own tasks, or nobody might.
//! Out of the strategy it could not pick them. The same goes under `Any` for a scope that begins where [`MAX_NESTED_TASKS`](crate::MAX_NESTED_TASKS) tasks
//! lie above each other. So there the tasks lie in the list of the seat that waits, and what is put into the strategy are *vouchers*: who gets one
//! runs a task of the list.
//!
//! ```text
//! slot 3:  tasks of its outermost scope │ of the next │ of the innermost        strategy:  … voucher for 3 … voucher for 3 …
//!              ^                                          ^
//!              who has a voucher                          the worker itself, and only those of the scope it waits for
//! ```
//!
//! Why a list for each seat and not for each scope: a voucher cannot be taken out of the strategy again. With a list for each scope, a worker that
//! runs scope after scope by itself leaves a voucher behind each time, and they lie there until somebody is idle. Here the next scope finds that
//! there is one.
//!
//! # Invariants
//!
//! 1. The scopes of a seat begin and end like the frames of its worker's stack: the level of one is how many are outside of it.
//! 2. `vouchers` of this seat are ready, or being made so. There are as many as tasks in the list, at least, up to the number of seats, and never
//!    more than that. Who takes one out restores this before he runs his task, so a task that blocks keeps nobody else from the list.

use core::fmt;
use std::collections::VecDeque;

use stanchion_competitive::Mutex;

/// The tasks of a seat's scopes.
pub(crate) struct ScopeTasks<T>(Mutex<ScopeLists<T>>);

struct ScopeLists<T> {
    /// Outermost first (Invariant 1).
    levels: Vec<VecDeque<T>>,
    /// In all levels.
    tasks: usize,
    /// Invariant 2.
    vouchers: usize,
}

impl<T> ScopeTasks<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ScopeLists { levels: Vec::new(), tasks: 0, vouchers: 0 }))
    }

    /// A scope begins on this seat. Returns its level.
    pub(crate) fn begin_scope(&self) -> usize {
        let mut lists = self.0.lock();
        lists.levels.push(VecDeque::new());
        lists.levels.len() - 1
    }

    /// The innermost scope ends.
    pub(crate) fn end_scope(&self) {
        let last = self.0.lock().levels.pop();
        debug_assert!(last.is_some_and(|tasks| tasks.is_empty()), "a scope ends after its tasks");
    }

    /// Adds a task. Says how many there are, and whether the caller is to make a voucher for them; with no more than `most` of those.
    pub(crate) fn push(&self, level: usize, task: T, most: usize) -> (usize, bool) {
        let mut lists = self.0.lock();
        lists.levels[level].push_back(task);
        lists.tasks += 1;
        (lists.tasks, lists.wants_voucher(most))
    }

    pub(crate) fn has_task(&self, level: usize) -> bool {
        !self.0.lock().levels[level].is_empty()
    }

    /// Takes a task of the scope at `level`, if there is one that nobody has begun.
    pub(crate) fn take(&self, level: usize) -> Option<T> {
        self.0.lock().take(level)
    }

    /// Takes a task for a voucher, if there is one left. Says whether the caller is to make another voucher; with no more than `most` of those.
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

    /// Whether a voucher is missing, which is counted at once.
    fn wants_voucher(&mut self, most: usize) -> bool {
        let wants = self.vouchers < self.tasks.min(most);
        self.vouchers += usize::from(wants);
        wants
    }
}

impl<T> fmt::Debug for ScopeTasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed").finish_non_exhaustive()
    }
}
