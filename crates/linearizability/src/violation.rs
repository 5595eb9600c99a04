//! A history that is not linearizable, and how to see it.

use core::fmt;

use crate::check::Furthest;
use crate::history::Call;
use crate::{HistoryOf, Specification, timeline};

/// Threads have seen something that no order of their calls explains.
///
/// It displays itself as a drawing of the calls up to the first outcome that cannot be explained, the longest order that is possible, and what
/// then cannot follow:
///
/// ```text
/// not linearizable: no order of these 4 calls is allowed
///
/// thread 0  ├push(329)┤├pop: 329┤
/// thread 1              ├pop: 329┤
/// thread 2               ├pop┄┄┄┄┄┄
///
/// possible: push(329) (thread 0), pop: 329 (thread 0), pop (thread 2); then the state is [], and this cannot come next: pop: 329 (thread 1)
/// ```
pub struct Violation<S: Specification> {
    history: HistoryOf<S>,
    furthest: Furthest<S>,
}

impl<S: Specification> Violation<S> {
    pub(crate) fn new(history: HistoryOf<S>, furthest: Furthest<S>) -> Self {
        Self { history, furthest }
    }

    /// The calls until the first outcome that cannot be explained; those that went on then are unfinished.
    #[must_use]
    pub const fn history(&self) -> &HistoryOf<S> {
        &self.history
    }

    /// The longest order that was possible, as places in [`calls`](crate::History::calls).
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.furthest.order
    }

    /// The state after it.
    #[must_use]
    pub const fn state(&self) -> &S {
        &self.furthest.state
    }

    /// The calls that would have to come next, of which none can.
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
        writeln!(f, "not linearizable: no order of these {} calls is allowed\n", calls.len())?;
        writeln!(f, "{}", timeline::draw::<S>(&self.history))?;
        let order = &self.furthest.order;
        if order.is_empty() {
            write!(f, "at first, in the state {:?}", self.furthest.state)?;
        } else {
            let order = named::<S>(order.iter().map(|place| &calls[*place]));
            write!(f, "possible: {order}; then the state is {:?}", self.furthest.state)?;
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
