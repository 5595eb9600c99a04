//! A history that is not linearizable, and how to see it.

use core::fmt;

use crate::history::Call;
use crate::search::Furthest;
use crate::{HistoryOf, Specification, timeline};

/// A part of a history of which no order of the calls is allowed.
///
/// If the specification is one of a [container](crate::specification::Container), then the part has
/// only those values that are needed: without all calls of any one of them there is an order.
/// Values also stay that could be there when a call finds the container not empty, or is refused.
/// Of any history only the beginning is shown up to the first outcome that cannot be explained.
///
/// It displays itself as a drawing of these calls, the longest order that is possible, and what
/// then cannot follow:
///
/// ```text
/// not linearizable: no order of these 3 of 16 calls is allowed
///
/// thread 0  ├push(329)┤├pop: 329┤
/// thread 1              ├pop: 329┤
///
/// possible: push(329) (thread 0), pop: 329 (thread 0)
/// then the state is [], and this cannot come next: pop: 329 (thread 1)
/// ```
pub struct Violation<S: Specification> {
    /// The part.
    history: HistoryOf<S>,
    /// The number of calls of the whole history.
    of: usize,
    /// The longest order of calls that the specification allows, and its state.
    furthest: Furthest<S>,
}

impl<S: Specification> Violation<S> {
    pub(crate) fn new(history: HistoryOf<S>, of: usize, furthest: Furthest<S>) -> Self {
        Self { history, of, furthest }
    }

    /// Returns the calls that show the violation. Those that went on when it showed are unfinished.
    #[must_use]
    pub const fn history(&self) -> &HistoryOf<S> {
        &self.history
    }

    /// Returns the longest order that is possible, as positions in the calls of
    /// [`history`](Self::history).
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.furthest.order
    }

    /// Returns the state after that order.
    #[must_use]
    pub const fn state(&self) -> &S {
        &self.furthest.state
    }

    /// The calls of which one would have to come next, and none can.
    fn stuck(&self) -> impl Iterator<Item = &CallOf<S>> {
        let left = |place: &usize| !self.furthest.order.contains(place);
        let calls = self.history.calls();
        let left: Vec<_> = (0..calls.len()).filter(left).map(|place| &calls[place]).collect();
        let horizon = left.iter().map(|call| call.end).min();
        left.into_iter().filter(move |call| call.outcome.is_some() && Some(call.begin) <= horizon)
    }
}

type CallOf<S> = Call<<S as Specification>::Operation, <S as Specification>::Outcome>;

fn named<'c, S: Specification + 'c>(calls: impl Iterator<Item = &'c CallOf<S>>) -> String {
    let name = |call: &CallOf<S>| {
        let label = S::describe(&call.operation, call.outcome.as_ref());
        format!("{label} (thread {})", call.thread)
    };
    calls.map(name).collect::<Vec<_>>().join(", ")
}

impl<S: Specification> fmt::Display for Violation<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.history.calls();
        write!(f, "not linearizable: no order of these {} ", calls.len())?;
        if calls.len() < self.of {
            write!(f, "of {} ", self.of)?;
        }
        writeln!(f, "calls is allowed\n")?;
        writeln!(f, "{}", timeline::draw::<S>(&self.history))?;
        let order = &self.furthest.order;
        if order.is_empty() {
            write!(f, "at first, in the state {:?}", self.furthest.state)?;
        } else {
            let order = named::<S>(order.iter().map(|place| &calls[*place]));
            writeln!(f, "possible: {order}")?;
            write!(f, "then the state is {:?}", self.furthest.state)?;
        }
        write!(f, ", and this cannot come next: {}", named::<S>(self.stuck()))
    }
}

impl<S: Specification> fmt::Debug for Violation<S> {
    /// As displayed, so that `unwrap` shows the drawing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<S: Specification> core::error::Error for Violation<S> {}
