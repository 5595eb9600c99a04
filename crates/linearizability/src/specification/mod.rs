//! Specifications: the behaviour of a structure that one thread uses. The checker holds histories
//! against them.
//!
//! Write a [`Sequential`] model, as plainly as possible: what each operation does and returns.
//! Every such model is a [`Specification`]. A structure that may do one of several things needs a
//! [`Specification`] of its own. A relaxed priority queue is one: it may return any of the first
//! few values.
//!
//! | model | operations |
//! | --- | --- |
//! | [`Stack`] | push, pop, is it empty |
//! | [`Queue`], with or without a bound | push, which may be refused, pop, is it empty |
//! | [`PriorityQueue`], strict, or relaxed by so many places | push, pop the least, is it empty |
//! | [`Counter`] | add, fetch and add, get |

use core::fmt::Debug;
use core::hash::Hash;

use crate::HistoryOf;
use crate::history::History;

pub(crate) mod container;
mod counter;
mod heap;
mod queue;
mod stack;

pub use container::Container;
pub use counter::{Count, Counter};
pub use heap::PriorityQueue;
pub use queue::Queue;
pub use stack::Stack;

/// A specification: from each state, the outcomes that an operation may have, and the states that
/// follow.
///
/// A value of the type is a state. The checker compares states and remembers those that it has
/// visited, so two states that behave alike should be equal.
pub trait Specification: Clone + Eq + Hash + Debug {
    /// An operation, with its arguments.
    type Operation: Clone + Debug;
    /// The outcome of an operation.
    type Outcome: Clone + Debug + PartialEq;

    /// Pushes to `after` each state that may follow when `operation` has this `outcome`. If it
    /// cannot have this outcome in this state, pushes none. If no thread saw the outcome (`None`),
    /// pushes each state that may follow the operation.
    fn step(
        &self,
        operation: &Self::Operation,
        outcome: Option<&Self::Outcome>,
        after: &mut Vec<Self>,
    );

    /// Returns the text that stands for a call in a drawing, as short as is clear.
    fn describe(operation: &Self::Operation, outcome: Option<&Self::Outcome>) -> String {
        described(operation, outcome)
    }

    /// Returns the history as that of a container that starts in this state, if it is one. Then the
    /// check takes polynomial time where each value is pushed once.
    fn container(&self, _history: &HistoryOf<Self>) -> Option<Container> {
        None
    }
}

/// A structure as one thread sees it: from each state an operation does one thing.
///
/// ```
/// use stanchion_linearizability::{Event, History, Sequential, check};
///
/// /// A register; reading it is `None`.
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Register(u32);
///
/// impl Sequential for Register {
///     type Operation = Option<u32>;
///     type Outcome = u32;
///
///     fn call(&mut self, operation: &Option<u32>) -> u32 {
///         let before = self.0;
///         self.0 = operation.unwrap_or(before);
///         before
///     }
/// }
///
/// // Thread 0 writes 1 all the while; thread 1 reads the new value and then the old one.
/// let history = History::from_events([
///     Event::Begin(0, Some(1)),
///     Event::Begin(1, None),
///     Event::End(1, 1),
///     Event::Begin(1, None),
///     Event::End(1, 0),
///     Event::End(0, 0),
/// ])?;
/// assert!(check(&Register(0), &history).is_err());
/// # Ok::<(), stanchion_linearizability::Malformed>(())
/// ```
pub trait Sequential: Clone + Eq + Hash + Debug {
    /// An operation, with its arguments.
    type Operation: Clone + Debug;
    /// The outcome of an operation.
    type Outcome: Clone + Debug + PartialEq;

    /// Performs the operation: changes the state and returns the outcome.
    fn call(&mut self, operation: &Self::Operation) -> Self::Outcome;

    /// Returns the text that stands for a call in a drawing, as short as is clear.
    fn describe(operation: &Self::Operation, outcome: Option<&Self::Outcome>) -> String {
        described(operation, outcome)
    }

    /// Returns the history as that of a container: see [`Specification::container`].
    fn container(&self, _history: &History<Self::Operation, Self::Outcome>) -> Option<Container> {
        None
    }
}

impl<S: Sequential> Specification for S {
    type Operation = S::Operation;
    type Outcome = S::Outcome;

    fn step(
        &self,
        operation: &Self::Operation,
        outcome: Option<&Self::Outcome>,
        after: &mut Vec<Self>,
    ) {
        let mut next = self.clone();
        let returned = next.call(operation);
        if outcome.is_none_or(|outcome| *outcome == returned) {
            after.push(next);
        }
    }

    fn describe(operation: &Self::Operation, outcome: Option<&Self::Outcome>) -> String {
        <S as Sequential>::describe(operation, outcome)
    }

    fn container(&self, history: &HistoryOf<Self>) -> Option<Container> {
        <S as Sequential>::container(self, history)
    }
}

fn described(operation: &impl Debug, outcome: Option<&impl Debug>) -> String {
    match outcome {
        Some(outcome) => format!("{operation:?} = {outcome:?}"),
        None => format!("{operation:?}"),
    }
}

/// An operation of a [`Stack`], a [`Queue`] or a [`PriorityQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation<T> {
    /// Puts a value in.
    Push(T),
    /// Takes out the value that comes next.
    Pop,
    /// Asks whether there is one.
    IsEmpty,
}

/// The outcome of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// The value is in.
    Pushed,
    /// There was no room.
    Full,
    /// The value that was taken out; `None` if there was none.
    Popped(Option<T>),
    /// The answer to `IsEmpty`: `true` if there was no value.
    Empty(bool),
}

/// `push(1)`, `push(1): full`, `pop: 1`, `pop: none`, `empty: yes`.
fn brief<T: Debug>(operation: &Operation<T>, outcome: Option<&Outcome<T>>) -> String {
    let called = match operation {
        Operation::Push(value) => format!("push({value:?})"),
        Operation::Pop => "pop".to_owned(),
        Operation::IsEmpty => "empty".to_owned(),
    };
    match outcome {
        None | Some(Outcome::Pushed) => called,
        Some(Outcome::Full) => format!("{called}: full"),
        Some(Outcome::Popped(None)) => format!("{called}: none"),
        Some(Outcome::Popped(Some(value))) => format!("{called}: {value:?}"),
        Some(Outcome::Empty(true)) => format!("{called}: yes"),
        Some(Outcome::Empty(false)) => format!("{called}: no"),
    }
}
