//! Histories of containers, as the checker's polynomial algorithms see them.

use core::hash::Hash;
use std::collections::{BTreeMap, HashMap};

use super::{Operation, Outcome};
use crate::history::{Call, History};

/// A history of a container: of pushes, of pops, and of questions whether it is empty.
///
/// A [`Specification`](super::Specification) that describes itself as a container is checked in
/// polynomial time if each value is pushed once. It may allow less than the container does, as a
/// bounded queue does, which refuses pushes. It must not allow more: a history of it, without the
/// refused pushes, must be one that the container allows.
///
/// ```
/// use stanchion_linearizability::specification::{Container, Operation, Outcome};
/// use stanchion_linearizability::{HistoryOf, Specification};
///
/// /// A bag that holds `u32`s: a pop takes any value, and finds nothing only if there is none.
/// #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
/// struct Bag(Vec<u32>);
///
/// impl Specification for Bag {
///     type Operation = Operation<u32>;
///     type Outcome = Outcome<u32>;
///
///     fn step(&self, call: &Operation<u32>, seen: Option<&Outcome<u32>>, after: &mut Vec<Self>) {
///         let mut next = self.clone();
///         match (call, seen) {
///             (Operation::Push(value), None | Some(Outcome::Pushed)) => {
///                 next.0.push(*value);
///                 next.0.sort_unstable();
///             }
///             (Operation::Pop, Some(Outcome::Popped(Some(value)))) => {
///                 let Ok(position) = next.0.binary_search(value) else { return };
///                 next.0.remove(position);
///             }
///             (Operation::Pop, Some(Outcome::Popped(None))) if next.0.is_empty() => {}
///             (Operation::IsEmpty, Some(Outcome::Empty(empty)))
///                 if *empty == next.0.is_empty() => {}
///             (_, None) => {}
///             _ => return,
///         }
///         after.push(next);
///     }
///
///     fn container(&self, history: &HistoryOf<Self>) -> Option<Container> {
///         Some(Container::bag(&self.0, history))
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Container {
    pub(crate) order: Order,
    /// The values that are in it at first, by number, the oldest first.
    pub(crate) initial: Vec<usize>,
    /// The calls of the history, in its order.
    pub(crate) calls: Vec<Action>,
    /// The numbers of values are below this one.
    pub(crate) values: usize,
}

/// Which of its values a container gives away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one that was pushed first.
    Oldest,
    /// The one that was pushed last.
    Newest,
    /// The one with the smallest number.
    Smallest,
    /// Any of them.
    Any,
}

/// A call on a container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    pub(crate) kind: Kind,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// The effect of a call, with the numbers of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Pushes this value. If the call has not returned, perhaps.
    Push(usize),
    /// Pops this value.
    Pop(usize),
    /// Finds the container empty, by a pop or by asking.
    Empty,
    /// Finds a value in it, and leaves it there.
    NotEmpty,
    /// Is refused, because there was no room.
    Refused,
    /// Has not returned, and perhaps pops a value.
    Unfinished,
    /// Has not returned, and does nothing.
    Nothing,
    /// Returns what such a call cannot return.
    Impossible,
}

impl Container {
    /// Returns the history of a container that gives the oldest value away and holds `initial`,
    /// the oldest first.
    pub fn queue<'t, T: Eq + Hash + 't>(
        initial: impl IntoIterator<Item = &'t T>,
        history: &'t History<Operation<T>, Outcome<T>>,
    ) -> Self {
        Self::hashed(Order::Oldest, initial, history)
    }

    /// Returns the history of a container that gives the newest value away and holds `initial`,
    /// the oldest first.
    pub fn stack<'t, T: Eq + Hash + 't>(
        initial: impl IntoIterator<Item = &'t T>,
        history: &'t History<Operation<T>, Outcome<T>>,
    ) -> Self {
        Self::hashed(Order::Newest, initial, history)
    }

