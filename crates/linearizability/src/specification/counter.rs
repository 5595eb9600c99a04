//! A number that only goes up, until it wraps around.

use super::Sequential;

/// A counter of 64 bits that wraps around.
///
/// ```
/// use stanchion_linearizability::specification::{Count, Counter, Sequential};
///
/// let mut counter = Counter::new(0);
/// assert_eq!(counter.call(&Count::Add(2)), None);
/// assert_eq!(counter.call(&Count::FetchAdd(3)), Some(2));
/// assert_eq!(counter.call(&Count::Get), Some(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counter(u64);

/// An operation of a [`Counter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// Adds; returns nothing.
    Add(u64),
    /// Adds; returns what had been added before.
    FetchAdd(u64),
    /// Returns what has been added.
    Get,
}

impl Counter {
    /// A counter that starts at `count`.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }
}

impl Sequential for Counter {
    type Operation = Count;
    type Outcome = Option<u64>;

    fn call(&mut self, operation: &Count) -> Option<u64> {
        let before = self.0;
        if let Count::Add(amount) | Count::FetchAdd(amount) = operation {
            self.0 = before.wrapping_add(*amount);
        }
        match operation {
            Count::Add(_) => None,
            Count::FetchAdd(_) | Count::Get => Some(before),
        }
    }

    fn describe(operation: &Count, outcome: Option<&Option<u64>>) -> String {
        let called = match operation {
            Count::Add(amount) => format!("+{amount}"),
            Count::FetchAdd(amount) => format!("fetch +{amount}"),
            Count::Get => "get".to_owned(),
        };
        match outcome {
            Some(Some(count)) => format!("{called}: {count}"),
            Some(None) | None => called,
        }
    }
}
