//! First in, first out.

use std::collections::VecDeque;

use core::fmt::{self, Debug};
use core::hash::Hash;

use crate::history::History;

use super::{Container, Operation, Outcome, Sequential, brief};

/// A queue, empty at first.
///
/// ```
/// use stanchion_linearizability::specification::{Operation, Outcome, Queue, Sequential};
///
/// let mut queue = Queue::bounded(1);
/// assert_eq!(queue.call(&Operation::Push('a')), Outcome::Pushed);
/// assert_eq!(queue.call(&Operation::Push('b')), Outcome::Full);
/// assert_eq!(queue.call(&Operation::Pop), Outcome::Popped(Some('a')));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Queue<T> {
    values: VecDeque<T>,
    capacity: usize,
}

impl<T> Queue<T> {
    /// Empty, and never full.
    #[must_use]
    pub const fn new() -> Self {
        Self::bounded(usize::MAX)
    }

    /// Empty. A push is refused if, and only if, there are `capacity` values in it.
    #[must_use]
    pub const fn bounded(capacity: usize) -> Self {
        Self { values: VecDeque::new(), capacity }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Eq + Hash + Debug> Sequential for Queue<T> {
    type Operation = Operation<T>;
    type Outcome = Outcome<T>;

    fn call(&mut self, operation: &Operation<T>) -> Outcome<T> {
        match operation {
            Operation::Push(_) if self.values.len() >= self.capacity => Outcome::Full,
            Operation::Push(value) => {
                self.values.push_back(value.clone());
                Outcome::Pushed
            }
            Operation::Pop => Outcome::Popped(self.values.pop_front()),
            Operation::IsEmpty => Outcome::Empty(self.values.is_empty()),
        }
    }

    fn describe(operation: &Operation<T>, outcome: Option<&Outcome<T>>) -> String {
        brief(operation, outcome)
    }

    fn container(&self, history: &History<Operation<T>, Outcome<T>>) -> Option<Container> {
        let container = Container::queue(&self.values, history);
        Some(if self.capacity == usize::MAX { container.never_full() } else { container })
    }
}

impl<T: Debug> Debug for Queue<T> {
    /// The values; drawings have little room.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.values).finish()
    }
}
