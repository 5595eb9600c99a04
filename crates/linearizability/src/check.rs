//! The check: decides whether a history is linearizable. If it is not, finds the smallest part that
//! shows it.
//!
//! A history is linearizable if each call can be given a moment between its beginning and its end
//! so that, one call after another at these moments, the specification allows every outcome.
//!
//! - The history of a [container](crate::specification::Container) with distinct values: `monitor`
//!   checks it, in polynomial time.
//! - Any other history: `search` checks it. It takes exponential time, within a [`Budget`].
//!
//! An order that the monitor finds counts only after the specification has allowed it call by call.
//! So a specification may allow less than the container that it describes itself as. If it does not
//! allow the order, then the search decides.

use std::collections::HashMap;

use crate::budget::{Budget, Purse, Undecided};
use crate::minimize::minimize;
use crate::monitor::{self, Answer};
use crate::search::{Found, search};
use crate::specification::container::{Container, Kind};
use crate::violation::Violation;
use crate::{HistoryOf, Specification};

/// No order of the calls was found.
#[derive(thiserror::Error)]
pub enum CheckError<S: Specification> {
    /// There is none.
    #[error(transparent)]
    Violation(Violation<S>),
    /// The budget was spent.
    #[error(transparent)]
    Undecided(#[from] Undecided),
}

impl<S: Specification> core::fmt::Debug for CheckError<S> {
    /// As displayed, so that `unwrap` shows the drawing.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl<S: Specification> CheckError<S> {
    /// Returns the violation, if there is one.
    #[must_use]
    pub fn violation(self) -> Option<Violation<S>> {
        match self {
            Self::Violation(violation) => Some(violation),
            Self::Undecided(_) => None,
        }
    }
}

/// Looks for an order of the calls of `history` that `initial` allows, within the default
/// [`Budget`]. Returns the positions of the calls in [`History::calls`](crate::History::calls),
/// first to last. Unfinished calls that had no effect may be left out.
///
/// A history of a [container](crate::specification::Container) takes polynomial time if each value
/// is pushed once: 2,000 calls of 4 threads some milliseconds. Other histories may take time and
/// memory exponential in the number of calls that overlap, up to the budget.
///
/// # Errors
///
/// [`CheckError::Violation`], if there is no such order. It holds a small part of the history that
/// has none either, and displays it as a drawing. [`CheckError::Undecided`], if the budget was
/// spent before there was an answer.
///
/// ```
/// use stanchion_linearizability::specification::Operation::{Pop, Push};
/// use stanchion_linearizability::specification::Outcome::{Popped, Pushed};
/// use stanchion_linearizability::specification::Stack;
/// use stanchion_linearizability::{Event::{Begin, End}, History, check};
///
/// let history = History::from_events([
///     Begin(0, Push(1)),
///     Begin(1, Pop),
///     End(1, Popped(Some(1))),
///     End(0, Pushed),
///     Begin(0, Pop),
///     End(0, Popped(Some(1))),
/// ])?;
/// let violation = check(&Stack::new(), &history).unwrap_err();
/// assert!(violation.to_string().contains("pop: 1"));
/// # Ok::<(), stanchion_linearizability::Malformed>(())
/// ```
pub fn check<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
) -> Result<Vec<usize>, CheckError<S>> {
    check_within(Budget::new(), initial, history)
}

/// As [`check()`], within another budget. If there is a violation, up to three times the budget is
/// spent on making it small and on explaining it.
///
/// # Errors
///
/// As [`check()`].
pub fn check_within<S: Specification>(
    budget: Budget,
    initial: &S,
    history: &HistoryOf<S>,
) -> Result<Vec<usize>, CheckError<S>> {
    match decide(initial, history, &mut Purse::new(budget)) {
        Decision::Order(order) => Ok(order),
        Decision::Impossible => Err(CheckError::Violation(small(budget, initial, history))),
        Decision::Undecided => Err(Undecided { calls: history.calls().len(), budget }.into()),
    }
}

/// The three answers.
enum Decision {
    Order(Vec<usize>),
    Impossible,
    Undecided,
}

fn decide<S: Specification>(initial: &S, history: &HistoryOf<S>, purse: &mut Purse) -> Decision {
    if let Some(container) = initial.container(history) {
        match monitor::explain(&container, purse) {
            Answer::Impossible => return Decision::Impossible,
            Answer::Order(order) if allows(initial, history, &order) => {
                return Decision::Order(order);
            }
            Answer::Order(_) | Answer::Unknown => {}
        }
    }
    match search(initial, history, purse) {
        Found::Order(order) => Decision::Order(order),
        Found::Nothing(_) => Decision::Impossible,
        Found::Undecided(_) => Decision::Undecided,
    }
}