    /// Returns the history of a container that gives any value away and holds `initial`.
    pub fn bag<'t, T: Eq + Hash + 't>(
        initial: impl IntoIterator<Item = &'t T>,
        history: &'t History<Operation<T>, Outcome<T>>,
    ) -> Self {
        Self::hashed(Order::Any, initial, history)
    }

    /// Returns the history of a container that gives the least value away and holds `initial`.
    pub fn priority_queue<'t, T: Ord + 't>(
        initial: impl IntoIterator<Item = &'t T>,
        history: &'t History<Operation<T>, Outcome<T>>,
    ) -> Self {
        let initial: Vec<_> = initial.into_iter().collect();
        let mut numbers: BTreeMap<&T, usize> = BTreeMap::new();
        numbers.extend(initial.iter().map(|value| (*value, 0)));
        numbers.extend(history.calls().iter().flat_map(named).map(|value| (value, 0)));
        numbers.values_mut().enumerate().for_each(|(rank, number)| *number = rank);
        let mut number = |value| numbers[value];
        let initial = initial.into_iter().map(&mut number).collect();
        Self::numbered(Order::Smallest, initial, history, &mut number)
    }

    /// Says that the container refuses no push, so that a refused push is impossible.
    #[must_use]
    pub fn never_full(mut self) -> Self {
        for call in &mut self.calls {
            if call.kind == Kind::Refused {
                call.kind = Kind::Impossible;
            }
        }
        self
    }

    fn hashed<'t, T: Eq + Hash + 't>(
        order: Order,
        initial: impl IntoIterator<Item = &'t T>,
        history: &'t History<Operation<T>, Outcome<T>>,
    ) -> Self {
        let mut numbers: HashMap<&T, usize> = HashMap::new();
        let mut number = |value| {
            let next = numbers.len();
            *numbers.entry(value).or_insert(next)
        };
        let initial = initial.into_iter().map(&mut number).collect();
        Self::numbered(order, initial, history, &mut number)
    }

    fn numbered<'t, T>(
        order: Order,
        initial: Vec<usize>,
        history: &'t History<Operation<T>, Outcome<T>>,
        number: &mut impl FnMut(&'t T) -> usize,
    ) -> Self {
        let action = |call: &'t Call<Operation<T>, Outcome<T>>| {
            let kind = match (&call.operation, &call.outcome) {
                (Operation::Push(value), None | Some(Outcome::Pushed)) => Kind::Push(number(value)),
                (Operation::Push(_), Some(Outcome::Full)) => Kind::Refused,
                (Operation::Pop, Some(Outcome::Popped(Some(value)))) => Kind::Pop(number(value)),
                (Operation::Pop, Some(Outcome::Popped(None)))
                | (Operation::IsEmpty, Some(Outcome::Empty(true))) => Kind::Empty,
                (Operation::IsEmpty, Some(Outcome::Empty(false))) => Kind::NotEmpty,
                (Operation::Pop, None) => Kind::Unfinished,
                (Operation::IsEmpty, None) => Kind::Nothing,
                _ => Kind::Impossible,
            };
            Action { kind, begin: call.begin, end: call.end }
        };
        let calls: Vec<_> = history.calls().iter().map(action).collect();
        let named =
            calls.iter().filter_map(|call| call.kind.value()).chain(initial.iter().copied());
        let values = named.max().map_or(0, |last| last + 1);
        Self { order, initial, calls, values }
    }
}

impl Kind {
    /// The value that is pushed or popped.
    pub(crate) const fn value(self) -> Option<usize> {
        match self {
            Self::Push(value) | Self::Pop(value) => Some(value),
            _ => None,
        }
    }
}

/// The values that a call names.
fn named<T>(call: &Call<Operation<T>, Outcome<T>>) -> impl Iterator<Item = &T> {
    let pushed = match &call.operation {
        Operation::Push(value) => Some(value),
        Operation::Pop | Operation::IsEmpty => None,
    };
    let popped = match &call.outcome {
        Some(Outcome::Popped(value)) => value.as_ref(),
        _ => None,
    };
    pushed.into_iter().chain(popped)
}
