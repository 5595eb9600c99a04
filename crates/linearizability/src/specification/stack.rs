//! Last in, first out.

use core::fmt::{self, Debug};
use core::hash::Hash;

use crate::history::History;

use super::{Container, Operation, Outcome, Sequential, brief};

/// A stack, empty at first.
///
/// ```
/// use stanchion_linearizability::specification::{Operation, Outcome, Sequential, Stack};
///
/// let mut stack = Stack::new();
/// stack.call(&Operation::Push('a'));
/// stack.call(&Operation::Push('b'));
/// assert_eq!(stack.call(&Operation::Pop), Outcome::Popped(Some('b')));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stack<T>(Vec<T>);

impl<T> Stack<T> {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Eq + Hash + Debug> Sequential for Stack<T> {
    type Operation = Operation<T>;
    type Outcome = Outcome<T>;

    fn call(&mut self, operation: &Operation<T>) -> Outcome<T> {
        match operation {
            Operation::Push(value) => {
                self.0.push(value.clone());
                Outcome::Pushed
            }
            Operation::Pop => Outcome::Popped(self.0.pop()),
            Operation::IsEmpty => Outcome::Empty(self.0.is_empty()),
        }
    }

    fn describe(operation: &Operation<T>, outcome: Option<&Outcome<T>>) -> String {
        brief(operation, outcome)
    }

    fn container(&self, history: &History<Operation<T>, Outcome<T>>) -> Option<Container> {
        Some(Container::stack(&self.0, history).never_full())
    }
}

impl<T: Debug> Debug for Stack<T> {
    /// The values, the top last; drawings have little room.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