/// Returns whether the specification allows this order, which has all calls that returned.
fn allows<S: Specification>(initial: &S, history: &HistoryOf<S>, order: &[usize]) -> bool {
    /// So many states are followed where calls may lead to several.
    const STATES: usize = 16;
    let returned = history.calls().iter().filter(|call| call.outcome.is_some()).count();
    let in_order = order.iter().filter(|call| history.calls()[**call].outcome.is_some()).count();
    let mut states = vec![initial.clone()];
    for position in order {
        let call = &history.calls()[*position];
        let mut after = Vec::new();
        for state in &states {
            state.step(&call.operation, call.outcome.as_ref(), &mut after);
        }
        after.truncate(STATES);
        states = after;
    }
    in_order == returned && !states.is_empty()
}

/// A small part of a history that has no order, and has none either.
fn small<S: Specification>(budget: Budget, initial: &S, history: &HistoryOf<S>) -> Violation<S> {
    let mut purse = Purse::new(budget);
    let values = without_values(initial, history, &mut purse);
    let cut = shortest(initial, &values, &mut Purse::new(budget));
    // Calls that needed values may have been cut off.
    let cut = without_values(initial, &cut, &mut purse);
    let furthest = match search(initial, &cut, &mut Purse::new(budget)) {
        Found::Nothing(furthest) | Found::Undecided(furthest) => furthest,
        Found::Order(_) => {
            unreachable!("the monitor and the search contradict each other: {cut:?}")
        }
    };
    Violation::new(cut, history.calls().len(), furthest)
}

/// The history without the calls of the values that are not needed to show that there is no order.
///
/// If a container has an order of a history, then it has one of the history without all calls of a
/// value. That does not hold for calls to which it matters that the value is there: those that find
/// the container not empty, and refused pushes. So as long as such a call stays, the values stay
/// that may be there meanwhile.
fn without_values<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
    purse: &mut Purse,
) -> HistoryOf<S> {
    let Some(container) = initial.container(history) else { return history.clone() };
    // What can go together: all calls of a value, or one other call.
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut of_value: HashMap<usize, Vec<usize>> = HashMap::new();
    for (position, call) in container.calls.iter().enumerate() {
        match call.kind.value() {
            Some(value) => of_value.entry(value).or_default().push(position),
            None => parts.push(vec![position]),
        }
    }
    parts.sort_by_key(|part| !container.calls[part[0]].kind.needs_values());
    // Values that are there at first cannot go.
    let fixed = |value: &usize| container.initial.contains(value);
    let (kept, values): (Vec<_>, Vec<_>) =
        of_value.into_iter().partition(|(value, _)| fixed(value));
    let mut values: Vec<_> = values.into_iter().map(|(_, positions)| positions).collect();
    values.sort_unstable();
    parts.extend(values);
    let parts = minimize(parts, |parts| {
        let mut keeps = vec![false; container.calls.len()];
        let kept = kept.iter().flat_map(|(_, positions)| positions);
        kept.chain(parts.iter().flatten()).for_each(|position| keeps[*position] = true);
        container.can_lose(&keeps)
            && matches!(decide(initial, &history.only(&keeps), purse), Decision::Impossible)
    });
    let mut keeps = vec![false; container.calls.len()];
    let kept = kept.iter().flat_map(|(_, positions)| positions);
    kept.chain(parts.iter().flatten()).for_each(|position| keeps[*position] = true);
    history.only(&keeps)
}

impl Kind {
    /// Returns whether such a call needs values in the container.
    const fn needs_values(self) -> bool {
        matches!(self, Self::NotEmpty | Self::Refused)
    }
}

impl Container {
    /// Returns whether the calls that `keeps` leaves out can go: no call that stays needs their
    /// values.
    fn can_lose(&self, keeps: &[bool]) -> bool {
        let calls = || self.calls.iter().zip(keeps);
        let mut needing = calls().filter(|(call, keep)| **keep && call.kind.needs_values());
        needing.all(|(needing, _)| {
            // For each value that goes, the pushes that may come before the end of the call, and
            // the pops that have come before its beginning: if these are as many, it is not there.
            let mut there: HashMap<usize, i64> = HashMap::new();
            for (call, _) in calls().filter(|(_, keep)| !**keep) {
                match call.kind {
                    Kind::Push(value) if call.begin <= needing.end => {
                        *there.entry(value).or_default() += 1;
                    }
                    Kind::Pop(value) if call.end < needing.begin => {
                        *there.entry(value).or_default() -= 1;
                    }
                    _ => {}
                }
            }
            there.values().all(|values| *values <= 0)
        })
    }
}

/// The shortest beginning of a history without an order that is known to have none either.
///
/// A beginning of a linearizable history is linearizable, so the beginnings that fail are those
/// from some end on.
fn shortest<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
    purse: &mut Purse,
) -> HistoryOf<S> {
    let mut ends: Vec<_> = history.calls().iter().map(|call| call.end).collect();
    ends.retain(|end| *end != u64::MAX);
    ends.sort_unstable();
    let (mut passes, mut fails) = (0, ends.len().saturating_sub(1));
    while passes < fails {
        let middle = passes.midpoint(fails);
        match decide(initial, &history.until(ends[middle]), purse) {
            Decision::Impossible => fails = middle,
            Decision::Order(_) | Decision::Undecided => passes = middle + 1,
        }
    }
    ends.get(fails).map_or_else(|| history.clone(), |end| history.until(*end))
}
