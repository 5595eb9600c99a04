//! What a structure should do when one thread uses it: the truth that histories are held against.
//!
//! Write a [`Sequential`] model, as plainly as possible: what each operation does and returns. It is a [`Specification`] by that. Only a structure
//! that may do one of several things needs a [`Specification`] of its own: a relaxed priority queue, which may return any of the first few.
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

/// What is allowed: from each state, which outcomes an operation may have, and what the state is then.
///
/// A value of the type is a state. The checker compares states and keeps those it has been in, so two that behave alike should be equal.
pub trait Specification: Clone + Eq + Hash + Debug {
    /// What is called, with its arguments.
    type Operation: Clone + Debug;
    /// What it returns.
    type Outcome: Clone + Debug + PartialEq;

    /// Pushes to `after` each state that there may be when `operation` has had this `outcome`; none, if it cannot have it here. If nobody has seen
    /// the outcome (`None`), each state that there may be when the operation has taken place.
    fn step(
        &self,
        operation: &Self::Operation,
        outcome: Option<&Self::Outcome>,
        after: &mut Vec<Self>,
    );

    /// How a call is shown in a drawing, in as few characters as say it.
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
    /// What is called, with its arguments.
    type Operation: Clone + Debug;
    /// What it returns.
    type Outcome: Clone + Debug + PartialEq;

    /// Does it.
    fn call(&mut self, operation: &Self::Operation) -> Self::Outcome;

    /// How a call is shown in a drawing, in as few characters as say it.
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
    /// Takes the value out whose turn it is.
    Pop,
    /// Asks whether there is one.
    IsEmpty,
}

/// What an [`Operation`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// The value is in.
    Pushed,
    /// There was no room.
    Full,
    /// The value that was taken out; `None` if there was none.
    Popped(Option<T>),
    /// Whether there was none.
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
