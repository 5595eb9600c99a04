//! The least first, or nearly.

use core::fmt::{self, Debug};
use core::hash::Hash;

use crate::history::History;

use super::{Container, Operation, Outcome, Specification, brief};

/// A priority queue, empty at first: [`Operation::Pop`] takes the least value, or one of the least.
///
/// ```
/// use stanchion_linearizability::specification::{Operation, Outcome};
/// use stanchion_linearizability::specification::{PriorityQueue, Specification};
///
/// /// Returns whether a pop of a queue with 1, 2 and 3 in it may return `value`.
/// fn may_pop(empty: PriorityQueue<u32>, value: u32) -> bool {
///     let full = [3, 1, 2].iter().fold(empty, |queue, value| {
///         let mut after = vec![];
///         queue.step(&Operation::Push(*value), Some(&Outcome::Pushed), &mut after);
///         after.remove(0)
///     });
///     let mut after = vec![];
///     full.step(&Operation::Pop, Some(&Outcome::Popped(Some(value))), &mut after);
///     !after.is_empty()
/// }
/// assert!(may_pop(PriorityQueue::new(), 1));
/// assert!(!may_pop(PriorityQueue::new(), 2));
/// assert!(may_pop(PriorityQueue::relaxed(1), 2));
/// assert!(!may_pop(PriorityQueue::relaxed(1), 3));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PriorityQueue<T> {
    /// In order.
    values: Vec<T>,
    /// The most smaller values that a pop may pass over.
    passed: usize,
}

impl<T> PriorityQueue<T> {
    /// Strict: a pop takes the least.
    #[must_use]
    pub const fn new() -> Self {
        Self::relaxed(0)
    }

    /// Relaxed: a pop takes a value if at most `rank` values in the queue are smaller. With
    /// `usize::MAX` it takes any value. It finds nothing only if the queue is empty.
    #[must_use]
    pub const fn relaxed(rank: usize) -> Self {
        Self { values: Vec::new(), passed: rank }
    }
}

impl<T> Default for PriorityQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Ord + Hash + Debug> PriorityQueue<T> {
    fn without(&self, place: usize) -> Self {
        let mut next = self.clone();
        next.values.remove(place);
        next
    }
}

impl<T: Clone + Ord + Hash + Debug> Specification for PriorityQueue<T> {
    type Operation = Operation<T>;
    type Outcome = Outcome<T>;

    fn step(&self, operation: &Operation<T>, outcome: Option<&Outcome<T>>, after: &mut Vec<Self>) {
        match (operation, outcome) {
            (Operation::Push(value), None | Some(Outcome::Pushed)) => {
                let mut next = self.clone();
                let place = next.values.partition_point(|other| other <= value);
                next.values.insert(place, value.clone());
                after.push(next);
            }
            (Operation::Pop, Some(Outcome::Popped(Some(value)))) => {
                // The first of those that are equal: that many are smaller.
                let place = self.values.partition_point(|other| other < value);
                if place <= self.passed && self.values.get(place) == Some(value) {
                    after.push(self.without(place));
                }
            }
            (Operation::Pop, Some(Outcome::Popped(None))) if self.values.is_empty() => {
                after.push(self.clone());
            }
            (Operation::Pop, None) if self.values.is_empty() => after.push(self.clone()),
            (Operation::Pop, None) => {
                let choices = self.values.len().min(self.passed.saturating_add(1));
                after.extend((0..choices).map(|place| self.without(place)));
            }
            (Operation::IsEmpty, None) => after.push(self.clone()),
            (Operation::IsEmpty, Some(Outcome::Empty(empty)))
                if *empty == self.values.is_empty() =>
            {
                after.push(self.clone());
            }
            _ => {}
        }
    }

    fn describe(operation: &Operation<T>, outcome: Option<&Outcome<T>>) -> String {
        brief(operation, outcome)
    }

    fn container(&self, history: &History<Operation<T>, Outcome<T>>) -> Option<Container> {
        let container = match self.passed {
            0 => Container::priority_queue(&self.values, history),
            _ => Container::bag(&self.values, history),
        };
        Some(container.never_full())
    }
}

impl<T: Debug> Debug for PriorityQueue<T> {
    /// The values; drawings have little room.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.values).finish()
    }
}
